"""The names of Whisper's tensors in each checkpoint world, and the sizes they fix."""

from collections.abc import Mapping
from typing import Any

from oasr.checkpoint.json_file import read_object
from oasr.checkpoint.renaming import own_shapes
from oasr.errors import CheckpointError
from oasr.interfaces.architecture import Rename, WeightRules
from oasr.interfaces.format import Checkpoint

_QUERY, _KEY, _VALUE = (0, 3), (1, 3), (2, 3)
_CROSS_KEY, _CROSS_VALUE = (0, 2), (1, 2)

# Whisper's key projections have no bias; the fused matrices have one.
_NO_KEY_BIAS = (
    Rename(r"(en|de)coder\.blocks\.\d+\.attention\.qkv\.bias", None, _KEY),
    Rename(r"decoder\.blocks\.\d+\.cross_attention\.key_value\.bias", None, _CROSS_KEY),
)


def _huggingface() -> WeightRules:
    """transformers, modeling_whisper.py. Checkpoints of the bare `WhisperModel` lack the prefix `model.`."""
    layer = r"(?:model\.)?((?:en|de)coder)\.layers\.(\d+)\."
    block, leaf = r"\1.blocks.\2.", r"\.(weight|bias)"
    return WeightRules(
        renames=(
            Rename(rf"(?:model\.)?(encoder\.conv[12]){leaf}", r"\1.\2"),
            Rename(r"(?:model\.)?((?:en|de)coder)\.embed_positions\.weight", r"\1.positions"),
            Rename(r"(?:model\.)?decoder\.embed_tokens\.weight", "decoder.tokens.weight"),
            Rename(rf"(?:model\.)?((?:en|de)coder)\.layer_norm{leaf}", r"\1.norm.\2"),
            Rename(rf"{layer}self_attn_layer_norm{leaf}", rf"{block}attention_norm.\3"),
            Rename(rf"{layer}self_attn\.q_proj{leaf}", rf"{block}attention.qkv.\3", _QUERY),
            Rename(rf"{layer}self_attn\.k_proj{leaf}", rf"{block}attention.qkv.\3", _KEY),
            Rename(rf"{layer}self_attn\.v_proj{leaf}", rf"{block}attention.qkv.\3", _VALUE),
            Rename(rf"{layer}self_attn\.out_proj{leaf}", rf"{block}attention.out.\3"),
            Rename(rf"{layer}encoder_attn_layer_norm{leaf}", rf"{block}cross_norm.\3"),
            Rename(rf"{layer}encoder_attn\.q_proj{leaf}", rf"{block}cross_attention.query.\3"),
            Rename(rf"{layer}encoder_attn\.k_proj{leaf}", rf"{block}cross_attention.key_value.\3", _CROSS_KEY),
            Rename(rf"{layer}encoder_attn\.v_proj{leaf}", rf"{block}cross_attention.key_value.\3", _CROSS_VALUE),
            Rename(rf"{layer}encoder_attn\.out_proj{leaf}", rf"{block}cross_attention.out.\3"),
            Rename(rf"{layer}final_layer_norm{leaf}", rf"{block}mlp_norm.\3"),
            Rename(rf"{layer}(fc[12]){leaf}", rf"{block}\3.\4"),
            Rename(r"proj_out\.weight", None),  # the same tensor as the token embedding
        ),
        zeros=_NO_KEY_BIAS,
    )


def _openai() -> WeightRules:
    """openai/whisper, model.py."""
    layer, leaf = r"((?:en|de)coder)\.blocks\.(\d+)\.", r"\.(weight|bias)"
    block = r"\1.blocks.\2."
    return WeightRules(
        renames=(
            Rename(rf"(encoder\.conv[12]){leaf}", r"\1.\2"),
            Rename(r"((?:en|de)coder)\.positional_embedding", r"\1.positions"),
            Rename(r"decoder\.token_embedding\.weight", "decoder.tokens.weight"),
            Rename(rf"encoder\.ln_post{leaf}", r"encoder.norm.\1"),
            Rename(rf"decoder\.ln{leaf}", r"decoder.norm.\1"),
            Rename(rf"{layer}attn_ln{leaf}", rf"{block}attention_norm.\3"),
            Rename(rf"{layer}attn\.query{leaf}", rf"{block}attention.qkv.\3", _QUERY),
            Rename(rf"{layer}attn\.key{leaf}", rf"{block}attention.qkv.\3", _KEY),
            Rename(rf"{layer}attn\.value{leaf}", rf"{block}attention.qkv.\3", _VALUE),
            Rename(rf"{layer}attn\.out{leaf}", rf"{block}attention.out.\3"),
            Rename(rf"{layer}cross_attn_ln{leaf}", rf"{block}cross_norm.\3"),
            Rename(rf"{layer}cross_attn\.query{leaf}", rf"{block}cross_attention.query.\3"),
            Rename(rf"{layer}cross_attn\.key{leaf}", rf"{block}cross_attention.key_value.\3", _CROSS_KEY),
            Rename(rf"{layer}cross_attn\.value{leaf}", rf"{block}cross_attention.key_value.\3", _CROSS_VALUE),
            Rename(rf"{layer}cross_attn\.out{leaf}", rf"{block}cross_attention.out.\3"),
            Rename(rf"{layer}mlp_ln{leaf}", rf"{block}mlp_norm.\3"),
            Rename(rf"{layer}mlp\.0{leaf}", rf"{block}fc1.\3"),
            Rename(rf"{layer}mlp\.2{leaf}", rf"{block}fc2.\3"),
            Rename(r"decoder\.mask|alignment_heads", None),  # buffers that some files carry along
        ),
        zeros=_NO_KEY_BIAS,
    )


