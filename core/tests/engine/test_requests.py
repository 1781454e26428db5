"""Requests come, run together, and leave, each in its own time."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature

import pytest

from oasr.audio import Audio
from oasr.engine import ASREngine
from oasr.errors import RequestAbortedError, RequestError
from oasr.registry import hooks
from oasr.types import StepStats

from .conftest import GERMAN, MakeEngine, speech


def test_an_outcome_comes_under_the_id_of_its_request(engine: ASREngine, alone: Callable[..., str]) -> None:
    sources = [speech(seed) for seed in range(3)]
    ids = [engine.add_request(source) for source in sources]
    outcomes = engine.run()
    assert sorted(outcomes) == sorted(ids)
    assert [outcomes[each].transcript.text for each in ids] == [alone(source) for source in sources]
    assert [outcomes[each].source for each in ids] == [source.source for source in sources]


def test_an_outcome_is_handed_out_once(engine: ASREngine) -> None:
    engine.add_request(speech(1))
    assert len(engine.run()) == 1
    assert engine.run() == {}
    assert engine.step() == {}


def test_a_request_joins_a_batch_that_is_being_decoded(engine: ASREngine, steps: list[StepStats]) -> None:
    first = engine.add_request(speech(1, seconds=1.0), GERMAN)
    assert engine.step() == {}
    assert steps[-1] == StepStats(waiting=0, running=1)
    engine.add_request(speech(2, seconds=1.0), GERMAN)
    assert first not in engine.step()
    assert steps[-1] == StepStats(waiting=0, running=2)


def test_a_finished_row_makes_room_while_others_go_on(make_engine: MakeEngine, steps: list[StepStats]) -> None:
    engine = make_engine(rows=2)
    short = engine.add_request(speech(1), replace(GERMAN, max_new_tokens=1))
    long = engine.add_request(speech(2, seconds=1.0), GERMAN)
    third = engine.add_request(speech(3, seconds=1.0), GERMAN)
    ended = engine.step()
    while short not in ended:
        assert steps[-1] == StepStats(waiting=1, running=2)
        ended |= engine.step()
    assert long not in ended
    ended = engine.step()
    assert steps[-1].waiting == 0
    assert steps[-1].running == 2 - len(ended)
    assert third in ended | engine.run()


def test_no_more_rows_run_than_there_is_room_for(
    make_engine: MakeEngine, steps: list[StepStats], alone: Callable[..., str]
) -> None:
    engine = make_engine(rows=2)
    sources = [speech(seed) for seed in range(7)]
    ids = [engine.add_request(source) for source in sources]
    outcomes = engine.run()
    assert max(stats.running for stats in steps) == 2
    assert [outcomes[each].transcript.text for each in ids] == [alone(source) for source in sources]


def test_aborting_frees_the_row(make_engine: MakeEngine, steps: list[StepStats], alone: Callable[..., str]) -> None:
    engine = make_engine(rows=1)
    running = engine.add_request(speech(1, seconds=1.0), GERMAN)
    waiting = engine.add_request(speech(2), GERMAN)
    engine.step()
    engine.abort(running)
    outcomes = engine.step()
    assert isinstance(outcomes[running].error, RequestAbortedError)
    assert steps[-1] == StepStats(waiting=0, running=1)
    assert engine.run()[waiting].transcript.text == alone(speech(2), GERMAN)


def test_aborting_a_request_that_waits_leaves_the_others_alone(
    make_engine: MakeEngine, alone: Callable[..., str]
) -> None:
    engine = make_engine(rows=1)
    running = engine.add_request(speech(1), GERMAN)
    waiting = engine.add_request(speech(2), GERMAN)
    engine.step()
    engine.abort(waiting)
    outcomes = engine.run()
    assert isinstance(outcomes[waiting].error, RequestAbortedError)
    assert outcomes[running].transcript.text == alone(speech(1), GERMAN)


def test_aborting_takes_all_windows_of_a_request(engine: ASREngine, steps: list[StepStats]) -> None:
    request = engine.add_request(speech(1, seconds=6.0), GERMAN)
    engine.step()
    assert steps[-1] == StepStats(waiting=2, running=4)
    engine.abort(request)
    engine.step()
    assert steps[-1] == StepStats(waiting=0, running=0)


@pytest.mark.parametrize("moment", ["before it starts", "after it ended"])
def test_aborting_too_early_or_too_late_does_no_harm(engine: ASREngine, moment: str) -> None:
    request = engine.add_request(speech(1))
    if moment == "after it ended":
        assert engine.run()[request].transcript
    engine.abort(request)
    engine.abort(12345)
    outcomes = engine.run()
    assert (request in outcomes) == (moment == "before it starts")


def test_rows_that_leave_do_not_disturb_those_that_stay(make_engine: MakeEngine, alone: Callable[..., str]) -> None:
    engine = make_engine(rows=4)
    sources = [speech(seed, seconds=1.0) for seed in range(4)]
    ids = [engine.add_request(source, GERMAN) for source in sources]
    engine.step()
    engine.abort(ids[0])
    engine.step()
    engine.abort(ids[2])
    outcomes = engine.run()
    assert outcomes[ids[1]].transcript.text == alone(sources[1], GERMAN)
    assert outcomes[ids[3]].transcript.text == alone(sources[3], GERMAN)


def test_run_returns_what_another_thread_brought_to_its_end(engine: ASREngine, monkeypatch: pytest.MonkeyPatch) -> None:
    request = engine.add_request(speech(1, seconds=0.3), GERMAN)
    step = engine.step

    def interrupted_step() -> dict:
        outcomes = step()
        engine.transcribe(speech(2, seconds=1.0), GERMAN)
        return outcomes

    monkeypatch.setattr(engine, "step", interrupted_step)
    assert request in engine.run()


def test_each_input_of_many_is_yielded_as_it_ends(engine: ASREngine, alone: Callable[..., str]) -> None:
    sources = [speech(seed) for seed in range(6)]
    results = dict(engine.transcribe_each(iter(sources)))
    assert [results[index].transcript.text for index in range(6)] == [alone(source) for source in sources]


def test_inputs_are_taken_only_a_little_ahead(engine: ASREngine) -> None:
    taken = 0

    def endless() -> Iterator[Audio]:
        nonlocal taken
        while True:
            taken += 1
            yield speech(taken, seconds=0.2)

    results = engine.transcribe_each(endless())
    ended = [next(results) for _ in range(5)]
    results.close()
    assert len(ended) == 5
    assert taken < 40


def test_leaving_the_iteration_aborts_what_has_not_ended(engine: ASREngine, steps: list[StepStats]) -> None:
    results = engine.transcribe_each(speech(seed, seconds=1.0) for seed in range(20))
    next(results)
    results.close()
    engine.step()
    assert steps[-1] == StepStats(waiting=0, running=0)


def test_a_bad_input_of_many_is_an_outcome(engine: ASREngine) -> None:
    results = dict(engine.transcribe_each(["nowhere.wav", speech(1)]))
    assert results[0].error
    assert results[0].source == "nowhere.wav"
    assert results[1].transcript


def test_a_closed_engine_takes_no_requests(engine: ASREngine) -> None:
    engine.close()
    with pytest.raises(RequestError, match="closed"):
        engine.add_request(speech(1))
    with pytest.raises(RequestError, match="closed"):
        engine.transcribe(speech(1))


def test_closing_aborts_what_is_unfinished(engine: ASREngine) -> None:
    request = engine.add_request(speech(1))
    engine.step()
    engine.close()
    assert isinstance(engine.run()[request].error, RequestAbortedError)


def test_closing_twice_does_no_harm(engine: ASREngine) -> None:
    engine.close()
    engine.close()


def test_an_engine_closes_at_the_end_of_a_with_block(engine: ASREngine) -> None:
    with engine as entered:
        assert entered is engine
    with pytest.raises(RequestError, match="closed"):
        engine.add_request(speech(1))


@pytest.mark.parametrize("hook", ["oasr_engine_started", "oasr_request_finished", "oasr_engine_stopped"])
def test_observers_are_called_with_all_that_their_hook_promises(make_engine: MakeEngine, hook: str) -> None:
    calls = []
    arguments = list(signature(getattr(hooks, hook)).parameters)
    namespace: dict = {"calls": calls}
    exec(f"def {hook}({', '.join(arguments)}): calls.append(({', '.join(arguments)},))", namespace)
    with make_engine(hooks={hook: namespace[hook]}) as engine:
        engine.transcribe(speech(1))
    assert len(calls) == 1
