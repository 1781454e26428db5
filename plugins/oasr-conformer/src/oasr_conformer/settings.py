"""What a WeNet checkpoint's train.yaml says, and the configuration it makes together with the weights."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field, NonNegativeInt, PositiveFloat, PositiveInt, StrictInt, ValidationError

from oasr.errors import CheckpointError
from oasr.interfaces.format import Checkpoint
from oasr.tokenizers.symbols import read_symbols
from oasr_conformer.config import ConformerConfig
from oasr_conformer.layers import ACTIVATIONS
from oasr_conformer.weights import DecoderSizes, Sizes, read_sizes

_ENDS = ("<sos/eos>", "<eos>")
_SUBSAMPLING = {"conv2d": 4, "conv2d6": 6, "conv2d8": 8}

# What the network computes; other values of these settings are other networks.
_ENCODER_EXPECTS: Mapping[str, Any] = {
    "concat_after": False,
    "layer_norm_type": "layer_norm",
    "mlp_type": "position_wise_feed_forward",
    "query_bias": True,
    "key_bias": True,
    "value_bias": True,
    "conv_bias": True,
    "conv_norm_eps": 1e-5,
    "mlp_bias": True,
    "n_kv_head": None,
    "head_dim": None,
    "conv_inner_factor": 2,
    "final_norm": True,
}
_OF_CONVOLUTION = ("conv_bias", "conv_norm_eps", "conv_inner_factor", "final_norm")
_DECODER_EXPECTS: Mapping[str, Any] = {
    **{key: value for key, value in _ENCODER_EXPECTS.items() if key not in _OF_CONVOLUTION},
    "input_layer": "embed",
    "use_output_layer": True,
    "src_attention": True,
}


class _Encoder(BaseModel):
    output_size: PositiveInt | None = None
    attention_heads: PositiveInt = 4
    linear_units: PositiveInt | None = None
    num_blocks: PositiveInt | None = None
    input_layer: str = "conv2d"
    pos_enc_layer_type: str | None = None
    selfattention_layer_type: str | None = None
    activation_type: str | None = None
    normalize_before: bool = True
    norm_eps: PositiveFloat = 1e-5
    macaron_style: bool | None = None
    use_cnn_module: bool | None = None
    cnn_module_kernel: PositiveInt | None = None
    cnn_module_norm: str | None = None
    causal: bool = False
    use_dynamic_chunk: bool = False
    static_chunk_size: NonNegativeInt = 0


class _Decoder(BaseModel):
    attention_heads: PositiveInt = 4
    linear_units: PositiveInt | None = None
    num_blocks: PositiveInt | None = None
    r_num_blocks: NonNegativeInt | None = None
    activation_type: str = "relu"
    normalize_before: bool = True
    norm_eps: PositiveFloat = 1e-5


class _Model(BaseModel):
    reverse_weight: float = Field(0.0, ge=0.0, le=1.0)


class _FilterBank(BaseModel):
    num_mel_bins: PositiveInt = Field(80)
    frame_length: PositiveFloat = 25.0
    frame_shift: PositiveFloat = 10.0


class _Resampling(BaseModel):
    resample_rate: PositiveInt = 16_000


class _Dataset(BaseModel):
    feats_type: str = "fbank"
    fbank_conf: _FilterBank = _FilterBank()
    resample_conf: _Resampling = _Resampling()


class _Features(BaseModel):
    """Of releases before the dataset did this work."""

    feature_type: str = "fbank"
    mel_bins: PositiveInt = 80
    frame_length: PositiveFloat = 25.0
    frame_shift: PositiveFloat = 10.0
    using_pitch: bool = False


class _Collation(BaseModel):
    feature_extraction_conf: _Features = _Features()


class _CTC(BaseModel):
    ctc_blank_id: NonNegativeInt = 0


class _Tokenizer(BaseModel):
    special_tokens: dict[str, StrictInt] | None = None


class Settings(BaseModel):
    """train.yaml by its own names, with WeNet's defaults; None where the default depends on something else."""

    encoder: str = "conformer"
    encoder_conf: _Encoder = _Encoder()
    decoder_conf: _Decoder = _Decoder()
    model_conf: _Model = _Model()
    ctc_conf: _CTC = _CTC()
    dataset_conf: _Dataset = _Dataset()
    collate_conf: _Collation | None = None
    tokenizer: str | None = None
    tokenizer_conf: _Tokenizer = _Tokenizer()
    input_dim: PositiveInt | None = None
    output_dim: PositiveInt | None = None


def read_config(checkpoint: Checkpoint) -> ConformerConfig:
    """The configuration of a WeNet checkpoint.

    What the weights fix comes from their shapes, the rest from train.yaml. Raises `CheckpointError` for a variant that
    is not supported and for contradictions, all of them listed.
    """
    sizes = read_sizes(checkpoint)
    settings = _settings(checkpoint)
    faults = [
        *_unsupported(checkpoint, settings),
        *_contradictions(settings, sizes),
    ]
    config = _config(checkpoint, settings, sizes, faults)
    faults += _symbol_faults(checkpoint, sizes.vocabulary_size, config["decoder"])
    if faults:
        raise CheckpointError(f"{checkpoint.path}: this Conformer cannot be used: {'; '.join(faults)}.")
    return ConformerConfig.model_validate(config)


