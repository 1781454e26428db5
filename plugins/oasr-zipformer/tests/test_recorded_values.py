"""Checkpoints of icefall give what icefall computed from them."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from oasr.errors import RequestError
from oasr.interfaces.frontend import FeatureBatch
from oasr.interfaces.streaming import StreamingEncoder
from oasr.testing.streams import StreamRows, new_stream

TOLERANCE = 1e-4
CAUSAL = ["goldens/zipformer-six-stacks-causal", "models/icefall-zipformer-streaming-digits"]
WITH_CTC = ["goldens/zipformer-ctc-only", "goldens/zipformer-six-stacks", "models/icefall-zipformer-digits", *CAUSAL]
ALL = ["goldens/zipformer-context1", *WITH_CTC]
CLIPS = [0, 1, 2]
CHUNKS = [(16, 64), (32, 128)]
"""Chunk sizes and left contexts in frames of 20 ms, two of which are an encoder frame."""

Read = Callable[[str, str], Any]


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, atol=TOLERANCE, rtol=0)


def ctc_tokens(log_probs: torch.Tensor, blank: int = 0) -> tuple[list[int], list[int]]:
    """The likeliest token of each frame, repeats and blanks taken out, and the first frame of each that is left."""
    best = [blank, *log_probs.argmax(dim=-1).tolist()]
    kept = [(token, frame) for frame, token in enumerate(best[1:]) if token not in (blank, best[frame])]
    return [token for token, _ in kept], [frame for _, frame in kept]


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", ALL)
def test_encoder(read_recorded: Read, device: str, name: str, clip: int) -> None:
    recorded = read_recorded(name, device)
    encoded = recorded.model.encode(recorded.features(clip))
    expected = recorded.values["offline"][0]["clips"][clip]
    assert encoded.lengths.tolist() == [expected["num_encoder_frames"]]
    assert_close(encoded.frames[0], recorded.tensors[expected["encoder_out_tensor"]])


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("name", WITH_CTC)
def test_ctc(read_recorded: Read, device: str, name: str, clip: int) -> None:
    recorded = read_recorded(name, device)
    head = recorded.model.head("ctc")
    log_probs = head.log_probs(recorded.model.encode(recorded.features(clip)).frames)[0]
    expected = recorded.values["offline"][0]["clips"][clip]
    assert_close(log_probs, recorded.tensors[expected["ctc_log_probs_tensor"]])
    greedy = expected["ctc_greedy"]
    assert ctc_tokens(log_probs, head.blank) == (greedy["token_ids"], greedy["first_frame_of_each_token"])


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("name", CAUSAL)
def test_whole_input_with_the_attention_of_chunks(
    read_recorded: Read, device: str, name: str, chunk: tuple[int, int]
) -> None:
    recorded = read_recorded(name, device)
    encoded = streaming(recorded, chunk).encode_whole(recorded.features(0))
    assert_close(encoded.frames[0], recorded.tensors[f"masked_chunk{chunk[0]}_left{chunk[1]}.clip0.encoder_out"])


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("name", CAUSAL)
def test_greedy_tokens_of_whole_inputs_with_the_attention_of_chunks(
    read_recorded: Read, device: str, name: str, chunk: tuple[int, int]
) -> None:
    recorded = read_recorded(name, device)
    encoder, head = streaming(recorded, chunk), recorded.model.head("ctc")
    for clip in CLIPS:
        encoded = encoder.encode_whole(recorded.features(clip))
        greedy = recorded_chunks(recorded, "offline", chunk)["clips"][clip]["ctc_greedy"]
        expected = greedy["token_ids"], greedy["first_frame_of_each_token"]
        assert ctc_tokens(head.log_probs(encoded.frames)[0]) == expected


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("name", CAUSAL)
def test_chunk_by_chunk(read_recorded: Read, device: str, name: str, chunk: tuple[int, int], clip: int) -> None:
    recorded = read_recorded(name, device)
    found = chunk_by_chunk(streaming(recorded, chunk), recorded.features(clip))
    expected = recorded_chunks(recorded, "streaming", chunk)["clips"][clip]
    assert_close(found, recorded.tensors[expected["encoder_out_tensor"]])
    greedy = expected["ctc_greedy"]
    log_probs = recorded.model.head("ctc").log_probs(found[None])[0]
    assert ctc_tokens(log_probs) == (greedy["token_ids"], greedy["first_frame_of_each_token"])


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("name", CAUSAL)
def test_chunks_are_cut_as_recorded(read_recorded: Read, name: str, chunk: tuple[int, int]) -> None:
    recorded = read_recorded(name, "cpu")
    shape = streaming(recorded, chunk).shape
    expected = recorded_chunks(recorded, "streaming", chunk)
    assert shape.window == expected["feature_frames_fed_per_chunk"]
    assert shape.hop == expected["feature_frames_advanced_per_chunk"]
    assert shape.frames == expected["encoder_frames_per_chunk"]
    assert shape.tail == expected["tail_padding_feature_frames"]
    assert shape.padding == pytest.approx(expected["tail_padding_value"])


def test_a_model_without_the_head_says_what_it_has(read_recorded: Read) -> None:
    model = read_recorded("goldens/zipformer-context1", "cpu").model
    assert model.facts.heads == frozenset()
    with pytest.raises(RequestError, match='offers no head, not "ctc"'):
        model.head("ctc")


@pytest.mark.parametrize("name", ALL)
def test_the_weights_of_the_transducer_are_loaded(read_recorded: Read, name: str) -> None:
    recorded = read_recorded(name, "cpu")
    model, options = recorded.model, recorded.values["model_options"]
    assert hasattr(model, "joiner") == options["use_transducer"]
    if not options["use_transducer"]:
        return
    stored = torch.load(recorded.folder / recorded.values["checkpoint"]["state_dict_file"])["model"]
    assert torch.equal(model.prediction.tokens.weight, stored["decoder.embedding.weight"])
    assert torch.equal(model.joiner.encoder.weight, stored["joiner.encoder_proj.weight"])
    assert torch.equal(model.joiner.prediction.bias, stored["joiner.decoder_proj.bias"])
    assert torch.equal(model.joiner.out.weight, stored["joiner.output_linear.weight"])
    assert hasattr(model.prediction, "conv") == (options["context_size"] > 1)


def streaming(recorded: Any, chunk: tuple[int, int]) -> StreamingEncoder:
    return recorded.model.streaming(chunk[0] // 2, chunk[1] // 2)


def recorded_chunks(recorded: Any, kind: str, chunk: tuple[int, int]) -> dict[str, Any]:
    return next(
        each
        for each in recorded.values[kind]
        if (each["chunk_size_in_50hz_frames"], each["left_context_in_50hz_frames"]) == chunk
    )


def chunk_by_chunk(encoder: StreamingEncoder, features: FeatureBatch) -> torch.Tensor:
    """Encoder frames (time, width) of one input, read as live audio that then ends."""
    shape, device = encoder.shape, features.frames.device
    frames = torch.nn.functional.pad(features.frames, (0, 0, 0, shape.tail), value=shape.padding)
    stream, outputs = new_stream(encoder.layout, device), []
    for start in range(0, frames.shape[1] - shape.least + 1, shape.hop):
        window = frames[:, start : start + shape.window]
        given = FeatureBatch(window, torch.tensor([window.shape[1]], device=device))
        encoded = encoder.encode_chunk(given, StreamRows([stream], device))
        outputs.append(encoded.frames[0, : int(encoded.lengths[0])])
        stream.age += len(outputs[-1])
    return torch.cat(outputs)
