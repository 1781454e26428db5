"""A head whose features are log-probabilities, and ways to run a search over it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import FrameSynchronousDecoder, Spelling
from oasr.interfaces.heads import CTCHead
from oasr.tokenizers.pieces import PieceTokenizer
from oasr.types import DecodingOptions

Search = Callable[..., list[list[Spelling]]]


class Recorded(CTCHead):
    """Features are log-probabilities."""

    blank = 0

    def __init__(self, vocabulary_size: int):
        self.vocabulary_size = vocabulary_size

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        return frames


@pytest.fixture
def search(device: str) -> Search:
    """Runs a search over log-probabilities (time, vocabulary) of several rows at once."""

    def run(
        decoder: FrameSynchronousDecoder,
        inputs: Sequence[torch.Tensor],
        options: DecodingOptions | Sequence[DecodingOptions] = DecodingOptions(),  # noqa: B008
        tokenizer: Any = None,
    ) -> list[list[Spelling]]:
        vocabulary = inputs[0].shape[-1]
        head = Recorded(vocabulary)
        tokenizer = tokenizer or PieceTokenizer(["<blk>", *(f"<{token}>" for token in range(1, vocabulary))])
        wishes = [options] * len(inputs) if isinstance(options, DecodingOptions) else options
        rows = [decoder.start(head, wish, tokenizer) for wish in wishes]
        lengths = torch.tensor([len(frames) for frames in inputs], device=device)
        frames = pad_sequence(list(inputs), batch_first=True).to(device)
        decoder.advance(head, EncoderOutput(frames, lengths), rows)
        return [decoder.spellings(row) for row in rows]

    return run
