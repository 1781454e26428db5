"""Live streams, read by a stranger's streaming architecture: many at once, however they are cut, begun and ended."""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import oasr_decoder_ctc.plugin
from oasr.audio import Audio
from oasr.checkpoint.convert import save_native
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.errors import RequestAbortedError, RequestError
from oasr.testing import sealed_registry
from oasr.testing.toys.audio import toy_audio
from oasr.testing.weights import randomize
from oasr.types import LiveOptions, Segment, StreamEvent

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin-streaming" / "src"
RATE = 16_000
ENDLESS = LiveOptions(endpoint_silence=float("inf"), longest_segment=float("inf"))
MakeEngine = Callable[..., ASREngine]


@pytest.fixture(scope="module")
def plugin() -> Iterator[Any]:
    sys.path.insert(0, str(EXAMPLE))
    import acme_oasr_running.plugin

    yield acme_oasr_running.plugin
    sys.path.remove(str(EXAMPLE))


@pytest.fixture(scope="module")
def model(plugin: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights, and symbols of which some begin words."""
    from acme_oasr_running.config import RunningConfig
    from acme_oasr_running.model import Running

    folder = tmp_path_factory.mktemp("running")
    letters = [chr(ord("A") + i) for i in range(14)]
    pieces = ["<blk>", *(f"▁{letter}" for letter in letters), *(letter.lower() for letter in letters)]
    symbols = folder / "tokens.txt"
    symbols.write_text("".join(f"{piece} {index}\n" for index, piece in enumerate(pieces)), encoding="utf-8")
    config = RunningConfig()
    network = Running(config)
    randomize(network, seed=0)
    with torch.no_grad():
        network.output.weight *= 4
        network.output.bias[0] += 1.0  # now and then nothing is said
    state = {name: tensor.detach() for name, tensor in network.state_dict().items()}
    return save_native(
        folder / "model",
        architecture="acme-running",
        config=config,
        state=state,
        files={"symbols": symbols},
        generation={},
    )


@pytest.fixture
def make_engine(model: Path, plugin: Any, device: str) -> Iterator[MakeEngine]:
    engines: list[ASREngine] = []

    def make(**settings: Any) -> ASREngine:
        registry = sealed_registry(plugin, oasr_decoder_ctc.plugin)
        settings = {"model": str(model), "device": device, "dtype": "float32"} | settings
        config = EngineConfig.model_validate(settings, context={"registry": registry})
        engines.append(ASREngine(config, registry))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(make_engine: MakeEngine) -> ASREngine:
    return make_engine()


def speech(seed: int, seconds: float = 2.0) -> torch.Tensor:
    return toy_audio(seed, seconds)


def pieces(samples: torch.Tensor, seed: int) -> Iterator[torch.Tensor]:
    """The samples, cut at random."""
    dice, start = random.Random(seed), 0
    while start < len(samples):
        end = start + dice.choice([0, 1, 159, 160, 1000, 4000, 20_000])
        yield samples[start:end]
        start = end


def alone(engine: ASREngine, samples: torch.Tensor, live: LiveOptions = ENDLESS) -> str:
    """What a session by itself hears, pushed at once."""
    with engine.stream(live=live) as session:
        session.push(samples)
    return session.transcript.text


@pytest.mark.parametrize("seed", range(4))
def test_however_audio_is_cut_the_text_is_that_of_the_whole(engine: ASREngine, seed: int) -> None:
    samples = speech(seed)
    offline = engine.transcribe(Audio(samples, RATE, "whole"))
    assert offline.text
    with engine.stream(live=ENDLESS) as session:
        for piece in pieces(samples, seed):
            session.push(piece)
    assert session.transcript.text == offline.text
    assert session.transcript.duration == offline.duration


@pytest.mark.parametrize("longest", [0.5, 1.0, float("inf")])
def test_deltas_join_to_the_text(engine: ASREngine, longest: float) -> None:
    events: list[StreamEvent] = []
    live = LiveOptions(endpoint_silence=float("inf"), longest_segment=longest)
    session = engine.stream(live=live)
    for piece in pieces(speech(1, seconds=4.0), seed=1):
        events += session.push(piece)
    events += session.finish()
    assert "".join(event.delta for event in events) == session.transcript.text
    segments = tuple(event.segment for event in events if event.segment is not None)
    assert segments == session.transcript.segments
    assert " ".join(segment.text for segment in segments) == session.transcript.text
    assert (len(segments) > 1) == (longest < 4.0)


def test_after_a_segment_a_stream_is_as_if_it_had_just_begun(engine: ASREngine) -> None:
    """Search and encoder have forgotten all: what follows is heard as a stream hears it that begins there."""
    longest = 0.64
    live = LiveOptions(endpoint_silence=float("inf"), longest_segment=longest)
    samples = torch.cat([speech(seed, seconds=1.0) for seed in range(1, 5)])

    def hear(samples: torch.Tensor) -> tuple[Segment, ...]:
        with engine.stream(live=live) as session:
            session.push(samples)
        return session.transcript.segments

    segments = [segment for segment in hear(samples) if segment.start >= longest]
    fresh = hear(samples[round(longest * RATE) :])
    assert len(fresh) > 2
    assert [segment.tokens for segment in segments] == [segment.tokens for segment in fresh]
    assert [segment.start - longest for segment in segments] == pytest.approx([segment.start for segment in fresh])
    found, expected = ([segment.avg_logprob for segment in each] for each in (segments, fresh))
    assert found == pytest.approx(expected, abs=1e-4)


def test_many_streams_that_come_and_go_hear_what_each_hears_alone(make_engine: MakeEngine) -> None:
    """Opened at random times, fed in pieces of any size, every third of them cancelled."""
    engine = make_engine(streaming={"max_streams": 64})
    dice = random.Random(7)
    audio = [speech(seed, seconds=dice.uniform(0.0, 2.0)) for seed in range(200)]
    waiting, feeding, cancelled = list(range(200)), {}, set()
    names: dict[int, int] = {}
    outcomes = {}
    while waiting or feeding or engine.busy:
        while waiting and len(feeding) < 64 and dice.random() < 0.7:
            try:
                opened = engine.add_streaming_request(live=ENDLESS)
            except RequestError:
                break  # those that were fed to their end have not all been read
            names[opened] = waiting.pop()
            feeding[opened] = pieces(audio[names[opened]], seed=names[opened])
        for key in list(feeding):
            if names[key] % 3 == 0 and dice.random() < 0.2:
                engine.abort(key)
                cancelled.add(key)
                del feeding[key]
                continue
            piece = next(feeding[key], None)
            engine.feed_chunk(key, torch.zeros(0) if piece is None else piece, is_last=piece is None)
            if piece is None:
                del feeding[key]
        outcomes |= engine.step()
    assert set(outcomes) == set(names)
    assert cancelled
    expected = make_engine(streaming={"max_streams": 1})
    for key, outcome in outcomes.items():
        if key in cancelled:
            assert isinstance(outcome.error, RequestAbortedError)
        else:
            assert outcome.transcript.text == alone(expected, audio[names[key]])
    for _ in range(64):  # no slot was lost
        engine.add_streaming_request()


def test_streams_and_files_share_an_engine(engine: ASREngine) -> None:
    samples = speech(1)
    stream, file = engine.add_streaming_request(live=ENDLESS), engine.add_request(Audio(samples, RATE, "file"))
    engine.feed_chunk(stream, samples, is_last=True)
    outcomes = engine.run()
    assert outcomes[stream].transcript.text == outcomes[file].transcript.text


def test_too_many_streams_are_refused_and_a_free_place_is_used(make_engine: MakeEngine) -> None:
    engine = make_engine(streaming={"max_streams": 2})
    first, _ = engine.stream(), engine.stream()
    with pytest.raises(RequestError, match="no room"):
        engine.stream()
    first.cancel()
    engine.step()
    engine.stream()


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        (torch.tensor([0.0, torch.nan]), "finite"),
        (torch.zeros(2, 3), "shape"),
        (torch.zeros(3, dtype=torch.int16), "floats"),
        (b"abc", "floats"),
        (None, "floats"),
    ],
)
def test_what_are_no_samples_is_refused_and_the_stream_goes_on(engine: ASREngine, samples: Any, said: str) -> None:
    session = engine.stream(live=ENDLESS)
    with pytest.raises(RequestError, match=said):
        session.push(samples)
    session.push(speech(1))
    session.finish()
    assert session.transcript.text == alone(engine, speech(1))


@pytest.mark.parametrize("samples", [0, 1, 399, 640])
def test_a_stream_without_a_word_is_empty(engine: ASREngine, samples: int) -> None:
    with engine.stream() as session:
        session.push(torch.zeros(samples))
    transcript = session.transcript
    assert transcript.duration == samples / RATE
    assert (transcript.text, transcript.segments) == ("", ())


def test_of_a_stream_that_is_cancelled_nothing_is_kept(engine: ASREngine) -> None:
    key = engine.add_streaming_request(live=ENDLESS)
    engine.feed_chunk(key, speech(1))
    engine.step()
    engine.abort(key)
    assert isinstance(engine.step()[key].error, RequestAbortedError)
    assert engine.stream_events(key) == []


def test_a_block_that_raises_cancels_its_stream(make_engine: MakeEngine) -> None:
    engine = make_engine(streaming={"max_streams": 1})
    with pytest.raises(ZeroDivisionError), engine.stream():
        raise ZeroDivisionError
    engine.step()
    engine.stream()


@pytest.mark.parametrize(
    ("live", "said"), [({"left_context": 1.0}, "left_context"), ({"left_context": float("inf")}, "looks back")]
)
def test_a_left_context_the_weights_do_not_know_is_refused(engine: ASREngine, live: dict, said: str) -> None:
    with pytest.raises(RequestError, match=said):
        engine.stream(live=LiveOptions(**live))


def test_chunks_of_any_size_read_the_same(engine: ASREngine) -> None:
    """This architecture looks back only, so that its chunks do not matter; each size is a batch of its own."""
    samples = speech(3)
    sizes = [0.08, 0.16, 0.32]
    live = [LiveOptions(chunk, None, float("inf"), float("inf")) for chunk in sizes]
    keys = [engine.add_streaming_request(live=each) for each in live]
    for key in keys:
        engine.feed_chunk(key, samples, is_last=True)
    outcomes = engine.run()
    assert len({outcomes[key].transcript.text for key in keys}) == 1


def test_options_a_search_cannot_honour_are_refused_on_opening(engine: ASREngine) -> None:
    with pytest.raises(RequestError):
        engine.stream(DecodingOptions(temperature=0.7))


def test_memory_does_not_grow_with_a_stream(engine: ASREngine) -> None:
    session = engine.stream()
    for second in range(600):
        session.push(speech(second % 5, seconds=1.0))
    stream = engine._streams.find(session.id)
    assert stream is not None
    assert stream.features is None or len(stream.features) < 2 * stream.shape.window
    assert stream.pushed_samples < 2 * stream.shape.hop * 160
    assert len(stream.frontend.samples) < RATE
    session.finish()
    assert session.transcript.duration == 600


def test_samples_behind_the_last_are_left_alone(engine: ASREngine) -> None:
    key = engine.add_streaming_request(live=ENDLESS)
    engine.feed_chunk(key, speech(1), is_last=True)
    engine.feed_chunk(key, speech(2))
    outcome = engine.run()[key]
    assert outcome.transcript.text == alone(engine, speech(1))


@pytest.mark.parametrize("key", [[1], None, "1"])
def test_an_id_that_is_none_is_refused_where_it_is_given(engine: ASREngine, key: Any) -> None:
    with pytest.raises(RequestError, match="add_streaming_request"):
        engine.feed_chunk(key, speech(1))


@pytest.mark.parametrize("live", [{"chunk": float("inf")}, {"chunk": 10**400}, {"left_context": 1e300}])
def test_sizes_beyond_a_day_are_refused(live: dict) -> None:
    with pytest.raises(RequestError, match="seconds at most"):
        LiveOptions(**live)


@pytest.mark.parametrize("options", [{"task": "translate"}, {"language": "en"}, {"languages": ("en", "de")}])
def test_what_the_model_has_no_choice_of_is_refused(engine: ASREngine, options: dict) -> None:
    with pytest.raises(RequestError):
        engine.transcribe(Audio(speech(1), RATE, "speech"), DecodingOptions(**options))
