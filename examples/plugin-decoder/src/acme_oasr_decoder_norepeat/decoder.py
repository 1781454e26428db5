"""The search. Models that get stuck say a phrase over and over; this one makes them say something else."""

from collections.abc import Sequence

import torch

from acme_oasr_decoder_norepeat.config import NoRepeatConfig
from oasr.errors import RequestError
from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.types import DecodingOptions


class NoRepeatDecoder(LabelSynchronousDecoder):
    """The likeliest token that does not complete an n-gram said before."""

    def __init__(self, config: NoRepeatConfig):
        self._ngram = config.ngram

    def check(self, options: DecodingOptions) -> None:
        super().check(options)
        if options.temperature:
            raise RequestError('Decoder "no-repeat" does not sample; leave temperature at 0')

    def advance(
        self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor, states: Sequence[None]
    ) -> torch.Tensor:
        allowed = logits.masked_fill(self._forbidden(logits.shape[1], generated, counts), -torch.inf)
        # Where everything likely is forbidden, a repetition is better than a token the model rules out.
        stuck = allowed.amax(dim=-1) == -torch.inf
        return torch.where(stuck, logits.argmax(dim=-1), allowed.argmax(dim=-1))

    def _forbidden(self, vocabulary: int, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """bool (rows, vocabulary): what would repeat an n-gram. All on the device: nothing waits for it."""
        rows, time = generated.shape
        forbidden = torch.zeros(rows, vocabulary, dtype=torch.bool, device=generated.device)
        context = self._ngram - 1
        if time < self._ngram:
            return forbidden
        # An n-gram that starts at s ends at s + context; it is a repetition if it starts with the last tokens said.
        starts = time - context
        is_said = torch.arange(starts, device=generated.device) + context < counts[:, None]
        for offset in range(context):
            last = (counts - context + offset).clamp(min=0, max=time - 1)
            is_said &= generated[:, offset : offset + starts] == generated.gather(1, last[:, None])
        ends = generated[:, context:].clamp(max=vocabulary - 1)
        counted = torch.zeros(rows, vocabulary, device=generated.device).scatter_add_(1, ends, is_said.float())
        return counted > 0
