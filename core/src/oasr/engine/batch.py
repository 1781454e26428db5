"""Reading many inputs: opened a little ahead of need, and handed out as they end."""

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from oasr.audio import Audio, Source
from oasr.engine.request import Request
from oasr.errors import OasrError
from oasr.types import Outcome, Transcript

READ_AHEAD = 2  # windows at hand for each row that decodes, so that the device does not wait for files


@dataclass(frozen=True, slots=True)
class Steps:
    """What an engine does for a batch."""

    open: Callable[[Source | Audio], Request]
    """Open an input and decode its start; any thread may call it."""
    submit: Callable[[Request], None]
    refuse: Callable[[Source | Audio, OasrError], Outcome]
    """The outcome of an input that could not be opened."""
    drive: Callable[[Collection[Future[Outcome]]], None]
    """Advance, unless one of these has ended meanwhile."""
    abort: Callable[[int], None]


def read_each(
    sources: Iterator[tuple[int, Source | Audio]],
    steps: Steps,
    is_running: Callable[[], bool],
    workers: int,
    rows: int,
) -> Iterator[tuple[int, Outcome]]:
    """Read inputs with an engine of so many rows; yield each number and outcome as it ends.

    `is_running` says whether the engine is decoding. Leaving the iteration aborts what has not ended.
    """
    opening: dict[Future[Request], tuple[int, Source | Audio]] = {}
    decoding: dict[Future[Outcome], tuple[int, Request]] = {}
    exhausted = False
    pool = ThreadPoolExecutor(workers, thread_name_prefix="oasr-audio")
    try:
        while True:
            at_hand = sum(max(1, len(request.open) + len(request.waiting)) for _, request in decoding.values())
            while not exhausted and len(opening) + at_hand < READ_AHEAD * rows:
                index, source = next(sources, (-1, ""))
                exhausted = index < 0
                if not exhausted:
                    opening[pool.submit(steps.open, source)] = (index, source)
            if not opening and not decoding:
                return
            # An idle device is better served by a full batch than by the first file that has been read.
            filling = bool(opening) and (not decoding or (at_hand < rows and not is_running()))
            if filling:
                wait(opening, return_when=FIRST_COMPLETED)
            for opened in [future for future in opening if future.done()]:
                index, source = opening.pop(opened)
                waiter: Future[Outcome] = Future()
                try:
                    request = opened.result()
                    request.waiter = waiter
                    steps.submit(request)
                    decoding[waiter] = (index, request)
                except OasrError as error:
                    yield index, steps.refuse(source, error)
            if not filling:
                steps.drive(decoding)
            for ended in [future for future in decoding if future.done()]:
                index, _ = decoding.pop(ended)
                yield index, ended.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for _, request in decoding.values():
            steps.abort(request.id)


def transcript_of(outcome: Outcome) -> Transcript:
    """The transcript of an input. Raises its error if that is how it ended."""
    if outcome.error is not None:
        raise outcome.error
    assert outcome.transcript is not None
    return outcome.transcript
