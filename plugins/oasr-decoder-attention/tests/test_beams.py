"""Beams are what a search that remembers nothing between steps finds, whatever else is decoded beside."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import oasr_decoder_attention.plugin
from oasr.audio import Audio
from oasr.engine import ASREngine, DecodingOptions, EngineConfig
from oasr.errors import RequestError
from oasr.interfaces.heads import Prompt
from oasr.testing import sealed_registry
from oasr.testing.heads import HeadRows
from oasr.testing.toys import plugin as toys
from oasr.testing.toys.audio import toy_audio
from oasr.testing.toys.checkpoint import write_toy
from oasr.types import Transcript

RATE = 16_000
GERMAN = DecodingOptions(language="de", fallback=())
LONG = "a long story " * 3  # the text crosses into a second block of the cache
Hypotheses = list[tuple[tuple[int, ...], float]]
MakeEngine = Callable[[int], ASREngine]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy(tmp_path_factory.mktemp("toys") / "toy")


@pytest.fixture
def make_engine(toy: Path, device: str) -> Iterator[MakeEngine]:
    engines: list[ASREngine] = []

    def make(rows: int) -> ASREngine:
        registry = sealed_registry(toys, oasr_decoder_attention.plugin)
        settings = {"device": device, "dtype": "float32", "decoder": "attention", "batching": {"max_rows": rows}}
        config = EngineConfig.model_validate({"model": str(toy), **settings}, context={"registry": registry})
        engines.append(ASREngine(config, registry))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def engine(make_engine: MakeEngine) -> ASREngine:
    return make_engine(12)


def speech(seed: int, seconds: float = 0.6) -> Audio:
    return Audio(toy_audio(seed, seconds), RATE, f"speech-{seed}")


def found(result: Transcript) -> list[tuple[str, float]]:
    """Text and mean log-probability of what the search ended with."""
    [n_best] = result.n_best
    return [(each.text, pytest.approx(each.avg_logprob, abs=1e-4)) for each in n_best.alternatives]


@torch.inference_mode()
def searched(engine: ASREngine, audio: Audio, options: DecodingOptions) -> Hypotheses:
    """The hypotheses that end a beam search, the best first, and their mean log-probabilities.

    Every step reads every hypothesis anew from its first token.
    """
    runner = engine._runner
    head = runner.model.head("autoregressive")
    prompt = head.prompt(options, options.language, (), engine._parts.tokenizer)
    encoded = runner._encoder.encode([audio.samples])
    live: list[tuple[list[int], float]] = [([], 0.0)]
    ended: list[tuple[list[int], float]] = []
    wanted = round(options.beam * options.patience)
    while live and len(ended) < wanted and len(live[0][0]) < prompt.max_new_tokens:
        candidates = []
        for said, score in live:
            rows = HeadRows(runner.model, 1)
            logits = rows.prefill([[*prompt.tokens, *said]], encoded)
            log_probs = allowed(prompt, logits, said)[0] - logits.logsumexp(dim=-1)
            candidates += [([*said, token], score + float(log_probs[token])) for token in range(len(log_probs))]
        candidates.sort(key=lambda each: -each[1])
        live = []
        for said, score in candidates:
            if len(live) == options.beam or score == -torch.inf:
                break
            if said[-1] != prompt.end_token:
                live.append((said, score))
            elif len(ended) < wanted:
                ended.append((said, score))
    ended += live[: max(0, options.beam - len(ended))]
    ended.sort(key=lambda each: -each[1] / len(each[0]))
    return [(tuple(token for token in said if token != prompt.end_token), score / len(said)) for said, score in ended]


def allowed(prompt: Prompt, logits: torch.Tensor, said: list[int]) -> torch.Tensor:
    generated = torch.tensor([[*said, 0]], device=logits.device)
    counts = torch.tensor([len(said)], device=logits.device)
    for rule in prompt.rules:
        logits = rule.apply(logits.clone(), generated, counts)
    return logits


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(beam=3, n_best=3),
        DecodingOptions(beam=5, n_best=5),
        DecodingOptions(beam=5, n_best=5, patience=2.0),
        DecodingOptions(beam=4, n_best=4, patience=0.5),
        DecodingOptions(beam=4, n_best=4, prompt=LONG),
        DecodingOptions(beam=3, n_best=3, max_new_tokens=3),
    ],
)
def test_beams_are_those_of_a_search_without_a_cache(engine: ASREngine, options: DecodingOptions) -> None:
    options = replace(options, language="de", fallback=())
    audio = speech(1)
    expected: dict[str, float] = {}
    for tokens, score in searched(engine, audio, options):
        expected.setdefault(engine._parts.tokenizer.decode(list(tokens)).strip(), score)
    assert found(engine.transcribe(audio, options)) == list(expected.items())[: options.n_best]


def test_beams_of_a_batch_are_those_of_each_window_alone(make_engine: MakeEngine) -> None:
    options = replace(GERMAN, beam=3, n_best=3)
    sources = [speech(seed, seconds=0.2 + 0.1 * seed) for seed in range(7)]
    lonely, crowded = make_engine(3), make_engine(12)
    alone = [lonely.transcribe(source, options) for source in sources]
    for one, other in zip(crowded.transcribe(sources, options), alone, strict=True):
        assert one.text == other.text
        assert found(one) == found(other)


def test_requests_of_any_breadth_share_an_engine(make_engine: MakeEngine) -> None:
    wishes = [
        GERMAN,
        replace(GERMAN, beam=2),
        replace(GERMAN, beam=4, prompt=LONG),
        replace(GERMAN, temperature=0.7, best_of=3, seed=5),
        replace(GERMAN, temperature=0.7, seed=5),
    ]
    lonely, crowded = make_engine(4), make_engine(8)
    expected = [lonely.transcribe(speech(i), options).text for i, options in enumerate(wishes)]
    ids = [crowded.add_request(speech(i), options) for i, options in enumerate(wishes)]
    outcomes = crowded.run()
    assert [outcomes[each].transcript.text for each in ids] == expected


def test_a_beam_wider_than_the_batch_is_one_window(make_engine: MakeEngine) -> None:
    narrow, wide = make_engine(1), make_engine(8)
    options = replace(GERMAN, beam=6)
    sources = [speech(seed) for seed in range(3)]
    assert [each.text for each in narrow.transcribe(sources, options)] == [
        each.text for each in wide.transcribe(sources, options)
    ]


def test_the_best_of_many_draws_is_taken(engine: ASREngine) -> None:
    options = replace(GERMAN, temperature=1.0, best_of=5, n_best=5, seed=1)
    result = engine.transcribe(speech(1), options)
    [n_best] = result.n_best
    scores = [each.avg_logprob for each in n_best.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert len(scores) > 1
    assert n_best.alternatives[0].text == result.text
    assert (n_best.start, n_best.end) == (0.0, 0.6)


def test_a_seed_fixes_the_best_of_many_draws(engine: ASREngine) -> None:
    texts = [
        engine.transcribe(speech(1), replace(GERMAN, temperature=1.5, best_of=3, seed=seed)).text
        for seed in (1, 1, 2, 3, 4)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_a_length_penalty_prefers_longer_texts(engine: ASREngine) -> None:
    def length(penalty: float) -> int:
        options = replace(GERMAN, beam=5, patience=2.0, length_penalty=penalty)
        return sum(len(engine.transcribe(speech(seed), options).text) for seed in range(4))

    assert length(8.0) > length(0.0)


@pytest.mark.parametrize(
    "options", [{"length_penalty": float("inf")}, {"patience": float("inf")}, {"beam": 10**6}, {"best_of": 2**62}]
)
def test_a_search_beyond_all_measure_is_refused(options: dict) -> None:
    with pytest.raises(RequestError, match=next(iter(options))):
        DecodingOptions(**options)


def test_a_search_that_cannot_rank_fails_its_windows_alone(engine: ASREngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def rank(score: float, tokens: int, options: DecodingOptions) -> float:
        return score / (options.seed - 1)

    monkeypatch.setattr(engine._parts.decoder, "rank", rank)
    options = [replace(GERMAN, beam=2, seed=seed) for seed in (0, 1)]
    ids = [engine.add_request(speech(1), each) for each in options]
    outcomes = engine.run()
    assert outcomes[ids[0]].transcript is not None
    assert "ZeroDivisionError" in str(outcomes[ids[1]].error)
    assert engine.transcribe(speech(1), options[0]).text == outcomes[ids[0]].transcript.text
