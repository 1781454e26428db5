"""Blocks belong to one row at a time, and block 0 to nobody."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from oasr.cache.paged import BLOCK_TOKENS, Lease, PagedCache, blocks_for
from oasr.interfaces.architecture import PagedLayout
from oasr.testing.suite import LAW

LAYOUT = PagedLayout(layers=2, heads=2, head_size=4, max_tokens=3 * BLOCK_TOKENS)


def cache(rows: int = 2) -> PagedCache:
    return PagedCache(LAYOUT, rows, torch.device("cpu"), torch.float32)


@pytest.mark.parametrize(
    ("tokens", "blocks"), [(0, 0), (1, 1), (BLOCK_TOKENS, 1), (BLOCK_TOKENS + 1, 2), (3 * BLOCK_TOKENS, 3)]
)
def test_a_lease_holds_just_the_blocks_its_tokens_need(tokens: int, blocks: int) -> None:
    assert blocks_for(tokens) == blocks
    lease = cache().reserve(tokens)
    assert lease is not None
    assert len(lease.blocks) == blocks


def test_there_is_room_for_every_row_at_its_longest() -> None:
    paged = cache(rows=3)
    assert all(paged.reserve(LAYOUT.max_tokens) is not None for _ in range(3))
    assert paged.free_blocks == 0


def test_no_room_is_none_and_takes_nothing() -> None:
    paged = cache(rows=1)
    paged.reserve(2 * BLOCK_TOKENS)
    assert paged.reserve(2 * BLOCK_TOKENS) is None
    assert paged.free_blocks == 1


def test_releasing_twice_does_nothing() -> None:
    paged = cache()
    lease = paged.reserve(BLOCK_TOKENS)
    assert lease is not None
    paged.release(lease)
    paged.release(lease)
    assert paged.free_blocks == 6


def test_it_starts_without_nan() -> None:
    paged = cache()
    assert paged.keys.isfinite().all()
    assert paged.values.isfinite().all()


def test_clearing_zeroes_the_blocks_of_a_table_and_nothing_else() -> None:
    paged = cache()
    mine, other = paged.reserve(2 * BLOCK_TOKENS), paged.reserve(BLOCK_TOKENS)
    assert mine is not None
    assert other is not None
    paged.keys.fill_(torch.nan)
    paged.values.fill_(torch.nan)
    paged.clear(torch.tensor([mine.blocks]))
    for pool in (paged.keys, paged.values):
        clean = {block for block in range(pool.shape[1]) if pool[:, block].eq(0).all()}
        assert clean == set(mine.blocks)


class Lending(RuleBasedStateMachine):
    """Any sequence of leases and returns."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = cache(rows=3)
        self.leases: list[Lease] = []

    @rule(tokens=st.integers(0, LAYOUT.max_tokens))
    def reserve(self, tokens: int) -> None:
        fits = blocks_for(tokens) <= self.cache.free_blocks
        lease = self.cache.reserve(tokens)
        assert (lease is not None) == fits
        if lease is not None:
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        lease = self.leases.pop(data.draw(st.integers(0, len(self.leases) - 1)))
        self.cache.release(lease)
        self.cache.release(lease)

    @invariant()
    def no_block_is_lent_twice(self) -> None:
        lent = [block for lease in self.leases for block in lease.blocks]
        assert len(set(lent)) == len(lent)
        assert 0 not in lent

    @invariant()
    def no_block_is_lost(self) -> None:
        assert self.cache.free_blocks + sum(len(lease.blocks) for lease in self.leases) == 9


TestLending = Lending.TestCase
TestLending.settings = LAW


@given(st.data())
@LAW
def test_rows_that_fork_hold_what_their_parents_held(data: st.DataObject) -> None:
    """Tokens are written one by one; between them each row may go on from any other, as beams do."""
    rows, tokens = 3, data.draw(st.integers(1, 3 * BLOCK_TOKENS), label="tokens")
    paged = cache(rows)
    leases = [paged.reserve(LAYOUT.max_tokens) for _ in range(rows)]
    own = torch.tensor([lease.blocks for lease in leases if lease is not None])
    tables, held = own.clone(), [[] for _ in range(rows)]
    forks = data.draw(st.sets(st.integers(0, tokens), max_size=8), label="forks")
    for position in range(tokens):
        if position in forks:
            parents = data.draw(st.lists(st.integers(0, rows - 1), min_size=rows, max_size=rows))
            tables = paged.fork(tables, own, torch.tensor(parents), torch.full((rows,), position))
            held = [list(held[parent]) for parent in parents]
        for row in range(rows):
            value = float(1 + position * rows + row)
            block = tables[row, position // BLOCK_TOKENS]
            assert block in own[row], "a row must not write to what others read"
            paged.keys[:, block, position % BLOCK_TOKENS] = value
            paged.values[:, block, position % BLOCK_TOKENS] = -value
            held[row].append(value)
    for row in range(rows):
        keys, values = (pool[0, tables[row]].flatten(0, 1)[:tokens, 0, 0] for pool in (paged.keys, paged.values))
        assert keys.tolist() == held[row]
        assert values.tolist() == [-value for value in held[row]]
