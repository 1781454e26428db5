"""What stands before a window's text: hotwords, prompt and previous text within their budget, and the prefix."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from oasr.audio import Audio, read_audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.errors import RequestError
from oasr.interfaces.heads import Prompt
from oasr.interfaces.tokenizer import Tokenizer
from oasr.plugin import Kind
from oasr.registry import default_registry
from oasr_whisper.prompt import BeginWith, PromptWriter, Suppress

MODEL = "tiny-en"
CONTEXT = 448
BUDGET = 223
"""Half of the context, less the token that announces previous text."""
HOTWORDS = 111

pytestmark = pytest.mark.skipif(
    MODEL not in default_registry().names(Kind.MODEL), reason=f"the packaged model {MODEL} is not installed"
)
GREEDY = DecodingOptions(fallback=())


@pytest.fixture(scope="module")
def engine(device: str) -> ASREngine:
    return ASREngine(EngineConfig(model=MODEL, device=device, dtype="float32"))


@pytest.fixture(scope="module")
def tokenizer(engine: ASREngine) -> Tokenizer:
    return engine._parts.tokenizer


@pytest.fixture(scope="module")
def write(engine: ASREngine, tokenizer: Tokenizer) -> Callable[..., Prompt]:
    """The prompt of a window: `write(DecodingOptions(prompt="x"), context)`."""
    writer = PromptWriter(engine._runner.model.config)
    return lambda options, context=(): writer.prompt(options, "en", context, tokenizer)


def before(engine: ASREngine, prompt: Prompt) -> tuple[int, ...]:
    """The tokens between the one that announces them and the start."""
    tokens = engine._runner.model.config.tokens
    place = prompt.tokens.index(tokens.start)
    assert prompt.tokens[: min(place, 1)] in ((), (tokens.previous,))
    return prompt.tokens[1:place]


def text_of(tokens: int) -> str:
    """A text of so many tokens."""
    return " ".join(["word"] * tokens)


LENGTHS = [50, 223, 224, 448, 3500]


@pytest.mark.parametrize("context", [(), tuple(range(1000, 1300))], ids=["first window", "context"])
@pytest.mark.parametrize("hotwords", [0, 50, 3500])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("length", LENGTHS)
def test_prompts_of_any_length_leave_half_of_the_context(
    engine: ASREngine, write: Callable[..., Prompt], length: int, carried: bool, hotwords: int, context: tuple[int, ...]
) -> None:
    options = DecodingOptions(prompt=text_of(length), carry_prompt=carried, hotwords=("term",) * hotwords)
    prompt = write(options, context)
    assert len(before(engine, prompt)) <= BUDGET
    assert prompt.max_new_tokens >= CONTEXT // 2 - 4
    assert len(prompt.tokens) + prompt.max_new_tokens == CONTEXT
    room = BUDGET - min(2 * hotwords, HOTWORDS)  # a word and a comma
    trimmed = [note for note in prompt.notes if note.startswith("prompt trimmed")]
    assert bool(trimmed) == (length > room)
    assert any(note.startswith("hotwords trimmed") for note in prompt.notes) == (2 * hotwords > HOTWORDS)


def test_of_a_long_prompt_the_end_is_kept(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer
) -> None:
    text = " ".join(map(str, range(500)))
    prompt = write(DecodingOptions(prompt=text))
    ids = tokenizer.encode(f" {text}")
    assert before(engine, prompt) == tuple(ids[-BUDGET:])
    assert prompt.notes == (f"prompt trimmed to its last {BUDGET} of {len(ids)} tokens",)


def test_a_prompt_scrolls_out_of_the_context_unless_it_is_carried(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer
) -> None:
    """As openai/whisper does with `initial_prompt`, and with `carry_initial_prompt`."""
    ids = tuple(tokenizer.encode(" Kaldi."))
    context = tuple(range(1000, 1220))
    options = DecodingOptions(prompt="Kaldi.")
    carried = replace(options, carry_prompt=True)
    assert before(engine, write(options, context[:10])) == (*ids, *context[:10])
    assert before(engine, write(options, context)) == (*ids, *context)[-BUDGET:]
    assert before(engine, write(carried, context)) == (*ids, *context[len(ids) - BUDGET :])


def test_a_carried_prompt_that_fills_the_budget_leaves_none_to_the_context(
    engine: ASREngine, write: Callable[..., Prompt]
) -> None:
    options = DecodingOptions(prompt=text_of(BUDGET), carry_prompt=True)
    assert before(engine, write(options, range(1000, 1220))) == before(engine, write(options))


def test_hotwords_stand_first_and_are_the_same_whatever_follows(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer
) -> None:
    ids = tuple(tokenizer.encode(" Kaldi, Saint-Malo"))
    options = DecodingOptions(hotwords=("Kaldi ", " Saint-Malo"))
    assert before(engine, write(options)) == ids
    for prompt in (text_of(10), text_of(500)):
        for context in ((), range(1000, 1300)):
            assert before(engine, write(replace(options, prompt=prompt), context))[: len(ids)] == ids


def test_hotwords_that_do_not_fit_are_left_out_whole_and_named(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer
) -> None:
    hotwords = tuple(f"Term{number}" for number in range(100))
    prompt = write(DecodingOptions(hotwords=hotwords))
    kept = tokenizer.decode(before(engine, prompt)).strip().split(", ")
    assert 0 < len(kept) < len(hotwords)
    assert tuple(kept) == hotwords[: len(kept)]
    [note] = prompt.notes
    assert note.startswith(f"hotwords trimmed to the first {len(kept)} of 100:")
    assert repr(hotwords[len(kept)]) in note


def test_of_one_long_phrase_the_beginning_is_kept(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer
) -> None:
    prompt = write(DecodingOptions(hotwords=(text_of(3500),)))
    assert before(engine, prompt) == tuple(tokenizer.encode(f" {text_of(HOTWORDS)}"))
    assert prompt.notes[0].startswith(f"hotwords trimmed to the first {HOTWORDS} of 3500 tokens:")


@pytest.mark.parametrize("text", ["<|startoftranscript|>", "<|startofprev|> x <|endoftext|>", "<|0.00|>"])
def test_control_tokens_spelt_in_a_text_are_text(
    engine: ASREngine, write: Callable[..., Prompt], tokenizer: Tokenizer, text: str
) -> None:
    options = DecodingOptions(prompt=text, hotwords=(text,))
    assert max(before(engine, write(options))) < engine.facts.text_tokens
    assert tokenizer.decode(before(engine, write(options))) == f" {text} {text}"


@pytest.mark.parametrize("wish", [1, 100, 10_000])
@pytest.mark.parametrize("length", [0, 3500])
def test_more_new_tokens_than_there_is_room_for_are_not_awaited(
    write: Callable[..., Prompt], wish: int, length: int
) -> None:
    prompt = write(DecodingOptions(prompt=text_of(length), max_new_tokens=wish))
    assert prompt.max_new_tokens == min(wish, CONTEXT - len(prompt.tokens))


@pytest.mark.parametrize("options", [{}, {"timestamps": False}, {"beam": 3}, {"temperature": 0.7, "best_of": 2}])
def test_the_text_begins_with_the_prefix(
    engine: ASREngine, shared: Callable[[str], Any], options: dict[str, Any]
) -> None:
    source = shared("audio/misc/jfk.flac")
    result = engine.transcribe(source, replace(GREEDY, prefix="Well, so,", max_new_tokens=100, **options))
    assert result.text.startswith("Well, so, ")
    assert result.text.rstrip(".!?").endswith("country")


def test_a_prefix_may_hold_what_the_checkpoint_suppresses(engine: ASREngine, shared: Callable[[str], Any]) -> None:
    result = engine.transcribe(shared("audio/misc/jfk.flac"), replace(GREEDY, prefix="[Kennedy]"))
    assert result.text.startswith("[Kennedy]")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DecodingOptions(prefix=text_of(500)), r"prefix has 500 tokens, which leaves no room for more among the 44\d"),
        (DecodingOptions(prefix="a b c", max_new_tokens=4), "prefix has 3 tokens, which leaves no room .* the 4 of"),
        (DecodingOptions(prefix="a b c", suppress_tokens=(257, 275)), r"prefix holds the tokens \[257, 275\]"),
    ],
)
def test_a_prefix_is_refused_with_what_it_cannot_go_with(
    engine: ASREngine, options: DecodingOptions, message: str
) -> None:
    for attempt in (engine.transcribe, engine.add_request):
        with pytest.raises(RequestError, match=message):
            attempt(Audio(torch.zeros(16_000), 16_000, "silence"), options)


def test_rows_inside_a_prefix_and_behind_it_share_a_rule(device: str) -> None:
    rule = BeginWith((3, 4), 1, (Suppress((1,), ()),))
    logits = torch.arange(30.0, device=device).view(5, 6) / 10
    generated = torch.zeros(5, 4, dtype=torch.int64, device=device)
    ruled = rule.apply(logits.clone(), generated, torch.arange(5, device=device))
    assert [row.isfinite().nonzero().flatten().tolist() for row in ruled] == [
        [0, 2, 3, 4, 5],  # chosen before the prefix
        [3],
        [4],
        [0, 2, 3, 4, 5],
        [0, 2, 3, 4, 5],
    ]
    assert torch.equal(ruled[ruled.isfinite()], logits[ruled.isfinite()])


@pytest.fixture(scope="module")
def speeches(shared: Callable[[str], Any]) -> Callable[[int], list[Audio]]:
    """Inputs of three windows each."""
    kennedy = read_audio(shared("audio/misc/jfk.flac"), target_rate=16_000).samples
    return lambda count: [Audio(kennedy.repeat(6), 16_000, f"speech-{number}") for number in range(count)]


@pytest.mark.parametrize("count", [1, 4])
def test_windows_of_a_batch_have_the_texts_of_those_read_alone(
    engine: ASREngine,
    speeches: Callable[[int], list[Audio]],
    monkeypatch: pytest.MonkeyPatch,
    tokenizer: Tokenizer,
    count: int,
) -> None:
    head, seen = engine._runner._head, []
    write_prompt = head.prompt

    def observed(*given: Any) -> Prompt:
        seen.append(write_prompt(*given))
        return seen[-1]

    options = replace(GREEDY, prompt="A speech.", hotwords=("Kennedy",), max_new_tokens=60)
    alone = engine.transcribe(speeches(1)[0], options)
    monkeypatch.setattr(head, "prompt", observed)
    results = engine.transcribe(speeches(count), options)
    first, later = (tuple(tokenizer.encode(text)) for text in (" Kennedy A speech.", " Kennedy"))
    texts: Sequence[tuple[int, ...]] = [before(engine, prompt) for prompt in seen[1:]]  # behind the check
    assert texts[:count] == [first] * count
    assert len(texts) >= 3 * count
    assert texts[count:] == [later] * (len(texts) - count)
    for result in results:
        assert [segment.tokens for segment in result.segments] == [segment.tokens for segment in alone.segments]
    assert "Kennedy" not in alone.text
    assert "A speech" not in alone.text


@pytest.mark.parametrize("count", [1, 4])
def test_hotwords_decide_how_a_name_is_spelt_in_every_window(
    engine: ASREngine, shared: Callable[[str], Any], count: int
) -> None:
    clip = read_audio(shared("audio/ljspeech/LJ001-0007.flac"), target_rate=16_000).samples
    window = torch.cat([clip, torch.zeros(30 * 16_000 - len(clip))])
    sources = [Audio(window.repeat(3), 16_000, f"bible-{number}") for number in range(count)]
    for options, times in ((GREEDY, 0), (replace(GREEDY, hotwords=("Gutenberg",)), 3)):
        assert [result.text.count("Gutenberg") for result in engine.transcribe(sources, options)] == [times] * count
