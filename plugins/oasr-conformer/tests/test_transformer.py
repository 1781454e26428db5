"""WeNet's Transformer encoder and decoders, with norms before and after layers, compute what PyTorch's layers do."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import nn

from oasr.checkpoint.load import load
from oasr.checkpoint.sniff import open_checkpoint
from oasr.interfaces.architecture import Architecture
from oasr.interfaces.frontend import FeatureBatch
from oasr.registry import default_registry
from oasr.testing.streams import StreamRows, new_stream
from oasr.testing.weights import randomize

WIDTH, HEADS, HIDDEN, VOCABULARY, END = 24, 3, 40, 11, 10
FRAMES = 70


class Reference(nn.Module):
    """The same network of PyTorch's own layers."""

    def __init__(self, norm_first: bool):
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
        self.norm_first = norm_first
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, WIDTH, 3, 2), nn.ReLU(), nn.Conv2d(WIDTH, WIDTH, 3, 2), nn.ReLU()
        )
        self.out = nn.Linear(WIDTH * 19, WIDTH)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, **options) for _ in range(2))
        self.encoder_norm = nn.LayerNorm(WIDTH)
        self.ctc = nn.Linear(WIDTH, VOCABULARY)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(WIDTH, HEADS, HIDDEN, **options) for _ in range(2))
        self.decoder_norm = nn.LayerNorm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def encode(self, features: torch.Tensor) -> torch.Tensor:
        x = self.convolutions(features[None, None])
        x = positioned(self.out(x.transpose(1, 2).flatten(2)))
        for layer in self.encoder:
            x = layer(x)
        return self.encoder_norm(x) if self.norm_first else x

    def score(self, frames: torch.Tensor, tokens: list[int]) -> torch.Tensor:
        x = positioned(self.tokens(torch.tensor([[END, *tokens]])))
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        for layer in self.decoder:
            x = layer(x, frames, tgt_mask=mask)
        logits = self.output(self.decoder_norm(x) if self.norm_first else x)[0]
        return -nn.functional.cross_entropy(logits, torch.tensor([*tokens, END]), reduction="sum")


