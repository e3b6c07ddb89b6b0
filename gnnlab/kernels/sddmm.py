"""One number per edge from its two ends: the dot product of g-SDDMM.

It computes the entries of ``lhs @ rhs.T`` at the edges only (sampled dense-dense matrix product).
Uses: scores of links, and the gradient of edge weights.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit


def dot(src: np.ndarray, dst: np.ndarray, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Multiply the rows at both ends of each edge and sum over the last dimension: shape (E, H).

    ``src`` and ``dst``, shape (E,), int32 or int64, are rows of ``lhs`` and ``rhs``: shapes
    (N, H, D) and (M, H, D), float32 or float64, contiguous.
    """
    out = np.empty((len(src), lhs.shape[1]), lhs.dtype)

    cost, kernel = out.size * (lhs.shape[2] + 1), _dot
    if lhs.shape[2] == 1:
        kernel, lhs, rhs = _products, lhs[:, :, 0], rhs[:, :, 0]

    def work(lo: int, hi: int) -> None:
        kernel(src, dst, lhs, rhs, out, lo, hi)

    threads.run_chunks(work, len(src), threads.grain_for(len(src), cost))
    return out


# fastmath flags: sums may be reordered for vector registers; infinities and NaN are preserved.
@njit(nogil=True, cache=True, fastmath={"contract", "reassoc", "nsz"})
def _dot(src, dst, lhs, rhs, out, lo, hi):  # type: ignore[no-untyped-def]
    heads, width = lhs.shape[1], lhs.shape[2]
    zero = lhs.dtype.type(0)
    for e in range(lo, hi):
        for h in range(heads):
            a, b = lhs[src[e], h], rhs[dst[e], h]
            total = zero
            for j in range(width):
                total += a[j] * b[j]
            out[e, h] = total


@njit(nogil=True, cache=True)
def _products(src, dst, lhs, rhs, out, lo, hi):  # type: ignore[no-untyped-def]
    for e in range(lo, hi):
        a, b, products = lhs[src[e]], rhs[dst[e]], out[e]
        for h in range(len(products)):
            products[h] = a[h] * b[h]
