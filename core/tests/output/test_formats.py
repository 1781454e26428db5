"""What the formats make of a transcript."""

import json

import pytest

from oasr.errors import AudioError, DeviceError, NonFiniteError
from oasr.output.formats import WRITERS
from oasr.types import Alternative, NBest, Segment, Transcript, Word

WORDS = (Word("Grüße", 0.10049, 0.75, 0.98765432), Word(",", 0.75, 0.75, interpolated=True))
GREETING = Transcript(
    text="Grüße, 世界.",
    segments=(
        Segment(0.0, 1.23456, "Grüße,", (5, 7), -0.123456, 0.87654, 0.0123456, 0.2, WORDS),
        Segment(1.23456, 2.5, "世界.", (9,), -0.5, window_start=1.23456),
    ),
    language="de",
    language_probability=0.75,
    duration=2.50004,
    notes=("the prompt was cut",),
    n_best=(NBest(0.0, 1.23456, (Alternative("Grüße,", -0.123456), Alternative("Grüsse", float("-inf")))),),
)
SILENCE = Transcript(text="", segments=(), language=None, duration=1.0)
EXPECTED = {
    "source": "a.wav",
    "task": "transcribe",
    "text": "Grüße, 世界.",
    "language": "de",
    "language_probability": 0.75,
    "duration": 2.5,
    "truncated": False,
    "notes": ["the prompt was cut"],
    "segments": [
        {
            "start": 0.0,
            "end": 1.235,
            "text": "Grüße,",
            "avg_logprob": -0.1235,
            "compression_ratio": 0.8765,
            "no_speech_prob": 0.0123,
            "temperature": 0.2,
            "window_start": 0.0,
            "tokens": [5, 7],
            "words": [
                {"text": "Grüße", "start": 0.1, "end": 0.75, "confidence": 0.9877, "interpolated": False},
                {"text": ",", "start": 0.75, "end": 0.75, "confidence": None, "interpolated": True},
            ],
        },
        {
            "start": 1.235,
            "end": 2.5,
            "text": "世界.",
            "avg_logprob": -0.5,
            "compression_ratio": 1.0,
            "no_speech_prob": None,
            "temperature": 0.0,
            "window_start": 1.235,
            "tokens": [9],
            "words": [],
        },
    ],
    "n_best": [
        {
            "start": 0.0,
            "end": 1.235,
            "alternatives": [{"text": "Grüße,", "avg_logprob": -0.1235}, {"text": "Grüsse", "avg_logprob": None}],
        }
    ],
}


def test_plain_text_alone_is_the_text() -> None:
    assert WRITERS["txt"].document("a.wav", GREETING) == "Grüße, 世界.\n"


def test_plain_text_among_others_names_its_source() -> None:
    assert WRITERS["txt"].entry("a.wav", GREETING) == "a.wav: Grüße, 世界.\n"


def test_plain_text_of_silence_is_an_empty_line() -> None:
    assert WRITERS["txt"].document("a.wav", SILENCE) == "\n"
    assert WRITERS["txt"].entry("a.wav", SILENCE) == "a.wav:\n"


def test_plain_text_among_others_is_one_line_whatever_the_model_wrote() -> None:
    poem = Transcript(text="one\ntwo", segments=(), language=None, duration=1.0)
    assert WRITERS["txt"].entry("a.wav", poem) == "a.wav: one two\n"


def test_json_alone_has_one_segment_a_line() -> None:
    document = WRITERS["json"].document("a.wav", GREETING)
    assert json.loads(document) == EXPECTED
    segments = document.partition('"segments": [\n')[2].partition("\n  ]")[0]
    assert [json.loads(line.rstrip(",")) for line in segments.splitlines()] == EXPECTED["segments"]


def test_json_among_others_is_one_line() -> None:
    entry = WRITERS["json"].entry("a.wav", GREETING)
    assert json.loads(entry) == EXPECTED
    assert entry.index("\n") == len(entry) - 1


@pytest.mark.parametrize("form", ["document", "entry"])
def test_json_leaves_letters_readable(form: str) -> None:
    assert "Grüße, 世界." in getattr(WRITERS["json"], form)("a.wav", GREETING)


def test_json_of_silence_has_no_segments() -> None:
    assert json.loads(WRITERS["json"].document("a.wav", SILENCE))["segments"] == []


def test_json_says_that_a_text_is_a_translation_and_what_was_spoken() -> None:
    found = json.loads(WRITERS["json"].entry("a.wav", Transcript("Hello.", (), "fr", 1.0, "translate")))
    assert (found["task"], found["language"]) == ("translate", "fr")


def test_json_writes_what_json_has_no_number_for_as_null() -> None:
    odd = Transcript("x", (Segment(0, 1, "x", (), float("-inf")),), None, 1.0)
    assert '"avg_logprob": null' in WRITERS["json"].entry("a.wav", odd)


def test_json_has_a_line_for_a_failure_that_names_the_source_once() -> None:
    line = WRITERS["json"].failure("a.wav", AudioError("a.wav", "is empty"))
    assert json.loads(line) == {"source": "a.wav", "error": "is empty"}
    assert json.loads(WRITERS["json"].failure("a.wav", DeviceError("no room")))["error"] == "no room"
    assert json.loads(WRITERS["json"].failure("a.wav", NonFiniteError("a.wav: NaN")))["error"] == "NaN"


def test_a_name_in_plain_text_stays_on_its_line() -> None:
    assert WRITERS["txt"].entry("a\nb\x1b.wav", SILENCE).startswith("a\\nb\\x1b.wav:")


def test_plain_text_has_no_place_for_a_failure() -> None:
    assert WRITERS["txt"].failure("a.wav", DeviceError("no room")) == ""
