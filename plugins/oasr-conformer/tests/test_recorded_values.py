"""Checkpoints of every kind reproduce what WeNet computed from them in float32, each clip alone."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch

TOLERANCE = 1e-4
SCORE_TOLERANCE = 1e-3
CLIPS = [0, 1, 2]

Batch = Callable[[Sequence[torch.Tensor]], FeatureBatch]


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=TOLERANCE, rtol=0)


def greedy(log_probs: torch.Tensor) -> list[int]:
    best = torch.unique_consecutive(log_probs.argmax(dim=-1)).tolist()
    return [token for token in best if token]


@pytest.mark.parametrize("clip", CLIPS)
def test_the_encoder_and_its_ctc_output(recorded: Any, batch: Batch, clip: int) -> None:
    encoded = recorded.model.encode(batch([recorded.features[clip]]))
    expected = recorded.values["offline"][0]["clips"][clip]
    assert encoded.lengths.tolist() == [expected["num_encoder_frames"]]
    assert_close(encoded.frames[0], recorded.tensors[expected["encoder_out_tensor"]])
    head = recorded.model.head("ctc")
    assert greedy(head.log_probs(encoded.frames)[0]) == expected["ctc_greedy"]["token_ids"]
    # Features are recorded of the first clip alone, and a rounding error in those of others counts tenfold here.
    frames = recorded.tensors[expected["encoder_out_tensor"]] if clip else encoded.frames[0]
    assert_close(head.log_probs(frames[None])[0], recorded.tensors[expected["ctc_log_probs_tensor"]])


@pytest.mark.parametrize("clip", CLIPS)
def test_one_pass_with_attention_limited_as_in_chunks(recorded: Any, batch: Batch, clip: int) -> None:
    for mode in recorded.values["offline"][1:]:
        chunk, left = mode["chunk_size_in_encoder_frames"], mode["num_left_chunks"]
        encoder = recorded.model.streaming(chunk, None if left < 0 else left * chunk)
        encoded = encoder.encode_whole(batch([recorded.features[clip]]))
        expected = mode["clips"][clip]
        assert encoded.lengths.tolist() == [expected["num_encoder_frames"]]
        if "encoder_out_tensor" in expected:
            assert_close(encoded.frames[0], recorded.tensors[expected["encoder_out_tensor"]])
        log_probs = recorded.model.head("ctc").log_probs(encoded.frames)[0]
        assert greedy(log_probs) == expected["ctc_greedy"]["token_ids"]


@pytest.mark.parametrize("clip", CLIPS)
def test_scores_of_hypotheses(recorded: Any, batch: Batch, clip: int) -> None:
    for mode in recorded.values["offline"]:
        chunk, left = mode["chunk_size_in_encoder_frames"], mode["num_left_chunks"]
        features = batch([recorded.features[clip]])
        if chunk < 0:
            encoded = recorded.model.encode(features)
        else:
            encoded = recorded.model.streaming(chunk, None if left < 0 else left * chunk).encode_whole(features)
        check_scores(recorded, encoded, [mode["clips"][clip]["attention_rescoring"]])


def test_scores_of_hypotheses_of_a_batch(recorded: Any, batch: Batch) -> None:
    encoded = recorded.model.encode(batch(recorded.features))
    check_scores(recorded, encoded, [clip["attention_rescoring"] for clip in recorded.values["offline"][0]["clips"]])


def check_scores(recorded: Any, encoded: EncoderOutput, expected: Sequence[dict[str, Any]]) -> None:
    rows = [row["hypotheses_in_prefix_beam_order"] for row in expected]
    head = recorded.model.head("rescoring")
    assert head.reverse_weight == expected[0]["reverse_weight"]
    left, right = head.score(encoded, [[each["token_ids"] for each in row] for row in rows])
    assert left.dtype == torch.float32
    for name, scores in (("left_to_right_log_prob", left), ("right_to_left_log_prob", right)):
        if scores is None:
            assert all(name not in each or each[name] == 0 for row in rows for each in row)
            continue
        for row, values in enumerate(rows):
            wanted = torch.tensor([each[name] for each in values])
            torch.testing.assert_close(scores[row, : len(values)].cpu(), wanted, atol=SCORE_TOLERANCE, rtol=0)
