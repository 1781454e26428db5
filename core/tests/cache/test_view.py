"""What a head reads through a view is what a plain list of its tokens would hold."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from oasr.cache.paged import BLOCK_TOKENS, PagedCache, blocks_for
from oasr.cache.slots import SlotCache
from oasr.cache.view import RowsView
from oasr.interfaces.architecture import PagedLayout
from oasr.testing.suite import LAW

LAYOUT = PagedLayout(layers=2, heads=2, head_size=3, max_tokens=3 * BLOCK_TOKENS)
CPU = torch.device("cpu")


class Rows:
    """Rows with leases of their own, and beside them what they should hold: lists of keys."""

    def __init__(self, tokens: list[int]):
        self.paged = PagedCache(LAYOUT, len(tokens), CPU, torch.float32)
        self.slots = SlotCache({"state": (2, 5)}, len(tokens), CPU, torch.float32)
        leases = [self.paged.reserve(each) for each in tokens]
        width = max(len(lease.blocks) for lease in leases if lease)
        self.tables = torch.tensor([[*lease.blocks, *[0] * (width - len(lease.blocks))] for lease in leases if lease])
        self.expected: list[list[torch.Tensor]] = [[] for _ in tokens]
        self._serial = 0

    def append(self, counts: list[int], padded: bool = True) -> tuple[RowsView, torch.Tensor, torch.Tensor]:
        """Add so many tokens to each row; returns the view and all that layer 1 then holds."""
        new = max(counts)
        lengths = torch.tensor([len(row) for row in self.expected])
        view = RowsView(
            self.paged,
            self.slots,
            torch.arange(len(counts)),
            self.tables,
            lengths,
            new_lengths=torch.tensor(counts) if padded else None,
            new=new,
        )
        shape = torch.Size((len(counts), new, LAYOUT.heads, LAYOUT.head_size))
        keys = torch.arange(self._serial, self._serial + shape.numel()).float().view(shape)
        self._serial += shape.numel()
        for row, count in enumerate(counts):
            self.expected[row] += list(keys[row, :count])
        return view, *view.append(1, keys, -keys)


def assert_holds(rows: Rows, view: RowsView, keys: torch.Tensor, values: torch.Tensor, counts: list[int]) -> None:
    """The last valid token of each row sees its row's tokens in order and nothing else."""
    for row, count in enumerate(counts):
        if count == 0:
            continue
        visible = view.mask[row, 0, count - 1]
        assert torch.equal(keys[row][visible], torch.stack(rows.expected[row]))
        assert torch.equal(values[row][visible], -torch.stack(rows.expected[row]))


@LAW
@given(data=st.data(), lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4))
def test_prompts_and_steps_are_read_back_in_order(data: st.DataObject, lengths: list[int]) -> None:
    rows = Rows([length + 5 for length in lengths])
    assert_holds(rows, *rows.append(lengths), lengths)
    for _ in range(data.draw(st.integers(0, 5))):
        ones = [1] * len(lengths)
        assert_holds(rows, *rows.append(ones, padded=False), ones)


def test_each_new_token_sees_itself_and_those_before() -> None:
    rows = Rows([8])
    view, _, _ = rows.append([4])
    assert view.positions.tolist() == [[0, 1, 2, 3]]
    assert view.mask[0, 0].sum(dim=1).tolist() == [1, 2, 3, 4]
    view, _, _ = rows.append([2])
    assert view.positions.tolist() == [[4, 5]]
    assert view.mask[0, 0].sum(dim=1).tolist() == [5, 6]


def test_layers_do_not_share_their_tokens() -> None:
    rows = Rows([4])
    rows.append([2])
    assert rows.paged.keys[0].eq(0).all()
    assert rows.paged.values[0].eq(0).all()


def test_rows_do_not_write_into_each_others_blocks() -> None:
    rows = Rows([40, 40])
    rows.append([33, 2])
    before = rows.paged.keys[:, rows.tables[0]].clone()
    rows.append([0, 3])
    assert torch.equal(rows.paged.keys[:, rows.tables[0]], before)


def test_padding_is_written_to_nobodys_block() -> None:
    rows = Rows([BLOCK_TOKENS, 3 * BLOCK_TOKENS])
    before = rows.paged.keys[:, rows.tables[0, :1]].clone()
    rows.append([0, 2 * BLOCK_TOKENS])
    assert torch.equal(rows.paged.keys[:, rows.tables[0, :1]], before)


@pytest.mark.parametrize("free_row", [False, True])
def test_nobodys_block_never_holds_nan(free_row: bool) -> None:
    """Rows with fewer blocks than their neighbours read block 0 with weight zero, and zero times NaN is NaN."""
    rows = Rows([8, 8])
    tables = torch.zeros_like(rows.tables) if free_row else rows.tables
    new_lengths = None if free_row else torch.tensor([1, 2])
    view = RowsView(
        rows.paged, rows.slots, torch.arange(2), tables, torch.zeros(2, dtype=torch.int64), new_lengths, new=2
    )
    poison = torch.full((2, 2, LAYOUT.heads, LAYOUT.head_size), torch.nan)
    view.append(0, poison, poison)
    assert rows.paged.keys[:, 0].isfinite().all()
    assert rows.paged.values[:, 0].isfinite().all()


@pytest.mark.parametrize("selection", [slice(1, 3), torch.tensor([3, 0])])
def test_slot_tensors_are_those_of_the_rows(selection: slice | torch.Tensor) -> None:
    rows = Rows([4] * 4)
    rows.slots.tensors["state"].zero_()
    view = RowsView(rows.paged, rows.slots, selection, rows.tables[selection], torch.zeros(2, dtype=torch.int64))
    values = torch.arange(10.0).view(2, 5)
    view.store("state", 1, values)
    assert torch.equal(view.load("state", 1), values)
    assert torch.equal(rows.slots.tensors["state"][selection, 1], values)
    assert rows.slots.tensors["state"].count_nonzero() == 9


def test_a_view_of_few_blocks_reads_as_one_of_many() -> None:
    rows = Rows([3 * BLOCK_TOKENS])
    rows.append([10])
    lengths = torch.tensor([10])
    few = RowsView(rows.paged, rows.slots, slice(0, 1), rows.tables[:, : blocks_for(11)], lengths)
    keys, _ = few.append(1, torch.full((1, 1, 2, 3), 7.0), torch.zeros(1, 1, 2, 3))
    assert keys.shape[1] == BLOCK_TOKENS
    assert keys[0, 10].eq(7).all()
    assert few.mask.sum() == 11
