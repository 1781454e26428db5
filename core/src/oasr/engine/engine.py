"""The engine: requests in, transcripts out, as many at once as fit."""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from types import TracebackType
from typing import Any, overload

from oasr.audio import Audio, Source
from oasr.config import EngineConfig
from oasr.engine.batch import READ_AHEAD, Steps, read_each, transcript_of
from oasr.engine.build import assemble
from oasr.engine.live import LiveStream
from oasr.engine.reading import Readers, open_source, own_source, source_name
from oasr.engine.request import Request, new_request
from oasr.engine.second_reading import SecondReading
from oasr.engine.session import Session
from oasr.engine.streams import Streams, as_samples
from oasr.engine.window import Decoded, Window, as_error
from oasr.errors import (
    AudioError,
    BatchError,
    ConfigError,
    DeviceError,
    OasrError,
    RequestAbortedError,
    RequestError,
)
from oasr.plugin import Kind
from oasr.registry import Registry, default_registry
from oasr.scheduler.scheduler import Scheduler
from oasr.types import DecodingOptions, EngineInfo, LiveOptions, Outcome, StepStats, StreamEvent, Transcript


class ASREngine:
    """One model, many requests.

    `transcribe` is all most programs need. Servers and batch jobs that mix many inputs use `add_request` with `step`
    or `run`, or `transcribe_each`. All methods may be called from any thread; outcomes of `add_request` go to whichever
    thread steps, so let one do it.
    """

    def __init__(self, config: EngineConfig, registry: Registry | None = None):
        """Load the model. Raises an `OasrError` that says what is missing or does not fit together."""
        if not isinstance(config, EngineConfig):
            raise ConfigError(f"ASREngine takes a configuration, as in EngineConfig(model='tiny-en'), not {config!r}")
        registry = registry or default_registry()
        self._config = config
        self._parts = assemble(config, registry)
        self._registry = registry
        self._runner = self._parts.runner(self._parts.dtype, self._parts.policy.max_rows)
        self.facts = self._runner.model.facts
        self.info = EngineInfo(
            model=str(self._parts.checkpoint.path),
            architecture=registry.spec(Kind.ARCHITECTURE, self._parts.checkpoint.architecture).name,
            device=str(self._parts.device),
            dtype=str(self._parts.dtype).removeprefix("torch."),
            rows=self._runner.rows,
        )
        self._limits = config.audio
        self._scheduler = Scheduler(self._parts.policy, self._runner.rows, time.monotonic)
        self._observed = registry.hooks.implements("oasr_step_finished")
        self._streams = Streams(self.facts, lambda *shape: self._parts.stream_runner(self._runner, *shape))
        self._lock = threading.Lock()  # guards all that follows; held for the length of a step
        self._requests: dict[int, Request] = {}
        self._owners: dict[int, tuple[Request, Window]] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._float32 = SecondReading(self._parts, self._runner.model.dtype)
        self._readers = Readers(config.audio.workers, READ_AHEAD * self.info.rows)
        # Filled under a lock of their own, so that nobody waits for a step to hand something in.
        self._intake = threading.Lock()
        self._closed = False
        self._arrivals: list[Request] = []
        self._aborts: list[int] = []
        registry.hooks.call("oasr_engine_started", info=self.info)

    def __enter__(self) -> "ASREngine":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @overload
    def transcribe(self, source: Source | Audio, options: DecodingOptions | None = None) -> Transcript: ...
    @overload
    def transcribe(self, source: list[Source | Audio], options: DecodingOptions | None = None) -> list[Transcript]: ...
    def transcribe(
        self, source: Source | Audio | list[Source | Audio], options: DecodingOptions | None = None
    ) -> Transcript | list[Transcript]:
        """Text of one input, or of each in a list.

        An input is a path, the bytes of a file, a binary file object, `(array, sample_rate)` or an `Audio`. Raises the
        error of a single input; for a list, `BatchError` with all outcomes once every input is done.
        """
        if not isinstance(source, list):
            return transcript_of(next(iter(self.transcribe_each([source], options)))[1])
        outcomes = dict(self.transcribe_each(source, options))
        ordered = [outcomes[index] for index in range(len(source))]
        if any(outcome.error is not None for outcome in ordered):
            raise BatchError(ordered)
        return [transcript_of(outcome) for outcome in ordered]

    def transcribe_offline(self, source: Source | Audio, options: DecodingOptions | None = None) -> str:
        """Text of one input."""
        return self.transcribe(source, options).text

    def detect_language(self, source: Source | Audio, languages: Sequence[str] = ()) -> tuple[str, float]:
        """The language spoken at the start of an input, among `languages` if given, and its probability.

        Raises `RequestError` when this model does not tell.
        """
        options = DecodingOptions(languages=tuple(languages), max_new_tokens=1, timestamps=False, fallback=())
        options = self._checked(options)
        if not self._runner.detects_language:
            raise RequestError(f"{self.info.architecture} at {self.info.model} cannot detect the language")
        stream = open_source(source, self.facts.sample_rate, self._limits)
        start = stream.read(self.facts.max_input_samples)[: self.facts.max_input_samples]
        stream.close()
        audio = Audio(start, stream.sample_rate, stream.findings.source)
        result = self.transcribe(audio, options)
        if result.language is None or result.language_probability is None:
            raise RequestError(f"{audio.source}: nobody speaks in it, so it has no language")
        return result.language, result.language_probability

    def transcribe_each(
        self, sources: Iterable[Source | Audio], options: DecodingOptions | None = None
    ) -> Iterator[tuple[int, Outcome]]:
        """Read many inputs; yield (index, outcome) as each ends. A bad input is an outcome, never an exception.

        Inputs are taken from `sources` only a little ahead of decoding, so it may be endless. Leaving the iteration
        aborts what has not ended.
        """
        if isinstance(sources, str | bytes) or not isinstance(sources, Iterable):
            raise RequestError(
                f"transcribe_each takes many inputs, not {type(sources).__name__}; use transcribe for one"
            )
        options = self._checked(options or DecodingOptions())
        steps = Steps(
            lambda source: self._request(source, options), self._submit, self._unread, self._drive, self.abort
        )
        return read_each(
            enumerate(sources), steps, lambda: self._scheduler.running > 0, self._config.audio.workers, self.info.rows
        )

    def add_request(self, source: Source | Audio, options: DecodingOptions | None = None) -> int:
        """Hand in one input; its outcome comes from a later `step` or `run` under the id returned.

        Raises at once what is wrong with the options or the start of the audio; what is wrong later is the outcome.
        """
        options = self._checked(options or DecodingOptions())
        request = self._request(own_source(source, self._limits), options)
        self._submit(request)
        return request.id

    def abort(self, request_id: int) -> None:
        """End a request early: its outcome is a `RequestAbortedError`. An id that has ended already is left alone."""
        if not isinstance(request_id, int):
            raise RequestError(f"abort takes the id that add_request returned, not {request_id!r}")
        with self._intake:
            self._aborts.append(request_id)

    def stream(self, options: DecodingOptions | None = None, live: LiveOptions | None = None) -> Session:
        """A live stream as an object; use it in a `with` block. Raises as `add_streaming_request` does."""
        waiter: Future[Outcome] = Future()
        return Session(self, self._open(options, live, waiter), waiter)

    def add_streaming_request(self, options: DecodingOptions | None = None, live: LiveOptions | None = None) -> int:
        """Open a live stream; its outcome comes from a later `step` under the id returned.

        Raises `RequestError` for what the model or the search cannot honour, and when there is no room for it.
        """
        return self._open(options, live, waiter=None)

    def feed_chunk(self, stream_id: int, samples: Any, is_last: bool = False) -> None:
        """The next samples of a live stream: floats (samples,) at the model's rate, as many or few as there are.

        Raises `RequestError` for anything else; an id that has ended is left alone.
        """
        if not isinstance(stream_id, int):
            raise RequestError(f"feed_chunk takes the id that add_streaming_request returned, not {stream_id!r}")
        self._streams.feed(stream_id, as_samples(samples), is_last)

    def stream_events(self, stream_id: int) -> list[StreamEvent]:
        """What is new in a live stream since the last call, also once after its outcome; empty when it was aborted."""
        with self._lock:
            return self._streams.events(stream_id)

    def settle(self, stream_id: int) -> list[StreamEvent]:
        """Step until a live stream has read all that can be read of it; returns what is new in it."""
        while True:
            with self._lock:
                self._advance()
                stream = self._streams.find(stream_id)
                if stream is None or not stream.is_due:
                    return self._streams.events(stream_id)

    @property
    def busy(self) -> bool:
        """Whether a `step` has anything to do or to return."""
        live = self._streams.busy and not self._closed
        return bool(self._requests or self._arrivals or self._outcomes or live)

    def step(self) -> dict[int, Outcome]:
        """Advance all requests a little; returns the outcomes of those from `add_request` that ended."""
        with self._lock:
            self._advance()
            done, self._outcomes = self._outcomes, {}
        return done

    def run(self) -> dict[int, Outcome]:
        """Step until every request has ended; returns the outcomes of those from `add_request`."""
        outcomes = self.step()
        while self.busy:
            outcomes |= self.step()
        return outcomes

    def close(self) -> None:
        """Abort what is unfinished and let go of the model. The engine takes no requests afterwards."""
        with self._intake:
            if self._closed:
                return
            self._closed = True
        with self._lock:
            self._admit()
            for request in list(self._requests.values()):
                self._fail(request, RequestAbortedError(f"{request.source}: the engine was closed"))
            for stream in self._streams.shut():
                self._end_stream(stream, RequestAbortedError(f"{stream.source}: the engine was closed"))
            self._readers.close()
            del self._runner, self._float32
        self._registry.hooks.call("oasr_engine_stopped", info=self.info)

    def _checked(self, options: DecodingOptions) -> DecodingOptions:
        """The options with languages in the model's own codes."""
        if self._closed:
            raise RequestError("The engine is closed")
        if not isinstance(options, DecodingOptions):
            raise RequestError(f"options must be DecodingOptions, not {options!r}")
        if options.condition_on_previous and self._parts.detector is not None:
            raise RequestError("condition_on_previous: what a detector finds is read at once; leave one of them out")
        if options.timestamps is None:
            options = replace(options, timestamps=self.facts.timestamps)
        options = options.in_codes_of(self.facts.languages)
        self._runner.check(options)
        return options

    def _request(self, source: Source | Audio, options: DecodingOptions) -> Request:
        """A request for an input, opened and decoded as far as its first windows."""
        stream = open_source(source, self.facts.sample_rate, self._limits)
        return new_request(stream, options, self._runner, self._parts.detector)

    def _open(self, options: DecodingOptions | None, live: LiveOptions | None, waiter: "Future[Outcome] | None") -> int:
        options, live = self._checked(options or DecodingOptions()), live or LiveOptions()
        if not isinstance(live, LiveOptions):
            raise RequestError(f"live must be LiveOptions, not {live!r}")
        with self._lock:
            if self._closed:
                raise RequestError("The engine is closed")
            stream = self._streams.open(options, live)
            stream.waiter = waiter
            return stream.id

    def _submit(self, request: Request) -> None:
        with self._intake:
            if self._closed:
                request.supply.close()
                raise RequestError("The engine is closed")
            self._arrivals.append(request)

    def _unread(self, source: Source | Audio, error: OasrError) -> Outcome:
        name = error.source if isinstance(error, AudioError) else source_name(source)
        outcome = Outcome(name, None, error)
        self._registry.hooks.call("oasr_request_finished", outcome=outcome)
        return outcome

    def _drive(self, decoding: "Collection[Future[Outcome]]") -> None:
        """Advance the engine, unless another thread just did so to the end of one of these."""
        with self._lock:
            if decoding and not any(future.done() for future in decoding):
                self._advance()

    # From here on the lock is held.

    def _advance(self) -> None:
        if self._closed:
            return
        self._admit()
        for stream, reason in self._streams.advance():  # live audio goes first: it cannot wait
            self._end_stream(stream, reason)
        idle = not (self._scheduler.waiting or self._scheduler.running or len(self._streams))
        for request, error in self._readers.heard(idle=idle):
            if error is None:
                self._schedule(request)
            else:
                self._fail(request, error)
        self._readers.read_on(self._requests.values(), self._scheduler.waiting + self._scheduler.running)
        planned = self._scheduler.plan()
        if planned:
            self._start([self._owners[key] for key in planned])
        if self._runner.busy:
            for window, result in self._runner.advance():
                self._finish(window, result)
        if self._observed:
            stats = StepStats(
                waiting=self._scheduler.waiting,
                running=self._scheduler.running,
                streams=len(self._streams),
                lag=self._streams.lag,
            )
            self._registry.hooks.call("oasr_step_finished", stats=stats)

    def _admit(self) -> None:
        with self._intake:
            arrivals, aborts = list(self._arrivals), list(self._aborts)
            self._requests.update((request.id, request) for request in arrivals)
            self._arrivals.clear()
            self._aborts.clear()
        for request in arrivals:
            self._schedule(request)
        for request_id in aborts:
            aborted = self._requests.get(request_id)
            if aborted is not None:
                self._fail(aborted, RequestAbortedError(f"{aborted.source}: aborted before it finished"))
            cancelled = self._streams.close(request_id)
            if cancelled is not None:
                self._end_stream(cancelled, RequestAbortedError(f"{cancelled.source}: aborted before it finished"))

    def _end_stream(self, stream: LiveStream, error: OasrError | None) -> None:
        outcome = Outcome(stream.source, None if error else stream.transcript(), error)
        self._hand_out(stream.id, outcome, stream.waiter)

    def _schedule(self, request: Request) -> None:
        """Let the windows that are next wait their turn; end a request that has none left, or never had one."""
        known = request.language is not None or not self._runner.detects_language or bool(request.segments)
        for window in request.take_ready(known):
            self._owners[window.key] = (request, window)
            self._scheduler.add(window.key, window.frames)
        if request.complete:
            self._end(request, Outcome(request.source, request.transcript(), None))

    def _start(self, owned: Sequence[tuple[Request, Window]]) -> None:
        started, failed = self._runner.start([window for _, window in owned])
        self._scheduler.commit([window.key for window in started])
        for window in started:
            request, _ = self._owners[window.key]
            request.named(window)
            self._schedule(request)
        if not started and not failed and not self._runner.busy:
            request, window = owned[0]
            failed[window] = DeviceError(f"{request.source}: the caches have no room even for one window")
        for window, error in failed.items():
            if window.key in self._owners:
                self._fail(self._owners[window.key][0], error)

    def _finish(self, window: Window, result: Decoded | OasrError) -> None:
        if window.key not in self._owners:
            return  # another window of the request failed in the same step
        request, _ = self._owners[window.key]
        if isinstance(result, Decoded) and not result.finite:
            window.language = request.language
            result = self._float32.read(window, request.source)
        if isinstance(result, OasrError):
            self._fail(request, result)
            return
        self._scheduler.commit((), [window.key])
        del self._owners[window.key]
        try:
            request.named(window)
            request.accept(window, result, self._parts.tokenizer)
        except Exception as error:
            self._fail(request, as_error(error))
            return
        self._schedule(request)

    def _fail(self, request: Request, error: OasrError) -> None:
        """End a request with an error and take its windows out, wherever they are."""
        for window in request.open:
            if self._owners.pop(window.key, None) is not None:
                self._scheduler.cancel(window.key)
                self._runner.drop(window)
        self._end(request, Outcome(request.source, None, error))

    def _end(self, request: Request, outcome: Outcome) -> None:
        del self._requests[request.id]
        self._readers.leave(request)
        self._hand_out(request.id, outcome, request.waiter)

    def _hand_out(self, key: int, outcome: Outcome, waiter: "Future[Outcome] | None") -> None:
        self._registry.hooks.call("oasr_request_finished", outcome=outcome)
        if waiter is not None:
            waiter.set_result(outcome)
        else:
            self._outcomes[key] = outcome
