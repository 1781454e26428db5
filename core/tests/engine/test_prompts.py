"""Texts that a request brings along reach the windows they are meant for, however many are read at once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch

from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions
from oasr.errors import RequestError
from oasr.interfaces.heads import Prompt
from oasr.interfaces.logits_rule import LogitsRule
from oasr.interfaces.tokenizer import Tokenizer
from oasr.plugin import Kind
from oasr.testing.toys.config import END
from oasr.testing.toys.model import ToyArchitecture, ToyHead
from oasr.types import Transcript

from .conftest import GERMAN, MakeEngine, speech


class Spell(LogitsRule):
    """Writes a word, and ends."""

    def __init__(self, word: str):
        self._ids = torch.tensor([*word.encode(), END])

    def apply(self, logits: torch.Tensor, generated: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        next_ids = self._ids.to(logits.device)[counts.clamp(max=len(self._ids) - 1)]
        return torch.full_like(logits, -torch.inf).scatter_(1, next_ids[:, None], 0.0)


class ObedientHead(ToyHead):
    """Says its texts, to tell which it was given: hotwords, prompt, prefix and context as `h+p+x+c`."""

    def check(self, options: DecodingOptions) -> None:
        super().check(replace(options, hotwords=(), prefix=None))

    def prompt(
        self, options: DecodingOptions, language: str | None, context: Sequence[int], tokenizer: Tokenizer
    ) -> Prompt:
        given = [*options.hotwords, options.prompt, options.prefix, "c" if context else None]
        plain = super().prompt(replace(options, prompt=None, carry_prompt=False), language, (), tokenizer)
        return replace(plain, rules=(Spell("+".join(filter(None, given)) or "none"),))


class Obedient(ToyArchitecture):
    def head(self, name: str) -> ToyHead:
        return ObedientHead(self)


MakeObedient = Callable[[int], ASREngine]


@pytest.fixture
def make_obedient(make_engine: MakeEngine) -> MakeObedient:
    return lambda rows: make_engine(rows=rows, components={(Kind.ARCHITECTURE, "toy"): Obedient})


def said(transcript: Transcript) -> list[str]:
    return [segment.text for segment in transcript.segments]


LONG = speech(7, seconds=3.3)
"""Four windows."""


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("conditioned", [False, True])
def test_every_window_has_the_hotwords(make_obedient: MakeObedient, rows: int, conditioned: bool) -> None:
    options = replace(GERMAN, hotwords=("h",), condition_on_previous=conditioned)
    first, *others = said(make_obedient(rows).transcribe(LONG, options))
    assert first == "h"
    assert others == ["h+c" if conditioned else "h"] * 3


@pytest.mark.parametrize("rows", [1, 4])
def test_a_prompt_and_a_prefix_belong_to_the_first_window(make_obedient: MakeObedient, rows: int) -> None:
    options = replace(GERMAN, prompt="p", prefix="x")
    assert said(make_obedient(rows).transcribe(LONG, options)) == ["p+x", "none", "none", "none"]


@pytest.mark.parametrize("rows", [1, 4])
def test_a_prompt_that_is_carried_along_is_in_every_window(make_obedient: MakeObedient, rows: int) -> None:
    options = replace(GERMAN, prompt="p", carry_prompt=True)
    assert said(make_obedient(rows).transcribe(LONG, options)) == ["p"] * 4


def test_a_prompt_is_part_of_the_context_until_that_is_dropped(make_obedient: MakeObedient) -> None:
    options = replace(GERMAN, prompt="p", condition_on_previous=True)
    assert said(make_obedient(1).transcribe(LONG, options)) == ["p", "p+c", "p+c", "p+c"]


@pytest.fixture
def silent_first(make_obedient: MakeObedient, monkeypatch: pytest.MonkeyPatch) -> ASREngine:
    """Hears nobody in the first window."""
    engine = make_obedient(1)
    advance = engine._runner.advance

    def heard() -> list:
        return [
            (window, replace(decoded, silence=0.0 if window.start_samples else 0.9)) for window, decoded in advance()
        ]

    monkeypatch.setattr(engine._runner, "advance", heard)
    return engine


def test_texts_wait_for_the_first_window_with_speech(silent_first: ASREngine) -> None:
    options = replace(GERMAN, prompt="p", prefix="x", condition_on_previous=True)
    quiet = Audio(torch.cat([torch.zeros(16_000), LONG.samples]), 16_000, "late")
    assert said(silent_first.transcribe(quiet, options)) == ["p+x", "p+c", "p+c", "p+c"]


def test_a_window_that_is_read_again_keeps_its_texts(
    make_obedient: MakeObedient, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_obedient(1)
    options = replace(GERMAN, prompt="p", prefix="x", fallback=(0.2,), least_logprob=1.0)  # nothing is as probable
    monkeypatch.setattr(engine._parts.decoder, "check", lambda options: None)
    result = engine.transcribe(LONG, options)
    assert said(result)[0] == "p+x"
    assert result.segments[0].temperature == 0.2


def test_a_transcript_knows_its_task(engine: ASREngine) -> None:
    assert engine.transcribe(speech(1), GERMAN).task == "transcribe"


@pytest.mark.parametrize(
    "options", [DecodingOptions(hotwords=("h",)), DecodingOptions(prefix="x")], ids=["hotwords", "prefix"]
)
def test_a_model_that_cannot_honour_a_text_refuses_it_by_name(engine: ASREngine, options: DecodingOptions) -> None:
    with pytest.raises(RequestError, match=r"cannot honour (hotwords|prefix)"):
        engine.transcribe(speech(1), options)


def test_what_is_read_at_once_has_no_text_before_it(make_engine: MakeEngine) -> None:
    with pytest.raises(RequestError, match="condition_on_previous: what a detector finds is read at once"):
        make_engine(detector="energy").transcribe(speech(1), replace(GERMAN, condition_on_previous=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"hotwords": "Kaldi"}, "hotwords must be a list"),
        ({"hotwords": ("Kaldi", " ")}, "none of them empty"),
        ({"hotwords": (7,)}, "hotwords must be a list"),
        ({"hotwords": ("\udcff",)}, "hotwords must be a list"),
        ({"prefix": 7}, "prefix must be text"),
        ({"prefix": "\udcff"}, "prefix must be text"),
        ({"carry_prompt": True}, "carry_prompt needs a prompt"),
        ({"carry_prompt": True, "prompt": " "}, "carry_prompt needs a prompt"),
        ({"carry_prompt": "yes", "prompt": "p"}, "carry_prompt must be True or False"),
    ],
)
def test_texts_that_are_none_are_refused(wrong: dict, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        DecodingOptions(**wrong)


def test_hotwords_may_be_a_list() -> None:
    assert DecodingOptions(hotwords=["a", "b"]).hotwords == ("a", "b")
