"""N-gram models add what their formula says, whatever is backed off."""

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from oasr.errors import ConfigError
from oasr.tokenizers.pieces import PieceTokenizer
from oasr_decoder_ctc.config import PrefixBeamConfig
from oasr_decoder_ctc.ngram import NGrams
from oasr_decoder_ctc.prefix_beam import CTCPrefixBeam

PIECES = ["<blk>", "<unk>", *"abcd", "▁e"]
TOKENIZER = PieceTokenizer(PIECES)
WORDS = ["<s>", "</s>", "<unk>", "a", "b", "c", "d"]  # ▁e is unknown to the model

Table = dict[tuple[str, ...], tuple[float, float]]


def table(seed: int, order: int = 3) -> Table:
    """Some n-grams of each order, all whose parts are there too."""
    chance = random.Random(seed)
    grams: Table = {(word,): (-chance.uniform(0.2, 2), -chance.uniform(0, 1)) for word in WORDS}
    for length in range(2, order + 1):
        for gram in itertools.product([word for word in WORDS if word != "</s>"], repeat=length):
            if gram[:-1] in grams and gram[1:] in grams and "<s>" not in gram[1:] and chance.random() < 0.4:
                grams[gram] = (-chance.uniform(0.1, 2), -chance.uniform(0, 1) if length < order else 0.0)
    return grams


def write(path: Path, grams: Table) -> Path:
    order = max(map(len, grams))
    lines = ["\\data\\", *(f"ngram {n}={sum(len(gram) == n for gram in grams)}" for n in range(1, order + 1)), ""]
    for length in range(1, order + 1):
        lines.append(f"\\{length}-grams:")
        for gram, (value, penalty) in grams.items():
            if len(gram) == length:
                lines.append(f"{value}\t{' '.join(gram)}" + (f"\t{penalty}" if length < order else ""))
        lines.append("")
    path.write_text("\n".join([*lines, "\\end\\", ""]), encoding="utf-8")
    return path


def probability(grams: Table, history: tuple[str, ...], word: str) -> float:
    """log10 of a word after a history, by the definition of back-off (Katz, 1987)."""
    word = word if (word,) in grams else "<unk>"
    history = history[-2:]
    if (*history, word) in grams:
        return grams[(*history, word)][0]
    return grams.get(history, (0.0, 0.0))[1] + probability(grams, history[1:], word)


def read(tmp_path: Path, grams: Table, weight: float = 1.0) -> Any:
    return NGrams.read(write(tmp_path / "lm.arpa", grams)).over(TOKENIZER, TOKENIZER.size + 1, weight)


@pytest.mark.parametrize("seed", range(5))
def test_gains_are_the_probabilities_of_the_formula(tmp_path: Path, seed: int, device: str) -> None:
    grams = table(seed)
    bias = read(tmp_path, grams, weight=0.7).to(torch.device(device))
    chance = random.Random(seed)
    for _ in range(40):
        text = [chance.randint(2, 5) for _ in range(8)]
        states = torch.full((2, 1), bias.start, device=device)
        history: tuple[str, ...] = ("<s>",)
        for token in text:
            everything = torch.arange(1, len(PIECES), device=device).repeat(2, 1)
            gains, following = bias.extend(states, everything)
            expected = [0.7 * math.log(10) * probability(grams, history, PIECES[t]) for t in everything[0].tolist()]
            assert gains[1, 0].tolist() == pytest.approx(expected)
            states = following[:, :, token - 1]
            history = (*history, PIECES[token])


def test_a_token_the_model_does_not_know_is_taken_for_unknown(tmp_path: Path) -> None:
    grams = {("<unk>",): (-1.5, 0.0), ("a",): (-0.5, 0.0), ("<s>",): (-99.0, 0.0)}
    gains, _ = read(tmp_path, grams).extend(torch.zeros(1, 1, dtype=torch.int64), torch.tensor([[2, 6]]))
    assert gains[0, 0].tolist() == pytest.approx([-0.5 * math.log(10), -1.5 * math.log(10)])


def test_text_that_the_model_prefers_is_found(tmp_path: Path, search: Any) -> None:
    grams = table(1) | {("a", "b"): (-0.01, 0.0), ("a", "c"): (-3.0, 0.0), ("<s>", "a", "b"): (-0.01, 0.0)}
    path = write(tmp_path / "lm.arpa", grams)
    logits = torch.zeros(4, len(PIECES))
    logits[0, 2] = logits[1, 0] = 12.0
    logits[2, 3], logits[2, 4] = 10.0, 11.0
    logits[3, 0] = 12.0
    log_probs = logits.log_softmax(dim=-1)
    [plain] = search(CTCPrefixBeam(PrefixBeamConfig()), [log_probs], tokenizer=TOKENIZER)
    [fused] = search(CTCPrefixBeam(PrefixBeamConfig(lm=path, lm_weight=0.5)), [log_probs], tokenizer=TOKENIZER)
    assert plain[0].tokens == (2, 4)
    assert fused[0].tokens == (2, 3)
    scores = {each.tokens: each.score for each in plain}
    gain = 0.5 * math.log(10) * (probability(grams, ("<s>",), "a") + probability(grams, ("<s>", "a"), "b"))
    assert fused[0].score == pytest.approx(scores[(2, 3)] + gain, abs=1e-6)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "not an ARPA file"),
        ("\\data\\\n\\1-grams:\n-1.0 a\n", "cut short"),
        ("\\1-grams:\n-1.0\n\\end\\\n", "line 2"),
        ("\\1-grams:\nx a\n\\end\\\n", "line 2"),
        ("\\1-grams:\n-1 a -1 -1\n\\end\\\n", "line 2"),
    ],
)
def test_a_file_that_is_not_arpa_is_an_error_of_the_configuration(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "lm.arpa"
    path.write_text(content)
    with pytest.raises(ConfigError, match=problem) as failure:
        CTCPrefixBeam(PrefixBeamConfig(lm=path))
    assert str(path) in str(failure.value)


def test_a_missing_file_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        CTCPrefixBeam(PrefixBeamConfig(lm=tmp_path / "absent.arpa"))


def test_a_model_of_words_is_an_error_that_says_so(tmp_path: Path) -> None:
    grams = {("<s>",): (-99.0, 0.0), ("HELLO",): (-1.0, 0.0), ("WORLD",): (-1.0, 0.0)}
    with pytest.raises(ConfigError, match="spelt in tokens"):
        read(tmp_path, grams)
