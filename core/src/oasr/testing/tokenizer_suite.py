"""Laws of tokenizers."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oasr.errors import CheckpointError, RequestError
from oasr.interfaces.tokenizer import Tokenizer
from oasr.plugin import Kind
from oasr.testing.suite import LAW, ComponentSuite

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SAMPLES = (
    "Hello, world!",
    "  two  blanks\tand\na line ",
    "naïve café, Straße",
    "日本語のテキスト。",
    "مرحبا بالعالم",
    "नमस्ते",
    "👩‍👩‍👧 family, 🏳️‍🌈 flag",
    "e\u0301 combining",
    "\u200bzero width\u00a0",
    "",
)
_TEXT = st.text(st.characters(exclude_categories=["Cs", "Co", "Cn"], exclude_characters=_REPLACEMENT), max_size=24)
_CUTS = st.lists(st.integers(0, 200), max_size=8)


class TokenizerSuite(ComponentSuite):
    """Text survives the way to ids and back, at once and in pieces."""

    kind: ClassVar[Kind] = Kind.TOKENIZER
    lossless: ClassVar[bool] = True
    """Whether any text survives; False for vocabularies that normalise or do not know all characters: texts are made
    of the characters of `samples` then."""
    samples: ClassVar[tuple[str, ...]] = _SAMPLES
    """Texts to try; name some that the vocabulary knows where it does not know these."""

    @pytest.fixture
    def files(self) -> Mapping[str, Path]:
        """Side files by role, as in `Checkpoint.files`: override this."""
        pytest.skip("needs side files: override the fixture `files`, or oasr check --checkpoint PATH")

    @pytest.fixture
    def tokenizer(self, target: type[Any], files: Mapping[str, Path]) -> Tokenizer:
        """The tokenizer, opened from `files`."""
        opened: Tokenizer = target(files)
        return opened

    def test_samples_survive(self, tokenizer: Tokenizer) -> None:
        for text in self.samples:
            self._assert_survives(tokenizer, text)

    @LAW
    @given(data=st.data())
    def test_any_text_survives(self, tokenizer: Tokenizer, data: st.DataObject) -> None:
        text = data.draw(self._texts())
        self._assert_survives(tokenizer, text)

    def test_ids_are_in_the_vocabulary(self, tokenizer: Tokenizer) -> None:
        for text in self.samples:
            assert all(0 <= token < tokenizer.size for token in tokenizer.encode(text))

    def test_no_ids_are_no_text(self, tokenizer: Tokenizer) -> None:
        assert tokenizer.decode([]) == ""
        assert tokenizer.pieces([]) == []

    def test_each_id_has_a_piece(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode("".join(self.samples))
        pieces = tokenizer.pieces(ids)
        assert len(pieces) == len(ids)
        assert all(isinstance(piece, str) and piece for piece in pieces)

    @pytest.mark.parametrize("offset", [0, 1, 1_000_000])
    def test_an_id_behind_the_vocabulary_has_no_piece(self, tokenizer: Tokenizer, offset: int) -> None:
        with pytest.raises(RequestError):
            tokenizer.pieces([tokenizer.size + offset])

    def test_a_negative_id_has_no_piece(self, tokenizer: Tokenizer) -> None:
        with pytest.raises(RequestError):
            tokenizer.pieces([-1])

    @LAW
    @given(data=st.data())
    def test_the_deltas_of_a_stream_join_to_the_text(self, tokenizer: Tokenizer, data: st.DataObject) -> None:
        ids = tokenizer.encode(data.draw(self._texts()))
        cuts = data.draw(st.lists(st.integers(0, len(ids)), max_size=8))
        assert "".join(_deltas(tokenizer, ids, cuts)) == tokenizer.decode(ids)

    @LAW
    @given(data=st.data())
    def test_a_stream_never_shows_half_a_character(self, tokenizer: Tokenizer, data: st.DataObject) -> None:
        ids = tokenizer.encode(data.draw(self._texts()))
        if _REPLACEMENT not in tokenizer.decode(ids):
            assert _REPLACEMENT not in "".join(_deltas(tokenizer, ids, list(range(len(ids)))))

    @LAW
    @given(data=st.data(), cuts=_CUTS)
    def test_a_stream_of_any_ids_joins_to_what_they_decode_to(
        self, tokenizer: Tokenizer, data: st.DataObject, cuts: list[int]
    ) -> None:
        known = sorted({token for text in self.samples for token in tokenizer.encode(text)})
        ids = data.draw(st.lists(st.sampled_from(known), max_size=24))
        assert "".join(_deltas(tokenizer, ids, cuts)) == tokenizer.decode(ids)

    def test_streams_do_not_share_state(self, tokenizer: Tokenizer) -> None:
        ids = tokenizer.encode(self.samples[0])
        one, other = tokenizer.stream(), tokenizer.stream()
        mixed = ["", ""]
        for token in ids:
            mixed[0] += one.push([token])
            mixed[1] += other.push([token])
        assert [mixed[0] + one.finish(), mixed[1] + other.finish()] == [tokenizer.decode(ids)] * 2

    def test_absent_files_are_an_error_of_the_checkpoint(self, target: type[Any]) -> None:
        with pytest.raises(CheckpointError):
            target({})

    @pytest.mark.parametrize(
        "content",
        [b"", b"\x00\xff garbage", b"{}", b'{"version": "1.0"'],
        ids=["empty", "garbage", "of something else", "truncated"],
    )
    def test_damaged_files_are_an_error_of_the_checkpoint(
        self, target: type[Any], files: Mapping[str, Path], tmp_path: Path, content: bytes
    ) -> None:
        damaged = {role: tmp_path / path.name for role, path in files.items()}
        for path in damaged.values():
            path.write_bytes(content)
        with pytest.raises(CheckpointError):
            target(damaged)

    def _texts(self) -> st.SearchStrategy[str]:
        if self.lossless:
            return _TEXT
        return st.text(st.sampled_from(sorted(set("".join(self.samples)))), max_size=24)

    def _assert_survives(self, tokenizer: Tokenizer, text: str) -> None:
        once = tokenizer.decode(tokenizer.encode(text))
        assert once == text if self.lossless else tokenizer.decode(tokenizer.encode(once)) == once


def _deltas(tokenizer: Tokenizer, ids: list[int], cuts: list[int]) -> list[str]:
    """What a stream shows when the ids come in pieces."""
    stream = tokenizer.stream()
    edges = [0, *sorted(cut for cut in cuts if cut < len(ids)), len(ids)]
    shown = [stream.push(ids[start:end]) for start, end in itertools.pairwise(edges)]
    return [*shown, stream.finish()]
