from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from gnnlab.kernels import spmm

INDPTR = np.array([2, 5, 5, 6, 10])  # four groups; the first two slots belong to none of them
INDICES = np.array([9, 9, 0, 2, 1, 2, 1, 1, 0, 2])


def groups() -> list[range]:
    return [range(a, b) for a, b in pairwise(INDPTR)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ids", [np.int32, np.int64])
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(("rows", "width"), [*((3, n) for n in (0, 1, 3, 17, 100)), (9000, 100)])
def test_weighted_sum_is_a_matrix_product(
    rows: int, width: int, mean: bool, ids: type, dtype: type
) -> None:
    """Of wide rows that take more than a megabyte, some are prefetched."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, width)).astype(dtype)
    weights = rng.standard_normal(12).astype(dtype)
    order = rng.permutation(12)[:10].astype(ids)
    for given in (None, weights):
        matrix = np.zeros((4, 3), dtype)
        for v, slots in enumerate(groups()):
            for k in slots:
                w = 1 if given is None else given[order[k]]
                matrix[v, INDICES[k]] += w / (len(slots) if mean else 1)
        found = spmm.weighted_sum(
            INDPTR, INDICES.astype(ids), x, given, None if given is None else order, mean
        )
        assert found.dtype == dtype
        np.testing.assert_allclose(found, matrix @ x[:3], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("width", [0, 1, 5])
def test_each_head_has_its_own_weights(width: int, mean: bool) -> None:
    rng = np.random.default_rng(0)
    x, weights = rng.standard_normal((3, 2, width)), rng.standard_normal((12, 2))
    order = rng.permutation(12)[:10]
    found = spmm.weighted_sum(INDPTR, INDICES, x, weights, order, mean)
    for h in range(2):
        alone = spmm.weighted_sum(
            INDPTR, INDICES, np.ascontiguousarray(x[:, h]), weights[:, h].copy(), order, mean
        )
        np.testing.assert_allclose(found[:, h], alone)


@pytest.mark.parametrize("smallest", [False, True])
def test_extreme_names_the_winner(smallest: bool) -> None:
    x = np.random.default_rng(0).standard_normal((3, 9))
    out, winner = spmm.extreme(INDPTR, INDICES, x, smallest)
    for v, slots in enumerate(groups()):
        rows = x[INDICES[slots]]
        if len(slots) == 0:
            assert (out[v] == 0).all() and (winner[v] == 3).all()
            continue
        np.testing.assert_array_equal(out[v], rows.min(0) if smallest else rows.max(0))
        np.testing.assert_array_equal(x[winner[v], np.arange(9)], out[v])


def test_far_rows_are_reached(tmp_path: Path) -> None:
    """The last row lies beyond the range of 32-bit offsets; the file is a hole up to there."""
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(40_001, 60_000))
    x[40_000] = 7
    out = spmm.weighted_sum(np.array([0, 1]), np.array([40_000], np.int32), np.asarray(x))
    assert (out == 7).all()
