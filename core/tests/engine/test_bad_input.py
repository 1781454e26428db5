"""Whatever is handed in, an error raised on purpose names what is wrong."""

import copy
import pickle
from typing import Any

import pytest
import torch

from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions
from oasr.errors import AudioError, BatchError, ConfigError, RequestError

from .conftest import MakeEngine, speech


@pytest.mark.parametrize("options", [{"seed": 1}, "de", 5])
def test_options_of_another_type_are_refused(engine: ASREngine, options: Any) -> None:
    with pytest.raises(RequestError, match="DecodingOptions"):
        engine.transcribe(speech(0), options)


@pytest.mark.parametrize("config", [None, {}, "tiny-en", 5])
def test_an_engine_says_what_it_is_built_from(config: Any) -> None:
    with pytest.raises(ConfigError, match="EngineConfig"):
        ASREngine(config)


@pytest.mark.parametrize("sources", ["a.wav", b"RIFF", None, 5])
def test_one_input_is_not_taken_for_many(engine: ASREngine, sources: Any) -> None:
    with pytest.raises(RequestError, match="many inputs"):
        engine.transcribe_each(sources)


def test_abort_takes_an_id(engine: ASREngine) -> None:
    with pytest.raises(RequestError, match="add_request"):
        engine.abort([])  # type: ignore[arg-type]
    assert engine.run() == {}


class Moody:
    """A file object that cannot be read."""

    def read(self, size: int = -1) -> bytes:
        raise ZeroDivisionError("not today")


def test_what_a_file_object_raises_belongs_to_that_input(engine: ASREngine) -> None:
    with pytest.raises(AudioError, match="not today"):
        engine.add_request(Moody())  # type: ignore[arg-type]
    outcomes = dict(engine.transcribe_each([Moody(), speech(0)]))
    assert outcomes[0].error is not None
    assert outcomes[1].transcript is not None


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": 10**400},
        {"temperature": 101},
        {"seed": 2**64},
        {"seed": None},
        {"max_new_tokens": 0},
        {"languages": None},
        {"languages": "en"},
        {"languages": (1,)},
        {"suppress_tokens": 5},
        {"suppress_tokens": (-1,)},
        {"prompt": "\udcff"},
        {"prompt": 7},
        {"task": "sing"},
        {"language": "en", "languages": ("de",)},
    ],
)
def test_options_out_of_range_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=next(iter(options))):
        DecodingOptions(**options)


@pytest.mark.parametrize("spelling", [None, "", "auto", " AUTO "])
def test_no_language_is_spelt_four_ways(spelling: str | None) -> None:
    assert DecodingOptions(language=spelling).language is None


def test_a_batch_error_travels_between_processes(engine: ASREngine) -> None:
    with pytest.raises(BatchError) as caught:
        engine.transcribe([speech(0), "no such file"])
    for other in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert str(other) == str(caught.value)
        assert [outcome.source for outcome in other.outcomes] == ["speech-0", "no such file"]


def test_a_rest_of_a_few_samples_is_left_out_and_noted(make_engine: MakeEngine) -> None:
    engine = make_engine()
    window = round(engine.facts.max_input_seconds * engine.facts.sample_rate)
    samples = torch.rand(window + 100) - 0.5
    whole = engine.transcribe(Audio(samples[:window].clone(), engine.facts.sample_rate, "whole"))
    longer = engine.transcribe(Audio(samples, engine.facts.sample_rate, "longer"))
    assert longer.text == whole.text
    assert "too short" in longer.notes[0]
    assert not whole.notes
