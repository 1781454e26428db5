"""What comes out does not depend on how many inputs are read at once, nor on who asks."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions
from oasr.errors import BatchError, EmptyAudioError, RequestError
from oasr.testing.toys.audio import toy_audio

from .conftest import GERMAN, MakeEngine, speech

SOURCES = [speech(seed, seconds=0.15 + 0.05 * seed) for seed in range(16)]


def test_texts_tell_the_inputs_apart(engine: ASREngine) -> None:
    texts = [transcript.text for transcript in engine.transcribe(SOURCES)]
    assert len(set(texts)) == len(SOURCES)
    assert all(texts)


def test_a_batch_reads_the_same_as_one_by_one(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    together = make_engine(rows=16).transcribe(SOURCES)
    assert [transcript.text for transcript in together] == [alone(source) for source in SOURCES]


def test_more_inputs_than_rows_read_the_same(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    together = make_engine(rows=3).transcribe(SOURCES)
    assert [transcript.text for transcript in together] == [alone(source) for source in SOURCES]


def test_log_probabilities_do_not_depend_on_company(make_engine: MakeEngine) -> None:
    alone = make_engine(rows=1).transcribe(SOURCES[:4], GERMAN)
    together = make_engine(rows=4).transcribe(SOURCES[:4], GERMAN)
    for one, other in zip(alone, together, strict=True):
        assert one.segments[0].avg_logprob == pytest.approx(other.segments[0].avg_logprob, abs=1e-4)


def test_many_threads_may_transcribe_at_once(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(rows=4)
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(engine.transcribe_offline, SOURCES * 2))
    assert texts == [alone(source) for source in SOURCES] * 2


def test_an_array_reads_as_the_same_samples_do(engine: ASREngine) -> None:
    samples = toy_audio(3)
    from_array = engine.transcribe((samples.numpy(), 16_000))
    assert from_array.text == engine.transcribe(Audio(samples, 16_000, "x")).text


def test_no_inputs_are_no_transcripts(engine: ASREngine) -> None:
    assert engine.transcribe([]) == []


def test_a_single_bad_input_raises_its_own_error(engine: ASREngine) -> None:
    with pytest.raises(EmptyAudioError):
        engine.transcribe((torch.zeros(0).numpy(), 16_000))


def test_one_bad_input_of_many_leaves_the_others_alone(engine: ASREngine, alone: Callable[..., str]) -> None:
    with pytest.raises(BatchError) as raised:
        engine.transcribe([SOURCES[0], "no such file.wav", SOURCES[1]])
    good, bad, other = raised.value.outcomes
    assert good.transcript.text == alone(SOURCES[0])
    assert "no such file.wav" in str(bad.error)
    assert other.transcript.text == alone(SOURCES[1])


def test_long_audio_is_read_in_consecutive_windows(engine: ASREngine) -> None:
    long = speech(7, seconds=3.3)
    windows = [Audio(samples, 16_000, "window") for samples in long.samples.split(16_000)]
    transcript = engine.transcribe(long, GERMAN)
    expected = [engine.transcribe(window, GERMAN).text for window in windows]
    assert [segment.text for segment in transcript.segments] == expected
    assert [(segment.start, segment.end) for segment in transcript.segments] == [
        (0.0, 1.0),
        (1.0, 2.0),
        (2.0, 3.0),
        (3.0, pytest.approx(3.3)),
    ]


def test_long_audio_keeps_the_language_of_its_first_window(engine: ASREngine) -> None:
    long = speech(7, seconds=2.5)
    detected = engine.transcribe(Audio(long.samples[:16_000], 16_000, "first")).language
    transcript = engine.transcribe(long)
    assert transcript.language == detected
    assert transcript.text == engine.transcribe(long, DecodingOptions(language=detected)).text


@pytest.mark.parametrize("samples", [1, 159, 160, 16_000, 16_001])
def test_windows_cover_every_sample(engine: ASREngine, samples: int) -> None:
    transcript = engine.transcribe(Audio(torch.full((samples,), 0.2), 16_000, "x"))
    assert transcript.duration == samples / 16_000


def test_the_language_asked_for_matters(engine: ASREngine) -> None:
    texts = {engine.transcribe(SOURCES[5], DecodingOptions(language=code)).text for code in ("en", "de", "fr")}
    assert len(texts) > 1


def test_the_language_is_detected_among_those_allowed(engine: ASREngine) -> None:
    for source in SOURCES[:4]:
        free = engine.transcribe(source).language
        others = tuple(code for code in ("en", "de", "fr") if code != free)
        assert engine.transcribe(source, DecodingOptions(languages=others)).language in others


def test_a_language_is_detected_for_each_input_of_a_batch(make_engine: MakeEngine) -> None:
    together = [transcript.language for transcript in make_engine(rows=16).transcribe(SOURCES)]
    lonely = make_engine(rows=1)
    assert together == [lonely.transcribe(source).language for source in SOURCES]


def test_a_prompt_reads_into_the_text_and_is_not_part_of_it(engine: ASREngine) -> None:
    options = DecodingOptions(language="de", prompt="ZZZ ZZZ")
    text = engine.transcribe(SOURCES[9], options).text
    assert text != engine.transcribe(SOURCES[9], GERMAN).text
    assert "Z" not in text


def test_a_limit_of_tokens_holds_for_each_window(engine: ASREngine) -> None:
    transcript = engine.transcribe(speech(7, seconds=2.5), DecodingOptions(language="de", max_new_tokens=3))
    assert [len(segment.tokens) for segment in transcript.segments] == [3, 3, 3]


def test_suppressed_tokens_are_never_produced(engine: ASREngine) -> None:
    said = engine.transcribe(SOURCES[12], GERMAN).segments[0].tokens
    options = DecodingOptions(language="de", suppress_tokens=(said[0],))
    assert said[0] not in engine.transcribe(SOURCES[12], options).segments[0].tokens


def test_requests_with_different_options_mix_in_a_batch(make_engine: MakeEngine) -> None:
    choices = [
        GERMAN,
        DecodingOptions(language="fr", prompt="abc " * 12),
        DecodingOptions(max_new_tokens=4),
        DecodingOptions(language="en", suppress_tokens=(113, 107)),
    ]
    engine, lonely = make_engine(rows=4), make_engine(rows=1)
    ids = [engine.add_request(source, options) for source, options in zip(SOURCES[8:12], choices, strict=True)]
    outcomes = engine.run()
    expected = [lonely.transcribe(source, options) for source, options in zip(SOURCES[8:12], choices, strict=True)]
    assert [outcomes[each].transcript.text for each in ids] == [transcript.text for transcript in expected]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (DecodingOptions(task="translate"), "task"),
        (DecodingOptions(language="xx"), "'xx'"),
        (DecodingOptions(languages=("en", "yy")), "'yy'"),
        (DecodingOptions(temperature=0.5), "temperature"),
    ],
)
def test_an_option_that_cannot_be_honoured_is_refused_by_name(
    engine: ASREngine, options: DecodingOptions, word: str
) -> None:
    for attempt in (engine.transcribe, engine.transcribe_each, engine.add_request):
        source = [SOURCES[0]] if attempt == engine.transcribe_each else SOURCES[0]
        with pytest.raises(RequestError, match=word):
            attempt(source, options)
    assert engine.run() == {}


def test_info_says_what_runs(make_engine: MakeEngine, toy: object, device: str) -> None:
    info = make_engine(rows=3).info
    assert (info.model, info.architecture, info.dtype, info.rows) == (str(toy), "toy", "float32", 3)
    assert info.device.startswith(device)
