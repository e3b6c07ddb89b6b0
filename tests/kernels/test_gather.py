"""Rows are those of torch's indexing, for any dtype, layout and number of threads."""

from __future__ import annotations

import pytest
import torch

from gnnlab.kernels import gather, gather_numba
from gnnlab.kernels.dtypes import DTYPES

K = 1 << 15  # large enough for the compiled loop


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=str)
@pytest.mark.parametrize("shape", [(50, 2, 3), (50, 7), (50,)], ids=str)
def test_rows_are_those_of_torch(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    matrix = torch.randint(0, 100, shape).to(dtype)
    for ids in (torch.int32, torch.int64):
        index = torch.randint(50, (K,), dtype=ids)
        found = gather.rows(matrix, index)
        assert found.dtype is dtype
        assert torch.equal(found.view(torch.uint8), matrix[index.long()].view(torch.uint8))


def test_rows_of_views_are_those_of_torch() -> None:
    matrix, index = torch.randn(50, 8), torch.randint(50, (2 * K,))
    for part in (matrix.t(), matrix[:, 1:5], matrix[3:], matrix.view(torch.int8)[:, 1:9]):
        for places in (index % len(part), index[::2] % len(part), (index % len(part))[::2]):
            assert torch.equal(gather.rows(part, places), part[places])


@pytest.mark.parametrize("wrong", [-1, 50])
def test_a_row_that_does_not_exist_is_an_error(wrong: int) -> None:
    index = torch.zeros(K, dtype=torch.int64)
    index[7] = wrong
    with pytest.raises(IndexError):
        gather.rows(torch.randn(50, 4), index)


def test_threads_copy_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix, index = torch.randn(500, 100), torch.randint(500, (K,))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert torch.equal(gather.rows(matrix, index), matrix[index])
    wide = torch.empty(K, dtype=torch.int64)
    gather_numba.take(torch.arange(500, dtype=torch.int32).numpy(), index.numpy(), wide.numpy())
    assert torch.equal(wide, index)