def _ctranslate2() -> WeightRules:
    """CTranslate2, specs/whisper_spec.py and converters/transformers.py. Query, key and value come stacked."""
    layer = r"((?:en|de)coder)/layer_(\d+)/"
    block = r"\1.blocks.\2."
    renames = [
        Rename(r"encoder/(conv[12])/(weight|bias)", r"encoder.\1.\2"),
        Rename(r"((?:en|de)coder)/position_encodings/encodings", r"\1.positions"),
        Rename(r"decoder/embeddings/weight", "decoder.tokens.weight"),
        Rename(r"decoder/projection/weight", None),  # the same tensor as the token embedding
    ]
    for stored, own in (("gamma", "weight"), ("beta", "bias")):
        renames += [
            Rename(rf"((?:en|de)coder)/layer_norm/{stored}", rf"\1.norm.{own}"),
            Rename(rf"{layer}self_attention/layer_norm/{stored}", rf"{block}attention_norm.{own}"),
            Rename(rf"{layer}attention/layer_norm/{stored}", rf"{block}cross_norm.{own}"),
            Rename(rf"{layer}ffn/layer_norm/{stored}", rf"{block}mlp_norm.{own}"),
        ]
    for stored, own in (
        ("self_attention/linear_0", "attention.qkv"),
        ("self_attention/linear_1", "attention.out"),
        ("attention/linear_0", "cross_attention.query"),
        ("attention/linear_1", "cross_attention.key_value"),
        ("attention/linear_2", "cross_attention.out"),
        ("ffn/linear_0", "fc1"),
        ("ffn/linear_1", "fc2"),
    ):
        renames.append(Rename(rf"{layer}{stored}/(weight|bias)", rf"{block}{own}.\3"))
    return WeightRules(renames=tuple(renames))


RULES: Mapping[str, WeightRules] = {
    "huggingface": _huggingface(),
    "openai": _openai(),
    "ctranslate2": _ctranslate2(),
}


def rules(naming: str) -> WeightRules:
    """The rules of a naming. Raises `CheckpointError` naming those known."""
    if naming not in RULES:
        raise CheckpointError(
            f"Whisper weights are not known under the naming {naming!r}; known are {', '.join(RULES)}."
        )
    return RULES[naming]


# What the network computes; other values of these settings are other networks. Activation 3 is GELU.
_HUGGINGFACE_SETTINGS: Mapping[str, Any] = {
    "activation_function": "gelu",
    "scale_embedding": False,
    "tie_word_embeddings": True,
}
_CTRANSLATE2_SETTINGS: Mapping[str, Any] = {
    "decoder/activation": 3,
    "decoder/pre_norm": 1,
    "decoder/scale_embeddings": 0,
    "decoder/alibi": 0,
}

# Where each world's configuration states a size.
_STATED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "huggingface": {
        "n_mels": ("num_mel_bins",),
        "audio_context": ("max_source_positions",),
        "width": ("d_model",),
        "encoder_layers": ("encoder_layers",),
        "encoder_heads": ("encoder_attention_heads",),
        "encoder_ffn": ("encoder_ffn_dim",),
        "decoder_layers": ("decoder_layers",),
        "decoder_heads": ("decoder_attention_heads",),
        "decoder_ffn": ("decoder_ffn_dim",),
        "text_context": ("max_target_positions",),
        "vocabulary_size": ("vocab_size",),
    },
    "openai": {
        "n_mels": ("n_mels",),
        "audio_context": ("n_audio_ctx",),
        "width": ("n_audio_state", "n_text_state"),
        "encoder_layers": ("n_audio_layer",),
        "encoder_heads": ("n_audio_head",),
        "decoder_layers": ("n_text_layer",),
        "decoder_heads": ("n_text_head",),
        "text_context": ("n_text_ctx",),
        "vocabulary_size": ("n_vocab",),
    },
    "ctranslate2": {"encoder_heads": ("encoder/num_heads",), "decoder_heads": ("decoder/num_heads",)},
}


