"""A language may be written in any way; the model gets its own code, and the transcript reports it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

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
