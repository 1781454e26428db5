"""What a checkpoint is, is told by the shapes of its weights, and by training parameters where there are any."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint
from oasr.registry import default_registry
from oasr_zipformer.config import ZipformerConfig
from oasr_zipformer.model import Zipformer

SIX_STACKS = "goldens/zipformer-six-stacks-causal"
FOLDERS = [
    "goldens/zipformer-context1",
    "goldens/zipformer-ctc-only",
    "goldens/zipformer-six-stacks",
    SIX_STACKS,
    "models/icefall-zipformer-digits",
    "models/icefall-zipformer-streaming-digits",
]


class Shapes(Checkpoint):
    """A checkpoint of icefall without weights."""

    path = Path("somewhere")
    architecture = "zipformer"
    naming = "icefall"
    generation: Mapping[str, Any] = {}
    files: Mapping[str, Path] = {}

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], **config: Any):
        self.config = config
        self._shapes = shapes

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return self._shapes

    def tensors(self) -> Iterator[tuple[str, torch.Tensor]]:
        raise NotImplementedError


@pytest.fixture
def shapes(shared: Callable[[str], Path]) -> dict[str, tuple[int, ...]]:
    """Of a causal model with six stacks and both heads."""
    return dict(open_checkpoint(shared(f"{SIX_STACKS}/checkpoint"), default_registry()).shapes())


def read(shapes: Mapping[str, tuple[int, ...]], **config: Any) -> ZipformerConfig:
    return Zipformer.read_config(Shapes(shapes, **config))


@pytest.mark.parametrize("name", FOLDERS)
def test_everything_is_inferred_from_the_weights(
    shared: Callable[[str], Path], read_recorded: Callable[[str, str], Any], name: str
) -> None:
    recorded = read_recorded(name, "cpu")
    options, config = recorded.values["model_options"], recorded.model.config
    for option, field in {
        "num_encoder_layers": "layers",
        "downsampling_factor": "downsampling",
        "encoder_dim": "width",
        "feedforward_dim": "feed_forward",
        "num_heads": "heads",
        "cnn_module_kernel": "kernel",
    }.items():
        assert ",".join(str(getattr(stack, field)) for stack in config.stacks) == options[option]
    for stack in config.stacks:
        assert str(stack.query_size) == options["query_head_dim"]
        assert str(stack.value_size) == options["value_head_dim"]
        assert str(stack.position_size) == options["pos_head_dim"]
    assert (config.causal, config.ctc) == (options["causal"], options["use_ctc"])
    assert (config.vocabulary_size, config.mel_bins) == (options["vocab_size"], options["feature_dim"])
    assert (config.transducer is not None) == options["use_transducer"]
    if config.transducer:
        transducer = (config.transducer.width, config.transducer.context, config.transducer.joiner_width)
        assert transducer == (options["decoder_dim"], options["context_size"], options["joiner_dim"])
    pieces = recorded.values["checkpoint"]["sentencepiece_file"]
    assert config.tokenizer == ("sentencepiece" if pieces else "symbols")


def test_chunks_are_those_of_the_recipes(shapes: dict[str, tuple[int, ...]]) -> None:
    streaming = Zipformer(read(shapes)).facts.streaming
    assert streaming is not None
    assert (streaming.chunks, streaming.left_contexts) == ((8, 16, 32), (32, 64, 128))
    assert (streaming.default_chunk, streaming.default_left_context) == (8, 64)


def test_chunks_may_be_stated(shapes: dict[str, tuple[int, ...]]) -> None:
    streaming = Zipformer(read(shapes, chunk_size="32,64", left_context_frames="128,512")).facts.streaming
    assert streaming is not None
    assert (streaming.chunks, streaming.left_contexts) == ((16, 32), (64, 256))
    assert (streaming.default_chunk, streaming.default_left_context) == (16, 64)


def test_a_causal_model_of_whole_inputs_alone_does_not_stream(shapes: dict[str, tuple[int, ...]]) -> None:
    assert Zipformer(read(shapes, chunk_size="-1")).facts.streaming is None


@pytest.mark.parametrize("stated", [{"pos_head_dim": 8}, {"num_heads": "2,2,4,2,2,2"}, {"pos_head_dim": "8,8,8,8,8,8"}])
def test_heads_may_be_stated(shapes: dict[str, tuple[int, ...]], stated: dict[str, Any]) -> None:
    """They do not show in the weights: twice as large and half as many are the same shapes."""
    config = read(shapes, **stated)
    assert [stack.heads for stack in config.stacks] == [2, 2, 4, 2, 2, 2]
    assert {(stack.query_size, stack.value_size, stack.position_size) for stack in config.stacks} == {(32, 24, 8)}


def test_training_parameters_that_agree_are_welcome(shapes: dict[str, tuple[int, ...]]) -> None:
    stated = {"num_encoder_layers": "1,1,1,2,1,1", "encoder_dim": "24,28,40,36,28,24", "query_head_dim": "16"}
    assert read(shapes, **stated, feature_dim=80, blank_id=0, causal=True) == read(shapes)


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            {"num_encoder_layers": "2,2,3,4,3,2"},
            "weights have num_encoder_layers 1,1,1,2,1,1, the settings say 2,2,3,4",
        ),
        ({"cnn_module_kernel": "31"}, "cnn_module_kernel 31,15,15,15,15,31, the settings say 31,31,31"),
        ({"num_heads": "4,4"}, "num_heads has 2 numbers for 6 stacks"),
        ({"num_heads": "4,4,8,4,4,4", "pos_head_dim": "8"}, "weights have num_heads 2,2,4,2,2,2, the settings say 4,4"),
        ({"num_heads": "3,3,3,3,3,3"}, "num_heads"),
        ({"pos_head_dim": 5}, "num_heads"),
        ({"pos_head_dim": 0}, "num_heads"),
        ({"chunk_size": "fast"}, "chunk_size is 'fast', where whole numbers are expected"),
        ({"chunk_size": "10"}, "chunk_size 10 is not a multiple of the downsampling 8"),
        ({"left_context_frames": "64,100"}, "left_context_frames 100 is not a multiple of the downsampling 8"),
        ({"blank_id": 80}, "blank_id is 80, and there are 80 tokens"),
    ],
)
def test_contradictions_are_named(shapes: dict[str, tuple[int, ...]], stated: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read(shapes, **stated)


def test_all_contradictions_are_listed(shapes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(CheckpointError, match=r"encoder_dim.*; .*feedforward_dim"):
        read(shapes, encoder_dim="1", feedforward_dim="1")


def test_weights_of_something_else_are_named(shapes: dict[str, tuple[int, ...]]) -> None:
    with pytest.raises(CheckpointError, match="not those of a complete Zipformer"):
        read({"encoder.embed.conv.0.weight": (8, 1, 3, 3)})
    half = {name: shape for name, shape in shapes.items() if not name.startswith("encoder.encoders.1.")}
    with pytest.raises(CheckpointError, match="not those of a complete Zipformer"):
        read(half)


def test_weights_without_a_head_are_named(shapes: dict[str, tuple[int, ...]]) -> None:
    headless = {name: shape for name, shape in shapes.items() if name.startswith("encoder")}
    with pytest.raises(CheckpointError, match="neither a CTC head nor a transducer"):
        read(headless)


@pytest.mark.parametrize("bins", [40, 80, 100, 128])
def test_mel_bins_are_inferred(shapes: dict[str, tuple[int, ...]], bins: int) -> None:
    rows, _ = shapes["encoder_embed.out.weight"]
    config = read(shapes | {"encoder_embed.out.weight": (rows, 128 * (((bins - 1) // 2 - 1) // 2))})
    assert config.mel_bins == bins
