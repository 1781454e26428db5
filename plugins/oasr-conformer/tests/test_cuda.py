"""What only a CUDA device shows: half precision, and that chunks are queued without waiting."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.checkpoint.load import load
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.frontend import FeatureBatch
from oasr.registry import default_registry
from oasr.testing.streams import StreamRows, new_stream

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

Batch = Callable[[Sequence[torch.Tensor]], FeatureBatch]


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_reads_the_same_words(shared: Callable[[str], Path], batch: Batch, dtype: torch.dtype) -> None:
    registry = default_registry()
    checkpoint = open_checkpoint(shared("models/wenet-u2pp-digits/checkpoint"), registry)
    exact = load(checkpoint, registry, torch.float32, "cuda")
    half = load(checkpoint, registry, dtype, "cuda")
    generator = torch.Generator().manual_seed(0)
    frames = [10 + 3 * torch.randn(length, 80, generator=generator).cuda() for length in (40, 333, 700)]
    features = batch(frames)
    encoders: list[Callable[[Any], Any]] = [
        lambda model: model.encode(features),
        lambda model: model.streaming(4, 8).encode_whole(features),
    ]
    for encode in encoders:
        expected, encoded = encode(exact), encode(half)
        assert encoded.frames.dtype == dtype
        for row, length in enumerate(expected.lengths.tolist()):
            one, other = encoded.frames[row, :length].float(), expected.frames[row, :length]
            assert (one - other).norm() < 0.05 * other.norm()


def test_a_chunk_never_waits_for_the_device(recorded: Any, batch: Batch) -> None:
    if recorded.model.facts.streaming is None or recorded.model.device.type != "cuda":
        pytest.skip("not a streaming model on CUDA")
    encoder = recorded.model.streaming(4, 8)
    streams = [new_stream(encoder.layout, "cuda") for _ in range(3)]
    rows = StreamRows(streams, "cuda")
    features = batch([recorded.features[1][: encoder.shape.window]] * 3)
    encoder.encode_chunk(features, rows)
    torch.cuda.set_sync_debug_mode("error")
    try:
        encoder.encode_chunk(features, rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")