def _settings(checkpoint: Checkpoint) -> Settings:
    stated = {key: value for key, value in checkpoint.config.items() if value is not None}
    try:
        return Settings.model_validate(stated)
    except ValidationError as error:
        wrong = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
        raise CheckpointError(f"{checkpoint.path}: train.yaml holds what is no setting: {'; '.join(wrong)}.") from error


def _unsupported(checkpoint: Checkpoint, settings: Settings) -> list[str]:
    """Variants of the network that compute something else."""
    found = []
    if settings.encoder not in ("conformer", "transformer"):
        found.append(f"encoder {settings.encoder} is not supported, only conformer and transformer")
    for section, expected in (("encoder_conf", _ENCODER_EXPECTS), ("decoder_conf", _DECODER_EXPECTS)):
        stated = checkpoint.config.get(section) or {}
        found += [
            f"{section}.{key} {stated[key]} is not supported, only {value}"
            for key, value in expected.items()
            if stated.get(key, value) != value
        ]
    encoder, decoder = settings.encoder_conf, settings.decoder_conf
    activation = encoder.activation_type
    choices = [
        ("encoder_conf.input_layer", encoder.input_layer, _SUBSAMPLING),
        ("encoder_conf.pos_enc_layer_type", _positions(settings), ("rel_pos", "abs_pos")),
        ("encoder_conf.selfattention_layer_type", encoder.selfattention_layer_type, (None, "rel_selfattn", "selfattn")),
        ("encoder_conf.activation_type", activation or _default_activation(settings), ACTIVATIONS),
        ("decoder_conf.activation_type", decoder.activation_type, ACTIVATIONS),
        ("dataset_conf.feats_type", settings.dataset_conf.feats_type, ("fbank",)),
    ]
    if settings.collate_conf:
        features = settings.collate_conf.feature_extraction_conf
        choices += [
            ("feature_extraction_conf.feature_type", features.feature_type, ("fbank",)),
            ("feature_extraction_conf.using_pitch", features.using_pitch, (False,)),
        ]
    found += [
        f"{key} {value} is not supported, only {' and '.join(str(each) for each in known if each is not None)}"
        for key, value, known in choices
        if value not in known
    ]
    return found


def _contradictions(settings: Settings, sizes: Sizes) -> list[str]:
    """Where train.yaml states another size than the weights have."""
    encoder, decoder = settings.encoder_conf, settings.decoder_conf
    relative = sizes.heads is not None
    pairs: list[tuple[str, Any, Any]] = [
        ("output_dim", settings.output_dim, sizes.vocabulary_size),
        ("input_dim", settings.input_dim, sizes.mel_bins),
        ("encoder_conf.output_size", encoder.output_size, sizes.width),
        ("encoder_conf.num_blocks", encoder.num_blocks, sizes.layers),
        ("encoder_conf.linear_units", encoder.linear_units, sizes.feed_forward),
        ("encoder_conf.macaron_style", encoder.macaron_style, sizes.macaron),
        ("encoder_conf.use_cnn_module", encoder.use_cnn_module, sizes.kernel is not None),
        ("encoder_conf.pos_enc_layer_type", _positions(settings), "rel_pos" if relative else "abs_pos"),
        ("encoder_conf.selfattention_layer_type", encoder.selfattention_layer_type, _attention(relative)),
    ]
    if encoder.input_layer in _SUBSAMPLING:
        pairs.append(("encoder_conf.input_layer", _SUBSAMPLING[encoder.input_layer], sizes.subsampling))
    if relative and "attention_heads" in encoder.model_fields_set:
        pairs.append(("encoder_conf.attention_heads", encoder.attention_heads, sizes.heads))
    if sizes.kernel is not None:
        pairs += [
            ("encoder_conf.cnn_module_kernel", encoder.cnn_module_kernel, sizes.kernel),
            ("encoder_conf.cnn_module_norm", encoder.cnn_module_norm, f"{sizes.convolution_norm}_norm"),
        ]
    if sizes.decoder:
        pairs += [
            ("decoder_conf.num_blocks", decoder.num_blocks, sizes.decoder.layers),
            ("decoder_conf.linear_units", decoder.linear_units, sizes.decoder.feed_forward),
        ]
        if sizes.decoder.reverse_layers:  # else the key is left over from a recipe with two decoders
            pairs.append(("decoder_conf.r_num_blocks", decoder.r_num_blocks, sizes.decoder.reverse_layers))
    return [
        f"train.yaml says {key} {stated}, the weights have {has}"
        for key, stated, has in pairs
        if stated is not None and has is not None and stated != has
    ]


