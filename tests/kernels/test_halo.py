"""Cutting kernels against loops, on one thread and on several."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gnnlab.kernels import halo


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("num_edges", [0, 1, 300, 700_000])
@pytest.mark.parametrize("num_threads", [1, 3])
def test_edges_near(
    dtype: type, num_edges: int, num_threads: int, torch_threads: Callable[[int], None]
) -> None:
    torch_threads(num_threads)
    rng = np.random.default_rng(0)
    num_src, num_dst, lo, hi = 50, 40, 10, 25
    dst = np.sort(rng.integers(0, num_dst, num_edges))
    indptr = np.searchsorted(dst, np.arange(num_dst + 1))
    indices = rng.integers(0, num_src, num_edges).astype(dtype)
    near_src, near_dst = rng.random(num_src) < 0.2, rng.random(num_dst) < 0.2
    wanted = (near_src[indices] | near_dst[dst]) & ((dst < lo) | (dst >= hi))
    slots, found_src, found_dst = halo.edges_near(indptr, indices, near_src, near_dst, lo, hi)
    assert np.array_equal(slots, np.flatnonzero(wanted))
    assert np.array_equal(found_src, indices[wanted])
    assert np.array_equal(found_dst, dst[wanted])


def test_spread_goes_along_edges_in_both_directions() -> None:
    """0 → 1 → 2 → 3 and 4 → 2, from node 2: one step reaches 1, 3 and 4."""
    indptr, indices = np.array([0, 0, 1, 3, 4, 4]), np.array([0, 1, 4, 2])
    near = np.arange(5) == 2
    after = near.copy()
    halo.spread(indptr, indices, near, near, after, after)
    assert np.flatnonzero(after).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_local_ids(dtype: type) -> None:
    """A part owns 10 … 14; of the others it holds 3 and 20, as its nodes 5 and 6."""
    ids = np.array([20, 10, 3, 14, 20], dtype)
    mark = np.zeros(21, np.bool_)
    halo.mark_outside(ids, 10, 15, mark)
    assert np.flatnonzero(mark).tolist() == [3, 20]
    position, local = np.zeros(21, np.int32), np.empty(5, np.int32)
    position[[3, 20]] = [5, 6]
    halo.localize(ids, 10, 15, position, local)
    assert local.tolist() == [6, 0, 5, 4, 6]
