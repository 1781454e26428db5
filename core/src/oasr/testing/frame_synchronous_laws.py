"""Laws of searches that read encoder frames in order."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.utils.rnn import pad_sequence

from oasr.interfaces.architecture import EncoderOutput
from oasr.interfaces.decoder import Decoder, FrameSynchronousDecoder, Spelling
from oasr.interfaces.heads import CTCHead
from oasr.testing.suite import LAW
from oasr.tokenizers.pieces import PieceTokenizer
from oasr.types import DecodingOptions

_PIECES = ("<blank>", *"abcdef")
_CUTS = st.lists(st.integers(0, 30), max_size=5)


class FrameSynchronousLaws:
    """A row depends on itself alone, and not on how its frames were cut. Skipped for searches of another kind."""

    @pytest.fixture
    def search(self, created: Decoder) -> FrameSynchronousDecoder:
        """The search, made from `options`."""
        if not isinstance(created, FrameSynchronousDecoder):
            pytest.skip("not a search that reads frames in order")
        if created.head != "ctc":
            pytest.skip(f"the kit has no head of the kind {created.head}")
        return created

    def test_it_accepts_a_request_for_nothing_special(self, search: FrameSynchronousDecoder) -> None:
        search.check(DecodingOptions())

    def test_before_anything_is_heard_nothing_is_said(self, search: FrameSynchronousDecoder) -> None:
        assert search.spellings(_start(search))[0].tokens == ()

    def test_what_is_certain_is_said(self, search: FrameSynchronousDecoder, device: torch.device) -> None:
        frames = torch.full((9, len(_PIECES)), -20.0)
        frames[range(9), [0, 1, 1, 0, 1, 2, 2, 0, 5]] = 20.0
        [found] = _read(search, [frames], device)
        best = found[0]
        assert best.tokens == (1, 1, 2, 5)
        for frame, heard in zip(best.frames, [(1, 2), (4,), (5, 6), (8,)], strict=True):
            assert frame in heard
        assert all(log_prob == pytest.approx(0.0, abs=1e-3) for log_prob in best.log_probs)
        assert best.score == pytest.approx(0.0, abs=1e-2)

    def test_spellings_are_in_order_and_within_what_was_heard(
        self, search: FrameSynchronousDecoder, device: torch.device
    ) -> None:
        for frames, found in zip(_noise(), _read(search, _noise(), device), strict=True):
            scores = [spelling.score for spelling in found]
            assert scores == sorted(scores, reverse=True)
            assert len({spelling.tokens for spelling in found}) == len(found)
            for spelling in found:
                assert len(spelling.tokens) == len(spelling.frames) == len(spelling.log_probs)
                assert all(0 < token < len(_PIECES) for token in spelling.tokens)
                assert list(spelling.frames) == sorted(set(spelling.frames)), "a frame says one token"
                assert all(0 <= frame < len(frames) for frame in spelling.frames)
                assert all(log_prob <= 0 for log_prob in spelling.log_probs)

    def test_company_and_padding_do_not_change_what_is_found(
        self, search: FrameSynchronousDecoder, device: torch.device
    ) -> None:
        together = _read(search, _noise(), device)
        for frames, found in zip(_noise(), together, strict=True):
            [alone] = _read(search, [frames], device)
            _assert_same(alone, found)

    @LAW
    @given(data=st.data())
    def test_frames_chunk_by_chunk_end_in_what_they_give_at_once(
        self, search: FrameSynchronousDecoder, device: torch.device, data: st.DataObject
    ) -> None:
        inputs = _noise()
        cuts = [data.draw(_CUTS) for _ in inputs]
        peeks = data.draw(st.booleans())
        for whole, found in zip(
            _read(search, inputs, device), _streamed(search, inputs, cuts, peeks, device), strict=True
        ):
            _assert_same(whole, found)

    def test_frames_are_left_as_they_were(self, search: FrameSynchronousDecoder, device: torch.device) -> None:
        frames = _noise()[0][None].to(device)
        before = frames.clone()
        search.advance(
            _LinearHead(), EncoderOutput(frames, torch.tensor([frames.shape[1]], device=device)), [_start(search)]
        )
        assert torch.equal(frames, before)


class _LinearHead(CTCHead):
    """Encoder frames are its logits."""

    vocabulary_size = len(_PIECES)
    blank = 0

    def log_probs(self, frames: torch.Tensor) -> torch.Tensor:
        return frames.log_softmax(dim=-1)


def _start(search: FrameSynchronousDecoder) -> Any:
    return search.start(_LinearHead(), DecodingOptions(), PieceTokenizer(_PIECES))


def _noise() -> list[torch.Tensor]:
    """Logits of rows of several lengths, in which most frames are clear."""
    generator = torch.Generator().manual_seed(0)
    return [3 * torch.randn(length, len(_PIECES), generator=generator) for length in (17, 1, 30, 0, 8)]


def _read(
    search: FrameSynchronousDecoder, inputs: Sequence[torch.Tensor], device: torch.device
) -> list[list[Spelling]]:
    return _streamed(search, inputs, [[] for _ in inputs], False, device)


def _streamed(
    search: FrameSynchronousDecoder,
    inputs: Sequence[torch.Tensor],
    cuts: Sequence[Sequence[int]],
    peeks: bool,
    device: torch.device,
) -> list[list[Spelling]]:
    """What is found when inputs come in pieces, cut at these frames; rows leave when theirs end, and others move up.

    Behind the frames of a short row stand others that would say much.
    """
    pieces = []
    for frames, own in zip(inputs, cuts, strict=True):
        edges = [0, *sorted(cut for cut in own if cut < len(frames)), len(frames)]
        pieces.append([frames[start:end] for start, end in itertools.pairwise(edges)])
    rows = [_start(search) for _ in inputs]
    for turn in range(max(map(len, pieces))):
        riding = [row for row, parts in enumerate(pieces) if turn < len(parts)]
        chunk = [pieces[row][turn] for row in riding]
        lengths = torch.tensor([len(frames) for frames in chunk])
        padded = pad_sequence(chunk, batch_first=True)
        behind = torch.arange(padded.shape[1]) >= lengths[:, None]
        padded[behind] = torch.arange(len(_PIECES)).float() * 9
        encoded = EncoderOutput(padded.to(device), lengths.to(device))
        search.advance(_LinearHead(), encoded, [rows[row] for row in riding])
        if peeks:
            for row in riding:
                search.spellings(rows[row])
    return [search.spellings(row) for row in rows]


def _assert_same(one: Sequence[Spelling], other: Sequence[Spelling]) -> None:
    assert [(each.tokens, each.frames) for each in one] == [(each.tokens, each.frames) for each in other]
    for left, right in zip(one, other, strict=True):
        assert left.score == pytest.approx(right.score, abs=1e-4)
        assert left.log_probs == pytest.approx(right.log_probs, abs=1e-4)
