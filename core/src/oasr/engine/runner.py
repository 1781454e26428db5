"""Computes what the scheduler planned: encoding, languages, prompts, and then the rows as one batch."""

from collections.abc import Sequence

import torch

from oasr.engine.decoding import DecodeBatch, Reading
from oasr.engine.encoding import AudioEncoder
from oasr.engine.isolation import isolate
from oasr.engine.window import Decoded, Window, as_error
from oasr.errors import OasrError, RequestError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import Breadth, LabelSynchronousDecoder
from oasr.interfaces.heads import AutoregressiveHead, SpokenSegment, WindowReading
from oasr.interfaces.tokenizer import Tokenizer
from oasr.types import DecodingOptions, Word


class Runner:
    """One model on one device.

    A failure belongs to one window: a batch that fails is split until the window at fault is alone.
    """

    writes = True
    """The model writes its text token by token: it sets the blanks itself, and may lose the thread, where drawing again
    helps."""

    def __init__(
        self,
        encoder: AudioEncoder,
        tokenizer: Tokenizer,
        decoder: LabelSynchronousDecoder,
        rows: int,
    ):
        model = encoder.model
        self.model = model
        self.rows = rows
        self._encoder = encoder
        self._tokenizer = tokenizer
        self._decoder = decoder
        self._head: AutoregressiveHead = model.head("autoregressive")
        self._batches: dict[Breadth, DecodeBatch] = {}
        self._batch(Breadth())  # now, so that a lack of memory shows before any work

    @property
    def busy(self) -> bool:
        return any(batch.readings for batch in self._batches.values())

    @property
    def detects_language(self) -> bool:
        return bool(self._head.language_prompt)

    def read(self, decoded: Decoded, seconds: float) -> WindowReading:
        """What the tokens of a window of so many seconds say."""
        return self._head.read(decoded.tokens, seconds)

    @torch.inference_mode()
    def words(self, window: Window, decoded: Decoded, segments: Sequence[SpokenSegment]) -> list[list[Word]]:
        """When the words of each segment of a window were said; nothing where that was not asked for."""
        if decoded.encoded is None or not segments:
            return [[] for _ in segments]
        seconds = len(window.samples) / self.model.facts.sample_rate
        with self._encoder.on_device():
            return self._head.words(
                decoded.encoded, seconds, segments, window.options, window.language, self._tokenizer
            )

    def check(self, options: DecodingOptions) -> None:
        """Raise `RequestError` for what the model or the search cannot honour."""
        facts = self.model.facts
        for option, offered in (("timestamps", facts.timestamps), ("word_timestamps", facts.word_timestamps)):
            if getattr(options, option) and not offered:
                raise RequestError(f"this model cannot honour {option}; leave it unset")
        self._head.check(options)
        self._decoder.check(options)
        if options.prompt or options.prefix or options.hotwords:  # which have to fit
            self._head.prompt(options, options.language, (), self._tokenizer)

    @property
    def margin_samples(self) -> int:
        """How far around an excerpt its features reach."""
        return self._encoder.frontend.margin_samples

    def frames(self, samples: int) -> int:
        """Feature frames a window of so many samples costs."""
        return self._encoder.frontend.frames(samples)

    @torch.inference_mode()
    def start(self, windows: Sequence[Window]) -> tuple[list[Window], dict[Window, OasrError]]:
        """Encode windows and read their prompts. Returns those that decode now and those that failed.

        A window in neither found no room and can be given again.
        """
        started: list[Window] = []
        failed: dict[Window, OasrError] = {}
        alike: dict[Breadth, list[Window]] = {}
        for window in windows:
            try:
                alike.setdefault(self._decoder.breadth(window.options), []).append(window)
            except Exception as error:
                failed[window] = as_error(error)
        with self._encoder.on_device():
            for breadth, group in alike.items():
                try:
                    batch = self._batch(breadth)
                except Exception as error:  # no memory for so many hypotheses
                    failed.update((window, as_error(error)) for window in group)
                    continue
                started += self._start_alike(batch, group, failed)
        return started, failed

    def _batch(self, breadth: Breadth) -> DecodeBatch:
        """The windows that are searched so broadly: of one shape, and so one batch."""
        if breadth not in self._batches:
            windows = max(1, self.rows // breadth.rows)
            model = self.model
            self._batches[breadth] = DecodeBatch(self._head, self._decoder, breadth, windows, model.device, model.dtype)
        return self._batches[breadth]

    def _start_alike(
        self, batch: DecodeBatch, windows: Sequence[Window], failed: dict[Window, OasrError]
    ) -> list[Window]:
        readings: list[Reading] = []
        for window in windows:
            try:
                reading = batch.take(window)
            except Exception as error:
                failed[window] = as_error(error)
                continue
            if reading is None:
                break
            readings.append(reading)
        self._encode(batch, readings, failed)
        batch.regroup()
        return [reading.window for reading in readings if reading in batch.readings]

    @torch.inference_mode()
    def advance(self) -> list[tuple[Window, Decoded | OasrError]]:
        """Decode one token of every row, on a GPU several; returns the windows that finished."""
        with self._encoder.on_device():
            return [done for batch in self._batches.values() if batch.readings for done in batch.advance()]

    @torch.inference_mode()
    def drop(self, window: Window) -> None:
        """Forget a window that is being decoded."""
        for batch in self._batches.values():
            for reading in batch.readings:
                if reading.window is window:
                    batch.remove(reading)
                    batch.regroup()
                    return

    def _encode(self, batch: DecodeBatch, readings: Sequence[Reading], failed: dict[Window, OasrError]) -> None:
        def attempt(some: Sequence[Reading]) -> None:
            left = [reading for reading in some if reading in batch.readings]
            for reading in left:
                batch.release(reading)  # what an attempt in company has reserved
            if left:
                self._encode_batch(batch, left, failed)

        for reading, error in isolate(readings, attempt):
            failed[reading.window] = error
            batch.remove(reading)

    def _encode_batch(self, batch: DecodeBatch, readings: Sequence[Reading], failed: dict[Window, OasrError]) -> None:
        encoded = self._encoder.encode_windows([reading.window for reading in readings])
        self._detect_languages(batch, readings, encoded)
        ready = []
        for index, reading in enumerate(readings):
            window = reading.window
            try:
                prompt = self._head.prompt(window.options, window.language, window.context, self._tokenizer)
            except Exception as error:
                failed[window] = as_error(error)
                batch.remove(reading)
                continue
            if not batch.reserve(reading, len(prompt.tokens), prompt.max_new_tokens):
                batch.remove(reading)
                continue
            reading.prompt = prompt
            reading.encoded = encoded.frames[index].clone() if window.options.word_timestamps else None
            ready.append(index)
        if ready:
            kept = torch.tensor(ready, device=encoded.frames.device)
            batch.begin([readings[i] for i in ready], EncoderOutput(encoded.frames[kept], encoded.lengths[kept]))

    def _detect_languages(self, batch: DecodeBatch, readings: Sequence[Reading], encoded: EncoderOutput) -> None:
        """Let the model name the language of the windows that do not say it: the likeliest of those allowed."""
        asking = [i for i, reading in enumerate(readings) if reading.window.language is None]
        if not asking or not self._head.language_prompt:
            return
        index = torch.tensor(asking, device=encoded.frames.device)
        prompts = [self._head.language_prompt] * len(asking)
        for i in asking:
            # Room for the longest prompt is kept for each window taken, so this much is there.
            assert batch.reserve(readings[i], len(self._head.language_prompt), 0)
        try:
            logits, _ = batch.read(
                [readings[i] for i in asking], prompts, EncoderOutput(encoded.frames[index], encoded.lengths[index])
            )
        finally:
            for i in asking:
                batch.release(readings[i])
        codes = list(self._head.language_tokens)
        scores = logits[:, list(self._head.language_tokens.values())].cpu()
        for i, row_scores in zip(asking, scores, strict=True):
            window = readings[i].window
            if not row_scores.isfinite().all():
                continue  # the window will be found out when it is decoded
            allowed = [n for n, code in enumerate(codes) if code in (window.options.languages or codes)]
            probability, best = row_scores[allowed].softmax(dim=0).max(dim=0)
            window.language, window.language_probability = codes[allowed[int(best)]], float(probability)
