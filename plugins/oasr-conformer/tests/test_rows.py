"""Padding and company change no row, and no clip is too short."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.frontend import FeatureBatch

TOLERANCE = 1e-4

Batch = Callable[[Sequence[torch.Tensor]], FeatureBatch]


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def assert_same(together: EncoderOutput, row: int, alone: EncoderOutput) -> None:
    length = int(alone.lengths[0])
    assert int(together.lengths[row]) == length
    torch.testing.assert_close(together.frames[row, :length], alone.frames[0, :length], atol=TOLERANCE, rtol=0)


def test_rows_of_a_padded_batch_are_the_clips_alone(recorded: Any, batch: Batch) -> None:
    rows = [*recorded.features, *(features[: len(features) // 3] for features in recorded.features)]
    together = recorded.model.encode(batch(rows))
    for row, features in enumerate(rows):
        assert_same(together, row, recorded.model.encode(batch([features])))


def test_what_stands_in_the_padding_does_not_matter(recorded: Any, batch: Batch) -> None:
    rows = [recorded.features[2], recorded.features[1]]
    together = recorded.model.encode(
        FeatureBatch(pad_sequence(rows, batch_first=True, padding_value=30.0), batch(rows).lengths)
    )
    assert_same(together, 0, recorded.model.encode(batch(rows[:1])))


def test_clips_of_up_to_300_ms_alone_and_beside_one_of_10_s(recorded: Any, batch: Batch) -> None:
    speech = torch.cat(recorded.features * 4)[:998]
    assert len(speech) == 998, "10 s of frames of 25 ms, 10 ms apart"
    clips = [speech[: max(0, (milliseconds - 25) // 10 + 1)] for milliseconds in range(0, 310, 10)]
    together = recorded.model.encode(batch([*clips, speech]))
    factor = recorded.model.config.subsampling
    for row, clip in enumerate(clips):
        alone = recorded.model.encode(batch([clip]))
        assert int(alone.lengths[0]) == max(0, (len(clip) - {4: 7, 6: 11, 8: 15}[factor]) // factor + 1)
        assert alone.frames.isfinite().all()
        assert_same(together, row, alone)
    assert together.frames.isfinite().all()


def test_hypotheses_of_audio_without_frames_have_scores(recorded: Any, batch: Batch) -> None:
    encoded = recorded.model.encode(batch([recorded.features[0][:0], recorded.features[0]]))
    for scores in recorded.model.head("rescoring").score(encoded, [[()], [(3,), ()]]):
        assert scores is None or scores.isfinite().all()


def test_scores_do_not_depend_on_the_rows_and_hypotheses_beside(recorded: Any, batch: Batch) -> None:
    hypotheses = [[(3, 4, 5, 6), (4,), ()], [(5,)], [(3, 3), (6, 5, 4)]]
    head = recorded.model.head("rescoring")
    together = head.score(recorded.model.encode(batch(recorded.features)), hypotheses)
    for row, features in enumerate(recorded.features):
        encoded = recorded.model.encode(batch([features]))
        for place, tokens in enumerate(hypotheses[row]):
            for many, one in zip(together, head.score(encoded, [[tokens]]), strict=True):
                assert (many is None) == (one is None)
                if one is not None:
                    torch.testing.assert_close(many[row, place], one[0, 0], atol=TOLERANCE, rtol=1e-5)
