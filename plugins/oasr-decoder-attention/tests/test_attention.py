"""The search keeps the laws of searches, and greedy means the arg-max whatever was said before."""

import pytest
import torch

from oasr.interfaces.decoder import LabelSynchronousDecoder
from oasr.testing import DecoderSuite, PluginSuite
from oasr.types import DecodingOptions


class TestPlugin(PluginSuite):
    plugin = "oasr_decoder_attention.plugin"


class TestAttention(DecoderSuite):
    component = "attention"

    def test_greedy_is_the_arg_max_whatever_was_said(
        self, decoder: LabelSynchronousDecoder, device: torch.device
    ) -> None:
        logits = torch.randn(64, 50, generator=torch.Generator().manual_seed(0)).to(device)
        said = logits.argmax(dim=-1)[:, None].repeat(1, 9)
        tokens = decoder.advance(logits, said, torch.full((64,), 9, device=device), [None] * 64)
        assert torch.equal(tokens, logits.argmax(dim=-1))

    def test_equal_logits_take_the_first_token(self, decoder: LabelSynchronousDecoder, device: torch.device) -> None:
        empty = torch.zeros(2, 0, dtype=torch.int64, device=device)
        counts = torch.zeros(2, dtype=torch.int64, device=device)
        assert decoder.advance(torch.zeros(2, 9, device=device), empty, counts, [None] * 2).tolist() == [0, 0]

    @pytest.mark.parametrize("temperature", [0.2, 1.0, 5.0])
    def test_a_forbidden_token_is_never_drawn(
        self, decoder: LabelSynchronousDecoder, device: torch.device, temperature: float
    ) -> None:
        logits = torch.full((200, 4), -torch.inf, device=device)
        logits[:, 1:3] = 0.0
        states = [decoder.start(DecodingOptions(temperature=temperature, seed=seed), device) for seed in range(200)]
        empty = torch.zeros(200, 1, dtype=torch.int64, device=device)
        tokens = decoder.advance(logits, empty, torch.zeros(200, dtype=torch.int64, device=device), states)
        assert set(tokens.tolist()) == {1, 2}
