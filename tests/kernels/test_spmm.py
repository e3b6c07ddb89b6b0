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


def test_far_rows_are_reached(tmp_path: Path) -> None:
    """The last row lies beyond the range of 32-bit offsets; the file is a hole up to there."""
    x = np.memmap(tmp_path / "x", np.float32, "w+", shape=(40_001, 60_000))
    x[40_000] = 7
    out = spmm.weighted_sum(np.array([0, 1]), np.array([40_000], np.int32), np.asarray(x))
    assert (out == 7).all()
