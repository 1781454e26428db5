"""Rescoring orders hypotheses as WeNet does, given its scores."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.errors import ConfigError
from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import Spelling
from oasr.interfaces.heads import RescoringHead
from oasr.testing import DecoderSuite
from oasr.types import DecodingOptions
from oasr_decoder_attention.config import RescoringConfig
from oasr_decoder_attention.rescoring import AttentionRescoring

FOLDERS = [
    "models/wenet-u2pp-digits",
    "goldens/wenet-conv2d6",
    "goldens/wenet-conv2d8",
    "goldens/wenet-old-style-batch-norm",
    "goldens/wenet-transformer-decoder",
]
Scores = dict[tuple[int, ...], tuple[float, float]]
NOTHING = EncoderOutput(torch.zeros(3, 1, 1), torch.zeros(3, dtype=torch.int64))


class TestRescoring(DecoderSuite):
    component = "attention-rescoring"


class Recorded(RescoringHead):
    """Scores of a table by hypothesis, of both directions; behind the hypotheses of a row lies the best of all."""

    vocabulary_size = 100
    blank = 0

    def __init__(self, rows: Sequence[Scores], reverse_weight: float, both: bool = True):
        self.rows = rows
        self.reverse_weight = reverse_weight
        self.both = both

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def score(
        self, encoded: EncoderOutput, hypotheses: Sequence[Sequence[Sequence[int]]]
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        table = torch.zeros(2, len(hypotheses), max(map(len, hypotheses)))
        for row, texts in enumerate(hypotheses):
            for place, text in enumerate(texts):
                table[:, row, place] = torch.tensor(self.rows[row][tuple(text)])
        return table[0], table[1] if self.both else None


def rescore(config: RescoringConfig, head: Recorded, found: Sequence[Sequence[Spelling]]) -> list[list[Spelling]]:
    return AttentionRescoring(config).rescore(head, NOTHING, found, [DecodingOptions()] * len(found))


@pytest.mark.parametrize("folder", FOLDERS)
def test_recorded_scores_give_the_recorded_order(shared: Callable[[str], Path], folder: str) -> None:
    [full, *_] = json.loads((shared(folder) / "expected.json").read_text())["offline"]
    expected = [clip["attention_rescoring"] for clip in full["clips"]]
    rows: list[Scores] = []
    found: list[list[Spelling]] = []
    for clip in expected:
        recorded: list[dict[str, Any]] = clip["hypotheses_in_prefix_beam_order"]
        rows.append(
            {
                tuple(each["token_ids"]): (each["left_to_right_log_prob"], each.get("right_to_left_log_prob") or 0.0)
                for each in recorded
            }
        )
        found.append([Spelling(tuple(each["token_ids"]), (), (), each["ctc_log_prob"]) for each in recorded])
    head = Recorded(rows, expected[0]["reverse_weight"], both=expected[0]["reverse_weight"] > 0)
    for spellings, clip in zip(rescore(RescoringConfig(), head, found), expected, strict=True):
        assert list(spellings[0].tokens) == clip["token_ids"]
        assert spellings[0].score == pytest.approx(clip["score"], abs=1e-4)
        totals = sorted((each["total_score"] for each in clip["hypotheses_in_prefix_beam_order"]), reverse=True)
        assert [each.score for each in spellings] == pytest.approx(totals, abs=1e-4)


ONE, OTHER = Spelling((1, 2), (0, 5), (-0.1, -0.2), -1.0), Spelling((3,), (4,), (-0.3,), -2.0)
TABLE: Scores = {(1, 2): (-5.0, -1.0), (3,): (-4.0, -8.0)}


@pytest.mark.parametrize(
    ("settings", "trained", "expected"),
    [
        ({"ctc_weight": 0.0, "reverse_weight": 0.0}, 0.5, [((3,), -4.0), ((1, 2), -5.0)]),
        ({"ctc_weight": 3.0, "reverse_weight": 0.0}, 0.5, [((1, 2), -8.0), ((3,), -10.0)]),
        ({"ctc_weight": 0.0}, 0.5, [((1, 2), -3.0), ((3,), -6.0)]),
        ({"ctc_weight": 0.0, "reverse_weight": 1.0}, 0.5, [((1, 2), -1.0), ((3,), -8.0)]),
        ({}, 0.0, [((3,), -5.0), ((1, 2), -5.5)]),
    ],
)
def test_weights_are_those_set_or_those_of_the_checkpoint(
    settings: dict[str, float], trained: float, expected: list[tuple[tuple[int, ...], float]]
) -> None:
    [found] = rescore(RescoringConfig(**settings), Recorded([TABLE], trained), [[ONE, OTHER]])
    assert [(each.tokens, each.score) for each in found] == [
        (tokens, pytest.approx(score, abs=1e-5)) for tokens, score in expected
    ]


def test_rows_may_have_different_numbers_of_hypotheses() -> None:
    rows = [TABLE, TABLE, {(): (-1.0, -1.0)}]
    found = rescore(RescoringConfig(), Recorded(rows, 0.0), [[ONE, OTHER], [ONE], [Spelling((), (), (), -3.0)]])
    assert [[each.tokens for each in spellings] for spellings in found] == [[(3,), (1, 2)], [(1, 2)], [()]]
    assert found[1][0].frames == (0, 5)
    assert found[1][0].log_probs == (-0.1, -0.2)


def test_a_direction_the_checkpoint_lacks_is_an_error() -> None:
    with pytest.raises(ConfigError, match="right-to-left"):
        rescore(RescoringConfig(reverse_weight=0.3), Recorded([TABLE], 0.0, both=False), [[ONE, OTHER]])
