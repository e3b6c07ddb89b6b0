"""Aggregation over neighbors: g-SpMM, the generalized sparse-dense matrix product.

Row v of the result combines the rows of x at the other ends of v's edges. Nothing is stored per
edge, and each row of the result is written by one thread, so there are no races and no zero-filling
first. The gradient of a sum is the same kernel on the edges grouped by their other end.

Two source rows are added in each pass, so the output row is loaded and stored half as often, and
rows that are added later are prefetched. numba omits the code of arguments that are None.

References
----------
Wang et al., "Deep Graph Library", 2019, section 3 (g-SpMM and g-SDDMM).
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit, prefetch, unsigned

_AHEAD = 8  # slots
_NEAR, _WIDE = 1 << 20, 128  # bytes of all rows and of one; with less, prefetching costs time
_LINE = 16  # numbers from one prefetch to the next: a cache line of float32, two of float64

# Only fused multiply-add is allowed: no reordering, and infinities and NaN are preserved, so a
# result depends neither on the number of threads nor on the alignment of a row in memory.
_FUSED = {"contract"}


def weighted_sum(
    indptr: np.ndarray,
    indices: np.ndarray,
    x: np.ndarray,
    weights: np.ndarray | None = None,
    order: np.ndarray | None = None,
    mean: bool = False,
) -> np.ndarray:
    """Sum rows of x over each group of slots: ``out[v] = Σ_k weights[order[k]] · x[indices[k]]``.

    Group v, of V, is the slots ``indptr[v]:indptr[v + 1]``, int64; slot k adds the row
    ``indices[k]`` of x, int32 or int64. x has shape (N, D), or (N, H, D) with weights for H heads,
    float32 or float64, contiguous; heads of size 1 are the elements of a row, each with a weight of
    its own. ``weights`` have shape (W,), or (W, H) for heads, and x's dtype, contiguous; ``order``
    is the row of them that each slot uses. ``mean`` divides each group by its number of slots.

    Returns shape (V, D) or (V, H, D); zeros where a group is empty.
    """
    rows = len(indptr) - 1
    out = np.empty((rows, *x.shape[1:]), x.dtype)
    kernel, places, ahead, to = _sum_rows, unsigned(indices), None, out
    if x.ndim == 3:
        kernel = _sum_heads
        if x.shape[2] == 1:
            kernel, x, to = _sum_products, x[:, :, 0], out[:, :, 0]
    elif x.nbytes > _NEAR and x.strides[0] >= _WIDE:
        ahead = _AHEAD

    def work(lo: int, hi: int) -> None:
        kernel(indptr, places, x, weights, order, mean, ahead, to, lo, hi)

    cost = len(indices) * (x.size // max(len(x), 1)) + out.size
    threads.run_chunks(work, rows, threads.grain_for(rows, cost))
    return out


@njit(inline="always")
def _prefetch_row(x, n):  # type: ignore[no-untyped-def]
    width = x.shape[1]
    begin = np.int64(n) * width
    for j in range(0, 8 * _LINE, _LINE):  # of a longer row, the processor itself fetches the rest
        if j < width:
            prefetch(x, begin + j)


@njit(nogil=True, cache=True, fastmath=_FUSED)
def _sum_rows(indptr, indices, x, weights, order, mean, ahead, out, lo, hi):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1)
    width, end = x.shape[1], indptr[hi] - 1
    for v in range(lo, hi):
        k, last = indptr[v], indptr[v + 1]
        degree = last - k
        row = out[v]
        scale = one / x.dtype.type(degree) if mean and degree > 0 else one
        # The first pass writes, the others add; if the number of slots is odd, it takes one slot.
        if degree == 0:
            for j in range(width):
                row[j] = 0
        elif degree % 2 == 1:
            if ahead is not None:
                _prefetch_row(x, indices[min(k + ahead, end)])
            w0 = scale if weights is None else scale * weights[order[k]]
            x0 = x[indices[k]]
            for j in range(width):
                row[j] = w0 * x0[j]
            k += 1
        else:
            if ahead is not None:
                _prefetch_row(x, indices[min(k + ahead, end)])
                _prefetch_row(x, indices[min(k + ahead + 1, end)])
            w0 = scale if weights is None else scale * weights[order[k]]
            w1 = scale if weights is None else scale * weights[order[k + 1]]
            x0, x1 = x[indices[k]], x[indices[k + 1]]
            for j in range(width):
                row[j] = w0 * x0[j] + w1 * x1[j]
            k += 2
        while k < last:
            if ahead is not None:
                _prefetch_row(x, indices[min(k + ahead, end)])
                _prefetch_row(x, indices[min(k + ahead + 1, end)])
            w0 = scale if weights is None else scale * weights[order[k]]
            w1 = scale if weights is None else scale * weights[order[k + 1]]
            x0, x1 = x[indices[k]], x[indices[k + 1]]
            for j in range(width):
                row[j] += w0 * x0[j] + w1 * x1[j]
            k += 2


@njit(nogil=True, cache=True, fastmath=_FUSED)
def _sum_heads(indptr, indices, x, weights, order, mean, ahead, out, lo, hi):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1)
    heads, width = x.shape[1], x.shape[2]
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        degree = last - first
        scale = one / x.dtype.type(degree) if mean and degree > 0 else one
        for h in range(heads):
            k = first
            row = out[v, h]
            if degree % 2 == 1:
                w0 = scale * weights[order[k], h]
                x0 = x[indices[k], h]
                for j in range(width):
                    row[j] = w0 * x0[j]
                k += 1
            else:
                for j in range(width):
                    row[j] = 0
            while k < last:
                w0 = scale * weights[order[k], h]
                w1 = scale * weights[order[k + 1], h]
                x0, x1 = x[indices[k], h], x[indices[k + 1], h]
                for j in range(width):
                    row[j] += w0 * x0[j] + w1 * x1[j]
                k += 2


@njit(nogil=True, cache=True, fastmath=_FUSED)
def _sum_products(indptr, indices, x, weights, order, mean, ahead, out, lo, hi):  # type: ignore[no-untyped-def]
    one = x.dtype.type(1)
    width = x.shape[1]
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        scale = one / x.dtype.type(last - first) if mean and last > first else one
        row = out[v]
        row[:] = 0
        for k in range(first, last):
            w0, x0 = weights[order[k]], x[indices[k]]
            for j in range(width):
                row[j] += w0[j] * x0[j]
        for j in range(width):
            row[j] *= scale


def extreme(
    indptr: np.ndarray, indices: np.ndarray, x: np.ndarray, smallest: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Take the largest (or smallest) of each group of rows of x, shape (N, D), element by element.

    Of equal values the first is taken, and NaN before all others, so that it is propagated. Returns
    the values, shape (V, D), zeros where a group is empty, and the row of x that each came from,
    int64, N where a group is empty. Groups are as for :func:`weighted_sum`.
    """
    rows = len(indptr) - 1
    out = np.empty((rows, x.shape[1]), x.dtype)
    winner = np.empty((rows, x.shape[1]), np.int64)
    sign = x.dtype.type(-1 if smallest else 1)

    def work(lo: int, hi: int) -> None:
        _extreme(indptr, indices, x, sign, out, winner, lo, hi)

    cost = 2 * len(indices) * x.shape[1] + out.size
    threads.run_chunks(work, rows, threads.grain_for(rows, cost))
    return out, winner


@njit(nogil=True, cache=True)
def _extreme(indptr, indices, x, sign, out, winner, lo, hi):  # type: ignore[no-untyped-def]
    width = x.shape[1]
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        best, who = out[v], winner[v]
        n = indices[first] if last > first else len(x)
        for j in range(width):
            best[j] = x[n, j] if last > first else 0
            who[j] = n
        for k in range(first + 1, last):
            n = indices[k]
            row = x[n]
            for j in range(width):
                if sign * row[j] > sign * best[j] or (row[j] != row[j] and best[j] == best[j]):
                    best[j] = row[j]
                    who[j] = n
