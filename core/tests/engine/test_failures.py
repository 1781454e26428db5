"""A failure belongs to one request: whatever happens in one window, its neighbours read as if alone."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from oasr.engine import ASREngine, DecodingOptions
from oasr.errors import DeviceError, NonFiniteError, OasrError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.cache import CacheView
from oasr.interfaces.frontend import FeatureBatch
from oasr.plugin import Kind
from oasr.testing.toys.config import ToyConfig
from oasr.testing.toys.decoder import ToyDecoder
from oasr.testing.toys.model import ToyArchitecture
from oasr.tokenizers.huggingface import HuggingFaceTokenizer
from oasr.types import Outcome, StepStats

from .conftest import GERMAN, MakeEngine, constant, has_level, speech

POISON, BOMB = 0.9, 0.8
NEIGHBOURS = [speech(seed) for seed in range(3)]


class HalfPoisoned(ToyArchitecture):
    """NaN for one input, except in float32."""

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        encoded = super().encode(features)
        if self.dtype != torch.float32:
            encoded.frames[has_level(features.frames, POISON)] = torch.nan
        return encoded


class Poisoned(ToyArchitecture):
    """NaN for one input."""

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        encoded = super().encode(features)
        encoded.frames[has_level(features.frames, POISON)] = torch.nan
        return encoded


class Crowded(ToyArchitecture):
    """Out of memory for more than one window, and for one input always."""

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        if len(features.frames) > 1 or has_level(features.frames, BOMB).any():
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB")
        return super().encode(features)


class Defective(ToyArchitecture):
    """A defect that one input brings to light."""

    def encode(self, features: FeatureBatch) -> EncoderOutput:
        if has_level(features.frames, BOMB).any():
            raise IndexError("index 7 is out of range")
        return super().encode(features)


def sabotaged(architecture: type[ToyArchitecture]) -> dict:
    return {(Kind.ARCHITECTURE, "toy"): architecture}


def outcomes_of(engine: ASREngine, sources: Sequence, options: Sequence[DecodingOptions] = ()) -> list[Outcome]:
    """Read all at once: the sources are handed in before the first step."""
    given = options or [GERMAN] * len(sources)
    ids = [engine.add_request(source, each) for source, each in zip(sources, given, strict=True)]
    ended = engine.run()
    return [ended[each] for each in ids]


def texts(outcomes: Sequence[Outcome]) -> list[str]:
    assert [outcome.error for outcome in outcomes] == [None] * len(outcomes)
    return [outcome.transcript.text for outcome in outcomes]


def test_a_window_that_overflows_in_half_precision_is_read_in_float32(
    make_engine: MakeEngine, alone: Callable[..., str], half: str
) -> None:
    engine = make_engine(dtype=half, components=sabotaged(HalfPoisoned))
    with pytest.warns(UserWarning, match="float32"):
        [outcome] = outcomes_of(engine, [constant(POISON)])
    assert texts([outcome]) == [alone(constant(POISON), GERMAN)]


def test_it_is_warned_of_once(make_engine: MakeEngine, half: str) -> None:
    engine = make_engine(dtype=half, components=sabotaged(HalfPoisoned))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        outcomes_of(engine, [constant(POISON, 0.3), constant(POISON, 0.5)])
        outcomes_of(engine, [constant(POISON, 0.4)])
    assert len([each for each in seen if "float32" in str(each.message)]) == 1


@pytest.mark.filterwarnings("ignore:The model computed NaN")
def test_its_neighbours_in_half_precision_are_left_alone(make_engine: MakeEngine, half: str) -> None:
    sound, engine = make_engine(dtype=half), make_engine(dtype=half, components=sabotaged(HalfPoisoned))
    expected = texts(outcomes_of(sound, NEIGHBOURS))
    outcomes = outcomes_of(engine, [*NEIGHBOURS[:2], constant(POISON), NEIGHBOURS[2]])
    assert texts(outcomes[:2] + outcomes[3:]) == expected


@pytest.mark.filterwarnings("ignore:The model computed NaN")
def test_its_language_is_detected_in_float32(make_engine: MakeEngine, half: str) -> None:
    engine = make_engine(dtype=half, components=sabotaged(HalfPoisoned))
    expected = make_engine().transcribe(constant(POISON))
    transcript = engine.transcribe(constant(POISON))
    assert (transcript.language, transcript.text) == (expected.language, expected.text)


@pytest.mark.parametrize("dtype", ["float32", "half"])
@pytest.mark.filterwarnings("ignore:The model computed NaN")
def test_nan_in_float32_fails_that_request_only(make_engine: MakeEngine, half: str, dtype: str) -> None:
    dtype = half if dtype == "half" else dtype
    sound, engine = make_engine(dtype=dtype), make_engine(dtype=dtype, components=sabotaged(Poisoned))
    outcomes = outcomes_of(engine, [NEIGHBOURS[0], constant(POISON), *NEIGHBOURS[1:]])
    assert isinstance(outcomes[1].error, NonFiniteError)
    assert "culprit" in str(outcomes[1].error)
    assert texts(outcomes[:1] + outcomes[2:]) == texts(outcomes_of(sound, NEIGHBOURS))


def test_nan_leaves_no_poison_for_those_who_come_after(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(rows=2, components=sabotaged(Poisoned))
    outcomes_of(engine, [constant(POISON), constant(POISON)])
    later = [speech(seed, seconds=1.0) for seed in range(4)]
    assert texts(outcomes_of(engine, later)) == [alone(source, GERMAN) for source in later]


def test_nan_while_others_run_leaves_no_poison(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(rows=3, components=sabotaged(Poisoned))
    early = engine.add_request(speech(1, seconds=1.0), GERMAN)
    engine.step()
    engine.add_request(constant(POISON), GERMAN)
    late = engine.add_request(speech(2, seconds=1.0), GERMAN)
    ended = engine.run()
    assert texts([ended[early], ended[late]]) == [
        alone(speech(1, seconds=1.0), GERMAN),
        alone(speech(2, seconds=1.0), GERMAN),
    ]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_in_the_padding_of_a_prompt_harms_nobody(make_engine: MakeEngine, place: int) -> None:
    """Prompts of several lengths are read together, and all padding goes to one block that others may read."""
    sources = NEIGHBOURS[:2]
    options = [
        DecodingOptions(language="de", max_new_tokens=2),
        DecodingOptions(language="de", prompt="a long story " * 4),
    ]
    expected = texts(outcomes_of(make_engine(rows=1), sources, options))
    sources.insert(place, constant(POISON))
    options.insert(place, GERMAN)
    outcomes = outcomes_of(make_engine(components=sabotaged(Poisoned)), sources, options)
    assert isinstance(outcomes.pop(place).error, NonFiniteError)
    assert texts(outcomes) == expected


def test_a_batch_that_does_not_fit_in_memory_is_split(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(components=sabotaged(Crowded))
    assert texts(outcomes_of(engine, NEIGHBOURS)) == [alone(source, GERMAN) for source in NEIGHBOURS]


def test_a_window_that_never_fits_in_memory_fails_alone(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(components=sabotaged(Crowded))
    outcomes = outcomes_of(engine, [NEIGHBOURS[0], constant(BOMB), *NEIGHBOURS[1:]])
    assert isinstance(outcomes[1].error, DeviceError)
    assert "memory" in str(outcomes[1].error)
    assert texts(outcomes[:1] + outcomes[2:]) == [alone(source, GERMAN) for source in NEIGHBOURS]


def test_a_defect_of_the_network_fails_the_window_that_shows_it(
    make_engine: MakeEngine, alone: Callable[..., str]
) -> None:
    engine = make_engine(components=sabotaged(Defective))
    outcomes = outcomes_of(engine, [*NEIGHBOURS, constant(BOMB)])
    assert isinstance(outcomes[3].error, OasrError)
    assert "IndexError: index 7 is out of range" in str(outcomes[3].error)
    assert isinstance(outcomes[3].error.__cause__, IndexError)
    assert texts(outcomes[:3]) == [alone(source, GERMAN) for source in NEIGHBOURS]


@pytest.mark.parametrize("architecture", [Poisoned, Crowded, Defective])
def test_a_failed_window_takes_the_rest_of_its_request_along(
    make_engine: MakeEngine, steps: list[StepStats], architecture: type[ToyArchitecture]
) -> None:
    engine = make_engine(components=sabotaged(architecture))
    level = POISON if architecture is Poisoned else BOMB
    [outcome] = outcomes_of(engine, [constant(level, seconds=6.0)])
    assert outcome.error is not None
    assert steps[-1] == StepStats(waiting=0, running=0)


@pytest.mark.parametrize("architecture", [Poisoned, Crowded, Defective])
def test_no_row_is_lost_by_failures(
    make_engine: MakeEngine, steps: list[StepStats], architecture: type[ToyArchitecture]
) -> None:
    engine = make_engine(rows=2, components=sabotaged(architecture))
    level = POISON if architecture is Poisoned else BOMB
    for _ in range(4):
        outcomes_of(engine, [constant(level), constant(level)])
    steps.clear()
    assert len(texts(outcomes_of(engine, NEIGHBOURS))) == 3
    assert max(stats.running for stats in steps) == 2


class CrowdedSteps(ToyArchitecture):
    """Out of memory in a decode step of more than one row, and of one input always."""

    def decode(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        is_step = tokens.shape[1] == 1
        if is_step and (len(tokens) > 1 or frames_heard(cache).eq(SEVEN_FRAMES).any()):
            raise torch.OutOfMemoryError("CUDA out of memory")
        return super().decode(tokens, cache)


SEVEN_FRAMES = 7


def frames_heard(cache: CacheView) -> torch.Tensor:
    return cache.load("mask", 0).sum(dim=1)


def test_a_decode_step_that_does_not_fit_in_memory_is_split(
    make_engine: MakeEngine, alone: Callable[..., str], device: str
) -> None:
    if device == "cuda":
        pytest.skip("captured steps do not allocate")
    engine = make_engine(components=sabotaged(CrowdedSteps))
    sources = [*NEIGHBOURS, speech(9, seconds=0.28)]
    outcomes = outcomes_of(engine, sources)
    assert isinstance(outcomes.pop().error, DeviceError)
    assert texts(outcomes) == [alone(source, GERMAN) for source in NEIGHBOURS]
    assert texts(outcomes_of(engine, NEIGHBOURS)) == [alone(source, GERMAN) for source in NEIGHBOURS]


class SulkingAtTheStart(ToyDecoder):
    """A search with a defect that one request brings to light at once."""

    def start(self, options: DecodingOptions, device: torch.device) -> None:
        if options.seed == 13:
            raise ValueError("thirteen")


class SulkingLater(ToyDecoder):
    """A search with a defect that one request brings to light when its turn comes."""

    def start(self, options: DecodingOptions, device: torch.device) -> int:
        return options.seed

    def advance(
        self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor, states: Sequence[int]
    ) -> torch.Tensor:
        if 13 in states:
            raise ValueError("thirteen")
        return super().advance(logits, generated, counts, states)


@pytest.mark.parametrize("decoder", [SulkingAtTheStart, SulkingLater])
def test_a_defect_of_the_search_fails_the_request_that_shows_it(
    make_engine: MakeEngine, alone: Callable[..., str], decoder: type[ToyDecoder]
) -> None:
    engine = make_engine(rows=2, components={(Kind.DECODER, "toy-greedy"): decoder})
    options = [GERMAN, DecodingOptions(language="de", seed=13), GERMAN]
    for _ in range(3):
        outcomes = outcomes_of(engine, NEIGHBOURS, options)
        assert "thirteen" in str(outcomes[1].error)
        assert texts(outcomes[::2]) == [alone(source, GERMAN) for source in NEIGHBOURS[::2]]


class Forgetful(HuggingFaceTokenizer):
    """A tokenizer with a defect that one text brings to light."""

    def decode(self, ids: Sequence[int]) -> str:
        if len(ids) == 3:
            raise ValueError("three")
        return super().decode(ids)


class WithForgetfulTokenizer(ToyArchitecture):
    def __init__(self, config: ToyConfig):
        super().__init__(config)
        self.facts = replace(self.facts, tokenizer="forgetful")


def test_a_defect_of_the_tokenizer_fails_the_request_that_shows_it(
    make_engine: MakeEngine, alone: Callable[..., str]
) -> None:
    components = {**sabotaged(WithForgetfulTokenizer), (Kind.TOKENIZER, "forgetful"): Forgetful}
    engine = make_engine(components=components)
    outcomes = outcomes_of(engine, NEIGHBOURS, [GERMAN, DecodingOptions(language="de", max_new_tokens=3), GERMAN])
    assert "three" in str(outcomes[1].error)
    assert texts(outcomes[::2]) == [alone(source, GERMAN) for source in NEIGHBOURS[::2]]


class PoisonedAndCrowded(Poisoned):
    """NaN for one input, and out of memory for more than one prompt, once their keys have been stored."""

    def decode(self, tokens: torch.Tensor, cache: CacheView) -> torch.Tensor:
        logits = super().decode(tokens, cache)
        if len(tokens) > 1 and tokens.shape[1] > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return logits


@pytest.mark.parametrize("place", range(4))
def test_nan_in_a_batch_that_had_to_be_split_harms_nobody(
    make_engine: MakeEngine, alone: Callable[..., str], place: int
) -> None:
    """The blocks of the failed attempt are lent again, and its NaN reaches further than a short prompt overwrites."""
    sources, options = [*NEIGHBOURS], [GERMAN] * 3
    sources.insert(place, constant(POISON))
    options.insert(place, DecodingOptions(language="de", prompt="a story"))
    outcomes = outcomes_of(make_engine(components=sabotaged(PoisonedAndCrowded)), sources, options)
    assert isinstance(outcomes.pop(place).error, NonFiniteError)
    assert texts(outcomes) == [alone(source, GERMAN) for source in NEIGHBOURS]
