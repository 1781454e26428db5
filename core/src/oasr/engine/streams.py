"""The live streams of one engine."""

import math
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from oasr.engine.live import LiveStream
from oasr.engine.request import new_id
from oasr.engine.stream_runner import StreamRunner
from oasr.errors import OasrError, RequestError
from oasr.interfaces.architecture import ModelFacts
from oasr.interfaces.streaming import StreamingFacts
from oasr.types import DecodingOptions, LiveOptions, StreamEvent

MakeRunner = Callable[[int, int | None], StreamRunner]
"""For a chunk size and a left context in encoder frames."""


class Streams:
    """Streams by id; those of one chunk size and left context form a batch.

    Not thread-safe, but for `feed`: the engine's lock guards it.
    """

    def __init__(self, facts: ModelFacts, make_runner: MakeRunner):
        self._facts = facts
        self._make_runner = make_runner
        self._runners: dict[tuple[int, int | None], StreamRunner] = {}
        self._homes: dict[int, tuple[StreamRunner, LiveStream]] = {}
        self._fed: deque[tuple[int, torch.Tensor, bool]] = deque()
        self._ended_events: dict[int, list[StreamEvent]] = {}
        """Of streams that have ended, not handed out yet."""

    def open(self, options: DecodingOptions, live: LiveOptions) -> LiveStream:
        """A new stream. Raises `RequestError` for what the model cannot do, or when there is no room."""
        facts = self._facts.streaming
        if facts is None:
            raise RequestError(
                "This model cannot read live audio, only whole recordings: take one that was trained to stream"
            )
        shape = self._chunk(facts, live), self._left_context(facts, live)
        runner = self._runners.get(shape)
        if runner is None:
            # Each holds the states of all its streams: those that nobody uses make room.
            self._runners = {each: kept for each, kept in self._runners.items() if kept.streams}
            runner = self._runners[shape] = self._make_runner(*shape)
        stream = runner.open(new_id(), options, live)
        if stream is None:
            raise RequestError(
                f"There is no room for another live stream: {len(runner.streams)} are open; raise streaming.max_streams"
            )
        self._homes[stream.id] = (runner, stream)
        return stream

    def find(self, stream_id: int) -> LiveStream | None:
        home = self._homes.get(stream_id)
        return home[1] if home else None

    def feed(self, stream_id: int, samples: torch.Tensor, last: bool) -> None:
        """More samples (samples,) for a stream; any thread may call it."""
        self._fed.append((stream_id, samples, last))

    def events(self, stream_id: int) -> list[StreamEvent]:
        """What is new in a stream since the last call."""
        stream = self.find(stream_id)
        if stream is None:
            return self._ended_events.pop(stream_id, [])
        found, stream.events = stream.events, []
        return found

    def close(self, stream_id: int) -> LiveStream | None:
        """Take a stream out and return it; None when there is none of this id."""
        runner, stream = self._homes.pop(stream_id, (None, None))
        if runner is not None and stream is not None:
            runner.close(stream)
        return stream

    def shut(self) -> list[LiveStream]:
        """Take all streams out and let go of what computes them; returns those that were open."""
        left = [stream for _, stream in self._homes.values()]
        self._homes.clear()
        self._runners = {}
        self._ended_events.clear()
        self._fed.clear()
        return left

    def __len__(self) -> int:
        return len(self._homes)

    @property
    def busy(self) -> bool:
        return bool(self._fed) or any(runner.busy for runner in list(self._runners.values()))

    @property
    def lag(self) -> float:
        """Seconds, see `StepStats`."""
        return max((runner.lag for runner in self._runners.values()), default=0.0)

    def advance(self) -> list[tuple[LiveStream, OasrError | None]]:
        """Read what is due in all streams; returns those that ended, with the reason if it is an error."""
        while self._fed:
            stream_id, samples, last = self._fed.popleft()
            fed = self.find(stream_id)
            if fed is not None:
                fed.push(samples, last)
        done = [each for runner in self._runners.values() if runner.busy for each in runner.advance()]
        for stream, _ in done:
            del self._homes[stream.id]
            self._ended_events[stream.id] = stream.events
        return done

    def _chunk(self, facts: StreamingFacts, live: LiveOptions) -> int:
        if live.chunk is None:
            return facts.default_chunk
        return self._allowed("chunk", live.chunk, facts.chunks)

    def _left_context(self, facts: StreamingFacts, live: LiveOptions) -> int | None:
        if live.left_context is None:
            return facts.default_left_context
        if math.isinf(live.left_context):
            if facts.left_contexts and None not in facts.left_contexts:
                raise RequestError(f"This model looks back {self._listed(facts.left_contexts)} s, not without a limit")
            return None
        return self._allowed("left_context", live.left_context, facts.left_contexts)

    def _allowed(self, option: str, seconds: float, allowed: tuple[int | None, ...]) -> int:
        frames = max(1, round(seconds / self._facts.frame_shift))
        if allowed and frames not in allowed:
            raise RequestError(f"{option}={seconds:g} s: this model was trained for {self._listed(allowed)} s")
        return frames

    def _listed(self, allowed: tuple[int | None, ...]) -> str:
        shift = self._facts.frame_shift
        return ", ".join("inf" if frames is None else f"{frames * shift:g}" for frames in allowed)


def as_samples(samples: Any) -> torch.Tensor:
    """Samples of a live stream, (samples,) float32 on the CPU. Raises `RequestError` for what are none."""
    try:
        array = np.asarray(samples.detach().cpu() if isinstance(samples, torch.Tensor) else samples)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise RequestError(f"samples of a stream are an array of floats, not {type(samples).__name__}") from error
    if array.ndim != 1 or (len(array) and array.dtype.kind != "f"):
        raise RequestError(
            f"samples of a stream are floats (samples,) from -1 to 1, not {array.dtype} of shape {array.shape}"
        )
    chunk = torch.from_numpy(array.astype(np.float32))
    if not chunk.isfinite().all():
        raise RequestError("samples of a stream must be finite: there is NaN or infinity among them")
    return chunk
