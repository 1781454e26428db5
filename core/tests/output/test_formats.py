"""What the formats make of a transcript."""

import json

import pytest

from oasr.errors import AudioError, DeviceError, NonFiniteError
from oasr.output.formats import WRITERS
from oasr.types import Segment, Transcript

GREETING = Transcript(
    text="Grüße, 世界.",
    segments=(Segment(0.0, 1.23456, "Grüße,", (5, 7), -0.123456), Segment(1.23456, 2.5, "世界.", (9,), -0.5)),
    language="de",
    language_probability=0.75,
    duration=2.50004,
    notes=("the prompt was cut",),
)
SILENCE = Transcript(text="", segments=(), language=None, duration=1.0)
EXPECTED = {
    "source": "a.wav",
    "text": "Grüße, 世界.",
    "language": "de",
    "language_probability": 0.75,
    "duration": 2.5,
    "truncated": False,
    "notes": ["the prompt was cut"],
    "segments": [
        {"start": 0.0, "end": 1.235, "text": "Grüße,", "avg_logprob": -0.1235, "tokens": [5, 7]},
        {"start": 1.235, "end": 2.5, "text": "世界.", "avg_logprob": -0.5, "tokens": [9]},
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
    assert [line.strip()[:10] for line in document.splitlines() if '"start"' in line] == ['{"start": '] * 2


def test_json_among_others_is_one_line() -> None:
    entry = WRITERS["json"].entry("a.wav", GREETING)
    assert json.loads(entry) == EXPECTED
    assert entry.index("\n") == len(entry) - 1


@pytest.mark.parametrize("form", ["document", "entry"])
def test_json_leaves_letters_readable(form: str) -> None:
    assert "Grüße, 世界." in getattr(WRITERS["json"], form)("a.wav", GREETING)


def test_json_of_silence_has_no_segments() -> None:
    assert json.loads(WRITERS["json"].document("a.wav", SILENCE))["segments"] == []


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