def positioned(x: torch.Tensor) -> torch.Tensor:
    """x (1, time, width) scaled, with a sine and a cosine by turns added."""
    table = torch.empty(x.shape[1:], dtype=torch.float64)
    for place in range(x.shape[1]):
        for pair in range(WIDTH // 2):
            angle = torch.tensor(place / 10_000 ** (2 * pair / WIDTH), dtype=torch.float64)
            table[place, 2 * pair], table[place, 2 * pair + 1] = angle.sin(), angle.cos()
    return x * WIDTH**0.5 + table.float()


def wenet_state(reference: Reference) -> dict[str, torch.Tensor]:
    """Its weights under WeNet's names."""
    state = {f"encoder.embed.conv.{name}": value for name, value in reference.convolutions.state_dict().items()}
    state |= named("encoder.embed.out.0", reference.out) | named("encoder.after_norm", reference.encoder_norm)
    state |= named("ctc.ctc_lo", reference.ctc) | named("decoder.embed.0", reference.tokens)
    state |= named("decoder.after_norm", reference.decoder_norm) | named("decoder.output_layer", reference.output)
    for side, layers in (("encoder.encoders", reference.encoder), ("decoder.decoders", reference.decoder)):
        for number, layer in enumerate(layers):
            prefix = f"{side}.{number}"
            state |= attention(f"{prefix}.self_attn", layer.self_attn)
            if side.startswith("decoder"):
                state |= attention(f"{prefix}.src_attn", layer.multihead_attn) | named(f"{prefix}.norm3", layer.norm3)
            state |= named(f"{prefix}.norm1", layer.norm1) | named(f"{prefix}.norm2", layer.norm2)
            state |= named(f"{prefix}.feed_forward.w_1", layer.linear1)
            state |= named(f"{prefix}.feed_forward.w_2", layer.linear2)
    return state


def named(prefix: str, module: nn.Module) -> dict[str, torch.Tensor]:
    return {f"{prefix}.{leaf}": value for leaf, value in module.state_dict().items()}


def attention(prefix: str, module: nn.MultiheadAttention) -> dict[str, torch.Tensor]:
    parts = zip("qkv", module.in_proj_weight.detach().chunk(3), module.in_proj_bias.detach().chunk(3), strict=True)
    projections = {f"{prefix}.linear_{x}.{leaf}": v for x, w, b in parts for leaf, v in (("weight", w), ("bias", b))}
    return projections | named(f"{prefix}.linear_out", module.out_proj)


@pytest.fixture(params=[True, False], ids=["norms-before", "norms-after"])
def reference(request: pytest.FixtureRequest) -> Reference:
    reference = Reference(request.param).eval()
    randomize(reference)
    return reference


@pytest.fixture
def model(reference: Reference, tmp_path: Path) -> Architecture:
    torch.save(wenet_state(reference), tmp_path / "final.pt")
    (tmp_path / "units.txt").write_text("".join(f"s{number} {number}\n" for number in range(VOCABULARY)))
    config: dict[str, Any] = {
        "encoder": "transformer",
        "encoder_conf": {
            "attention_heads": HEADS,
            "normalize_before": reference.norm_first,
            "static_chunk_size": 0,
            "use_dynamic_chunk": True,
        },
        "decoder": "transformer",
        "decoder_conf": {"attention_heads": HEADS, "normalize_before": reference.norm_first},
    }
    (tmp_path / "train.yaml").write_text(yaml.safe_dump(config))
    registry = default_registry()
    return load(open_checkpoint(tmp_path, registry), registry, torch.float32, "cpu")


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.inference_mode():
        yield


@pytest.fixture
def features() -> torch.Tensor:
    return torch.randn(FRAMES, 80, generator=torch.Generator().manual_seed(1))


def batch(*rows: torch.Tensor) -> FeatureBatch:
    padded = nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=3.0)
    return FeatureBatch(padded, torch.tensor([len(row) for row in rows]))


def test_the_encoder(model: Architecture, reference: Reference, features: torch.Tensor) -> None:
    together = model.encode(batch(features, features[:30]))
    for row, clip in enumerate((features, features[:30])):
        expected = reference.encode(clip)[0]
        assert together.lengths[row] == len(expected)
        torch.testing.assert_close(together.frames[row, : len(expected)], expected, atol=1e-5, rtol=1e-5)


def test_scores(model: Architecture, reference: Reference, features: torch.Tensor) -> None:
    frames = reference.encode(features)
    hypotheses = [[1, 2, 3, 3, 7], [], [9]]
    scores, reverse = model.head("rescoring").score(model.encode(batch(features)), [hypotheses])
    assert reverse is None
    expected = torch.stack([reference.score(frames, tokens) for tokens in hypotheses])
    torch.testing.assert_close(scores[0], expected, atol=1e-4, rtol=1e-5)


def test_ctc(model: Architecture, reference: Reference, features: torch.Tensor) -> None:
    log_probs = model.head("ctc").log_probs(model.encode(batch(features)).frames)
    expected = reference.ctc(reference.encode(features)).log_softmax(dim=-1)
    torch.testing.assert_close(log_probs, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("left", [0, 4, None])
def test_it_streams(model: Architecture, features: torch.Tensor, left: int | None) -> None:
    encoder = model.streaming(3, left)
    stream, chunks = new_stream(encoder.layout), []
    for start in range(0, FRAMES - encoder.shape.least + 1, encoder.shape.hop):
        window = features[start : start + encoder.shape.window]
        chunks.append(encoder.encode_chunk(batch(window), StreamRows([stream])).frames[0])
        stream.age += len(chunks[-1])
    whole = encoder.encode_whole(batch(features)).frames[0]
    torch.testing.assert_close(torch.cat(chunks), whole, atol=1e-5, rtol=1e-5)
