"""Live audio: chunk by chunk, each stream gives what WeNet recorded, whatever the ages of those beside it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from oasr.interfaces.architecture import Architecture
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import StreamingEncoder
from oasr.testing.streams import Stream, StreamRows, new_stream

TOLERANCE = 1e-4
CLIPS = [0, 1, 2]

Batch = Callable[[Sequence[torch.Tensor]], FeatureBatch]
ENCODERS = [(1, 0), (2, 3), (4, 8), (5, None), (16, 64), (16, None)]
"""Chunk and left context."""


@pytest.fixture(autouse=True)
def exact() -> Iterator[None]:
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def windows(encoder: StreamingEncoder, features: torch.Tensor) -> list[torch.Tensor]:
    """How a clip is cut; a rest that is too short for a frame is dropped."""
    shape = encoder.shape
    cut = [features[start : start + shape.window] for start in range(0, len(features), shape.hop)]
    return [window for window in cut if len(window) >= shape.least]


class Reader:
    """Streams that may ride together. Each has its windows before it and its frames behind it."""

    def __init__(self, encoder: StreamingEncoder, clips: Sequence[torch.Tensor], batch: Batch):
        self._encoder = encoder
        self._batch = batch
        self._device = clips[0].device
        self.left = [windows(encoder, clip) for clip in clips]
        self.streams = [self._new() for _ in clips]
        self.frames: list[list[torch.Tensor]] = [[] for _ in clips]

    def step(self, riders: Sequence[int]) -> None:
        streams = [self.streams[rider] for rider in riders]
        rows = StreamRows(streams, self._device)
        encoded = self._encoder.encode_chunk(self._batch([self.left[rider].pop(0) for rider in riders]), rows)
        for rider, frames, length in zip(riders, encoded.frames, encoded.lengths.tolist(), strict=True):
            self.frames[rider].append(frames[:length])
            self.streams[rider].age += length

    def read(self) -> list[torch.Tensor]:
        """All streams from start to end, one after another."""
        for rider, left in enumerate(self.left):
            while left:
                self.step([rider])
        return [torch.cat(frames) for frames in self.frames]

    def _new(self) -> Stream:
        return new_stream(self._encoder.layout, self._device)


def of(model: Architecture, chunk: int, left: int | None) -> StreamingEncoder:
    if model.facts.streaming is None:
        pytest.skip("this model needs to hear the end before it reads the start")
    return model.streaming(chunk, left)


def assert_close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual, expected, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("clip", CLIPS)
def test_recorded_streams(recorded: Any, batch: Batch, clip: int) -> None:
    for mode in recorded.values["streaming"]:
        chunk, left = mode["chunk_size_in_encoder_frames"], mode["num_left_chunks"]
        encoder = of(recorded.model, chunk, None if left < 0 else left * chunk)
        assert encoder.shape.window == mode["feature_frames_fed_per_chunk"]
        assert encoder.shape.hop == mode["feature_frames_advanced_per_chunk"]
        reader = Reader(encoder, [recorded.features[clip]], batch)
        [frames] = reader.read()
        expected = mode["clips"][clip]
        assert len(reader.frames[0]) == expected["num_chunks"]
        assert len(frames) == expected["num_encoder_frames"]
        assert_close(frames, recorded.tensors[expected["encoder_out_tensor"]])


def test_models_that_were_recorded_streaming_are_those_that_stream(recorded: Any) -> None:
    assert bool(recorded.values["streaming"]) == (recorded.model.facts.streaming is not None)


@pytest.mark.parametrize(("chunk", "left"), ENCODERS)
def test_chunk_by_chunk_is_one_pass_with_limited_attention(
    recorded: Any, batch: Batch, chunk: int, left: int | None
) -> None:
    encoder = of(recorded.model, chunk, left)
    for features, frames in zip(recorded.features, Reader(encoder, recorded.features, batch).read(), strict=True):
        whole = encoder.encode_whole(batch([features]))
        assert whole.lengths.tolist() == [len(frames)]
        assert_close(frames, whole.frames[0])


@pytest.mark.parametrize(("chunk", "left"), ENCODERS)
def test_streams_of_all_ages_ride_together(recorded: Any, batch: Batch, chunk: int, left: int | None) -> None:
    encoder = of(recorded.model, chunk, left)
    # Twelve streams of all lengths, among them some of no and of one frame, that begin two steps after each other.
    shares = torch.linspace(0, 1, 12, dtype=torch.float64)
    clips = [
        recorded.features[index % 3][: round(float(share) * len(recorded.features[index % 3]))]
        for index, share in enumerate(shares)
    ]
    clips[1] = recorded.features[1][: encoder.shape.least]
    alone, together = Reader(encoder, clips, batch), Reader(encoder, clips, batch)
    for step in range(500):
        riders = [rider for rider, left_over in enumerate(together.left) if left_over and 2 * rider <= step]
        if riders:
            together.step(riders if step % 2 else riders[::-1])
    assert not any(together.left)
    for rider, left_over in enumerate(alone.left):
        while left_over:
            alone.step([rider])
        assert len(alone.frames[rider]) == len(together.frames[rider])
        for one, other in zip(alone.frames[rider], together.frames[rider], strict=True):
            assert_close(other, one)


def test_a_short_last_window_reads_the_same_beside_whole_ones(recorded: Any, batch: Batch) -> None:
    encoder = of(recorded.model, 4, 8)
    short, long = recorded.features[0][: encoder.shape.hop + encoder.shape.least + 3], recorded.features[1]
    alone, beside = Reader(encoder, [short], batch), Reader(encoder, [short, long], batch)
    for _ in range(2):
        alone.step([0])
        beside.step([0, 1])
    assert len(beside.frames[0][1]) == len(alone.frames[0][1]) == 1
    assert_close(beside.frames[0][1], alone.frames[0][1])


def test_rows_of_one_pass_with_limited_attention(recorded: Any, batch: Batch) -> None:
    encoder = of(recorded.model, 4, 8)
    together = encoder.encode_whole(batch(recorded.features))
    for row, features in enumerate(recorded.features):
        alone = encoder.encode_whole(batch([features]))
        assert together.lengths[row] == alone.lengths[0]
        assert_close(together.frames[row, : int(alone.lengths[0])], alone.frames[0])


@pytest.mark.parametrize("left", [64, None])
def test_a_stream_goes_on_beyond_any_table_of_positions(recorded: Any, batch: Batch, left: int | None) -> None:
    """WeNet's tables end at 5,000 frames."""
    encoder = of(recorded.model, 128, left)
    noise = torch.randn(encoder.shape.hop * 42, 80, generator=torch.Generator().manual_seed(0))
    features = recorded.features[0].mean(dim=0) + noise.to(recorded.model.device)
    [frames] = Reader(encoder, [features], batch).read()
    assert len(frames) > 5_300
    assert_close(frames, encoder.encode_whole(batch([features])).frames[0])
