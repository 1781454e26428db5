"""CTC prefix beam search with attention rescoring (U2: Zhang et al., 2020; both directions: U2++, Wu et al., 2021)."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from oasr.errors import ConfigError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import Rescorer, Spelling
from oasr.interfaces.heads import RescoringHead
from oasr.types import DecodingOptions
from oasr_decoder_attention.config import RescoringConfig


class AttentionRescoring(Rescorer):
    """Adds to the weighted score of the CTC search what the attention decoders think of each hypothesis as a whole.

    Tokens, frames and log-probabilities stay those of the search.
    """

    head = "rescoring"
    search = "ctc-prefix-beam"

    def __init__(self, config: RescoringConfig):
        self._config = config

    @torch.inference_mode()
    def rescore(
        self,
        head: RescoringHead,
        encoded: EncoderOutput,
        found: Sequence[Sequence[Spelling]],
        options: Sequence[DecodingOptions],
    ) -> list[list[Spelling]]:
        forward, backward = head.score(encoded, [[each.tokens for each in spellings] for spellings in found])
        share = head.reverse_weight if self._config.reverse_weight is None else self._config.reverse_weight
        attention = forward.double()
        if share and backward is None:
            raise ConfigError(
                f"decoder.reverse_weight is {share}, but the checkpoint has no right-to-left decoder: set it to 0"
            )
        if share and backward is not None:
            attention = (1 - share) * attention + share * backward.double()
        return [self._ordered(spellings, scores) for spellings, scores in zip(found, attention.tolist(), strict=True)]

    def _ordered(self, spellings: Sequence[Spelling], scores: Sequence[float]) -> list[Spelling]:
        weight = self._config.ctc_weight
        scored = [
            replace(spelling, score=weight * spelling.score + score)
            for spelling, score in zip(spellings, scores, strict=False)
        ]
        return sorted(scored, key=lambda spelling: -spelling.score)
