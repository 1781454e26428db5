"""Laws of autoregressive heads, part of the suite of architectures."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest
import torch

from oasr.errors import RequestError
from oasr.interfaces.architecture import Architecture, EncoderOutput
from oasr.interfaces.heads import AutoregressiveHead
from oasr.interfaces.tokenizer import Tokenizer
from oasr.testing.heads import HeadRows
from oasr.types import DecodingOptions

Encode = Callable[[Sequence[torch.Tensor]], EncoderOutput]
"""Waveforms to encoder frames."""
Prompts = Callable[[int], tuple[int, ...]]
"""The head's own prompt and so many tokens of text."""
TEXTS: tuple[list[str], ...] = ([], ["prompt"], ["hotwords"], ["prompt", "hotwords"])
"""Options that take a text of any length, together."""


class AutoregressiveLaws:
    """The cache never changes what is computed, and neither do the rows beside. Skipped without such a head."""

    tolerance: ClassVar[float] = 2e-5
    """Largest difference of float32 results, relative to their largest value."""

    @pytest.fixture
    def head(self, model: Architecture) -> AutoregressiveHead:
        """The head."""
        if "autoregressive" not in model.facts.heads:
            pytest.skip("it has no autoregressive head")
        head: AutoregressiveHead = model.head("autoregressive")
        return head

    @pytest.fixture
    def prompt(self, head: AutoregressiveHead, model: Architecture, tokenizer: Tokenizer) -> Prompts:
        """Writes prompts."""
        language = next(iter(model.facts.languages), None)
        own = head.prompt(DecodingOptions(), language, (), tokenizer).tokens
        return lambda extra: (*own, *(7 * index % model.facts.text_tokens for index in range(1, extra + 1)))

    @torch.inference_mode()
    def test_a_prompt_read_at_once_or_token_by_token_is_the_same(
        self, model: Architecture, prompt: Prompts, encode: Encode, waveforms: list[torch.Tensor]
    ) -> None:
        encoded = encode(waveforms[:1])
        expected = HeadRows(model, 1).prefill([prompt(5)], encoded)
        rows = HeadRows(model, 1)
        rows.prefill([prompt(0)], encoded)
        logits = [rows.step([token]) for token in prompt(5)[-5:]]
        self._assert_close(logits[-1], expected)

    @torch.inference_mode()
    def test_prompts_of_neighbours_do_not_matter(
        self, model: Architecture, prompt: Prompts, encode: Encode, waveforms: list[torch.Tensor]
    ) -> None:
        prompts = [prompt(extra) for extra in (0, 6, 2)]
        together = HeadRows(model, 3).prefill(prompts, encode(waveforms[:3]))
        for row in range(3):
            one = slice(row, row + 1)
            alone = HeadRows(model, 1).prefill(prompts[one], _rows(encode(waveforms[:3]), one))
            self._assert_close(alone[0], together[row])

    @torch.inference_mode()
    def test_steps_of_neighbours_do_not_matter(
        self, model: Architecture, prompt: Prompts, encode: Encode, waveforms: list[torch.Tensor]
    ) -> None:
        encoded = encode(waveforms[:3])
        together = HeadRows(model, 3)
        together.prefill([prompt(extra) for extra in (0, 6, 2)], encoded)
        alone = HeadRows(model, 1)
        alone.prefill([prompt(6)], _rows(encoded, slice(1, 2)))
        for token in range(4):
            self._assert_close(alone.step([token])[0], together.step([7, token, 3])[1])

    @torch.inference_mode()
    def test_the_audio_matters(
        self, model: Architecture, prompt: Prompts, encode: Encode, waveforms: list[torch.Tensor]
    ) -> None:
        logits = HeadRows(model, 2).prefill([prompt(0)] * 2, encode(waveforms[:2]))
        assert not torch.equal(logits[0], logits[1])

    @torch.inference_mode()
    def test_logits_are_float32_and_finite(
        self, model: Architecture, prompt: Prompts, encode: Encode, waveforms: list[torch.Tensor]
    ) -> None:
        rows = HeadRows(model, 1)
        logits = rows.prefill([prompt(0)], encode(waveforms[:1]))
        assert logits.dtype == torch.float32
        assert logits.shape == (1, rows.head.vocabulary_size)
        assert logits.isfinite().all()

    @pytest.mark.parametrize("words", [1, 2000])
    @pytest.mark.parametrize("options", TEXTS)
    def test_prompt_and_text_fit_the_cache(
        self,
        head: AutoregressiveHead,
        model: Architecture,
        tokenizer: Tokenizer,
        options: Sequence[str],
        words: int,
    ) -> None:
        language = next(iter(model.facts.languages), None)
        prompt = head.prompt(_asking(head, options, "word " * words), language, (), tokenizer)
        assert prompt.max_new_tokens >= 1
        assert len(prompt.tokens) + prompt.max_new_tokens <= head.cache_layout.paged.max_tokens

    @pytest.mark.parametrize("option", ["prompt", "hotwords", "prefix"])
    def test_texts_to_expect_are_honoured_or_refused_by_name(
        self, head: AutoregressiveHead, model: Architecture, tokenizer: Tokenizer, option: str
    ) -> None:
        language = next(iter(model.facts.languages), None)
        plain = head.prompt(DecodingOptions(), language, (), tokenizer)
        asked = head.prompt(_asking(head, [option], "word"), language, (), tokenizer)
        # A prefix may also be a rule.
        assert asked.tokens != plain.tokens or (option == "prefix" and asked.rules != plain.rules), "it is ignored"

    def test_the_end_is_a_control_token(
        self, head: AutoregressiveHead, model: Architecture, tokenizer: Tokenizer
    ) -> None:
        prompt = head.prompt(DecodingOptions(), next(iter(model.facts.languages), None), (), tokenizer)
        assert model.facts.text_tokens <= prompt.end_token < head.vocabulary_size

    def test_language_tokens_are_those_of_the_facts(self, head: AutoregressiveHead, model: Architecture) -> None:
        if not head.language_prompt:
            pytest.skip("it does not name languages")
        assert set(head.language_tokens) == set(model.facts.languages)
        assert all(0 <= token < head.vocabulary_size for token in head.language_tokens.values())

    def _assert_close(self, one: torch.Tensor, other: torch.Tensor) -> None:
        scale = float(other.abs().max().clamp(min=1.0)) if other.numel() else 1.0
        torch.testing.assert_close(one, other, atol=self.tolerance * scale, rtol=0)


def _asking(head: AutoregressiveHead, names: Sequence[str], text: str) -> DecodingOptions:
    """Options with a text for each name; the test is skipped where the head refuses one by its name."""
    texts = {name: (text,) if name == "hotwords" else text for name in names}
    options = replace(DecodingOptions(), **texts)  # type: ignore[arg-type]
    try:
        head.check(options)
    except RequestError as error:
        refusal = str(error)
    else:
        return options
    assert any(name in refusal for name in names), f"it refuses without a name: {refusal}"
    pytest.skip(refusal)


def _rows(encoded: EncoderOutput, rows: slice) -> EncoderOutput:
    return EncoderOutput(encoded.frames[rows], encoded.lengths[rows])
