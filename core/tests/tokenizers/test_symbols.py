"""Symbol tables of icefall and WeNet: pieces, characters and bytes."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.errors import CheckpointError, RequestError
from oasr.tokenizers.byte_map import spell, to_bytes
from oasr.tokenizers.symbols import SymbolTokenizer

Make = Callable[..., SymbolTokenizer]
FOLDERS = [
    "models/icefall-zipformer-digits",
    "models/wenet-u2pp-digits",
    "goldens/zipformer-context1",
    "goldens/zipformer-ctc-only",
    "goldens/zipformer-six-stacks",
    "goldens/zipformer-six-stacks-causal",
    "goldens/wenet-conv2d6",
    "goldens/wenet-conv2d8",
    "goldens/wenet-old-style-batch-norm",
    "goldens/wenet-transformer-decoder",
]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def write(*tokens: str) -> SymbolTokenizer:
        path = tmp_path / "tokens.txt"
        path.write_text("".join(f"{token} {i}\n" for i, token in enumerate(tokens)), encoding="utf-8")
        return SymbolTokenizer({"symbols": path})

    return write


def bpe(make: Make) -> SymbolTokenizer:
    return make("<blk>", "<sos/eos>", "<unk>", "▁", "▁HE", "LL", "O", "▁WORLD", "L", "H", "E", "#0", "#1")


def recorded(node: Any) -> Iterator[dict[str, Any]]:
    """Whatever has ids and a text."""
    if isinstance(node, dict):
        if "token_ids" in node and "text" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from recorded(each)


@pytest.mark.parametrize("folder", FOLDERS)
def test_texts_are_those_that_the_toolkit_recorded(shared: Callable[[str], Path], folder: str) -> None:
    root = shared(folder)
    expected = json.loads((root / "expected.json").read_text())
    facts = expected["checkpoint"]
    tokenizer = SymbolTokenizer({"symbols": root / (facts.get("symbol_table_file") or facts["tokens_file"])})
    found = list(recorded(expected))
    assert found
    for each in found:
        # The toolkits cut blanks at the end and WeNet leaves the blank of character vocabularies as it is spelt.
        assert tokenizer.decode(each["token_ids"]).rstrip() == each["text"].replace("▁", " ").strip()


def test_a_piece_with_a_blank_begins_a_word(make: Make) -> None:
    tokenizer = bpe(make)
    assert tokenizer.decode([4, 5, 6, 7]) == "HELLO WORLD"
    assert tokenizer.decode([3, 4, 3, 3, 4, 3]) == "HE   HE "


def test_control_tokens_leave_no_text(make: Make) -> None:
    assert bpe(make).decode([0, 4, 2, 5, 1, 6]) == "HELLO"


def test_auxiliary_symbols_at_the_end_are_not_tokens_of_the_model(make: Make) -> None:
    tokenizer = bpe(make)
    assert tokenizer.size == 11
    assert make("<blk>", "#", "#1", "A").size == 4


def test_text_is_spelt_with_few_pieces(make: Make) -> None:
    tokenizer = bpe(make)
    assert tokenizer.encode("HELLO  WORLD ") == [4, 5, 6, 7]
    assert tokenizer.encode("HELO") == [4, 8, 6]
    assert tokenizer.encode("") == []


def test_a_long_piece_that_leads_nowhere_is_not_taken(make: Make) -> None:
    assert make("▁AB", "▁A", "BC").encode("ABC") == [1, 2]


@pytest.mark.parametrize(
    ("text", "reason"), [("HELP", "'P'"), ("hello", "it has 'H'"), ("<blk>", "'<'"), ("HELLO, WORLD", "','")]
)
def test_what_cannot_be_spelt_is_an_error_that_says_why(make: Make, text: str, reason: str) -> None:
    with pytest.raises(RequestError, match=reason) as failure:
        bpe(make).encode(text)
    assert repr(text) in str(failure.value)


def test_characters_are_spelt_one_by_one(make: Make) -> None:
    tokenizer = make("<blank>", "<unk>", "你", "好", "A", "B", "▁", "<sos/eos>")
    assert tokenizer.encode("你好 AB") == [2, 3, 6, 4, 5]
    assert tokenizer.decode([2, 3, 6, 4, 5, 7]) == "你好 AB"


def test_a_vocabulary_may_spell_out_its_blank(make: Make) -> None:
    tokenizer = make("<blank>", "A", "B", "<space>")
    assert tokenizer.encode("A B") == [1, 3, 2]
    assert tokenizer.decode([1, 3, 2]) == "A B"


def test_without_a_blank_words_cannot_be_parted(make: Make) -> None:
    with pytest.raises(RequestError, match="blank"):
        make("<blank>", "你", "好").encode("你 好")


def test_chinese_characters_among_english_pieces_have_no_blanks(make: Make) -> None:
    tokenizer = make("<blank>", "你", "好", "▁A", "B", "▁")
    assert tokenizer.encode("你好AB A你") == [1, 2, 3, 4, 3, 1]
    assert tokenizer.decode([1, 2, 3, 4, 3, 1]) == "你好 AB A你"


def test_words_of_chinese_characters_are_pieces_like_others(make: Make) -> None:
    assert make("▁", "今日", "今", "日", "は").encode("今日は") == [1, 4]


def byte_pieces(make: Make) -> SymbolTokenizer:
    return make("<blk>", "▁A", "▁", *(f"<0x{byte:02X}>" for byte in range(256)))


def test_bytes_stand_for_what_has_no_piece(make: Make) -> None:
    tokenizer = byte_pieces(make)
    ids = tokenizer.encode("A 请")
    assert ids == [1, 2, *(3 + byte for byte in "请".encode())]
    assert tokenizer.decode(ids) == "A 请"


def test_half_a_character_is_held_back(make: Make) -> None:
    stream = byte_pieces(make).stream()
    first, *rest = "é".encode()
    assert stream.push([1, 3 + first]) == "A"
    assert stream.push([0]) == ""
    assert stream.push([3 + rest[0]]) == "é"
    assert stream.push([3 + first]) == ""
    assert stream.finish() == "\N{REPLACEMENT CHARACTER}"


def byte_bpe(make: Make) -> SymbolTokenizer:
    """Like lang_bbpe_500 of icefall: each character of the samples as one piece, and the bytes."""
    singles = {letter for text in ("你好吗", "abc", "é") for letter in spell(text) if letter != " "}
    return make("<blk>", "<sos/eos>", "<unk>", "▁", *sorted(singles), f"▁{spell('你')}", f"▁{spell('好')}", "▁ab")


def test_bytes_in_the_spelling_of_icefall_are_text(make: Make) -> None:
    tokenizer = byte_bpe(make)
    ids = tokenizer.encode("你好 abc 吗 é")
    pieces = tokenizer.pieces(ids)
    assert pieces[:2] == ["▁" + spell("你"), "▁" + spell("好")]
    assert tokenizer.decode(ids) == "你好 abc 吗 é"


def test_the_blank_between_two_chinese_characters_is_decided_when_the_second_is_known(make: Make) -> None:
    tokenizer = byte_bpe(make)
    stream = tokenizer.stream()
    shown = [stream.push([token]) for token in [*tokenizer.encode("你好"), 3, 3, *tokenizer.encode("ab")]]
    assert shown == ["你", "好", "", "", "   ab"]


@pytest.mark.parametrize(
    ("byte", "character"),
    [(0, "\u0100"), (31, "\u011f"), (32, " "), (126, "~"), (127, "\u0120"), (145, "\u0134"), (255, "\u01a6")],
)
def test_bytes_are_spelt_as_in_icefall(byte: int, character: str) -> None:
    assert to_bytes(character) == bytes([byte])


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_spelling_bytes_keeps_the_text_but_for_blanks(text: str) -> None:
    spelt = b"".join(to_bytes(letter) for letter in spell(text)).decode()
    assert "".join(spelt.split()) == "".join(text.split())


@pytest.mark.parametrize(
    "letters",
    ["aābcčdeēfgģhiījkķlļmnņoprsštuūvzž", "aąbcčdeęėfghiįyjklmnoprsštuųūvzž", "abcdefghijklmnopqrstuvwxyz", ""],
)
def test_european_letters_are_not_taken_for_bytes(make: Make, letters: str) -> None:
    tokenizer = make("<blk>", "▁", *letters)
    assert tokenizer.decode(range(2, tokenizer.size)) == letters


def test_a_byte_order_mark_and_other_line_ends_are_read_over(tmp_path: Path) -> None:
    path = tmp_path / "units.txt"
    path.write_bytes("\ufeff<blank> 0\r\nA\t1\r\n\r\n\u2028 2\r\n  3\r\n".encode())
    tokenizer = SymbolTokenizer({"symbols": path})
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<blank>", "A", "\u2028", " "]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("A 0\nB\n", "line 2"),
        ("A 0\nB 2\n", "no token has id 1"),
        ("A 0\nB 0\n", "that of 'A' already"),
        ("", "cut short"),
    ],
)
def test_a_damaged_table_is_named(tmp_path: Path, table: str, problem: str) -> None:
    path = tmp_path / "tokens.txt"
    path.write_text(table)
    with pytest.raises(CheckpointError, match=problem) as failure:
        SymbolTokenizer({"symbols": path})
    assert str(path) in str(failure.value)
