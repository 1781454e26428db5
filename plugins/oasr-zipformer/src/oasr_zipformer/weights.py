"""The names of icefall's tensors, and what they and the training parameters, as far as there are any, fix."""

import re
from collections.abc import Mapping
from typing import Any

from oasr.checkpoint.renaming import own_shapes
from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Rename, WeightRules
from oasr.interfaces.format import Checkpoint
from oasr_zipformer.config import StackConfig, TransducerConfig, ZipformerConfig
from oasr_zipformer.subsampling import CHANNELS, mel_bins_of

Shapes = Mapping[str, tuple[int, ...]]

# Defaults of icefall's train.py for what weights do not show.
_POSITION_SIZE = 4
_CHUNKS = (16, 32, 64, -1)
_LEFT_CONTEXTS = (64, 128, 256, -1)
_UNLIMITED = -1


def _icefall() -> WeightRules:
    """icefall, egs/librispeech/ASR/zipformer. A stack at the rate of the front end is not wrapped in another module."""
    layer, own = r"encoder\.encoders\.(\d+)\.(?:encoder\.)?layers\.(\d+)\.", r"encoder.stacks.\1.layers.\2."
    leaf = r"\.(weight|bias)"
    return WeightRules(
        renames=(
            Rename(rf"encoder_embed\.conv\.0{leaf}", r"subsampling.conv1.\1"),
            Rename(rf"encoder_embed\.conv\.4{leaf}", r"subsampling.conv2.\1"),
            Rename(rf"encoder_embed\.conv\.7{leaf}", r"subsampling.conv3.\1"),
            Rename(rf"encoder_embed\.convnext\.depthwise_conv{leaf}", r"subsampling.convnext.depthwise.\1"),
            Rename(rf"encoder_embed\.convnext\.pointwise_conv1{leaf}", r"subsampling.convnext.widen.\1"),
            Rename(rf"encoder_embed\.convnext\.pointwise_conv2{leaf}", r"subsampling.convnext.narrow.\1"),
            Rename(rf"encoder_embed\.out{leaf}", r"subsampling.out.\1"),
            Rename(r"encoder_embed\.out_norm\.(log_scale|bias)", r"subsampling.norm.\1"),
            Rename(rf"{layer}self_attn_weights\.in_proj{leaf}", rf"{own}attention_weights.in_proj.\3"),
            Rename(rf"{layer}self_attn_weights\.linear_pos\.weight", rf"{own}attention_weights.positions.weight"),
            Rename(rf"{layer}self_attn([12])\.(in|out)_proj{leaf}", rf"{own}attention\3.\4_proj.\5"),
            Rename(rf"{layer}nonlin_attention\.(in|out)_proj{leaf}", rf"{own}nonlinear_attention.\3_proj.\4"),
            Rename(rf"{layer}feed_forward([123])\.(in|out)_proj{leaf}", rf"{own}feed_forward\3.\4_proj.\5"),
            Rename(rf"{layer}conv_module([12])\.(in|out)_proj{leaf}", rf"{own}convolution\3.\4_proj.\5"),
            Rename(rf"{layer}conv_module([12])\.depthwise_conv{leaf}", rf"{own}convolution\3.depthwise.conv.\4"),
            Rename(
                rf"{layer}conv_module([12])\.depthwise_conv\.causal_conv{leaf}",
                rf"{own}convolution\3.depthwise.past.\4",
            ),
            Rename(
                rf"{layer}conv_module([12])\.depthwise_conv\.chunkwise_conv{leaf}",
                rf"{own}convolution\3.depthwise.within.\4",
            ),
            Rename(
                rf"{layer}conv_module([12])\.depthwise_conv\.chunkwise_conv_scale",
                rf"{own}convolution\3.depthwise.edge_scales",
            ),
            Rename(rf"{layer}(bypass|bypass_mid)\.bypass_scale", rf"{own}\3.scale"),
            Rename(rf"{layer}norm\.(log_scale|bias)", rf"{own}norm.\3"),
            Rename(rf"{layer}bypass_scale", None),  # left over in icefall's own module
            Rename(r"encoder\.encoders\.(\d+)\.downsample\.bias", r"encoder.stacks.\1.downsampling.bias"),
            Rename(r"encoder\.encoders\.(\d+)\.out_combiner\.bypass_scale", r"encoder.stacks.\1.bypass.scale"),
            Rename(r"encoder\.downsample_output\.bias", "encoder.downsampling.bias"),
            Rename(rf"ctc_output\.1{leaf}", r"ctc.\1"),
            Rename(r"decoder\.embedding\.weight", "prediction.tokens.weight"),
            Rename(r"decoder\.conv\.weight", "prediction.conv.weight"),
            Rename(rf"joiner\.encoder_proj{leaf}", r"joiner.encoder.\1"),
            Rename(rf"joiner\.decoder_proj{leaf}", r"joiner.prediction.\1"),
            Rename(rf"joiner\.output_linear{leaf}", r"joiner.out.\1"),
            # Of the pruned loss in training, and a head beside the others.
            Rename(r"(simple_am_proj|simple_lm_proj|attention_decoder)\..*", None),
        )
    )


