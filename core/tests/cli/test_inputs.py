"""Which inputs a command line names, in which order, and where their results belong."""

import io
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.cli.inputs import Input, gather, is_single
from oasr.errors import AudioLimitError

Create = Callable[..., Path]


def sources(*arguments: str) -> list[str]:
    return [each.source for each in gather(arguments, max_bytes=100) if not each.error]


def places(*arguments: str) -> list[str]:
    return [str(each.relative) for each in gather(arguments, max_bytes=100) if not each.error]


def problems(*arguments: str) -> list[str]:
    return [str(each.error) for each in gather(arguments, max_bytes=100) if each.error]


def test_files_come_as_typed_whatever_their_name(here: Create) -> None:
    here("b.wav", "a.mp3", "noextension", "notes.txt")
    assert sources("b.wav", "./a.mp3", "noextension", "notes.txt") == ["b.wav", "./a.mp3", "noextension", "notes.txt"]


def test_a_folder_is_searched_for_media_files_by_name(here: Create) -> None:
    here("f/b.WAV", "f/a.opus", "f/deep/er/c.mp4", "f/notes.txt", "f/wav", "f/.hidden.wav", "f/.hid/d.wav")
    assert sources("f") == ["f/a.opus", "f/b.WAV", "f/deep/er/c.mp4"]
    assert places("f") == ["a.opus", "b.WAV", "deep/er/c.mp4"]


def test_the_current_folder_is_searched_though_named_by_dots(here: Create) -> None:
    here("f/a.wav")
    os.chdir("f")
    assert sources(".") == ["a.wav"]
    assert places("../f") == ["a.wav"]


def test_links_to_folders_are_followed_but_never_in_circles(here: Create) -> None:
    folder = here("f/a.wav", "elsewhere/b.wav")
    (folder / "f" / "link").symlink_to(folder / "elsewhere")
    (folder / "f" / "round").symlink_to(folder / "f")
    (folder / "elsewhere" / "back").symlink_to(folder / "f")
    assert sources("f") == ["f/a.wav", "f/link/b.wav"]


def test_a_broken_link_is_an_input_and_a_pipe_is_none(here: Create) -> None:
    folder = here("f/a.wav")
    (folder / "f" / "broken.wav").symlink_to("nowhere")
    (folder / "f" / "self.wav").symlink_to("self.wav")
    os.mkfifo(folder / "f" / "pipe.wav")
    assert sources("f") == ["f/a.wav", "f/broken.wav", "f/self.wav"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("f/*.wav", ["f/a.wav"]),
        ("f/**/*.wav", ["f/a.wav", "f/deep/b.wav"]),
        ("f/**.wav", ["f/a.wav"]),
        ("f/**", ["f/a.wav", "f/deep/b.wav", "f/deep/c.mp3"]),
        ("f/*", ["f/a.wav", "f/deep/b.wav", "f/deep/c.mp3"]),
        ("f/*.txt", ["f/notes.txt"]),
        ("f/[a-b].wav", ["f/a.wav"]),
        ("*/deep/?.mp3", ["f/deep/c.mp3"]),
        ("f/.*/*.wav", ["f/.hid/d.wav"]),
    ],
)
def test_patterns_match_as_in_a_shell(here: Create, pattern: str, expected: list[str]) -> None:
    folder = here("f/a.wav", "f/deep/b.wav", "f/deep/c.mp3", "f/notes.txt", "f/.hid/d.wav")
    assert sources(pattern) == expected
    assert sources(str(folder / pattern)) == [str(folder / path) for path in expected]


def test_results_of_a_pattern_keep_the_folders_that_it_left_open(here: Create) -> None:
    here("f/g/deep/b.wav", "f/g/a.wav")
    assert places("f/g/**/*.wav") == ["a.wav", "deep/b.wav"]


def test_a_file_that_looks_like_a_pattern_is_a_file(here: Create) -> None:
    here("[1]*.wav", "1.wav")
    assert sources("[1]*.wav") == ["[1]*.wav"]
    assert is_single(["[1]*.wav"])


