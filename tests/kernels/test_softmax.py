from __future__ import annotations

import numpy as np

from gnnlab.kernels import softmax


def test_rows_are_written_where_they_belong() -> None:
    r"""Groups {3, 0}, {} and {2}; scores far from zero, one of them −∞."""
    indptr, order = np.array([0, 2, 2, 3]), np.array([3, 0, 1])
    scores = np.array([[1000.0, 0.0], [-1000.0, 5.0], [0.0, 0.0], [1000.0, -np.inf]])
    out = softmax.softmax(indptr, order, scores)
    np.testing.assert_allclose(out[[0, 1, 3]], [[0.5, 1], [1, 1], [0.5, 0]])
    grad = softmax.softmax_grad(indptr, order, out, np.ones_like(out))
    np.testing.assert_allclose(grad[[0, 1, 3]], 0, atol=1e-12)
