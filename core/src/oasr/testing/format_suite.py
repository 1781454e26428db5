"""Laws of checkpoint formats."""

from pathlib import Path
from typing import ClassVar

import pytest

from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint, CheckpointFormat
from oasr.plugin import ComponentSpec, Kind
from oasr.testing.interpreter import heavy_modules_after
from oasr.testing.suite import ComponentSuite

_MOST_BYTES = 1 << 20  # of a truncated copy: the header of any weight file, and a quick test
_FOREIGN = {
    "nothing": {},
    "a note": {"README.md": b"# Not a model\n"},
    "an empty file": {"data": b""},
    "an image": {"picture.png": b"\x89PNG\r\n\x1a\n" + bytes(64)},
    "audio": {"a.wav": b"RIFF\x24\x00\x00\x00WAVEfmt " + bytes(20)},
    "somebody's settings": {"settings.json": b"{}", "notes.txt": b"model"},
}


class FormatSuite(ComponentSuite):
    """A layout is recognised cheaply, and a damaged checkpoint is a `CheckpointError`, never anything else."""

    kind: ClassVar[Kind] = Kind.FORMAT

    @pytest.fixture
    def checkpoint(self) -> Path:
        """A small checkpoint of this layout, a folder or a file: override this."""
        pytest.skip("needs a checkpoint: override the fixture `checkpoint`, or oasr check --checkpoint PATH")

    @pytest.fixture
    def format(self, target: type[CheckpointFormat]) -> CheckpointFormat:
        """The format."""
        return target()

    def test_matching_imports_nothing_heavy(self, spec: ComponentSpec, tmp_path: Path) -> None:
        module, _, name = spec.target.partition(":")
        (tmp_path / "config.json").write_text("{}")
        code = f"from pathlib import Path\nfrom {module} import {name}\n{name}.match(Path({str(tmp_path)!r}))"
        assert heavy_modules_after(code) == []

    def test_it_recognises_its_own(self, target: type[CheckpointFormat], checkpoint: Path) -> None:
        match = target.match(checkpoint)
        assert match is not None
        assert 0 < match.confidence <= 1
        assert match.why

    @pytest.mark.parametrize("content", _FOREIGN.values(), ids=_FOREIGN)
    def test_it_does_not_recognise_what_is_foreign(
        self, target: type[CheckpointFormat], tmp_path: Path, content: dict[str, bytes]
    ) -> None:
        for name, data in content.items():
            (tmp_path / name).write_bytes(data)
        assert target.match(tmp_path) is None
        assert [name for name in content if target.match(tmp_path / name)] == []

    def test_it_does_not_recognise_what_is_not_there(self, target: type[CheckpointFormat], tmp_path: Path) -> None:
        assert target.match(tmp_path / "nothing") is None

    def test_it_opens_its_own(self, format: CheckpointFormat, checkpoint: Path) -> None:
        opened = format.open(checkpoint)
        assert opened.path == checkpoint
        assert opened.architecture
        assert opened.naming
        assert all(path.is_file() for path in opened.files.values())

    def test_opening_twice_says_the_same(self, format: CheckpointFormat, checkpoint: Path) -> None:
        one, other = format.open(checkpoint), format.open(checkpoint)
        assert (one.architecture, one.config, one.shapes()) == (other.architecture, other.config, other.shapes())

    def test_shapes_are_those_of_the_tensors(self, format: CheckpointFormat, checkpoint: Path) -> None:
        opened = format.open(checkpoint)
        assert {name: tuple(tensor.shape) for name, tensor in opened.tensors()} == dict(opened.shapes())

    def test_tensors_are_on_the_cpu_and_can_be_read_again(self, format: CheckpointFormat, checkpoint: Path) -> None:
        opened = format.open(checkpoint)
        first = dict(opened.tensors())
        assert all(tensor.device.type == "cpu" for tensor in first.values())
        assert all((tensor == first[name]).all() for name, tensor in opened.tensors() if tensor.numel() < 10_000)

    @pytest.mark.parametrize("damage", ["truncated", "empty", "garbage", "missing"])
    def test_damage_to_any_file_is_a_checkpoint_error_or_does_no_harm(
        self, target: type[CheckpointFormat], checkpoint: Path, tmp_path: Path, damage: str
    ) -> None:
        for index, file in enumerate(_files(checkpoint)):
            copy = _damaged(checkpoint, file, damage, tmp_path / str(index))
            try:
                if target.match(copy) is not None:
                    _read(target().open(copy))
            except CheckpointError:
                continue
            except Exception as error:
                pytest.fail(f"{file.name} {damage}: raised {error!r}")

    @pytest.mark.parametrize("damage", ["truncated", "empty", "garbage"])
    def test_damaged_weights_are_named(
        self, target: type[CheckpointFormat], checkpoint: Path, tmp_path: Path, damage: str
    ) -> None:
        weights = max(_files(checkpoint), key=lambda file: file.stat().st_size)
        copy = _damaged(checkpoint, weights, damage, tmp_path / "damaged")
        with pytest.raises(CheckpointError) as raised:
            _read(target().open(copy))
        assert str(copy) in str(raised.value), "the message does not say which checkpoint"


def _files(checkpoint: Path) -> list[Path]:
    return [checkpoint] if checkpoint.is_file() else sorted(path for path in checkpoint.rglob("*") if path.is_file())


def _damaged(checkpoint: Path, file: Path, damage: str, destination: Path) -> Path:
    """A copy in which one file is damaged; the others are links, so that a large checkpoint costs nothing."""
    destination.mkdir()
    root = checkpoint.parent if checkpoint.is_file() else checkpoint
    for other in _files(checkpoint):
        place = destination / other.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        if other != file:
            place.symlink_to(other.resolve())
        elif damage != "missing":
            place.write_bytes(_content(file, damage))
    return destination / checkpoint.name if checkpoint.is_file() else destination


def _content(file: Path, damage: str) -> bytes:
    size = file.stat().st_size
    if damage == "truncated":
        with file.open("rb") as stream:
            return stream.read(min(size // 2, _MOST_BYTES))
    return b"" if damage == "empty" else b"\x93garbage\x00" * 8


def _read(checkpoint: Checkpoint) -> None:
    checkpoint.shapes()
    for _ in checkpoint.tensors():
        pass
