"""Rows that share a step. On a GPU steps are captured for round sizes: they compute rows that nobody uses, and run on
for a while after a row has ended."""

from collections.abc import Callable

import pytest

from oasr.engine import ASREngine, DecodingOptions
from oasr.errors import NonFiniteError

from .conftest import GERMAN, MakeEngine, constant, speech
from .test_failures import POISON, Poisoned, outcomes_of, sabotaged, texts


@pytest.fixture
def engine(make_engine: MakeEngine) -> ASREngine:
    return make_engine(rows=4, components=sabotaged(Poisoned))


def test_rows_that_nobody_uses_do_not_matter(engine: ASREngine, alone: Callable[..., str]) -> None:
    sources = [speech(seed) for seed in range(3)]
    assert texts(outcomes_of(engine, sources)) == [alone(source, GERMAN) for source in sources]


def test_rows_that_have_ended_do_not_matter(engine: ASREngine, alone: Callable[..., str]) -> None:
    sources = [speech(seed, seconds=0.2 + 0.25 * seed) for seed in range(4)]
    assert texts(outcomes_of(engine, sources)) == [alone(source, GERMAN) for source in sources]


def test_rows_that_fill_their_cache_end_there(engine: ASREngine, alone: Callable[..., str]) -> None:
    long = DecodingOptions(language="de", prompt="a long story " * 4, suppress_tokens=(256,))
    options = [long, GERMAN, long]
    sources = [speech(seed) for seed in range(3)]
    expected = [alone(source, each) for source, each in zip(sources, options, strict=True)]
    assert texts(outcomes_of(engine, sources, options)) == expected


def test_nan_in_a_row_that_nobody_uses_any_more_harms_nobody(engine: ASREngine, alone: Callable[..., str]) -> None:
    last = outcomes_of(engine, [*(speech(seed) for seed in range(3)), constant(POISON)])[-1]
    assert isinstance(last.error, NonFiniteError)
    long = DecodingOptions(language="de", prompt="a long story " * 4)
    options = [GERMAN, long, DecodingOptions(language="de", max_new_tokens=4)]
    sources = [speech(seed) for seed in range(3)]
    expected = [alone(source, each) for source, each in zip(sources, options, strict=True)]
    assert texts(outcomes_of(engine, sources, options)) == expected


def test_nan_beside_rows_of_other_lengths_harms_nobody(engine: ASREngine, alone: Callable[..., str]) -> None:
    long = DecodingOptions(language="de", prompt="a long story " * 4)
    sources = [speech(1), constant(POISON), speech(2)]
    options = [DecodingOptions(language="de", max_new_tokens=20), GERMAN, long]
    expected = [alone(source, each) for source, each in zip(sources[::2], options[::2], strict=True)]
    assert texts(outcomes_of(engine, sources, options)[::2]) == expected
