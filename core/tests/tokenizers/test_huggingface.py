"""A tokenizer.json of the tokenizers library."""

from pathlib import Path

import pytest

from oasr.errors import CheckpointError, RequestError
from oasr.testing.toys.checkpoint import write_tokenizer
from oasr.testing.toys.config import END, START
from oasr.tokenizers.huggingface import HuggingFaceTokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer({"tokenizer": write_tokenizer(tmp_path_factory.mktemp("toy") / "tokenizer.json")})


def test_control_tokens_leave_no_text(tokenizer: HuggingFaceTokenizer) -> None:
    assert tokenizer.decode([START, *b"hello", END]) == "hello"


def test_control_tokens_spelt_in_a_text_are_plain_text(tokenizer: HuggingFaceTokenizer) -> None:
    ids = tokenizer.encode("a<|end|>b")
    assert END not in ids
    assert tokenizer.decode(ids) == "a<|end|>b"


def test_no_control_tokens_are_put_around_a_text(tokenizer: HuggingFaceTokenizer) -> None:
    assert tokenizer.encode("hi") == list(b"hi")


def test_blanks_are_kept(tokenizer: HuggingFaceTokenizer) -> None:
    assert tokenizer.decode(tokenizer.encode("  a  b ")) == "  a  b "


def test_size_counts_control_tokens(tokenizer: HuggingFaceTokenizer) -> None:
    assert tokenizer.size == END + 6


def test_pieces_are_spelt_as_in_the_vocabulary(tokenizer: HuggingFaceTokenizer) -> None:
    assert tokenizer.pieces([ord("a"), ord(" "), END]) == ["a", "Ġ", "<|end|>"]


@pytest.mark.parametrize("token", [-1, END + 6, 10**9])
def test_an_id_outside_the_vocabulary_is_refused_by_number(tokenizer: HuggingFaceTokenizer, token: int) -> None:
    with pytest.raises(RequestError, match=str(token)):
        tokenizer.pieces([token])


def test_half_a_character_is_held_back_until_it_is_whole(tokenizer: HuggingFaceTokenizer) -> None:
    stream = tokenizer.stream()
    shown = [stream.push([byte]) for byte in "a😀b".encode()]
    assert shown == ["a", "", "", "", "😀", "b"]
    assert stream.finish() == ""


def test_half_a_character_at_the_end_is_shown_when_the_text_is_over(tokenizer: HuggingFaceTokenizer) -> None:
    stream = tokenizer.stream()
    assert stream.push("ä".encode()[:1]) == ""
    assert stream.finish() == "\N{REPLACEMENT CHARACTER}"


def test_half_a_character_that_another_refutes_is_shown(tokenizer: HuggingFaceTokenizer) -> None:
    stream = tokenizer.stream()
    assert stream.push("ä".encode()[:1]) == ""
    assert stream.push(b"x") == "\N{REPLACEMENT CHARACTER}x"


def test_control_tokens_between_halves_of_a_character_do_no_harm(tokenizer: HuggingFaceTokenizer) -> None:
    first, second = "ä".encode()
    ids = [first, END, second]
    stream = tokenizer.stream()
    assert "".join([*(stream.push([token]) for token in ids), stream.finish()]) == tokenizer.decode(ids)


def test_a_checkpoint_without_tokenizer_says_what_to_copy() -> None:
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        HuggingFaceTokenizer({})


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text('{"version": ')
    with pytest.raises(CheckpointError, match=str(path)):
        HuggingFaceTokenizer({"tokenizer": path})
