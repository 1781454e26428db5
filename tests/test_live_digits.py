"""Spoken digits with pauses between them: where a segment ends, when each word was said, and that none is lost."""

import csv
import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.types import LiveOptions, Segment, StreamEvent, Transcript, Word

RATE = 16_000
PAUSE = 1.5
WORDS = DecodingOptions(word_timestamps=True)
CLIPS = "2_lucas_2947.flac", "1_nicolas_723.flac"
"""Both models hear them right. One ends with the digit the other begins with, which a search must not take for one."""
NEAR = 0.3
"""Seconds by which a search may hear a digit outside the stretch that a listener marked."""


class Clip:
    """A recording, what is said in it and when."""

    def __init__(self, folder: Path, name: str):
        with (folder / "transcripts.tsv").open(encoding="utf-8", newline="") as file:
            [row] = [row for row in csv.DictReader(file, delimiter="\t") if row["file"] == name]
        self.samples = read_audio(folder / name, target_rate=RATE).samples
        self.text = row["transcript"]
        spans = [span.split("-") for span in row["digit_spans_s"].split(";")]
        self.spans = [(float(start), float(end)) for start, end in spans]


@pytest.fixture(scope="module", params=["icefall-zipformer-streaming-digits", "wenet-u2pp-digits"])
def engine(request: pytest.FixtureRequest, shared: Callable[[str], Path], device: str) -> Iterator[ASREngine]:
    model = str(shared(f"models/{request.param}/checkpoint"))
    with ASREngine(EngineConfig(model=model, device=device, dtype="float32")) as engine:
        yield engine


@pytest.fixture(scope="module")
def clips(shared: Callable[[str], Path]) -> list[Clip]:
    return [Clip(shared("models/digits-clips"), name) for name in CLIPS]


@pytest.fixture(scope="module")
def spoken(clips: list[Clip]) -> Audio:
    """One clip after the other, and faint noise between them."""
    first, second = clips
    noise = 1e-3 * torch.randn(round(PAUSE * RATE), generator=torch.Generator().manual_seed(0))
    return Audio(torch.cat((first.samples, noise, second.samples)), RATE, "digits")


