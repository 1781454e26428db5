"""The format that recognises a path best opens it; when none does, the message says what was found and what to do."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError, UnknownComponentError
from oasr.interfaces.format import Checkpoint, CheckpointFormat, Match
from oasr.plugin import ComponentSpec, Kind
from oasr.registry import Registry


class Opened(Checkpoint):
    def __init__(self, path: Path, by: str):
        self.path, self.by = path, by

    def shapes(self) -> dict:
        return {}

    def tensors(self) -> list:
        return []


class _Marked(CheckpointFormat):
    """Recognises a folder, or a file, by a mark named after the class."""

    confidence = 0.5

    @classmethod
    def match(cls, path: Path) -> Match | None:
        name = cls.__name__.lower()
        seen = (path / name).exists() or path.suffix == f".{name}"
        return Match(cls.confidence, f"{name} is there") if seen else None

    def open(self, path: Path) -> Checkpoint:
        return Opened(path, type(self).__name__.lower())


class Alpha(_Marked):
    pass


class Beta(_Marked):
    pass


class Gamma(_Marked):
    confidence = 0.9


class Broken(_Marked):
    @classmethod
    def match(cls, path: Path) -> Match | None:
        raise ZeroDivisionError("a defect of the plugin")


@pytest.fixture
def formats(make_registry: Callable[..., Registry]) -> Registry:
    specs = [
        ComponentSpec(Kind.FORMAT, kind.__name__.lower(), "Test", f"{__name__}:{kind.__name__}")
        for kind in (Alpha, Beta, Gamma, Broken)
    ]
    absent = ComponentSpec(Kind.FORMAT, "absent", "Test", "no_such_module_anywhere:Format")
    return make_registry(*specs, absent)


def test_the_highest_confidence_wins(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "alpha").touch()
    (tmp_path / "gamma").touch()
    assert open_checkpoint(tmp_path, formats).by == "gamma"


def test_a_broken_format_does_not_stop_the_others(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "beta").touch()
    assert open_checkpoint(tmp_path, formats).by == "beta"


def test_a_tie_names_the_override(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "alpha").touch()
    (tmp_path / "beta").touch()
    with pytest.raises(CheckpointError, match="--set format=alpha or --set format=beta"):
        open_checkpoint(tmp_path, formats)
    assert open_checkpoint(tmp_path, formats, "beta").by == "beta"


def test_nothing_recognised_says_what_is_there_and_which_formats_exist(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "weights.xyz").touch()
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path, formats)
    message = str(caught.value)
    assert "weights.xyz" in message
    assert "alpha" in message
    assert "oasr plugins" in message
    assert "broken: ZeroDivisionError: a defect of the plugin" in message
    assert "absent: " in message


def test_an_empty_folder_is_called_empty(tmp_path: Path, formats: Registry) -> None:
    with pytest.raises(CheckpointError, match="The folder is empty"):
        open_checkpoint(tmp_path, formats)


def test_a_file_in_a_recognised_folder_points_to_the_folder(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "alpha").touch()
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(CheckpointError, match=r"is recognised \(alpha\): name that instead"):
        open_checkpoint(tmp_path / "notes.txt", formats)


def test_a_folder_with_a_recognised_file_points_to_the_file(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "model.gamma").touch()
    with pytest.raises(CheckpointError, match=r"model\.gamma is recognised \(gamma\)"):
        open_checkpoint(tmp_path, formats)


def test_an_empty_file_is_called_empty(tmp_path: Path, formats: Registry) -> None:
    (tmp_path / "model.pt").touch()
    with pytest.raises(CheckpointError, match=r"is empty \(0 bytes\)"):
        open_checkpoint(tmp_path / "model.pt", formats)


def test_a_path_that_does_not_exist(tmp_path: Path, formats: Registry) -> None:
    with pytest.raises(CheckpointError, match="does not exist"):
        open_checkpoint(tmp_path / "nowhere", formats)


def test_a_format_that_is_not_installed(tmp_path: Path, formats: Registry) -> None:
    with pytest.raises(UnknownComponentError, match='No format named "delta"'):
        open_checkpoint(tmp_path, formats, "delta")


def test_what_is_neither_a_folder_nor_a_file_is_refused_without_waiting_for_it(
    tmp_path: Path, formats: Registry
) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(CheckpointError, match="is neither a folder nor a regular file"):
            open_checkpoint(path, formats)


class Loop(_Marked):
    confidence = 1.0

    def open(self, path: Path) -> Checkpoint:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (PermissionError(13, "Permission denied"), "cannot be opened: Permission denied"),
        (TypeError("int is no dict"), r"cannot be opened \(TypeError: int is no dict\)"),
        (RecursionError("deep"), "RecursionError: deep"),
    ],
)
def test_whatever_a_format_raises_is_told_with_the_path(
    tmp_path: Path, make_registry: Callable[..., Registry], failure: Exception, message: str
) -> None:
    Loop.failure = failure
    (tmp_path / "loop").touch()
    registry = make_registry(ComponentSpec(Kind.FORMAT, "loop", "Test", f"{__name__}:Loop"))
    with pytest.raises(CheckpointError, match=f"{tmp_path} .*{message}"):
        open_checkpoint(tmp_path, registry)


def test_a_file_that_holds_a_class_says_so_though_no_format_recognises_it(tmp_path: Path, formats: Registry) -> None:
    torch.save({"args": argparse.Namespace()}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match=r"was not loaded: it contains argparse\.Namespace"):
        open_checkpoint(tmp_path / "model.pt", formats)
    torch.save({"w": torch.ones(1)}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError, match="in no format that is installed"):
        open_checkpoint(tmp_path / "model.pt", formats)