def _config(checkpoint: Checkpoint, settings: Settings, sizes: Sizes, faults: list[str]) -> dict[str, Any]:
    encoder = settings.encoder_conf
    features = _features(settings, sizes)
    heads = sizes.heads or encoder.attention_heads
    for what, number in (("encoder_conf", heads), ("decoder_conf", settings.decoder_conf.attention_heads)):
        if sizes.width % number:
            faults.append(f"a width of {sizes.width} cannot be split into {what}.attention_heads {number}")
    if features["mel_bins"] != (sizes.mel_bins or features["mel_bins"]):
        faults.append(f"train.yaml says {features['mel_bins']} mel bins, the weights have {sizes.mel_bins}")
    if sizes.kernel is not None and not encoder.causal and sizes.kernel % 2 == 0:
        faults.append(f"a convolution of kernel {sizes.kernel} can only be causal, and train.yaml says causal false")
    if settings.ctc_conf.ctc_blank_id >= sizes.vocabulary_size:
        faults.append(f"ctc_blank_id {settings.ctc_conf.ctc_blank_id} is none of {sizes.vocabulary_size} tokens")
    convolution = {"kernel": sizes.kernel, "causal": encoder.causal, "norm": sizes.convolution_norm}
    return {
        "features": features,
        "normalized_features": sizes.mel_bins is not None,
        "subsampling": sizes.subsampling,
        "width": sizes.width,
        "layers": sizes.layers,
        "heads": heads,
        "feed_forward": sizes.feed_forward,
        "macaron": sizes.macaron,
        "convolution": convolution if sizes.kernel else None,
        "positions": "relative" if sizes.heads else "absolute",
        "activation": encoder.activation_type or _default_activation(settings),
        "normalize_before": encoder.normalize_before,
        "norm_epsilon": encoder.norm_eps,
        "dynamic_chunk": encoder.use_dynamic_chunk,
        "static_chunk": encoder.static_chunk_size,
        "vocabulary_size": sizes.vocabulary_size,
        "blank": settings.ctc_conf.ctc_blank_id,
        "decoder": _decoder(settings, sizes.decoder, sizes.vocabulary_size) if sizes.decoder else None,
        "tokenizer": _tokenizer(checkpoint, settings),
    }


def _features(settings: Settings, sizes: Sizes) -> dict[str, Any]:
    bank, old = settings.dataset_conf.fbank_conf, settings.collate_conf
    stated = {"mel_bins": bank.num_mel_bins, "frame_length_ms": bank.frame_length, "frame_shift_ms": bank.frame_shift}
    if old and "fbank_conf" not in settings.dataset_conf.model_fields_set:
        extraction = old.feature_extraction_conf
        stated = {
            "mel_bins": extraction.mel_bins,
            "frame_length_ms": extraction.frame_length,
            "frame_shift_ms": extraction.frame_shift,
        }
    return {**stated, "sample_rate": settings.dataset_conf.resample_conf.resample_rate}


def _decoder(settings: Settings, sizes: DecoderSizes, vocabulary_size: int) -> dict[str, Any]:
    stated = settings.decoder_conf
    special = settings.tokenizer_conf.special_tokens or {}
    return {
        "layers": sizes.layers,
        "reverse_layers": sizes.reverse_layers,
        "heads": stated.attention_heads,
        "feed_forward": sizes.feed_forward,
        "activation": stated.activation_type,
        "normalize_before": stated.normalize_before,
        "norm_epsilon": stated.norm_eps,
        "start": special.get("<sos>", vocabulary_size - 1),
        "end": special.get("<eos>", vocabulary_size - 1),
        "reverse_weight": settings.model_conf.reverse_weight if sizes.reverse_layers else 0.0,
    }


def _tokenizer(checkpoint: Checkpoint, settings: Settings) -> str:
    """Old releases do not say; the SentencePiece model lies beside those that have one."""
    pieces = settings.tokenizer in (None, "bpe") and "sentencepiece" in checkpoint.files
    return "sentencepiece" if pieces else "symbols"


def _symbol_faults(checkpoint: Checkpoint, vocabulary_size: int, decoder: Mapping[str, Any] | None) -> list[str]:
    """Where the table of symbols beside the weights is not theirs."""
    if "symbols" not in checkpoint.files:
        return ["the table of symbols (units.txt or words.txt), which turns ids into text, is missing"]
    path = checkpoint.files["symbols"]
    symbols = read_symbols(path)
    faults = []
    if len(symbols) != vocabulary_size:
        faults.append(f"{path.name} has {len(symbols)} symbols, the weights have {vocabulary_size}")
    faults += [
        f"{path.name} has {symbol} at {token}, train.yaml says {decoder['end']}"
        for token, symbol in enumerate(symbols)
        if decoder and symbol in _ENDS and token != decoder["end"]
    ]
    return faults


def _positions(settings: Settings) -> str:
    return settings.encoder_conf.pos_enc_layer_type or ("rel_pos" if settings.encoder == "conformer" else "abs_pos")


def _attention(relative: bool) -> str:
    return "rel_selfattn" if relative else "selfattn"


def _default_activation(settings: Settings) -> str:
    return "swish" if settings.encoder == "conformer" else "relu"
