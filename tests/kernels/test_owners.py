"""Rows in several places: cutting a question, copying rows, putting lists in order."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.errors import OutOfRange
from gnnlab.kernels import owners

RANGES = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any)


@st.composite
def questions(draw) -> tuple[torch.Tensor, np.ndarray]:
    offsets = np.cumsum([0, *draw(RANGES)]).astype(np.int64)
    ids = draw(st.lists(st.integers(0, int(offsets[-1]) - 1), max_size=30))
    ids = sorted(ids) if draw(st.booleans()) else ids
    return torch.tensor(ids, dtype=draw(st.sampled_from([torch.int32, torch.int64]))), offsets


@given(questions())
def test_split_asks_each_row_of_its_owner_once(question):
    ids, offsets = question
    asked = torch.full((len(ids),), -1)
    parts = []
    for part, rows, positions in owners.split(ids, offsets):
        parts.append(part)
        assert len(rows) and rows.dtype == ids.dtype
        assert (rows >= 0).all() and (rows < offsets[part + 1] - offsets[part]).all()
        asked[positions] = rows.long() + int(offsets[part])
    assert torch.equal(asked, ids.long()) and parts == sorted(set(parts))


@given(questions())
def test_merge_restores_the_order(question):
    ids, offsets = question
    shards = owners.split(ids, offsets)
    if not shards:
        return
    ptrs, lists = [], []  # row v is answered by the list [v] * (v % 4)
    for part, rows, _ in shards:
        owned = rows.long() + int(offsets[part])
        lengths = owned % 4
        ptrs.append(torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]))
        lists.append(torch.repeat_interleave(owned, lengths))
    merge = owners.Merge(shards, ptrs, len(ids))
    expected = [v for v in ids.tolist() for _ in range(v % 4)]
    assert merge(lists).tolist() == merge([one.int() for one in lists]).tolist() == expected
    assert torch.diff(merge.ptr).tolist() == [v % 4 for v in ids.tolist()]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.bool])
@pytest.mark.parametrize("width", [(), (1,), (3,), (2, 4), (0,)])
def test_copy_rows(dtype, width):
    source = torch.randint(0, 2, (9, *width)).to(dtype)
    rows, positions = torch.tensor([3, 8, 0, 3]), torch.tensor([5, 1, 0, 2])
    for to in (positions, slice(2, 6)):
        target = torch.zeros(7, *width, dtype=dtype)
        expected = target.clone()
        expected[to] = source[rows]
        owners.copy_rows(source, rows, target, to)
        assert torch.equal(target, expected)
        owners.copy_rows(source[1:5], None, target, to)
        expected[to] = source[1:5]
        assert torch.equal(target, expected)


def test_the_last_row_stays():
    target = torch.zeros(2)
    owners.copy_rows(torch.tensor([1.0, 2.0, 3.0]), None, target, torch.tensor([1, 0, 1]))
    assert target.tolist() == [2.0, 3.0]


def test_rows_at_an_odd_address():
    """Rows that do not begin at a multiple of their size are copied in smaller words."""
    source = torch.arange(21, dtype=torch.int16)[1:].reshape(5, 4)
    target = torch.zeros(5, 4, dtype=torch.int16)
    rows = torch.tensor([4, 1, 0])
    owners.copy_rows(source, rows, target, torch.tensor([0, 1, 2]))
    assert torch.equal(target[:3], source[rows])


@pytest.mark.parametrize("bad", [-1, 6])
def test_split_names_the_row_that_does_not_exist(bad):
    with pytest.raises(OutOfRange, match=f"row {bad} .* 5"):
        owners.split(torch.tensor([0, bad, 3]), np.array([0, 3, 6]))
