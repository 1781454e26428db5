"""The kit sees each broken law, and points at the law that was broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oasr.testing import DecoderSuite

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest says of all mutants."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "pytest.ini").write_text("[pytest]\n")
    paths = [str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    arguments = ["-q", "-rA", "-p", "no:cacheprovider", "-c", str(folder / "pytest.ini"), "--tb=short"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, str(HERE / "mutants" / "suites.py")],
        env=environment | {"COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


def outcomes(report: str, mutant: str, outcome: str) -> set[str]:
    lines = [line.split(" - ")[0] for line in report.splitlines() if line.startswith(f"{outcome} ")]
    return {line.rpartition("::")[2].partition("[")[0] for line in lines if f"::Test{mutant}::" in line}


BROKEN_LAWS = {
    "Neighbourly": {"test_a_row_depends_on_itself_alone"},
    "InPlace": {"test_it_leaves_logits_and_history_as_they_were", "test_it_needs_the_head_it_names"},
    "SharedDice": {
        "test_a_seed_fixes_the_draws",
        "test_draws_do_not_depend_on_the_rows_beside",
        "test_draws_follow_the_softmax_at_the_temperature",
    },
    "Amnesiac": {"test_frames_chunk_by_chunk_end_in_what_they_give_at_once"},
    "HearsPadding": {"test_company_and_padding_do_not_change_what_is_found"},
    "NewestFirst": {"test_nobody_starves"},
    "TooMany": {"test_it_never_exceeds_the_budget"},
    "Idle": {"test_it_is_never_idle_when_something_waits_and_nothing_runs"},
    "LoudestOfAll": {"test_company_does_not_matter", "test_a_loud_neighbour_does_not_matter"},
    "Forgetful": {"test_streams_give_the_frames_of_the_whole"},
    "Hasty": {
        "test_a_stream_never_shows_half_a_character",
        "test_the_deltas_of_a_stream_join_to_the_text",
    },
    "Careless": {
        "test_matching_imports_nothing_heavy",
        "test_it_does_not_recognise_what_is_foreign",
        "test_damage_to_any_file_is_a_checkpoint_error_or_does_no_harm",
        "test_damaged_weights_are_named",
    },
    "PaddingMatters": {"test_company_and_padding_do_not_change_a_row"},
    "NeighboursMatter": {"test_steps_of_neighbours_do_not_matter", "test_prompts_of_neighbours_do_not_matter"},
    "ForgetsItsCache": {"test_a_prompt_read_at_once_or_token_by_token_is_the_same"},
    "DeafToHotwords": {"test_texts_to_expect_are_honoured_or_refused_by_name"},
    "Plugin": {
        "test_declaring_components_imports_nothing_heavy",
        "test_summaries_are_one_line_without_a_full_stop",
    },
}


@pytest.mark.parametrize("mutant", BROKEN_LAWS)
def test_a_broken_law_is_seen(report: str, mutant: str) -> None:
    assert outcomes(report, mutant, "FAILED") >= BROKEN_LAWS[mutant]


@pytest.mark.parametrize("mutant", BROKEN_LAWS)
def test_the_other_laws_hold(report: str, mutant: str) -> None:
    assert outcomes(report, mutant, "PASSED")
    assert not outcomes(report, mutant, "ERROR")


def test_a_failure_shows_the_values(report: str) -> None:
    assert "chose otherwise in company" in report
    assert "assert ['torch'" in report


def test_an_expected_failure_does_not_fail(report: str) -> None:
    assert "test_it_leaves_logits_and_history_as_they_were" in outcomes(report, "Known", "XFAIL")
    assert "test_it_leaves_logits_and_history_as_they_were" not in outcomes(report, "Known", "FAILED")


def test_an_expected_failure_that_passes_is_a_failure(report: str) -> None:
    assert "test_tokens_are_in_the_vocabulary" in outcomes(report, "Known", "FAILED")


def test_expected_failures_of_one_subclass_leave_others_alone(report: str) -> None:
    assert "test_it_leaves_logits_and_history_as_they_were" in outcomes(report, "InPlace", "FAILED")


def test_an_expected_failure_must_name_a_test() -> None:
    with pytest.raises(TypeError, match="test_of_nobody"):
        type("TestTypo", (DecoderSuite,), {"expected_failures": {"test_of_nobody": "a typo"}})


def test_suites_are_not_collected_where_they_are_imported() -> None:
    assert not DecoderSuite.__name__.startswith("Test")
