"""Laws of packaged models."""

from pathlib import Path
from typing import ClassVar

import pytest

from oasr.checkpoint.load import Plan, outline
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.format import Checkpoint
from oasr.interfaces.model import PackagedModel
from oasr.plugin import Kind
from oasr.registry import Registry
from oasr.testing.suite import ComponentSuite


class ModelSuite(ComponentSuite):
    """A package that ships weights: they are there, are recognised and fit their architecture."""

    kind: ClassVar[Kind] = Kind.MODEL

    @pytest.fixture
    def path(self, target: type[PackagedModel]) -> Path:
        """Where the weights are."""
        return target().path()

    @pytest.fixture
    def opened(self, path: Path, registry: Registry) -> Checkpoint:
        """The checkpoint, opened."""
        return open_checkpoint(path, registry)

    def test_the_weights_are_there(self, path: Path) -> None:
        assert path.exists()

    def test_the_path_does_not_depend_on_the_working_directory(
        self, path: Path, target: type[PackagedModel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert target().path() == path
        assert path.is_absolute()

    def test_a_format_recognises_it(self, opened: Checkpoint) -> None:
        assert opened.shapes()

    def test_its_architecture_is_installed(self, opened: Checkpoint, registry: Registry) -> None:
        assert registry.load(Kind.ARCHITECTURE, opened.architecture)

    def test_its_weights_fit(self, opened: Checkpoint, registry: Registry) -> None:
        assert Plan(opened, outline(opened, registry)).targets

    def test_its_tokenizer_reads_and_writes(self, opened: Checkpoint, registry: Registry) -> None:
        facts = outline(opened, registry).facts
        tokenizer = registry.load(Kind.TOKENIZER, facts.tokenizer)(opened.files)
        assert tokenizer.decode(tokenizer.encode("hello")).strip().lower() == "hello"
