"""Computes windows by a search that reads encoder frames in order: all of a window at once."""

from collections.abc import Sequence

import torch

from oasr.engine.encoding import AudioEncoder
from oasr.engine.isolation import isolate
from oasr.engine.window import Decoded, Hypothesis, Window
from oasr.engine.words import spelled_words
from oasr.errors import OasrError, RequestError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import FrameSynchronousDecoder, Rescorer, Spelling
from oasr.interfaces.heads import SpokenSegment, WindowReading
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions, Word


class FrameRunner:
    """One model on one device.

    A failure belongs to one window: a batch that fails is split until the window at fault is alone.
    """

    detects_language = False
    margin_samples = 0
    writes = False

    def __init__(
        self,
        encoder: AudioEncoder,
        tokenizer: Tokenizer,
        decoder: FrameSynchronousDecoder,
        rescorer: Rescorer | None,
        rows: int,
    ):
        self.model = encoder.model
        self.rows = rows
        self.encoder = encoder
        self.tokenizer = tokenizer
        self.decoder = decoder
        self.rescorer = rescorer
        self.head = encoder.model.head((rescorer or decoder).head)
        self._done: list[tuple[Window, Decoded | OasrError]] = []

    @property
    def busy(self) -> bool:
        return bool(self._done)

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for what the search cannot honour; the times of tokens it always tells."""
        facts = self.model.facts
        if options.task not in facts.tasks:
            raise RequestError(f"This model cannot {options.task}; leave task at {facts.tasks[0]}")
        if not facts.languages and (options.language or options.languages):
            raise RequestError("This model reads the language it was trained on: leave language and languages unset")
        self.decoder.check(options)
        if self.rescorer is not None:
            self.rescorer.check(options)

    def frames(self, samples: int) -> int:
        """Feature frames a window of so many samples costs."""
        return self.encoder.frontend.frames(samples)

    @torch.inference_mode()
    def start(self, windows: Sequence[Window]) -> tuple[list[Window], dict[Window, OasrError]]:
        """Read windows; `advance` hands out what was read. Returns those that were read and those that failed."""
        with self.encoder.on_device():
            failed = dict(isolate(windows, self._read))
        return [window for window in windows if window not in failed], failed

    def advance(self) -> list[tuple[Window, Decoded | OasrError]]:
        """The windows that have been read since the last call."""
        done, self._done = self._done, []
        return done

    def drop(self, window: Window) -> None:
        """Forget a window."""
        self._done = [each for each in self._done if each[0] is not window]

    def read(self, decoded: Decoded, seconds: float) -> WindowReading:
        """The window as one segment, from its first token to its last."""
        best = decoded.hypotheses[0]
        if not best.tokens:
            return WindowReading((), seconds)
        shift = self.model.facts.frame_shift
        start = min(best.frames[0] * shift, seconds)
        end = min((best.frames[-1] + 1) * shift, seconds)
        return WindowReading((SpokenSegment(start, end, best.tokens),), seconds)

    def words(self, window: Window, decoded: Decoded, segments: Sequence[SpokenSegment]) -> list[list[Word]]:
        """When the words of each segment of a window were said; nothing where that was not asked for."""
        if not window.options.word_timestamps or not segments:
            return [[] for _ in segments]
        facts = self.model.facts
        seconds = len(window.samples) / facts.sample_rate
        return [spelled_words(decoded.hypotheses[0], self.tokenizer, facts.frame_shift, seconds)]

    def _read(self, windows: Sequence[Window]) -> None:
        self._done += zip(windows, self._read_batch(windows), strict=True)

    def _read_batch(self, windows: Sequence[Window]) -> list[Decoded]:
        encoded = self.encoder.encode([window.samples for window in windows])
        options = [window.options for window in windows]
        rows = [self.decoder.start(self.head, each, self.tokenizer) for each in options]
        self.decoder.advance(self.head, encoded, rows)
        found = [self.decoder.spellings(row) for row in rows]
        if self.rescorer is not None:
            found = self.rescorer.rescore(self.head, encoded, found, options)
        return [
            Decoded(tuple(map(hypothesis_of, spellings)), None, finite, (), None)
            for spellings, finite in zip(found, finite_rows(encoded), strict=True)
        ]


def hypothesis_of(spelling: Spelling) -> Hypothesis:
    """A spelling as any search's result."""
    tokens = len(spelling.tokens)
    mean = sum(spelling.log_probs) / tokens if tokens else 0.0
    return Hypothesis(spelling.tokens, mean, spelling.frames, spelling.log_probs)


def finite_rows(encoded: EncoderOutput) -> list[bool]:
    """Whether the valid frames of each row are."""
    time = torch.arange(encoded.frames.shape[1], device=encoded.lengths.device)
    sound = encoded.frames.isfinite().all(dim=-1) | (time >= encoded.lengths[:, None])
    return [bool(row) for row in sound.all(dim=1).tolist()]