RULES: Mapping[str, WeightRules] = {"icefall": _icefall()}


def rules(naming: str) -> WeightRules:
    """The rules of a naming. Raises `CheckpointError` naming those known."""
    if naming not in RULES:
        raise CheckpointError(
            f"Zipformer weights are not known under the naming {naming!r}; known are {', '.join(RULES)}."
        )
    return RULES[naming]


def read_config(checkpoint: Checkpoint) -> ZipformerConfig:
    """The configuration of an icefall checkpoint, from the shapes of its weights and the training parameters stated.

    A release states none. Two things do not show in the weights then: the size of the positional part of a head, which
    is taken as 4, and the chunks of training; all of icefall's recipes use the same.
    Raises `CheckpointError` for weights of something else and for contradictions, all of them listed.
    """
    shapes = own_shapes(rules(checkpoint.naming), checkpoint.shapes())
    stated = Stated(checkpoint)
    try:
        config = _config(shapes, stated, "sentencepiece" if "sentencepiece" in checkpoint.files else "symbols")
    except (KeyError, ValueError, IndexError) as error:
        raise CheckpointError(
            f"{checkpoint.path}: the weights are not those of a complete Zipformer: {error} cannot be found or has an "
            "unexpected shape."
        ) from error
    if stated.faults:
        raise CheckpointError(
            f"{checkpoint.path}: this Zipformer checkpoint cannot be used: {'; '.join(stated.faults)}."
        )
    return config


class Stated:
    """Training parameters of a checkpoint, under the names that icefall's train.py gives them."""

    def __init__(self, checkpoint: Checkpoint):
        self._values = checkpoint.config
        self.faults: list[str] = []

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A number or a list such as `"2,2,3,4,3,2"`; None when it is not stated."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return tuple(int(number) for number in str(value).split(","))
        except ValueError:
            self.faults.append(f"{name} is {value!r}, where whole numbers are expected")
            return None

    def each(self, name: str, count: int) -> tuple[int, ...] | None:
        """A number for each of so many stacks; a single one holds for all."""
        numbers = self.numbers(name)
        if numbers is None or len(numbers) == count:
            return numbers
        if len(numbers) == 1:
            return numbers * count
        self.faults.append(f"{name} has {len(numbers)} numbers for {count} stacks")
        return None

    def compare(self, name: str, found: tuple[int, ...]) -> None:
        """Note a contradiction to what the weights show."""
        numbers = self.each(name, len(found))
        if numbers is not None and numbers != found:
            self.faults.append(f"the weights have {name} {_listed(found)}, the settings say {_listed(numbers)}")


def _config(shapes: Shapes, stated: Stated, tokenizer: Any) -> ZipformerConfig:
    layers = _layers(shapes)
    sizes = stated.each("pos_head_dim", len(layers))
    heads = stated.each("num_heads", len(layers))
    stacks = []
    for index, count in enumerate(layers):
        prefix = f"encoder.stacks.{index}.layers.0."
        rows, position_width = shapes[f"{prefix}attention_weights.positions.weight"]
        position_size = sizes[index] if sizes else rows // heads[index] if heads else _POSITION_SIZE
        stacks.append(_stack(shapes, index, count, _whole(rows, position_size, "num_heads")))
    [output_downsampling] = shapes["encoder.downsampling.bias"]
    ctc, transducer = "ctc.weight" in shapes, "joiner.out.weight" in shapes
    if not ctc and not transducer:
        stated.faults.append("it has neither a CTC head nor a transducer")
    config = ZipformerConfig(
        mel_bins=_mel_bins(shapes, stated),
        stacks=tuple(stacks),
        position_width=position_width,
        output_downsampling=output_downsampling,
        vocabulary_size=next((shapes[name][0] for name in ("ctc.weight", "joiner.out.weight") if name in shapes), 1),
        blank=(stated.numbers("blank_id") or (0,))[0],
        ctc=ctc,
        transducer=_transducer(shapes) if transducer else None,
        causal="encoder.stacks.0.layers.0.convolution1.depthwise.past.weight" in shapes,
        chunks=_limits(stated, "chunk_size", _CHUNKS, output_downsampling),
        left_contexts=_limits(stated, "left_context_frames", _LEFT_CONTEXTS, output_downsampling),
        tokenizer=tokenizer,
    )
    _check(config, stated)
    return config


