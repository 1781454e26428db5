"""Opening inputs, and decoding them a little ahead of need on threads of their own."""

from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike

from oasr.audio import Audio, AudioStream, RawAudio, Source, detached, open_audio, read_audio
from oasr.config import AudioConfig
from oasr.engine.request import Request
from oasr.engine.supply import Piece, unreadable
from oasr.engine.window import as_error
from oasr.errors import OasrError


def open_source(source: Source | Audio, rate: int, limits: AudioConfig) -> AudioStream:
    """An input at a rate in Hz. Raises an `OasrError` for what is wrong with its start."""
    with _naming(source):
        if isinstance(source, Audio):
            if source.sample_rate != rate:
                resampled = read_audio((source.samples, source.sample_rate), target_rate=rate, limits=limits)
                source = replace(source, samples=resampled.samples, sample_rate=rate)
            return AudioStream.of(source)
        if isinstance(source, tuple):  # which is the caller's to change
            return AudioStream.of(read_audio(source, target_rate=rate, limits=limits))
        return open_audio(source, target_rate=rate, limits=limits)


def own_source(source: Source | Audio, limits: AudioConfig) -> Source | Audio:
    """An input that can be read when its owner has closed it. Raises as `open_source`."""
    with _naming(source):
        return source if isinstance(source, Audio) else detached(source, limits)


@contextmanager
def _naming(source: object) -> Iterator[None]:
    """Gives errors of file objects and libraries a type and the input's name: one must not end a batch."""
    try:
        yield
    except OasrError:
        raise
    except Exception as error:
        raise unreadable(source_name(source), error) from error


def source_name(source: object) -> str:
    """How an input is named that could not be read."""
    if isinstance(source, Audio):
        return source.source
    if isinstance(source, RawAudio):
        source = source.content
    return str(source) if isinstance(source, str | PathLike) else f"<{type(source).__name__}>"


class Readers:
    """Threads that decode what requests will need. Not thread-safe itself: the engine's lock guards it."""

    def __init__(self, threads: int, most_windows: int):
        """`most_windows` are decoded ahead of need, in all, where windows do not wait for each other."""
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="oasr-read")
        self._most_windows = most_windows
        self._reads: dict[Future[list[Piece]], Request] = {}

    def read_on(self, requests: Iterable[Request], at_hand: int) -> None:
        """Have more decoded of the inputs that will need it; `at_hand` counts the windows given to the scheduler."""
        unread = [request for request in requests if request.reading is None and not request.supply.ended]
        at_hand += sum(len(request.waiting) for request in unread)
        for request in unread:
            if request.is_short or (request.ahead is None and at_hand < self._most_windows):
                request.reading = self._pool.submit(request.supply.read_on)
                self._reads[request.reading] = request
                at_hand += 1

    def heard(self, *, idle: bool) -> Iterator[tuple[Request, OasrError | None]]:
        """Requests that more has been decoded of, or what was wrong with it. Waits for one when `idle`."""
        if idle and self._reads:
            wait(self._reads, return_when=FIRST_COMPLETED)
        for read in [future for future in self._reads if future.done()]:
            request = self._reads.pop(read, None)
            if request is None:
                continue  # it ended while others were told of
            request.reading = None
            try:
                request.hear(read.result())
            except Exception as error:
                yield request, as_error(error)
            else:
                yield request, None

    def leave(self, request: Request) -> None:
        """Close the input of a request that has ended."""
        if request.reading is None:
            request.supply.close()
        else:
            del self._reads[request.reading]
            request.reading.add_done_callback(lambda _: request.supply.close())  # not while a thread reads it

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
