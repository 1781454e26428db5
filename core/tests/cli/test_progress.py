"""What a person sees while a batch runs, and that results never mix with it."""

import io
import sys
import warnings

import pytest

from oasr.cli.progress import BatchProgress, print_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_away_from_a_terminal_a_line_comes_every_ten_seconds_and_a_tally(capsys) -> None:
    clock = Clock()
    with BatchProgress(quiet=False, clock=clock) as progress:
        progress.expect(40)
        clock.now += 5  # the model loads, which is not the speed of reading
        progress.start()
        for _ in range(40):
            clock.now += 0.6
            progress.advance(36.0)
        progress.finish()
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "oasr: 17 of 40 files, 10.2 min of audio, RTFx 60.0, 10.2 s so far, about 13.8 s left",
        "oasr: 34 of 40 files, 20.4 min of audio, RTFx 60.0, 20.4 s so far, about 3.6 s left",
        "oasr: 40 files, 1440.0 s of audio in 24.0 s, RTFx 60.0; none failed",
    ]


def test_the_tally_counts_failures(capsys) -> None:
    clock = Clock()
    progress = BatchProgress(quiet=False, clock=clock)
    progress.expect(2)
    clock.now += 2
    progress.advance(3.0)
    progress.advance(None)
    progress.finish()
    assert capsys.readouterr().err == "oasr: 1 file, 3.0 s of audio in 2.0 s, RTFx 1.5; 1 of 2 inputs failed\n"


def test_a_terminal_has_a_bar_that_goes_when_the_batch_ends(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with BatchProgress(quiet=False) as progress:
        progress.expect(2)
        progress.start()
        progress.advance(3600.0)
        progress.error("bad.wav: is not audio")
        progress.advance(None)
        progress.finish()
    shown = terminal.getvalue()
    assert "0/2" in shown
    assert "oasr: bad.wav: is not audio" in shown
    assert "1 of 2 inputs failed" in shown.splitlines()[-1]
    assert capsys.readouterr().out == ""


def test_results_on_the_same_terminal_push_the_bar_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("sys.stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with BatchProgress(quiet=False) as progress:
        progress.expect(1)
        progress.start()
        progress.beside_bar(terminal.write)("RESULT\n")
    before, _, _ = terminal.getvalue().partition("RESULT\n")
    assert before.endswith("\x1b[2K")  # the line of the bar was erased


@pytest.mark.parametrize(("kind", "quiet"), [("dumb", False), ("xterm", True)])
def test_a_terminal_that_cannot_draw_or_shall_be_quiet_has_no_bar(
    monkeypatch: pytest.MonkeyPatch, kind: str, quiet: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", kind)
    with BatchProgress(quiet=quiet) as progress:
        progress.expect(1)
        progress.start()
        progress.advance(1.0)
        progress.finish()
    assert terminal.getvalue() == ""


def test_a_closed_standard_error_costs_only_the_words(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with BatchProgress(quiet=False) as progress:
        progress.expect(2)
        progress.start()
        progress.error("wrong")
        progress.finish()
    assert capsys.readouterr().out == ""


def test_warnings_are_handled_as_before_afterwards() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with BatchProgress(quiet=True):
            warnings.warn("inside", stacklevel=1)
        warnings.warn("outside", stacklevel=1)
    assert [str(warning.message) for warning in caught] == ["outside"]


def test_names_cannot_steer_the_terminal_nor_feign_a_second_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = BatchProgress(quiet=False)
    progress.error("a\x1b[2J\nb\u202e.wav: is not audio")
    progress.note("a\r\x9b.wav: 日本 ü")
    print_line("first\nsecond \x1b")
    assert capsys.readouterr().err == (
        "oasr: a\\x1b[2J\\nb\\u202e.wav: is not audio\noasr: a\\r\\x9b.wav: 日本 ü\noasr: first\nsecond \\x1b\n"
    )


def test_a_message_to_a_closed_standard_error_is_lost(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    print_line("a problem")
    assert capsys.readouterr().out == ""
