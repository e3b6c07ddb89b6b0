"""relu and dropout in one pass.

As separate operators they read and write the layer three times, and drawing the dropout mask can
cost more than the layer's matrix product. Here one 64-bit hash decides for four elements, 16 bits
each, and no mask is stored: the result itself shows which elements were kept.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import draw

LEVELS = 1 << 16  # dropout probabilities are multiples of 1 / LEVELS


def relu_dropout(x: np.ndarray, threshold: int, key: int) -> np.ndarray:
    """Return ``max(x, 0)``, each element dropped with probability ``threshold / LEVELS``.

    ``x`` has shape (N,), float32 or float64, contiguous; ``threshold`` is from 0 (keep all) to
    LEVELS − 1, and ``key`` that of the random numbers of this call, 64 bits. Kept elements are
    divided by the probability of being kept; a kept NaN stays NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.kernels import activation
    >>> out = activation.relu_dropout(np.ones(100_000), activation.LEVELS // 2, key=1)
    >>> np.unique(out), round(out.mean(), 1)
    (array([0., 2.]), np.float64(1.0))
    """
    out = np.empty_like(x)
    scale = x.dtype.type(LEVELS / (LEVELS - threshold))
    limit, name = np.uint64(threshold), np.uint64(key)
    quads = -(-len(x) // 4)

    def work(lo: int, hi: int) -> None:
        part = slice(4 * lo, 4 * hi)
        _relu_dropout(x[part], out[part], limit, scale, name, lo)

    threads.run_chunks(work, quads, threads.grain_for(quads, 2 * len(x)))
    return out


def relu_dropout_grad(out: np.ndarray, grad: np.ndarray, threshold: int) -> np.ndarray:
    """Return the gradient with respect to x from the result and the gradient with respect to it."""
    result = np.empty_like(out)
    scale = out.dtype.type(LEVELS / (LEVELS - threshold))

    def work(lo: int, hi: int) -> None:
        _relu_dropout_grad(out[lo:hi], grad[lo:hi], result[lo:hi], scale)

    threads.run_chunks(work, len(out), threads.grain_for(len(out), len(out)))
    return result


# Both get a chunk that starts at 0: a loop over an index that may be negative is not vectorized.
@njit(nogil=True, cache=True)
def _relu_dropout(x, out, limit, scale, key, first):  # type: ignore[no-untyped-def]
    zero = x.dtype.type(0)
    quads = len(x) // 4
    for q in range(quads):
        bits = draw(key, first + q)
        for j in range(4):
            value = x[4 * q + j]
            keep = ((bits >> np.uint64(16 * j)) & np.uint64(0xFFFF)) >= limit
            out[4 * q + j] = value * scale if (keep and not value <= zero) else zero
    if len(x) > 4 * quads:
        bits = draw(key, first + quads)
        for i in range(4 * quads, len(x)):
            keep = (bits & np.uint64(0xFFFF)) >= limit
            bits >>= np.uint64(16)
            out[i] = x[i] * scale if (keep and not x[i] <= zero) else zero


@njit(nogil=True, cache=True)
def _relu_dropout_grad(out, grad, result, scale):  # type: ignore[no-untyped-def]
    zero = out.dtype.type(0)
    for i in range(len(out)):
        result[i] = grad[i] * scale if not out[i] <= zero else zero
