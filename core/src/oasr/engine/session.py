"""A live stream as an object: push samples, read events."""

from concurrent.futures import Future
from types import TracebackType
from typing import TYPE_CHECKING, Any

from oasr.engine.batch import transcript_of
from oasr.errors import RequestError
from oasr.types import Outcome, StreamEvent, Transcript

if TYPE_CHECKING:
    from oasr.engine.engine import ASREngine


class Session:
    """One live stream, as `ASREngine.stream` opens it.

    As a context manager it finishes at the end of the block, and cancels when the block raises.
    """

    def __init__(self, engine: "ASREngine", stream_id: int, outcome: "Future[Outcome]"):
        self.id = stream_id
        self._engine = engine
        self._outcome = outcome

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        else:
            self.cancel()

    def push(self, samples: Any) -> list[StreamEvent]:
        """Take the next samples, floats (samples,) at the model's rate; returns what is new in the text."""
        self._engine.feed_chunk(self.id, samples)
        return self._engine.settle(self.id)

    def finish(self) -> list[StreamEvent]:
        """No samples will follow: read what is left; returns what is new. Finishing twice does nothing."""
        if self._outcome.done():
            return []
        self._engine.feed_chunk(self.id, (), is_last=True)
        return self._engine.settle(self.id)

    def cancel(self) -> None:
        """Give the stream up."""
        self._engine.abort(self.id)
        self._engine.settle(self.id)  # which makes room at once

    @property
    def transcript(self) -> Transcript:
        """All that was said. Raises what the stream failed of, and `RequestError` before its end."""
        if not self._outcome.done():
            raise RequestError("The session has not ended: call finish() before transcript")
        return transcript_of(self._outcome.result())
