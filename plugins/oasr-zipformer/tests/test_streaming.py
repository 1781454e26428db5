"""Streams ride together in one batch, and each gets what it would get alone."""

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from oasr.errors import RequestError
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import StreamingEncoder
from oasr.testing.streams import Stream, StreamRows, new_stream
from oasr_zipformer.model import Zipformer

TOLERANCE = 1e-4
WAYS = [(8, 16), (8, 32), (16, 16), (16, 32)]

Model = Callable[[bool], Zipformer]
Noise = Callable[..., torch.Tensor]


@pytest.fixture(params=WAYS, ids=str)
def encoder(request: pytest.FixtureRequest, random_model: Model) -> StreamingEncoder:
    return random_model(True).streaming(*request.param)


def windows(encoder: StreamingEncoder, features: torch.Tensor) -> list[torch.Tensor]:
    """An input (time, bins) cut as live audio; the last ones are short."""
    shape = encoder.shape
    padded = torch.nn.functional.pad(features, (0, 0, 0, shape.tail), value=shape.padding)
    return [padded[start : start + shape.window] for start in range(0, len(padded), shape.hop)]


def step(encoder: StreamingEncoder, streams: list[Stream], given: list[torch.Tensor]) -> list[torch.Tensor]:
    """What each stream gets for its next window."""
    device = given[0].device
    frames = torch.nn.utils.rnn.pad_sequence(given, batch_first=True)
    lengths = torch.tensor([len(window) for window in given], device=device)
    encoded = encoder.encode_chunk(FeatureBatch(frames, lengths), StreamRows(streams, device))
    for stream, length in zip(streams, encoded.lengths.tolist(), strict=True):
        stream.age += length
    return [row[:length] for row, length in zip(encoded.frames, encoded.lengths.tolist(), strict=True)]


def alone(encoder: StreamingEncoder, features: torch.Tensor) -> torch.Tensor:
    stream = new_stream(encoder.layout, features.device)
    return torch.cat([step(encoder, [stream], [window])[0] for window in windows(encoder, features)])


def test_streams_of_different_ages_ride_together(encoder: StreamingEncoder, noise: Noise) -> None:
    """They begin and end at any time, and stand in the batch in any order."""
    chance = random.Random(0)
    inputs = [noise(chance.randrange(400), seed) for seed in range(12)]
    waiting = [windows(encoder, features) for features in inputs]
    streams = [new_stream(encoder.layout, features.device) for features in inputs]
    found: list[list[torch.Tensor]] = [[] for _ in inputs]
    while any(waiting):
        riders = [index for index, left in enumerate(waiting) if left and chance.random() < 0.4]
        chance.shuffle(riders)
        if not riders:
            continue
        outputs = step(encoder, [streams[index] for index in riders], [waiting[index].pop(0) for index in riders])
        for index, output in zip(riders, outputs, strict=True):
            found[index].append(output)
    for features, outputs in zip(inputs, found, strict=True):
        torch.testing.assert_close(torch.cat(outputs), alone(encoder, features), atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("frames", [45, 200, 401, 600])
def test_chunks_give_what_the_whole_gives_but_for_the_last(
    encoder: StreamingEncoder, noise: Noise, frames: int
) -> None:
    features = noise(frames)
    whole = encoder.encode_whole(FeatureBatch(features[None], torch.tensor([frames], device=features.device)))
    shared = (int(whole.lengths) - 1) // encoder.shape.frames * encoder.shape.frames
    torch.testing.assert_close(alone(encoder, features)[:shared], whole.frames[0, :shared], atol=TOLERANCE, rtol=0)


def test_the_left_context_is_a_limit(encoder: StreamingEncoder, noise: Noise) -> None:
    """What was said long ago is forgotten, what was said lately is not."""
    late = noise(1200, 1)
    outputs = []
    for seed in (2, 3):
        features = late.clone()
        features[:200] = noise(200, seed)
        outputs.append(alone(encoder, features))
    changed = (outputs[0] - outputs[1]).abs().amax(dim=-1) > TOLERANCE
    assert changed[: 200 // 4].any()
    assert changed[200 // 4 :].any()
    assert not changed[-encoder.shape.frames :].any()


@pytest.mark.parametrize("frames", range(31))
def test_streams_of_up_to_300_ms(random_model: Model, noise: Noise, frames: int) -> None:
    encoder = random_model(True).streaming(8, 16)
    output = alone(encoder, noise(frames))
    assert len(output) == encoder.shape.frames * -(-(frames + encoder.shape.tail) // encoder.shape.hop)
    assert output.isfinite().all()


def test_what_lies_behind_a_short_window_counts_as_silence(encoder: StreamingEncoder, noise: Noise) -> None:
    shape, heard = encoder.shape, 20
    window = noise(shape.window)
    silent = window.clone()
    silent[heard:] = shape.padding
    fresh = [new_stream(encoder.layout, window.device) for _ in range(2)]
    lengths = torch.tensor([heard, shape.window], device=window.device)
    given = FeatureBatch(torch.stack((window, silent)), lengths)
    frames = encoder.encode_chunk(given, StreamRows(fresh, window.device)).frames
    torch.testing.assert_close(frames[0], frames[1], atol=TOLERANCE, rtol=0)


def test_a_chunk_does_not_wait_for_the_device(encoder: StreamingEncoder, noise: Noise, device: str) -> None:
    if device == "cpu":
        pytest.skip("nothing to wait for")
    window = noise(encoder.shape.window)[None]
    given = FeatureBatch(window, torch.tensor([encoder.shape.window], device=device))
    rows = StreamRows([new_stream(encoder.layout, device)], device)
    torch.cuda.set_sync_debug_mode("error")
    try:
        encoder.encode_chunk(given, rows)
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("way", [(7, 16), (8, 24), (8, None)])
def test_chunks_it_was_not_trained_for_are_refused(random_model: Model, way: Any) -> None:
    with pytest.raises(RequestError, match="in chunks of 8 or 16 frames with a left context of 16 or 32"):
        random_model(True).streaming(*way)


def test_a_model_that_is_not_causal_does_not_stream(random_model: Model) -> None:
    model = random_model(False)
    assert model.facts.streaming is None
    with pytest.raises(RequestError, match="not trained to read live audio"):
        model.streaming(8, 16)
