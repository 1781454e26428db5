"""What a person sees on standard error while a batch runs. Nothing here writes to standard output."""

import os
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TextIO

from oasr.output.printable import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LINE_INTERVAL = 10.0  # seconds between two lines where there is no terminal to draw on


class BatchProgress:
    """A bar on a terminal, a line now and then elsewhere, and the tally at the end.

    As a context it also turns Python's warnings into lines like the others.
    """

    def __init__(self, *, quiet: bool, clock: Callable[[], float] = time.monotonic):
        """`quiet` leaves only errors."""
        self._total = 0
        self._quiet = quiet
        self._clock = clock
        self._context = ExitStack()
        self._bar: tuple[Progress, TaskID] | None = None
        self._started = self._last_line = clock()
        self._done = 0
        self._failed = 0
        self._audio_seconds = 0.0

    def __enter__(self) -> "BatchProgress":
        self._context.enter_context(warnings.catch_warnings())
        warnings.showwarning = self._show_warning
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_bar()
        self._context.close()

    def expect(self, total: int) -> None:
        """Learn how many inputs there are."""
        self._total = total

    def start(self) -> None:
        """Start the clock and the bar: the model is loaded and the first input is about to be read."""
        self._started = self._last_line = self._clock()
        if _is_terminal(sys.stderr) and not self._quiet:
            self._start_bar()

    def note(self, text: str) -> None:
        """Tell something that is not an error, in one line."""
        if not self._quiet:
            print_line(printable(text))

    def error(self, text: str) -> None:
        """Tell an error in one line, also when quiet."""
        print_line(printable(text))

    def beside_bar(self, write: Callable[[str], None]) -> Callable[[str], None]:
        """A `write` that takes the bar off a terminal that it shares with the results."""

        def write_aside(text: str) -> None:
            if self._bar is None or not text or not _is_terminal(sys.stdout):
                write(text)
                return
            self._bar[0].stop()
            write(text)
            self._bar[0].start()

        return write_aside

    def advance(self, audio_seconds: float | None) -> None:
        """Count one more input that ended; None for one that failed."""
        self._done += 1
        self._failed += audio_seconds is None
        self._audio_seconds += audio_seconds or 0.0
        if self._bar is not None:
            bar, task = self._bar
            bar.update(
                task, completed=self._done, tally=f"{_spell(self._audio_seconds)} of audio  RTFx {self._speed:.1f}"
            )
        elif self._clock() - self._last_line >= _LINE_INTERVAL and self._done < self._total:
            self._last_line = self._clock()
            left = self._elapsed * (self._total - self._done) / self._done
            self.note(
                f"{self._done} of {self._total} files, {_spell(self._audio_seconds)} of audio, "
                f"RTFx {self._speed:.1f}, {_spell(self._elapsed)} so far, about {_spell(left)} left"
            )

    def finish(self) -> None:
        """Tell the tally. A single input that went well needs none, except to the eyes at a terminal."""
        elapsed, speed, read = self._elapsed, self._speed, self._done - self._failed
        self._stop_bar()
        failures = f"{self._failed} of {self._total} inputs failed"
        if self._quiet and self._failed and self._total > 1:
            self.error(failures)
        elif self._total > 1 or (self._total and _is_terminal(sys.stderr)):
            self.note(
                f"{read} {'file' if read == 1 else 'files'}, {self._audio_seconds:.1f} s of audio in {elapsed:.1f} s, "
                f"RTFx {speed:.1f}; {failures if self._failed else 'none failed'}"
            )

    @property
    def _elapsed(self) -> float:
        return self._clock() - self._started

    @property
    def _speed(self) -> float:
        """RTFx: seconds of audio for each second since the start."""
        return self._audio_seconds / max(self._elapsed, 1e-3)

    def _start_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.progress import TimeRemainingColumn as Remaining

        bar = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[tally]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            Remaining(),
            console=Console(stderr=True),
            transient=True,
            redirect_stdout=False,
        )
        self._bar = bar, bar.add_task("", total=self._total, completed=self._done, tally="")
        bar.start()

    def _stop_bar(self) -> None:
        if self._bar is not None:
            self._bar[0].stop()
            self._bar = None

    def _show_warning(self, message: Warning | str, *_: object, **__: object) -> None:
        self.note(f"warning: {' '.join(str(message).split())}")


def print_line(text: str) -> None:
    """A message of one line or more on standard error, or nowhere when that takes none."""
    if sys.stderr is not None:  # it is when closed, and print would turn to standard output
        shown = "\n".join(map(printable, text.split("\n")))
        with suppress(OSError):
            print(f"oasr: {shown}", file=sys.stderr, flush=True)


def _spell(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 6000 else f"{seconds / 3600:.2f} h"


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"
