from __future__ import annotations

import numpy as np
import pytest

from gnnlab.kernels import sddmm


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ids", [np.int32, np.int64])
@pytest.mark.parametrize("shape", [(1, 1), (1, 64), (3, 5), (3, 1), (2, 0)])
def test_dot_is_an_entry_of_the_dense_product(shape: tuple, ids: type, dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((n, *shape)).astype(dtype) for n in (4, 6))
    src, dst = rng.integers(4, size=20).astype(ids), rng.integers(6, size=20).astype(ids)
    dense = np.einsum("uhd,vhd->uvh", x, y)
    found = sddmm.dot(src, dst, x, y)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, dense[src, dst], rtol=1e-4, atol=1e-5)


def test_nan_is_kept() -> None:
    x = np.array([[[1.0, np.nan]], [[np.inf, 1.0]]])
    ids = np.array([0, 1])
    found = sddmm.dot(ids, ids, x, np.ones_like(x))
    assert np.isnan(found[0, 0]) and np.isinf(found[1, 0])
