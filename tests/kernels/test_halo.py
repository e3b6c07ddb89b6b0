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
