"""Optimizer steps on some rows of a matrix.

A step reads and writes a few numbers per element and computes little, so memory bandwidth limits
it: each kernel is one pass over the rows, which are distinct and divided among threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit


def adagrad(
    weight: np.ndarray,
    total: np.ndarray,
    rows: np.ndarray,
    grads: np.ndarray,
    step: int,
    lr: float,
    eps: float,
) -> None:
    """Update rows as :class:`torch.optim.Adagrad` does, in place.

    ``weight`` and ``total``, shape (N, D), float32 or float64, are the matrix and its sums of
    squared gradients; ``rows``, shape (U,), int64, are distinct, and ``grads`` has shape (U, D).
    The update is the same in every step; ``eps`` is added to the divisor.

    References
    ----------
    Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic
    Optimization", JMLR 2011.
    """
    one = weight.dtype.type
    _run(lambda lo, hi: _adagrad(weight, total, rows, grads, one(lr), one(eps), lo, hi), grads)


def adam(
    weight: np.ndarray,
    mean: np.ndarray,
    square: np.ndarray,
    rows: np.ndarray,
    grads: np.ndarray,
    step: int,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    """Update rows as :class:`torch.optim.SparseAdam` does, in place.

    The running means of a row only change in steps that have a gradient for it; the bias correction
    counts the steps of the whole matrix, from 1. ``mean`` and ``square``, shape (N, D), are the
    running means of gradients and of their squares, which decay by ``beta1`` and ``beta2``. Others
    are as for :func:`adagrad`.

    References
    ----------
    Kingma and Ba, "Adam: A Method for Stochastic Optimization", ICLR 2015.
    """
    one = weight.dtype.type
    size = one(lr * math.sqrt(1 - beta2**step) / (1 - beta1**step))
    rest1, rest2, eps = one(1 - beta1), one(1 - beta2), one(eps)

    def work(lo: int, hi: int) -> None:
        _adam(weight, mean, square, rows, grads, size, rest1, rest2, eps, lo, hi)

    _run(work, grads)


def _run(work: Callable[[int, int], None], grads: np.ndarray) -> None:
    threads.run_chunks(work, len(grads), threads.grain_for(len(grads), 4 * grads.size))


@njit(nogil=True, cache=True)
def _adagrad(weight, total, rows, grads, lr, eps, lo, hi):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        w, t, g = weight[rows[i]], total[rows[i]], grads[i]
        for j in range(len(g)):
            t[j] += g[j] * g[j]
            w[j] -= lr * (g[j] / (np.sqrt(t[j]) + eps))


@njit(nogil=True, cache=True)
def _adam(weight, mean, square, rows, grads, size, rest1, rest2, eps, lo, hi):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        w, m, s, g = weight[rows[i]], mean[rows[i]], square[rows[i]], grads[i]
        for j in range(len(g)):
            m[j] += (g[j] - m[j]) * rest1
            s[j] += (g[j] * g[j] - s[j]) * rest2
            w[j] -= size * (m[j] / (np.sqrt(s[j]) + eps))
