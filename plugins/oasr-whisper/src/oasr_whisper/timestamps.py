"""Timestamps among the tokens: the rule that keeps them in order, and the segments they mark.

The rule and the way a window resumes follow openai/whisper (decoding.py ApplyTimestampRules, transcribe.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from oasr.interfaces.heads import SpokenSegment, WindowReading
from oasr.interfaces.logits_rule import LogitsRule
from oasr_whisper.config import ControlTokens

SECONDS_PER_STEP = 0.02


@dataclass(frozen=True)
class TimestampRule(LogitsRule):
    """Timestamps come in pairs, never go back, open the text, and are taken when they are likelier than all text."""

    begin: int
    """Id of the time 0.00."""
    end: int
    """Id of the end token; ids below are text."""
    no_timestamps: int
    latest_first: int
    """Most steps the first timestamp may be at."""

    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        ids = torch.arange(logits.shape[1], device=logits.device)
        text, times = ids < self.end, ids >= self.begin
        last, before_last = _from_the_end(generated, counts, 1), _from_the_end(generated, counts, 2)
        after_time = (counts >= 1) & (last >= self.begin)
        after_pair = after_time & ((counts < 2) | (before_last >= self.begin))
        after_opening = after_time & ~after_pair
        said = torch.arange(generated.shape[1], device=logits.device) < counts[:, None]
        latest = generated.masked_fill(~said | (generated < self.begin), self.begin - 1).amax(dim=1)
        # A lone timestamp may be repeated, which closes one segment and opens the next at the same time.
        earliest = torch.where(latest < self.begin, self.begin, latest + (~after_opening).long())
        forbidden = (ids == self.no_timestamps) | (after_pair[:, None] & times) | (after_opening[:, None] & text)
        forbidden = forbidden | (times & (ids < earliest[:, None]))
        first = (counts == 0)[:, None]
        forbidden = forbidden | (first & (~times | (ids > self.begin + self.latest_first)))
        logits = logits.masked_fill(forbidden, -torch.inf)
        log_probs = logits.log_softmax(dim=-1)
        any_time = log_probs[:, self.begin :].logsumexp(dim=-1)
        likeliest_text = log_probs[:, : self.begin].amax(dim=-1)
        prefer_time = (any_time > likeliest_text)[:, None] & ~times
        return logits.masked_fill(prefer_time, -torch.inf)


def _from_the_end(generated: torch.Tensor, counts: torch.Tensor, place: int) -> torch.Tensor:
    """The token `place` before the end of each row; anything where there is none."""
    return generated.gather(1, (counts - place).clamp(min=0)[:, None])[:, 0]


def read_window(tokens: Sequence[int], control: ControlTokens, seconds: float) -> WindowReading:
    """The segments that pairs of timestamps mark in a window of so many seconds, and where the next window starts.

    Text after the last complete pair is read again from there, unless the window ends with a single timestamp, which
    says that nothing follows.
    """
    is_time = [token >= control.timestamp_begin for token in tokens]
    ends_once = is_time[-2:] == [False, True]
    cuts = [i for i in range(1, len(tokens)) if is_time[i] and is_time[i - 1]]
    if not cuts:
        times = [token for token, time in zip(tokens, is_time, strict=True) if time]
        end = seconds
        if times and times[-1] != control.timestamp_begin:
            end = min(_seconds(times[-1], control), seconds)
        return WindowReading((SpokenSegment(0.0, end, _text(tokens, control), tuple(tokens)),), seconds)
    if ends_once:
        cuts.append(len(tokens))
    segments = []
    start = 0
    for cut in cuts:
        piece = tokens[start:cut]
        opens, closes = min(_seconds(piece[0], control), seconds), min(_seconds(piece[-1], control), seconds)
        segments.append(SpokenSegment(opens, max(opens, closes), _text(piece, control), tuple(piece)))
        start = cut
    resume = seconds if ends_once else _seconds(tokens[cuts[-1] - 1], control)
    return WindowReading(tuple(segments), min(resume, seconds))


def _seconds(token: int, control: ControlTokens) -> float:
    return max(token - control.timestamp_begin, 0) * SECONDS_PER_STEP


def _text(tokens: Sequence[int], control: ControlTokens) -> tuple[int, ...]:
    return tuple(token for token in tokens if token < control.end)
