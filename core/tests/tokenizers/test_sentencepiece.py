"""SentencePiece models, alone and beside a symbol table."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oasr.errors import CheckpointError, MissingDependencyError, RequestError
from oasr.tokenizers.sentencepiece import SentencePieceTokenizer

sentencepiece = pytest.importorskip("sentencepiece")

ICEFALL = "goldens/zipformer-ctc-only/checkpoint/data/lang_bpe_120"
WENET = "goldens/wenet-conv2d8/checkpoint"


@pytest.fixture
def icefall(shared: Callable[[str], Path]) -> SentencePieceTokenizer:
    return SentencePieceTokenizer(
        {"sentencepiece": shared(ICEFALL) / "bpe.model", "symbols": shared(ICEFALL) / "tokens.txt"}
    )


@pytest.fixture
def wenet(shared: Callable[[str], Path]) -> SentencePieceTokenizer:
    root = shared(WENET)
    return SentencePieceTokenizer({"sentencepiece": root / "train_unigram50.model", "symbols": root / "units.txt"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=200)
@given(ids=st.lists(st.integers(3, 119), max_size=20))
def test_texts_are_those_of_the_library(
    shared: Callable[[str], Path], icefall: SentencePieceTokenizer, ids: list[int]
) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(shared(ICEFALL) / "bpe.model"))
    assert icefall.decode(ids) == model.decode(ids)
    assert icefall.encode(model.decode(ids)) == model.encode(model.decode(ids))


def test_texts_are_those_that_the_toolkit_recorded(shared: Callable[[str], Path]) -> None:
    root = shared("goldens/zipformer-six-stacks-causal")
    lang = root / "checkpoint/data/lang_bpe_80"
    tokenizer = SentencePieceTokenizer({"sentencepiece": lang / "bpe.model"})
    found: list[dict[str, Any]] = []

    def keep(node: dict[str, Any]) -> dict[str, Any]:
        found.extend([node] if "text_sentencepiece" in node else [])
        return node

    json.loads((root / "expected.json").read_text(), object_hook=keep)
    assert found
    assert all(tokenizer.decode(each["token_ids"]) == each["text_sentencepiece"] for each in found)


def test_ids_are_those_of_the_symbol_table(wenet: SentencePieceTokenizer) -> None:
    ids = wenet.encode("the world")
    assert wenet.pieces(ids)[0] == "▁the"
    assert ids[0] == 16
    assert wenet.decode(ids) == "the world"


def test_control_tokens_are_those_of_the_table(wenet: SentencePieceTokenizer) -> None:
    assert wenet.decode([0, 16, 1, 2]) == "the"


@pytest.mark.parametrize("text", ["naïve", "<blank>", "<unk>", "HELLO"])
def test_what_cannot_be_spelt_is_an_error(wenet: SentencePieceTokenizer, text: str) -> None:
    with pytest.raises(RequestError, match=text):
        wenet.encode(text)


def test_a_table_may_know_more_than_the_model(shared: Callable[[str], Path], tmp_path: Path) -> None:
    table = tmp_path / "units.txt"
    units = (shared(WENET) / "units.txt").read_text(encoding="utf-8")
    table.write_text(f"{units}你 50\n好 51\n", encoding="utf-8")
    tokenizer = SentencePieceTokenizer({"sentencepiece": shared(WENET) / "train_unigram50.model", "symbols": table})
    assert tokenizer.encode("the 你好the") == [16, 50, 51, 16]
    assert tokenizer.decode([16, 50, 51, 16]) == "the你好 the"


def test_without_the_library_the_message_says_what_to_install(
    shared: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(MissingDependencyError, match="pip install"):
        SentencePieceTokenizer({"sentencepiece": shared(ICEFALL) / "bpe.model"})


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bpe.model"
    path.write_bytes(b"\x00garbage")
    with pytest.raises(CheckpointError, match=str(path)):
        SentencePieceTokenizer({"sentencepiece": path})
