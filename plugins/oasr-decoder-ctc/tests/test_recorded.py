"""What the searches find in log-probabilities that icefall and WeNet recorded is what these found."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from oasr_decoder_ctc.config import PrefixBeamConfig
from oasr_decoder_ctc.greedy import CTCGreedy
from oasr_decoder_ctc.prefix_beam import CTCPrefixBeam

FOLDERS = [
    "models/icefall-zipformer-digits",
    "models/icefall-zipformer-streaming-digits",
    "models/wenet-u2pp-digits",
    "goldens/zipformer-ctc-only",
    "goldens/zipformer-six-stacks",
    "goldens/zipformer-six-stacks-causal",
    "goldens/wenet-conv2d6",
    "goldens/wenet-conv2d8",
    "goldens/wenet-old-style-batch-norm",
    "goldens/wenet-transformer-decoder",
]


@pytest.fixture(params=FOLDERS)
def clips(request: pytest.FixtureRequest, shared: Callable[[str], Path]) -> list[tuple[torch.Tensor, dict[str, Any]]]:
    """Log-probabilities (time, vocabulary) of each clip, and what was found in them."""
    root = shared(request.param)
    [*modes] = json.loads((root / "expected.json").read_text())["offline"]
    tensors = load_file(root / "expected.safetensors")
    return [
        (tensors[clip["ctc_log_probs_tensor"]].flatten(0, -2), clip)
        for mode in modes
        for clip in mode["clips"]
        if "ctc_log_probs_tensor" in clip
    ]


def test_greedy_finds_the_recorded_tokens(clips: list[tuple[torch.Tensor, dict[str, Any]]], search: Any) -> None:
    found = search(CTCGreedy(None), [log_probs for log_probs, _ in clips])
    assert len(found) == 3
    for [best], (log_probs, clip) in zip(found, clips, strict=True):
        expected = clip["ctc_greedy"]
        assert list(best.tokens) == expected["token_ids"]
        assert list(best.frames) == expected["first_frame_of_each_token"]
        assert best.score == pytest.approx(expected["frame_log_prob_sum"], abs=1e-4)
        at_frames = log_probs[list(best.frames), list(best.tokens)].tolist()
        assert list(best.log_probs) == pytest.approx(at_frames)


def test_prefix_beams_are_those_recorded(clips: list[tuple[torch.Tensor, dict[str, Any]]], search: Any) -> None:
    found = search(CTCPrefixBeam(PrefixBeamConfig(beam=10)), [log_probs for log_probs, _ in clips])
    for spellings, (log_probs, clip) in zip(found, clips, strict=True):
        expected = clip["ctc_prefix_beam_search"]["nbest"]
        assert [list(each.tokens) for each in spellings] == [each["token_ids"] for each in expected]
        assert [each.score for each in spellings] == pytest.approx([each["log_prob"] for each in expected], abs=1e-4)
        for spelling, recorded in zip(spellings, expected, strict=True):
            if "frame_of_each_token" in recorded:  # WeNet's search tells frames
                assert list(spelling.frames) == recorded["frame_of_each_token"]
            at_frames = log_probs[list(spelling.frames), list(spelling.tokens)].tolist()
            assert list(spelling.log_probs) == pytest.approx(at_frames)