def read_sizes(checkpoint: Checkpoint, faults: list[str]) -> dict[str, int]:
    """Sizes of the network, from the shapes of its weights; what contradicts them is added to `faults`.

    Raises `CheckpointError` when the weights are not those of a Whisper at all.
    """
    shapes = own_shapes(rules(checkpoint.naming), checkpoint.shapes())
    faults += _unsupported(checkpoint)
    sizes = _sizes_of(checkpoint, shapes)
    stated = checkpoint.config["variables"] if checkpoint.naming == "ctranslate2" else checkpoint.config
    for size, keys in _STATED[checkpoint.naming].items():
        for key in keys:
            if size in sizes and stated.get(key, sizes[size]) != sizes[size]:
                faults.append(f"the weights have {size} {sizes[size]}, the configuration says {key} {stated[key]}")
    for heads in ("encoder_heads", "decoder_heads"):
        key = _STATED[checkpoint.naming][heads][0]
        if key not in stated:
            faults.append(f"the configuration does not state {key}")
        elif not isinstance(stated[key], int) or stated[key] < 1 or sizes["width"] % stated[key]:
            faults.append(f"a width of {sizes['width']} cannot be split into {key} {stated[key]}")
        else:
            sizes[heads] = stated[key]
    faults += _contradictions_of_features(checkpoint, sizes)
    return sizes


def _sizes_of(checkpoint: Checkpoint, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    try:
        width, n_mels, _ = shapes["encoder.conv1.weight"]
        return {
            "n_mels": n_mels,
            "width": width,
            "audio_context": shapes["encoder.positions"][0],
            "text_context": shapes["decoder.positions"][0],
            "vocabulary_size": shapes["decoder.tokens.weight"][0],
            "encoder_layers": _layers(shapes, "encoder"),
            "decoder_layers": _layers(shapes, "decoder"),
            "encoder_ffn": shapes["encoder.blocks.0.fc1.weight"][0],
            "decoder_ffn": shapes["decoder.blocks.0.fc1.weight"][0],
        }
    except (KeyError, ValueError, IndexError) as error:
        raise CheckpointError(
            f"{checkpoint.path}: the weights are not those of a complete Whisper: {error} cannot be found or has an "
            "unexpected shape."
        ) from error


def _layers(shapes: Mapping[str, tuple[int, ...]], side: str) -> int:
    prefix = f"{side}.blocks."
    return 1 + max(int(name.removeprefix(prefix).partition(".")[0]) for name in shapes if name.startswith(prefix))


def _unsupported(checkpoint: Checkpoint) -> list[str]:
    """Variants of Whisper that compute something else."""
    config = checkpoint.config
    if checkpoint.naming == "ctranslate2":
        settings: Mapping[str, Any] = config["variables"]
        expected = _CTRANSLATE2_SETTINGS
    else:
        settings, expected = config, _HUGGINGFACE_SETTINGS
    found = [
        f"{key} {settings[key]} is not supported, only {value}"
        for key, value in expected.items()
        if settings.get(key, value) != value
    ]
    if quantization := config.get("quantization_config"):
        method = quantization.get("quant_method", "unknown") if isinstance(quantization, Mapping) else quantization
        found.append(f"weights quantized with {method} are not supported")
    if any("lora_" in name for name in checkpoint.shapes()):
        found.append("it holds LoRA adapters: merge them into the model first (merge_and_unload in peft)")
    return found


def _contradictions_of_features(checkpoint: Checkpoint, sizes: Mapping[str, int]) -> list[str]:
    """Where preprocessor_config.json, if there is one, describes other features than the network reads."""
    if "preprocessor" not in checkpoint.files:
        return []
    stated = read_object(checkpoint.files["preprocessor"])
    expected = {
        "feature_size": sizes["n_mels"],
        "nb_max_frames": 2 * sizes["audio_context"],
        "sampling_rate": 16_000,
        "hop_length": 160,
        "n_fft": 400,
    }
    return [
        f"the network needs {key} {value}, {checkpoint.files['preprocessor'].name} says {stated[key]}"
        for key, value in expected.items()
        if stated.get(key, value) != value
    ]
