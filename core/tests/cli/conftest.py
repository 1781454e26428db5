"""An engine whose answers are known, so that tests tell what the commands do with them."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from oasr.cli import transcribe as command
from oasr.config import EngineConfig
from oasr.errors import OasrError, UnsupportedAudioError
from oasr.types import DecodingOptions, Outcome, Transcript


class ScriptedEngine:
    """Reads any input as `text of NAME`, the last one first; an input whose name starts with `bad` fails."""

    def __init__(self) -> None:
        self.opened: list[EngineConfig] = []
        self.options: list[DecodingOptions] = []
        self.sources: list[object] = []
        self.refusal: OasrError | None = None
        """What opening the engine raises."""
        self.notes: tuple[str, ...] = ()
        self.after: Callable[[int], None] = lambda count: None
        """Called with the count of inputs that have ended, before the next one does."""

    def __enter__(self) -> "ScriptedEngine":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def open(self, config: EngineConfig) -> "ScriptedEngine":
        self.opened.append(config)
        if self.refusal:
            raise self.refusal
        return self

    def transcribe_each(self, sources: Iterable[object], options: DecodingOptions) -> Iterator[tuple[int, Outcome]]:
        self.options.append(options)
        return self._each(list(enumerate(sources)))

    def _each(self, sources: list[tuple[int, object]]) -> Iterator[tuple[int, Outcome]]:
        for count, (index, source) in enumerate(reversed(sources)):
            self.sources.append(source)
            self.after(count)
            name = f"{len(source.read())} bytes" if hasattr(source, "read") else Path(str(source)).name
            if name.startswith("bad"):
                yield index, Outcome(str(source), None, UnsupportedAudioError(str(source), "is not audio"))
            else:
                yield index, Outcome(str(source), Transcript(f"text of {name}", (), "en", 2.0, notes=self.notes), None)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngine:
    scripted = ScriptedEngine()
    monkeypatch.setattr(command, "open_engine", scripted.open)
    return scripted


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Creates files beneath the current folder, a fresh one: `here("a.wav", "deep/b.mp3")`; returns the folder."""
    monkeypatch.chdir(tmp_path)

    def create(*names: str) -> Path:
        for name in names:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        return tmp_path

    return create
