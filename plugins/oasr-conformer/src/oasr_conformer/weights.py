"""The names of WeNet's tensors, and the sizes they fix."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from oasr.checkpoint.renaming import own_shapes
from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Rename, WeightRules
from oasr.interfaces.format import Checkpoint

_QUERY, _KEY, _VALUE = (0, 3), (1, 3), (2, 3)
_CROSS_KEY, _CROSS_VALUE = (0, 2), (1, 2)
_LEAF = r"\.(weight|bias)"


def _encoder() -> tuple[Rename, ...]:
    """wenet/transformer: encoder.py, encoder_layer.py, convolution.py. A Transformer's norms have numbers for names."""
    layer, block = r"encoder\.encoders\.(\d+)\.", r"encoder.blocks.\1."
    return (
        Rename(r"encoder\.global_cmvn\.mean", "encoder.feature_norm.mean"),
        Rename(r"encoder\.global_cmvn\.istd", "encoder.feature_norm.inverse_deviation"),
        Rename(rf"encoder\.embed\.conv\.(\d){_LEAF}", r"encoder.subsampling.convolutions.\1.\2"),
        Rename(rf"encoder\.embed\.(?:out\.0|linear){_LEAF}", r"encoder.subsampling.out.\1"),
        Rename(rf"encoder\.after_norm{_LEAF}", r"encoder.norm.\1"),
        Rename(rf"{layer}self_attn\.linear_q{_LEAF}", rf"{block}attention.qkv.\2", _QUERY),
        Rename(rf"{layer}self_attn\.linear_k{_LEAF}", rf"{block}attention.qkv.\2", _KEY),
        Rename(rf"{layer}self_attn\.linear_v{_LEAF}", rf"{block}attention.qkv.\2", _VALUE),
        Rename(rf"{layer}self_attn\.linear_out{_LEAF}", rf"{block}attention.out.\2"),
        Rename(rf"{layer}self_attn\.linear_pos\.weight", rf"{block}attention.position_weight"),
        Rename(rf"{layer}self_attn\.pos_bias_u", rf"{block}attention.content_bias"),
        Rename(rf"{layer}self_attn\.pos_bias_v", rf"{block}attention.position_bias"),
        Rename(rf"{layer}feed_forward_macaron\.w_1{_LEAF}", rf"{block}macaron.up.\2"),
        Rename(rf"{layer}feed_forward_macaron\.w_2{_LEAF}", rf"{block}macaron.down.\2"),
        Rename(rf"{layer}feed_forward\.w_1{_LEAF}", rf"{block}feed_forward.up.\2"),
        Rename(rf"{layer}feed_forward\.w_2{_LEAF}", rf"{block}feed_forward.down.\2"),
        Rename(rf"{layer}conv_module\.pointwise_conv1{_LEAF}", rf"{block}convolution.enter.\2"),
        Rename(rf"{layer}conv_module\.depthwise_conv{_LEAF}", rf"{block}convolution.depthwise.\2"),
        Rename(rf"{layer}conv_module\.norm{_LEAF}", rf"{block}convolution.norm.\2"),
        Rename(rf"{layer}conv_module\.norm\.running_mean", rf"{block}convolution.norm.mean"),
        Rename(rf"{layer}conv_module\.norm\.running_var", rf"{block}convolution.norm.variance"),
        Rename(rf"{layer}conv_module\.norm\.num_batches_tracked", None),
        Rename(rf"{layer}conv_module\.pointwise_conv2{_LEAF}", rf"{block}convolution.leave.\2"),
        Rename(rf"{layer}norm_ff_macaron{_LEAF}", rf"{block}macaron_residual.norm.\2"),
        Rename(rf"{layer}(?:norm_mha|norm1){_LEAF}", rf"{block}attention_residual.norm.\2"),
        Rename(rf"{layer}norm_conv{_LEAF}", rf"{block}convolution_residual.norm.\2"),
        Rename(rf"{layer}(?:norm_ff|norm2){_LEAF}", rf"{block}feed_forward_residual.norm.\2"),
        Rename(rf"{layer}norm_final{_LEAF}", rf"{block}norm.\2"),
    )


def _decoder(stored: str, own: str) -> tuple[Rename, ...]:
    """wenet/transformer: decoder.py, decoder_layer.py."""
    layer, block = rf"{stored}decoders\.(\d+)\.", rf"{own}blocks.\1."
    return (
        Rename(rf"{stored}embed\.0\.weight", f"{own}tokens.weight"),
        Rename(rf"{stored}after_norm{_LEAF}", rf"{own}norm.\1"),
        Rename(rf"{stored}output_layer{_LEAF}", rf"{own}out.\1"),
        Rename(rf"{layer}self_attn\.linear_q{_LEAF}", rf"{block}attention.qkv.\2", _QUERY),
        Rename(rf"{layer}self_attn\.linear_k{_LEAF}", rf"{block}attention.qkv.\2", _KEY),
        Rename(rf"{layer}self_attn\.linear_v{_LEAF}", rf"{block}attention.qkv.\2", _VALUE),
        Rename(rf"{layer}self_attn\.linear_out{_LEAF}", rf"{block}attention.out.\2"),
        Rename(rf"{layer}src_attn\.linear_q{_LEAF}", rf"{block}cross_attention.query.\2"),
        Rename(rf"{layer}src_attn\.linear_k{_LEAF}", rf"{block}cross_attention.key_value.\2", _CROSS_KEY),
        Rename(rf"{layer}src_attn\.linear_v{_LEAF}", rf"{block}cross_attention.key_value.\2", _CROSS_VALUE),
        Rename(rf"{layer}src_attn\.linear_out{_LEAF}", rf"{block}cross_attention.out.\2"),
        Rename(rf"{layer}feed_forward\.w_1{_LEAF}", rf"{block}feed_forward.up.\2"),
        Rename(rf"{layer}feed_forward\.w_2{_LEAF}", rf"{block}feed_forward.down.\2"),
        Rename(rf"{layer}norm1{_LEAF}", rf"{block}attention_residual.norm.\2"),
        Rename(rf"{layer}norm2{_LEAF}", rf"{block}cross_residual.norm.\2"),
        Rename(rf"{layer}norm3{_LEAF}", rf"{block}feed_forward_residual.norm.\2"),
    )


