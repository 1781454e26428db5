"""What decoders see of the network."""

from collections.abc import Sequence

import torch
from torch.nn.utils.rnn import pad_sequence

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.heads import CTCHead, RescoringHead
from oasr.nn import Linear
from oasr_conformer.config import ConformerConfig, DecoderConfig
from oasr_conformer.decoder import Decoder


class ConformerCTC(CTCHead):
    """Scores of every token at every frame."""

    def __init__(self, config: ConformerConfig, output: Linear):
        self.vocabulary_size = config.vocabulary_size
        self.blank = config.blank
        self._output = output

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        return self._output(frames).float().log_softmax(dim=-1)


class ConformerRescoring(ConformerCTC, RescoringHead):
    """The same beside decoders that score whole hypotheses, from left to right and from right to left."""

    def __init__(
        self, config: ConformerConfig, decoder: DecoderConfig, output: Linear, left: Decoder, right: Decoder | None
    ):
        super().__init__(config, output)
        self.reverse_weight = decoder.reverse_weight
        self._start = decoder.start
        self._end = decoder.end
        self._left = left
        self._right = right

    def score(
        self, encoded: EncoderOutput, hypotheses: Sequence[Sequence[Sequence[int]]]
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        forward = self._direction(self._left, encoded, hypotheses)
        if self._right is None:
            return forward, None
        turned = [[tuple(reversed(tokens)) for tokens in row] for row in hypotheses]
        return forward, self._direction(self._right, encoded, turned)

    def _direction(
        self, decoder: Decoder, encoded: EncoderOutput, hypotheses: Sequence[Sequence[Sequence[int]]]
    ) -> torch.Tensor:
        device = encoded.frames.device
        most = max(map(len, hypotheses))
        padded = [[*row, *[()] * (most - len(row))] for row in hypotheses]
        flat = [torch.tensor([*tokens, self._end]) for row in padded for tokens in row]
        targets = pad_sequence(flat, batch_first=True, padding_value=self._end)
        counts = torch.tensor([len(tokens) for tokens in flat]).view(len(padded), most)
        targets = targets.view(len(padded), most, -1).to(device, non_blocking=True)
        said = torch.arange(targets.shape[2], device=device) < counts.to(device, non_blocking=True)[..., None]
        read = targets.roll(1, dims=2)
        read[..., 0] = self._start
        frames = torch.arange(encoded.frames.shape[1], device=device)
        heard = frames < encoded.lengths.clamp(min=1)[:, None]
        logits = decoder(read, encoded.frames, heard).float()
        chosen = logits.gather(-1, targets[..., None])[..., 0] - logits.logsumexp(dim=-1)
        return chosen.masked_fill(~said, 0.0).sum(dim=-1)