def hear(
    engine: ASREngine, samples: torch.Tensor, live: LiveOptions | None = None, options: DecodingOptions = WORDS
) -> tuple[Transcript, list[StreamEvent]]:
    """What a live stream hears of samples that come as they are spoken."""
    events: list[StreamEvent] = []
    session = engine.stream(options, live)
    for piece in samples.split(RATE // 10):
        events += session.push(piece)
    events += session.finish()
    return session.transcript, events


def words_of(segments: tuple[Segment, ...]) -> list[Word]:
    return [word for segment in segments for word in segment.words]


def assert_well_timed(transcript: Transcript) -> None:
    """Within the audio and in order; each segment from its first word to its last, and its words are its text."""
    for segment in transcript.segments:
        assert " ".join(word.text for word in segment.words) == segment.text
        assert segment.start == pytest.approx(segment.words[0].start)
        assert segment.end == pytest.approx(segment.words[-1].end)
    words = words_of(transcript.segments)
    times = [time for word in words for time in (word.start, word.end)]
    assert times == sorted(times)
    assert times[0] >= 0.0
    assert times[-1] <= transcript.duration
    assert all(word.confidence is not None and 0.0 < word.confidence <= 1.0 for word in words)


def test_an_endpoint_between_two_utterances_loses_no_token(engine: ASREngine, clips: list[Clip], spoken: Audio) -> None:
    transcript, events = hear(engine, spoken.samples)
    assert [segment.text.lower() for segment in transcript.segments] == [clip.text for clip in clips]
    assert transcript.text.lower() == " ".join(clip.text for clip in clips)
    assert "".join(event.delta for event in events) == transcript.text
    assert tuple(event.segment for event in events if event.segment is not None) == transcript.segments
    assert transcript.duration == len(spoken.samples) / RATE


def test_what_follows_an_endpoint_is_heard_before_the_stream_ends(engine: ASREngine, spoken: Audio) -> None:
    session = engine.stream()
    before = session.push(spoken.samples)
    assert sum(event.segment is not None for event in before) == 1
    assert sum(event.segment is not None for event in session.finish()) == 1


def test_words_are_heard_live_when_they_were_said(engine: ASREngine, clips: list[Clip], spoken: Audio) -> None:
    transcript, _ = hear(engine, spoken.samples)
    assert_well_timed(transcript)
    offset = len(clips[0].samples) / RATE + PAUSE
    spans = [*clips[0].spans, *((start + offset, end + offset) for start, end in clips[1].spans)]
    for word, (start, end) in zip(words_of(transcript.segments), spans, strict=True):
        assert start - NEAR <= word.start <= word.end <= end + NEAR


def test_words_of_a_file_are_heard_when_they_were_said(engine: ASREngine, clips: list[Clip]) -> None:
    for clip in clips:
        transcript = engine.transcribe(Audio(clip.samples, RATE, "clip"), WORDS)
        assert transcript.text.lower() == clip.text
        assert_well_timed(transcript)
        for word, (start, end) in zip(words_of(transcript.segments), clip.spans, strict=True):
            assert start - NEAR <= word.start <= word.end <= end + NEAR


def test_words_are_there_only_when_asked_for(engine: ASREngine, spoken: Audio) -> None:
    live, _ = hear(engine, spoken.samples, options=DecodingOptions())
    offline = engine.transcribe(spoken)
    assert live.segments
    assert offline.segments
    assert not words_of((*live.segments, *offline.segments))


def test_without_endpoints_all_is_one_segment(engine: ASREngine, clips: list[Clip], spoken: Audio) -> None:
    transcript, _ = hear(engine, spoken.samples, LiveOptions(endpoint_silence=math.inf, longest_segment=math.inf))
    [segment] = transcript.segments
    assert segment.text.lower() == " ".join(clip.text for clip in clips)
    assert_well_timed(transcript)


@pytest.mark.parametrize("longest", [1.0, 2.0])
def test_a_segment_ends_when_it_has_grown_too_long(engine: ASREngine, spoken: Audio, longest: float) -> None:
    transcript, events = hear(engine, spoken.samples, LiveOptions(endpoint_silence=math.inf, longest_segment=longest))
    assert len(transcript.segments) >= 2
    assert_well_timed(transcript)
    chunk = 0.64
    """Seconds of the longest chunk here, of which a segment may have as much more."""
    assert all(segment.end - segment.start <= longest + chunk for segment in transcript.segments)
    assert all(a.end <= b.start for a, b in itertools.pairwise(transcript.segments))
    assert "".join(event.delta for event in events) == transcript.text


@pytest.mark.parametrize("silence", [0.1, 0.4, 0.8, 1.2])
def test_text_and_times_hold_however_short_a_pause_ends_a_segment(
    engine: ASREngine, spoken: Audio, silence: float
) -> None:
    transcript, events = hear(engine, spoken.samples, LiveOptions(endpoint_silence=silence))
    assert len(transcript.segments) >= 2
    assert_well_timed(transcript)
    assert "".join(event.delta for event in events) == transcript.text


def test_noise_alone_is_no_segment(engine: ASREngine) -> None:
    noise = 1e-3 * torch.randn(10 * RATE, generator=torch.Generator().manual_seed(1))
    transcript, events = hear(engine, noise)
    assert (transcript.text, transcript.segments, events) == ("", (), [])


def test_what_is_said_over_and_over_is_read_once_and_kept(
    engine: ASREngine, clips: list[Clip], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a model that writes its text can lose the thread; a search over frames finds the same at any temperature."""
    start, read = engine._runner.start, []

    def observed(windows: list) -> object:
        read.extend(windows)
        return start(windows)

    monkeypatch.setattr(engine._runner, "start", observed)
    clip = clips[0]
    result = engine.transcribe(Audio(torch.cat((clip.samples, torch.zeros(RATE // 2))).repeat(6), RATE, "again"))
    assert result.text.lower() == " ".join([clip.text] * 6)
    assert len(read) == 1
    assert result.notes == ()
    assert [segment.temperature for segment in result.segments] == [0.0]
