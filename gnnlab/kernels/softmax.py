"""Softmax over groups of edges: the weights of attention sum to 1 at each node.

As usual, the largest score of each group is subtracted before the exponential, which then cannot
overflow. The exponential is computed by torch's vectorized operator.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit


def softmax(indptr: np.ndarray, order: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return ``exp(scores)`` divided by its sum over each group: shape (E, H).

    Group v is the slots ``indptr[v]:indptr[v + 1]``; ``order``, shape (E,), int32 or int64, is the
    row of ``scores`` of each slot, each once. ``scores`` has shape (E, H), float32 or float64,
    contiguous.
    """
    out = np.empty_like(scores)
    rows = len(indptr) - 1
    grain = threads.grain_for(rows, 4 * scores.size + rows)
    threads.run_chunks(lambda lo, hi: _shift(indptr, order, scores, out, lo, hi), rows, grain)
    torch.from_numpy(out).exp_()
    threads.run_chunks(lambda lo, hi: _normalize(indptr, order, out, lo, hi), rows, grain)
    return out


def softmax_grad(
    indptr: np.ndarray, order: np.ndarray, out: np.ndarray, grad: np.ndarray
) -> np.ndarray:
    """Return the gradient with respect to the scores: ``out · (grad − Σ_group out · grad)``.

    ``out``, shape (E, H), is the result of :func:`softmax`, ``grad`` the gradient of that.
    """
    result = np.empty_like(out)
    rows = len(indptr) - 1
    grain = threads.grain_for(rows, 4 * out.size + rows)
    threads.run_chunks(lambda lo, hi: _grad(indptr, order, out, grad, result, lo, hi), rows, grain)
    return result


@njit(nogil=True, cache=True)
def _shift(indptr, order, scores, out, lo, hi):  # type: ignore[no-untyped-def]
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        for h in range(scores.shape[1]):
            if last > first:
                top = scores[order[first], h]
            for k in range(first + 1, last):
                top = max(top, scores[order[k], h])
            for k in range(first, last):
                out[order[k], h] = scores[order[k], h] - top


@njit(nogil=True, cache=True)
def _normalize(indptr, order, out, lo, hi):  # type: ignore[no-untyped-def]
    zero, one = out.dtype.type(0), out.dtype.type(1)
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        for h in range(out.shape[1]):
            total = zero
            for k in range(first, last):
                total += out[order[k], h]
            scale = one / total if last > first else one
            for k in range(first, last):
                out[order[k], h] *= scale


@njit(nogil=True, cache=True)
def _grad(indptr, order, out, grad, result, lo, hi):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)
    for v in range(lo, hi):
        first, last = indptr[v], indptr[v + 1]
        for h in range(out.shape[1]):
            total = zero
            for k in range(first, last):
                total += out[order[k], h] * grad[order[k], h]
            for k in range(first, last):
                e = order[k]
                result[e, h] = out[e, h] * (grad[e, h] - total)