RULES: Mapping[str, WeightRules] = {
    "wenet": WeightRules(
        renames=(
            *_encoder(),
            *_decoder(r"decoder\.(?:left_decoder\.)?", "decoder.left."),
            *_decoder(r"decoder\.right_decoder\.", "decoder.right."),
            Rename(rf"ctc\.ctc_lo{_LEAF}", r"ctc.\1"),
            Rename(r".*\.pe", None),  # tables of positions, which are computed
            Rename(rf".*\.concat_linear[12]?{_LEAF}", None),  # of old releases, which carried them without use
        )
    )
}


def rules(naming: str) -> WeightRules:
    """The rules of a naming. Raises `CheckpointError` naming those known."""
    if naming not in RULES:
        raise CheckpointError(
            f"Conformer weights are not known under the naming {naming!r}; known are {', '.join(RULES)}."
        )
    return RULES[naming]


@dataclass(frozen=True)
class DecoderSizes:
    """What the weights of the attention decoders fix."""

    layers: int
    reverse_layers: int
    feed_forward: int


@dataclass(frozen=True)
class Sizes:
    """What the weights fix."""

    mel_bins: int | None
    """None where the weights do not normalise the features."""
    subsampling: int
    width: int
    layers: int
    heads: int | None
    """None with absolute positions: the weights do not tell."""
    feed_forward: int
    macaron: bool
    kernel: int | None
    """None without a convolution module."""
    convolution_norm: str
    vocabulary_size: int
    decoder: DecoderSizes | None


def read_sizes(checkpoint: Checkpoint) -> Sizes:
    """Sizes of the network, from the shapes of its weights.

    Raises `CheckpointError` when they are not those of a WeNet Conformer or Transformer at all.
    """
    stored = checkpoint.shapes()
    if any("lora_" in name for name in stored):
        raise CheckpointError(
            f"{checkpoint.path} holds LoRA adapters: merge them into the weights first, with the toolkit that wrote it."
        )
    shapes = own_shapes(rules(checkpoint.naming), stored)
    first = "encoder.blocks.0."
    bias, depthwise = shapes.get(f"{first}attention.content_bias"), shapes.get(f"{first}convolution.depthwise.weight")
    normalized = shapes.get("encoder.feature_norm.mean")
    try:
        return Sizes(
            mel_bins=normalized[0] if normalized else None,
            subsampling=_subsampling(shapes),
            width=shapes["encoder.norm.weight"][0],
            layers=_layers(shapes, "encoder"),
            heads=bias[0] if bias else None,
            feed_forward=shapes[f"{first}feed_forward.up.weight"][0],
            macaron=f"{first}macaron.up.weight" in shapes,
            kernel=depthwise[-1] if depthwise else None,
            convolution_norm="batch" if f"{first}convolution.norm.mean" in shapes else "layer",
            vocabulary_size=shapes["ctc.weight"][0],
            decoder=_decoder_sizes(shapes),
        )
    except (KeyError, ValueError, IndexError) as error:
        raise CheckpointError(
            f"{checkpoint.path}: the weights are not those of a complete WeNet Conformer or Transformer with a CTC "
            f"output: {error} cannot be found or has an unexpected shape."
        ) from error


def _decoder_sizes(shapes: Mapping[str, tuple[int, ...]]) -> DecoderSizes | None:
    if not any(name.startswith("decoder.") for name in shapes):
        return None
    return DecoderSizes(
        layers=_layers(shapes, "decoder.left"),
        reverse_layers=_layers(shapes, "decoder.right") if "decoder.right.tokens.weight" in shapes else 0,
        feed_forward=shapes["decoder.left.blocks.0.feed_forward.up.weight"][0],
    )


def _subsampling(shapes: Mapping[str, Any]) -> int:
    if "encoder.subsampling.convolutions.4.weight" in shapes:
        return 8
    return 6 if shapes["encoder.subsampling.convolutions.2.weight"][-1] == 5 else 4


def _layers(shapes: Mapping[str, Any], part: str) -> int:
    prefix = f"{part}.blocks."
    numbers = [int(name.removeprefix(prefix).partition(".")[0]) for name in shapes if name.startswith(prefix)]
    if not numbers:
        raise KeyError(prefix)
    return 1 + max(numbers)
