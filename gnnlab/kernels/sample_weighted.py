"""Neighbor sampling in proportion to weights.

The weights of all in-edges of all seeds are first gathered into one flat array, so that the
processor overlaps the cache misses; an excluded edge gets weight 0, and weight 0 is never taken.
Then every edge gets the score w / −log(u), and the k edges of a seed with the largest scores are
taken, which is equivalent to drawing one after another in proportion to the weights.

References
----------
Efraimidis and Spirakis, "Weighted random sampling with a reservoir", IPL 2006.
"""

from __future__ import annotations

import numpy as np

from gnnlab.errors import InvalidInput
from gnnlab.kernels import threads
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import draw, mix, uniform

_GRAIN = 1024
_SMALL = 32
_TINY = 5e-324  # the smallest positive number


class BadWeight(InvalidInput):
    """The weight of an edge is negative, infinite or NaN."""

    def __init__(self, edge: int, weight: float) -> None:
        super().__init__(edge, weight)
        self.edge, self.weight = edge, weight

    def __str__(self) -> str:
        """Return the message, with the edge and its weight."""
        return (
            f"the weight of edge {self.edge} is {self.weight}; weights must be finite and not "
            "negative"
        )


def sample_slots(
    indptr: np.ndarray,
    seeds: np.ndarray,
    fanout: int,
    key: int,
    replace: bool,
    weights: np.ndarray,
    eids: np.ndarray | None,
    excluded: np.ndarray,
    names: np.ndarray,
    dtype: type[np.signedinteger],
) -> tuple[np.ndarray, np.ndarray]:
    """Return ``ptr`` and ``slots`` of :func:`gnnlab.kernels.sample.sample_neighbors`."""
    order = np.empty(0, np.int64) if eids is None else eids
    begin = np.concatenate([[0], np.cumsum(indptr[seeds + 1] - indptr[seeds])])
    weight = np.empty(begin[-1], np.float64)
    candidates = np.empty(len(seeds), np.int64)
    ptr = np.zeros(len(seeds) + 1, np.int64)

    def gather(lo: int, hi: int) -> None:
        _gather(indptr, seeds, lo, hi, weights, order, excluded, begin, weight, candidates)

    threads.run_chunks(gather, len(seeds), _GRAIN)
    if (candidates < 0).any():
        i = int(np.argmin(candidates))
        row = weight[begin[i] : begin[i + 1]]
        place = int(np.argmin((row >= 0) & (row < np.inf)))
        slot = indptr[seeds[i]] + place
        raise BadWeight(int(slot if eids is None else eids[slot]), float(row[place]))
    count = candidates
    if fanout >= 0:
        count = np.where(candidates > 0, fanout, 0) if replace else np.minimum(candidates, fanout)
    np.cumsum(count, out=ptr[1:])
    slots = np.empty(ptr[-1], dtype)

    def pick(lo: int, hi: int) -> None:
        one_by_one = replace and fanout >= 0
        name = np.uint64(key)
        _pick(indptr, seeds, names, lo, hi, one_by_one, name, begin, weight, candidates, ptr, slots)

    threads.run_chunks(pick, len(seeds), _GRAIN)
    return ptr, slots


@njit(nogil=True, cache=True)
def _gather(indptr, seeds, lo, hi, weights, order, excluded, begin, weight, candidates):  # type: ignore[no-untyped-def]
    """Fill ``weight`` and count the positive weights of each seed; −1 if a weight is invalid."""
    for i in range(lo, hi):
        first, last = indptr[seeds[i]], indptr[seeds[i] + 1]
        out = begin[i] - first
        if len(order):
            for slot in range(first, last):
                weight[out + slot] = weights[order[slot]]
        else:
            for slot in range(first, last):
                weight[out + slot] = weights[slot]
    for i in range(lo, hi):
        first, last = indptr[seeds[i]], indptr[seeds[i] + 1]
        if len(excluded):
            x = np.searchsorted(excluded, first)
            while x < len(excluded) and excluded[x] < last:
                weight[begin[i] + excluded[x] - first] = 0
                x += 1
        positive, sound = 0, True
        for j in range(begin[i], begin[i + 1]):
            positive += weight[j] > 0
            sound &= 0 <= weight[j] < np.inf
        candidates[i] = positive if sound else -1


@njit(nogil=True, cache=True)
def _pick(  # type: ignore[no-untyped-def]
    indptr, seeds, names, lo, hi, one_by_one, key, begin, weight, candidates, ptr, slots
):
    for i in range(lo, hi):
        first = indptr[seeds[i]]
        row = weight[begin[i] : begin[i + 1]]
        out = slots[ptr[i] : ptr[i + 1]]
        stream = mix(key + np.uint64(names[i]))
        if one_by_one and len(out):
            _draw_one_by_one(stream, row, first, out)
        else:
            _keep_best(stream, row, first, out, candidates[i])


@njit(inline="always")
def _draw_one_by_one(stream, row, first, out):  # type: ignore[no-untyped-def]
    for j in range(1, len(row)):
        row[j] += row[j - 1]
    for j in range(len(out)):
        point = uniform(draw(stream, j)) * row[-1]
        lo, hi = 0, len(row) - 1
        while lo < hi:
            middle = (lo + hi) // 2
            if row[middle] <= point:
                lo = middle + 1
            else:
                hi = middle
        out[j] = first + lo


@njit(inline="always")
def _keep_best(stream, row, first, out, candidates):  # type: ignore[no-untyped-def]
    threshold = _TINY
    if 0 < len(out) < candidates:
        # The counter is the edge's position in its row, so excluding others does not change it.
        for j in range(len(row)):
            if row[j] > 0:
                row[j] = max(row[j] / -np.log(uniform(draw(stream, j))), _TINY)
        threshold = _largest(row, len(out))
    kept = 0
    for j in range(len(row)):
        if row[j] >= threshold and kept < len(out):
            out[kept] = first + j
            kept += 1


@njit
def _largest(values, k):  # type: ignore[no-untyped-def]
    """Return the k-th largest of positive values."""
    if k > _SMALL:
        return np.partition(values, len(values) - k)[len(values) - k]
    best = np.zeros(k)  # ascending
    for value in values:
        if value > best[0]:
            j = 1
            while j < k and best[j] < value:
                best[j - 1] = best[j]
                j += 1
            best[j - 1] = value
    return best[0]
