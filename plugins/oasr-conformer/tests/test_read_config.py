"""Sizes come from the weights, the rest from train.yaml; what does not fit is refused, all of it at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from oasr.checkpoint.load import load, outline
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError, RequestError
from oasr.interfaces.architecture import Architecture
from oasr.interfaces.frontend import FeatureBatch
from oasr.plugin import Kind
from oasr.registry import Registry, default_registry

Folder = Callable[..., Path]
REMOVED = object()


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


@pytest.fixture
def folder(tmp_path: Path, shared: Callable[[str], Path]) -> Folder:
    """A copy of a checkpoint with keys of train.yaml changed; dots lead into sections."""

    def copy(name: str = "models/wenet-u2pp-digits", **changes: Any) -> Path:
        for file in shared(f"{name}/checkpoint").iterdir():
            (tmp_path / file.name).write_bytes(file.read_bytes())
        path = tmp_path / "train.yaml"
        config = yaml.safe_load(path.read_text())
        for keys, value in changes.items():
            *sections, key = keys.split("__")
            part = config
            for section in sections:
                part = part.setdefault(section, {})
            if value is REMOVED:
                del part[key]
            else:
                part[key] = value
        path.write_text(yaml.safe_dump(config))
        return tmp_path

    return copy


@pytest.fixture
def read(registry: Registry) -> Callable[[Path], Architecture]:
    return lambda path: outline(open_checkpoint(path, registry), registry)


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Path:
    torch.save(change(torch.load(path / "final.pt", weights_only=True)), path / "final.pt")
    return path


def test_a_trained_model(folder: Folder, read: Callable) -> None:
    model = read(folder())
    config, facts = model.config, model.facts
    assert (config.subsampling, config.width, config.layers, config.heads, config.feed_forward) == (4, 80, 4, 4, 192)
    assert config.convolution.model_dump() == {"kernel": 8, "causal": True, "norm": "layer"}
    assert (config.macaron, config.positions, config.activation, config.normalize_before) == (
        True,
        "relative",
        "swish",
        True,
    )
    decoder = config.decoder
    assert (decoder.layers, decoder.reverse_layers, decoder.heads, decoder.feed_forward) == (1, 1, 4, 160)
    assert (decoder.start, decoder.end, decoder.reverse_weight, decoder.activation) == (2, 2, 0.3, "relu")
    assert facts.frontend_options["mel_bins"] == 80
    assert facts.frontend_options["waveform_scale"] == 32768
    assert (facts.tokenizer, facts.text_tokens, facts.frame_shift) == ("sentencepiece", 29, 0.04)
    assert (facts.heads, facts.default_decoder) == ({"ctc", "rescoring"}, "attention-rescoring")
    assert (facts.streaming.chunks, facts.streaming.left_contexts) == ((), ())
    assert (facts.streaming.default_chunk, facts.streaming.default_left_context) == (16, 64)


def test_an_old_release_says_less(folder: Folder, read: Callable) -> None:
    model = read(folder("goldens/wenet-old-style-batch-norm"))
    assert model.config.convolution.model_dump() == {"kernel": 15, "causal": False, "norm": "batch"}
    decoder = model.config.decoder
    assert (decoder.start, decoder.end, decoder.reverse_layers, decoder.reverse_weight) == (29, 29, 0, 0.0)
    assert (model.facts.text_tokens, model.facts.tokenizer) == (29, "symbols")
    assert model.facts.streaming is None


def test_what_the_weights_fix_need_not_be_stated(folder: Folder, read: Callable) -> None:
    whole = read(folder()).config
    sizes = ("output_size", "linear_units", "num_blocks", "cnn_module_kernel", "cnn_module_norm", "input_layer")
    bare = {f"encoder_conf__{key}": REMOVED for key in (*sizes, "attention_heads")}
    bare |= {f"decoder_conf__{key}": REMOVED for key in ("linear_units", "num_blocks", "r_num_blocks")}
    assert read(folder(**bare, output_dim=REMOVED, input_dim=REMOVED, dataset_conf=REMOVED)).config == whole


def test_features_as_the_first_releases_state_them(folder: Folder, read: Callable) -> None:
    features = {"feature_type": "fbank", "mel_bins": 80, "frame_shift": 12, "frame_length": 30, "using_pitch": False}
    model = read(folder(dataset_conf=REMOVED, collate_conf={"feature_extraction_conf": features}))
    assert model.facts.frontend_options["frame_length_ms"] == 30
    assert model.facts.frame_shift == pytest.approx(0.048)


def test_telephone_speech(folder: Folder, read: Callable) -> None:
    facts = read(folder(dataset_conf__resample_conf__resample_rate=8000)).facts
    assert (facts.sample_rate, facts.frontend_options["sample_rate"]) == (8000, 8000)


def test_a_static_chunk_is_the_only_one(folder: Folder, read: Callable) -> None:
    facts = read(folder(encoder_conf__use_dynamic_chunk=False, encoder_conf__static_chunk_size=8)).facts
    assert facts.streaming.chunks == (8,)
    assert (facts.streaming.default_chunk, facts.streaming.default_left_context) == (8, 32)


def test_convolutions_that_look_ahead_do_not_stream(folder: Folder, read: Callable) -> None:
    model = read(folder("goldens/wenet-conv2d6", encoder_conf__use_dynamic_chunk=True))
    assert model.facts.streaming is None


def test_a_model_trained_on_one_chunk_size_reads_whole_recordings_so(folder: Folder, registry: Registry) -> None:
    def encoder(**changes: Any) -> Architecture:
        return load(open_checkpoint(folder(**changes), registry), registry, torch.float32, "cpu")

    static = encoder(encoder_conf__use_dynamic_chunk=False, encoder_conf__static_chunk_size=8)
    dynamic = encoder()
    features = FeatureBatch(torch.randn(1, 150, 80, generator=torch.Generator().manual_seed(0)), torch.tensor([150]))
    with torch.inference_mode():
        frames = static.encode(features).frames
        assert torch.equal(frames, dynamic.streaming(8, None).encode_whole(features).frames)
        assert not torch.allclose(frames, dynamic.encode(features).frames, atol=1e-2)


def test_without_decoders_ctc_is_what_there_is(folder: Folder, read: Callable) -> None:
    path = rewrite(folder(), lambda state: {name: state[name] for name in state if not name.startswith("decoder.")})
    model = read(path)
    assert model.facts.heads == {"ctc"}
    assert model.facts.default_decoder == "ctc-prefix-beam"
    with pytest.raises(RequestError, match=r'offers "ctc", not the head "rescoring"'):
        model.head("rescoring")


def test_tensors_without_use_are_passed_over(folder: Folder, read: Callable, registry: Registry) -> None:
    old = {
        "encoder.encoders.0.concat_linear.weight": torch.zeros(80, 160),
        "decoder.left_decoder.decoders.0.concat_linear1.bias": torch.zeros(80),
        "encoder.embed.pos_enc.pe": torch.zeros(1, 5000, 80),
    }
    load(open_checkpoint(rewrite(folder(), lambda state: state | old), registry), registry, torch.float32, "cpu")


CONTRADICTIONS = [
    ({"output_dim": 30}, "train.yaml says output_dim 30, the weights have 29"),
    ({"input_dim": 40}, "input_dim 40, the weights have 80"),
    ({"encoder_conf__output_size": 256}, "encoder_conf.output_size 256, the weights have 80"),
    ({"encoder_conf__num_blocks": 12}, "encoder_conf.num_blocks 12, the weights have 4"),
    ({"encoder_conf__linear_units": 2048}, "encoder_conf.linear_units 2048, the weights have 192"),
    ({"encoder_conf__attention_heads": 8}, "encoder_conf.attention_heads 8, the weights have 4"),
    ({"encoder_conf__input_layer": "conv2d8"}, "encoder_conf.input_layer 8, the weights have 4"),
    ({"encoder_conf__cnn_module_kernel": 15}, "encoder_conf.cnn_module_kernel 15, the weights have 8"),
    ({"encoder_conf__cnn_module_norm": "batch_norm"}, "cnn_module_norm batch_norm, the weights have layer_norm"),
    ({"encoder_conf__macaron_style": False}, "encoder_conf.macaron_style False, the weights have True"),
    ({"encoder_conf__use_cnn_module": False}, "encoder_conf.use_cnn_module False, the weights have True"),
    ({"encoder_conf__pos_enc_layer_type": "abs_pos"}, "pos_enc_layer_type abs_pos, the weights have rel_pos"),
    ({"encoder_conf__causal": False}, "kernel 8 can only be causal"),
    ({"decoder_conf__num_blocks": 3}, "decoder_conf.num_blocks 3, the weights have 1"),
    ({"decoder_conf__r_num_blocks": 3}, "decoder_conf.r_num_blocks 3, the weights have 1"),
    ({"decoder_conf__attention_heads": 7}, "width of 80 cannot be split into decoder_conf.attention_heads 7"),
    ({"dataset_conf__fbank_conf__num_mel_bins": 40}, "40 mel bins, the weights have 80"),
    ({"ctc_conf__ctc_blank_id": 29}, "ctc_blank_id 29 is none of 29 tokens"),
    ({"tokenizer_conf__special_tokens": None}, "units.txt has <sos/eos> at 2, train.yaml says 28"),
]


@pytest.mark.parametrize(("changes", "message"), CONTRADICTIONS)
def test_contradictions_are_named(folder: Folder, read: Callable, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        read(folder(**changes))
    assert message in str(refused.value)


def test_all_contradictions_are_listed_at_once(folder: Folder, read: Callable) -> None:
    with pytest.raises(CheckpointError, match=r"output_dim 30.*output_size 256.*num_blocks 12.*units\.txt"):
        read(
            folder(
                output_dim=30,
                encoder_conf__output_size=256,
                encoder_conf__num_blocks=12,
                tokenizer_conf__special_tokens=None,
            )
        )


VARIANTS = [
    ({"encoder_conf__input_layer": "linear"}, "encoder_conf.input_layer linear is not supported"),
    ({"encoder_conf__activation_type": "tanh"}, "encoder_conf.activation_type tanh is not supported"),
    ({"encoder_conf__pos_enc_layer_type": "rope_pos"}, "pos_enc_layer_type rope_pos is not supported"),
    ({"encoder_conf__selfattention_layer_type": "shaw_rel_selfattn"}, "shaw_rel_selfattn is not supported"),
    ({"encoder_conf__layer_norm_type": "rms_norm"}, "encoder_conf.layer_norm_type rms_norm is not supported"),
    ({"encoder_conf__mlp_type": "moe"}, "encoder_conf.mlp_type moe is not supported"),
    ({"encoder_conf__n_kv_head": 2}, "encoder_conf.n_kv_head 2 is not supported"),
    ({"encoder_conf__concat_after": True}, "encoder_conf.concat_after True is not supported"),
    ({"decoder_conf__src_attention": False}, "decoder_conf.src_attention False is not supported"),
    ({"decoder_conf__activation_type": "selu"}, "decoder_conf.activation_type selu is not supported"),
    ({"dataset_conf__feats_type": "log_mel_spectrogram"}, "feats_type log_mel_spectrogram is not supported"),
    (
        {"collate_conf": {"feature_extraction_conf": {"using_pitch": True}}},
        "feature_extraction_conf.using_pitch True is not supported",
    ),
]


@pytest.mark.parametrize(("changes", "message"), VARIANTS)
def test_variants_are_refused_by_name(folder: Folder, read: Callable, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(CheckpointError) as refused:
        read(folder(**changes))
    assert message in str(refused.value)


def test_adapters_are_refused_with_the_way_out(folder: Folder, read: Callable) -> None:
    adapter = {"encoder.encoders.0.self_attn.linear_q.lora_A": torch.zeros(8, 80)}
    with pytest.raises(CheckpointError, match="LoRA adapters: merge them"):
        read(rewrite(folder(), lambda state: state | adapter))


def test_weights_of_something_else_are_refused(folder: Folder, read: Callable) -> None:
    with pytest.raises(CheckpointError, match="not those of a complete WeNet Conformer"):
        read(rewrite(folder(), lambda state: {"encoder.weight": torch.zeros(2, 2)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_conf": "large"}, "encoder_conf: "),
        ({"encoder_conf__causal": "perhaps"}, "encoder_conf.causal: "),
        ({"decoder_conf__attention_heads": 0}, "decoder_conf.attention_heads: "),
        ({"tokenizer_conf__special_tokens": {"<sos>": "x"}}, "tokenizer_conf.special_tokens.<sos>: "),
        ({"model_conf__reverse_weight": 3}, "model_conf.reverse_weight: "),
    ],
)
def test_settings_of_another_kind_are_named(
    folder: Folder, read: Callable, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(CheckpointError) as refused:
        read(folder(**changes))
    assert message in str(refused.value)


def test_a_missing_table_of_symbols_is_named(folder: Folder, read: Callable) -> None:
    path = folder()
    (path / "units.txt").unlink()
    with pytest.raises(CheckpointError, match=r"the table of symbols \(units.txt or words.txt\).* is missing"):
        read(path)


def test_a_table_of_another_model_is_named(folder: Folder, read: Callable) -> None:
    path = folder()
    with (path / "units.txt").open("a") as file:
        file.write("q 29\n")
    with pytest.raises(CheckpointError, match=r"units\.txt has 30 symbols, the weights have 29"):
        read(path)


def test_the_namings_known_are_listed(registry: Registry) -> None:
    with pytest.raises(CheckpointError, match="known are wenet"):
        registry.load(Kind.ARCHITECTURE, "conformer").rename("esperanto")
