"""Results in a folder: whole files, or none and an error that says why."""

import json
import os
import threading
import time
from pathlib import Path, PurePath

import pytest

from oasr.errors import ConfigError
from oasr.output.sinks import OutputError, OutputFolder
from oasr.types import Transcript

HELLO = Transcript(text="hello", segments=(), language="en", duration=1.0)


def folder(path: Path, *places: str, formats: tuple[str, ...] = ("txt",)) -> OutputFolder:
    return OutputFolder(path, formats, [PurePath(place) for place in places])


def files_in(path: Path) -> list[str]:
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if not file.is_dir())


def test_files_keep_the_folders_and_the_extension_of_their_input(tmp_path: Path) -> None:
    out = folder(tmp_path, "a.wav", "a.mp3", "deep/er/日本 ü.wav", formats=("txt", "json"))
    for index in range(3):
        out.put(index, f"source {index}", HELLO)
    assert files_in(tmp_path) == sorted(
        f"{place}.{form}" for place in ("a.wav", "a.mp3", "deep/er/日本 ü.wav") for form in ("txt", "json")
    )
    assert json.loads((tmp_path / "a.mp3.json").read_text(encoding="utf-8"))["source"] == "source 1"


def test_an_input_is_held_once_all_its_files_exist(tmp_path: Path) -> None:
    out = folder(tmp_path, "a.wav", formats=("txt", "json"))
    assert not out.holds(0)
    (tmp_path / "a.wav.txt").touch()
    assert not out.holds(0)
    out.put(0, "a.wav", HELLO)
    assert out.holds(0)


def test_what_existed_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.wav.txt").write_text("older and longer text")
    folder(tmp_path, "a.wav").put(0, "a.wav", HELLO)
    assert (tmp_path / "a.wav.txt").read_text() == "hello\n"


def test_files_get_the_permissions_that_the_user_wants(tmp_path: Path) -> None:
    folder(tmp_path, "a.wav").put(0, "a.wav", HELLO)
    (tmp_path / "plain").touch()
    assert (tmp_path / "a.wav.txt").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_failed_write_leaves_the_old_file_and_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.wav.txt").write_text("old")

    def full(self: Path, *_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OutputError, match=r"a\.wav\.txt: cannot be written: No space left on device"):
        folder(tmp_path, "a.wav").put(0, "a.wav", HELLO)
    monkeypatch.undo()
    assert files_in(tmp_path) == ["a.wav.txt"]
    assert (tmp_path / "a.wav.txt").read_text() == "old"


def test_a_name_that_is_no_utf_8_is_written_and_read_back(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.wav")
    folder(tmp_path, name, formats=("json",)).put(0, name, HELLO)
    [file] = tmp_path.iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["source"] == name


def test_the_longest_names_a_file_system_takes_are_written(tmp_path: Path) -> None:
    name = "n" * 247 + ".wav"
    folder(tmp_path, name).put(0, name, HELLO)
    assert files_in(tmp_path) == [f"{name}.txt"]


def test_preparing_creates_the_folder_and_leaves_it_empty(tmp_path: Path) -> None:
    folder(tmp_path / "new" / "er").prepare()
    assert list((tmp_path / "new" / "er").iterdir()) == []


def test_preparing_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(ConfigError, match=r"--output-dir .*taken: is a file"):
        folder(tmp_path / "taken").prepare()
    with pytest.raises(ConfigError, match=r"--output-dir .*inside: cannot be written to: Not a directory"):
        folder(tmp_path / "taken" / "inside").prepare()


def test_preparing_refuses_a_folder_that_takes_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", refuse)
    with pytest.raises(ConfigError, match="cannot be written to: Permission denied"):
        folder(tmp_path).prepare()


def test_a_folder_is_ready_though_a_run_in_another_container_with_the_same_process_id_left_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 7)
    for number in range(4):
        (tmp_path / f".oasr-7-{number}.part").touch()
    folder(tmp_path, "a.wav").prepare()
    folder(tmp_path, "a.wav").put(0, "a.wav", HELLO)
    assert (tmp_path / "a.wav.txt").read_text() == "hello\n"


def test_parts_that_lie_for_more_than_a_day_are_cleared_wherever_results_go(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    old, deep, new = (tmp_path / name for name in (".oasr-1.part", "deep/.oasr-2.part", ".oasr-3.part"))
    for part in (old, deep, new):
        part.touch()
    for part in (old, deep):
        os.utime(part, (0, time.time() - 25 * 60 * 60))
    folder(tmp_path, "a.wav", "deep/b.wav").prepare()
    assert files_in(tmp_path) == [".oasr-3.part"]


def test_runs_that_write_the_same_name_at_once_never_mix(tmp_path: Path) -> None:
    texts = ["a" * 200_000, "b" * 200_000]

    def write(text: str) -> None:
        for _ in range(20):
            folder(tmp_path, "x.wav").put(0, "x.wav", Transcript(text=text, segments=(), language="en", duration=1.0))

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "x.wav.txt").read_text().strip() in texts
    assert files_in(tmp_path) == ["x.wav.txt"]


def test_a_link_is_written_through_and_what_is_no_regular_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "a.wav.txt").symlink_to("elsewhere/text")
    folder(tmp_path, "a.wav").put(0, "a.wav", HELLO)
    assert (tmp_path / "elsewhere" / "text").read_text() == "hello\n"
    assert (tmp_path / "a.wav.txt").is_symlink()
    os.mkfifo(tmp_path / "b.wav.txt")
    (tmp_path / "c.wav.txt").mkdir()
    (tmp_path / "d.wav.txt").symlink_to("d.wav.txt")
    for name in ("b.wav", "c.wav", "d.wav"):
        with pytest.raises(OutputError, match="not a regular file"):
            folder(tmp_path, name).put(0, name, HELLO)
    assert (tmp_path / "b.wav.txt").is_fifo()
