"""The JSON that clients of OpenAI's transcription API read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.output.formats import WRITERS
from oasr.types import Segment, Transcript, Word

NUMBERS = {"start", "end", "temperature", "avg_logprob", "compression_ratio", "no_speech_prob"}


def read(transcript: Transcript) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(WRITERS["verbose_json"].document("a.wav", transcript), parse_constant=refuse)


def test_the_object_has_the_fields_of_the_api() -> None:
    words = (Word("Hello", 0.0, 0.5, 0.91234567), Word("13", 0.5, 1.0, interpolated=True))
    segments = (
        Segment(0.0, 1.0, "Hello 13.", (1, 2), -0.25, 0.9, 0.01, 0.2, words),
        Segment(30.00049, 31.5, "Yes.", (3,), window_start=28.0),
    )
    assert read(Transcript("Hello 13. Yes.", segments, "en", 31.50004)) == {
        "task": "transcribe",
        "language": "english",
        "language_code": "en",
        "duration": 31.5,
        "text": "Hello 13. Yes.",
        "segments": [
            {
                "id": 0,
                "seek": 0,
                "start": 0.0,
                "end": 1.0,
                "text": " Hello 13.",
                "tokens": [1, 2],
                "temperature": 0.2,
                "avg_logprob": -0.25,
                "compression_ratio": 0.9,
                "no_speech_prob": 0.01,
            },
            {
                "id": 1,
                "seek": 2800,
                "start": 30.0,
                "end": 31.5,
                "text": " Yes.",
                "tokens": [3],
                "temperature": 0.0,
                "avg_logprob": 0.0,
                "compression_ratio": 1.0,
                "no_speech_prob": 0.0,
            },
        ],
        "words": [
            {"word": "Hello", "start": 0.0, "end": 0.5, "confidence": 0.9123},
            {"word": "13", "start": 0.5, "end": 1.0, "interpolated": True},
        ],
        "usage": {"type": "duration", "seconds": 32},
    }


def test_silence_has_no_segments_and_may_have_no_language() -> None:
    assert read(Transcript("", (), None, 1.0)) == {
        "task": "transcribe",
        "language": None,
        "language_code": None,
        "duration": 1.0,
        "text": "",
        "segments": [],
        "usage": {"type": "duration", "seconds": 1},
    }


def test_a_translation_says_so_and_is_in_english() -> None:
    found = read(Transcript("Hello.", (), "fr", 1.0, "translate"))
    assert (found["task"], found["language"], found["language_code"]) == ("translate", "english", "en")


@pytest.mark.oracle
def test_the_client_of_openai_finds_every_field_that_it_knows() -> None:
    types = pytest.importorskip("openai.types.audio", reason="reads the answer: pip install openai")
    words = (Word("Hello.", 0.0, 0.5, 0.9),)
    written = WRITERS["verbose_json"].document(
        "a.wav", Transcript("Hello.", (Segment(0, 1, "Hello.", words=words),), "en", 1.0)
    )
    found = types.TranscriptionVerbose.model_validate_json(written)
    for part in (found, found.segments[0], found.words[0], found.usage):
        assert part.model_fields_set >= set(type(part).model_fields)


def test_texts_of_segments_joined_are_the_text_also_where_no_spaces_are_written() -> None:
    spoken = (Segment(0, 1, "你好。"), Segment(1, 2, "世界。"))
    assert (
        "".join(each["text"] for each in read(Transcript("你好。世界。", spoken, "zh", 2))["segments"])
        == " 你好。世界。"
    )


@given(st.lists(st.builds(Segment, st.floats(0, 9), st.floats(0, 9), st.text(), avg_logprob=st.floats()), max_size=4))
def test_every_field_of_a_segment_is_a_number_whatever_was_said(segments: list[Segment]) -> None:
    document = read(Transcript(" ".join(each.text for each in segments), tuple(segments), "en", 9.0))
    assert [each["id"] for each in document["segments"]] == list(range(len(segments)))
    for each, segment in zip(document["segments"], segments, strict=True):
        assert each["text"] in (segment.text, f" {segment.text}")
        assert all(isinstance(each[name], float | int) for name in NUMBERS)