def test_what_is_named_twice_comes_once(here: Create) -> None:
    here("f/a.wav", "f/b.wav")
    assert sources("f/b.wav", "f", "f/../f/a.wav", "f/*.wav") == ["f/b.wav", "f/a.wav"]


def test_files_that_would_meet_keep_their_folders(here: Create) -> None:
    here("f/one/a.wav", "f/two/a.wav", "f/two/b.wav")
    assert places("f/one/a.wav", "f/two/b.wav") == ["a.wav", "b.wav"]
    assert places("f/one/a.wav", "f/two") == ["one/a.wav", "two/a.wav", "two/b.wav"]


def test_standard_input_never_meets_a_file(here: Create, monkeypatch: pytest.MonkeyPatch) -> None:
    here("f/stdin", "f/stdin-2")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"bytes")))
    assert places("f/stdin", "-", "f/stdin-2") == ["stdin", "stdin-3", "stdin-2"]


@pytest.mark.parametrize(
    ("argument", "problem"),
    [
        ("absent.wav", "absent.wav: there is no such file"),
        ("", '"": there is no such file'),
        ("a.wav/b.wav", "a.wav/b.wav: cannot be read: Not a directory"),
        ("n" * 300, "n" * 300 + ": cannot be read: File name too long"),
        ("x*.wav", "x*.wav: matches no audio file"),
        ("empty", "empty: holds no file with the extension of an audio or video format"),
    ],
)
def test_an_argument_that_yields_nothing_is_an_error_in_its_place(here: Create, argument: str, problem: str) -> None:
    (here("a.wav") / "empty").mkdir()
    assert [each.error and str(each.error) for each in gather(["a.wav", argument], 100)] == [None, problem]


def test_a_folder_that_may_not_be_listed_is_an_error_beside_its_neighbours(
    here: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    here("f/a.wav", "f/closed/b.wav", "f/d.wav")
    scandir = os.scandir

    def refuse(path: Path) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert sources("f") == ["f/a.wav", "f/d.wav"]
    assert problems("f") == ["f/closed: cannot be searched: Permission denied"]


def test_standard_input_is_read_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"bytes")))
    [each] = gather(["-"], max_bytes=100)
    assert each.source == "<stdin>"
    assert not isinstance(each.content, str)
    assert each.content.read() == b"bytes"


def test_standard_input_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"b" * 101)))
    assert problems("-") == ["<stdin>: has more than 100 bytes, the limit (audio.max_bytes)"]


def test_a_terminal_is_no_audio(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.TextIOWrapper(io.BytesIO(b""))
    monkeypatch.setattr(terminal, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin", terminal)
    assert problems("-") == ["<stdin>: is a terminal; pipe or redirect audio into it"]


def test_standard_input_may_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert problems("-") == ["<stdin>: standard input is closed"]


def test_one_file_is_single_and_a_folder_never_is(here: Create) -> None:
    here("f/a.wav")
    assert is_single(["f/a.wav"])
    assert is_single(["-"])
    assert is_single(["absent.wav"])
    assert not is_single(["f"])
    assert not is_single(["f/*.wav"])
    assert not is_single(["f/a.wav", "f/a.wav"])


def test_a_pipe_or_device_that_is_named_is_read_at_once_and_bounded(here: Create) -> None:
    pipe = here("a.wav") / "deep" / "pipe"
    pipe.parent.mkdir()
    os.mkfifo(pipe)

    def fed(content: bytes) -> list[Input]:
        writer = threading.Thread(target=pipe.write_bytes, args=(content,))
        writer.start()
        found = gather(["deep/pipe", "a.wav"], max_bytes=100)
        writer.join()
        return found

    [named, _] = fed(b"sound")
    assert (named.source, str(named.relative)) == ("deep/pipe", "pipe")
    assert not isinstance(named.content, str)
    assert (named.content.read(), named.content.name) == (b"sound", "deep/pipe")
    assert isinstance(fed(b"x" * 101)[0].error, AudioLimitError)
    assert problems("/dev/zero") == ["/dev/zero: has more than 100 bytes, the limit (audio.max_bytes)"]


def test_a_socket_cannot_be_read(here: Create) -> None:
    here("a.wav")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s.wav")
        assert problems("s.wav") == ["s.wav: cannot be read: No such device or address"]