def _layers(shapes: Shapes) -> list[int]:
    """How many layers each stack has."""
    found: dict[int, set[int]] = {}
    for name in shapes:
        if match := re.match(r"encoder\.stacks\.(\d+)\.layers\.(\d+)\.", name):
            found.setdefault(int(match[1]), set()).add(int(match[2]))
    return [1 + max(found[index]) for index in range(1 + max(found))]


def _stack(shapes: Shapes, index: int, layers: int, heads: int) -> StackConfig:
    prefix = f"encoder.stacks.{index}."
    layer = f"{prefix}layers.0."
    asked = _whole(shapes[f"{layer}attention_weights.in_proj.weight"][0], heads, "query_head_dim")
    position_size = shapes[f"{layer}attention_weights.positions.weight"][0] // heads
    depthwise = f"{layer}convolution1.depthwise."
    kernel = shapes.get(f"{depthwise}within.weight") or shapes[f"{depthwise}conv.weight"]
    return StackConfig(
        downsampling=shapes.get(f"{prefix}downsampling.bias", (1,))[0],
        layers=layers,
        width=shapes[f"{layer}norm.bias"][0],
        heads=heads,
        query_size=_whole(asked - position_size, 2, "query_head_dim"),
        value_size=_whole(shapes[f"{layer}attention1.in_proj.weight"][0], heads, "value_head_dim"),
        position_size=position_size,
        feed_forward=shapes[f"{layer}feed_forward2.in_proj.weight"][0],
        kernel=kernel[-1],
    )


def _transducer(shapes: Shapes) -> TransducerConfig:
    return TransducerConfig(
        width=shapes["prediction.tokens.weight"][1],
        context=shapes.get("prediction.conv.weight", (1,))[-1],
        joiner_width=shapes["joiner.out.weight"][1],
    )


def _mel_bins(shapes: Shapes, stated: Stated) -> int:
    found = stated.numbers("feature_dim")
    return found[0] if found else mel_bins_of(_whole(shapes["subsampling.out.weight"][1], CHANNELS[-1], "feature_dim"))


def _whole(number: int, parts: int, name: str) -> int:
    quotient, rest = divmod(number, parts) if parts > 0 else (0, 1)
    if rest or quotient < 1:
        raise ValueError(f"{name} (of {number} in {parts} equal parts)")
    return quotient


def _limits(stated: Stated, name: str, default: tuple[int, ...], output_downsampling: int) -> tuple[int, ...]:
    """In encoder frames; without the unlimited one, which is the whole input."""
    numbers = stated.numbers(name) or default
    return tuple(number // output_downsampling for number in numbers if number != _UNLIMITED)


def _check(config: ZipformerConfig, stated: Stated) -> None:
    for name, field in (
        ("num_encoder_layers", "layers"),
        ("downsampling_factor", "downsampling"),
        ("encoder_dim", "width"),
        ("feedforward_dim", "feed_forward"),
        ("cnn_module_kernel", "kernel"),
        ("num_heads", "heads"),
        ("query_head_dim", "query_size"),
        ("value_head_dim", "value_size"),
        ("pos_head_dim", "position_size"),
    ):
        stated.compare(name, tuple(getattr(stack, field) for stack in config.stacks))
    if config.blank >= config.vocabulary_size:
        stated.faults.append(f"blank_id is {config.blank}, and there are {config.vocabulary_size} tokens")
    if config.causal:
        _check_limits(config, stated)


def _check_limits(config: ZipformerConfig, stated: Stated) -> None:
    slowest = max(stack.downsampling for stack in config.stacks)
    for name, limits in (("chunk_size", config.chunks), ("left_context_frames", config.left_contexts)):
        fast = [limit * config.output_downsampling for limit in limits]
        if uneven := [frames for frames in fast if frames % slowest]:
            stated.faults.append(f"{name} {_listed(uneven)} is not a multiple of the downsampling {slowest}")


def _listed(numbers: Any) -> str:
    return ",".join(map(str, numbers))
