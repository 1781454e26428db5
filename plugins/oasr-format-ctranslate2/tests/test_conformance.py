"""The format keeps the laws of formats, for a folder and for its file of weights."""

import struct
from pathlib import Path

import pytest

from oasr.testing import FormatSuite, PluginSuite


def text(value: str) -> bytes:
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def variable(name: str, code: int, shape: tuple[int, ...], data: bytes) -> bytes:
    head = text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    return head + struct.pack("<BI", code, len(data)) + data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Version 6: float32 and int8 with its scales, a setting, an alias."""
    path = tmp_path / "original"
    path.mkdir()
    floats = struct.pack("<4000f", *range(4000))
    variables = (
        variable("encoder/num_heads", 2, (), struct.pack("<h", 4)),
        variable("a/weight", 0, (40, 100), floats),
        variable("b/weight", 1, (2, 3), bytes(range(6))),
        variable("b/weight_scale", 0, (2,), struct.pack("<2f", 1, 2)),
    )
    head = struct.pack("<I", 6) + text("AcmeSpec") + struct.pack("<II", 3, len(variables))
    aliases = struct.pack("<I", 1) + text("c/weight") + text("a/weight")
    (path / "model.bin").write_bytes(head + b"".join(variables) + aliases)
    (path / "config.json").write_text("{}")
    (path / "tokenizer.json").write_text("{}")
    return path


class TestPlugin(PluginSuite):
    plugin = "oasr_format_ctranslate2.plugin"


class TestFolder(FormatSuite):
    component = "ctranslate2"

    @pytest.fixture
    def checkpoint(self, folder: Path) -> Path:
        return folder


class TestFile(FormatSuite):
    component = "ctranslate2"

    @pytest.fixture
    def checkpoint(self, folder: Path) -> Path:
        return folder / "model.bin"
