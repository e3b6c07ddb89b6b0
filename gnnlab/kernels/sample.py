"""Neighbor sampling on the CPU.

For each seed node sample ``fanout`` of its in-edges. The first loop counts for all seeds, so that
the processor overlaps the cache misses of many nodes. The second picks edges and prefetches their
sources, which it reads a few seeds later. Each seed has a random stream of its own, named by its ID
(see ``rng``), so the result does not depend on the order of the seeds or on the number of threads.

Floyd's method picks k of d positions with k draws and without rejection. Up to six picks are
compared with each other, more are marked in a table. Sampling by weight is in ``sample_weighted``.

References
----------
Bentley and Floyd, "Programming Pearls: A Sample of Brilliance", CACM 1987.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import gather_numba, sample_weighted, threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit, prefetch, unsigned
from gnnlab.kernels.rng import below, draw, mix

__all__ = ["edge_slots", "sample_neighbors"]

ALL = -1
_FEW = 6  # picks, to be compared with each other: faster than a table of those taken
_SCAN_LIMIT = 32
_TABLE = 4096  # entries, one byte each: stays in the nearest cache
_RUN = 32  # seeds whose sources are prefetched before the first is read
_GRAIN = 4096
_NOTHING = np.empty(0, np.int64)
_NO_INDEX = np.empty(0, np.uint64), np.zeros(1, np.uint64), 0
_ONE = np.uint64(1)


def sample_neighbors(
    indptr: np.ndarray,
    indices: np.ndarray,
    seeds: np.ndarray,
    fanout: int,
    key: int,
    *,
    replace: bool = False,
    weights: np.ndarray | None = None,
    eids: np.ndarray | None = None,
    excluded: np.ndarray | None = None,
    names: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sample in-edges of each seed.

    Parameters
    ----------
    indptr, indices : ndarray
        The graph grouped by destination, shapes (N + 1,) int64 and (E,) int32 or int64.
    seeds : ndarray
        Shape (S,), IDs in range (not checked); may repeat.
    fanout : int
        In-edges per seed; −1 takes all that are allowed.
    key : int
        64-bit key of the random numbers of this call.
    replace : bool
        Draw with replacement: a seed that has in-edges then gets exactly ``fanout``.
    weights : ndarray, optional
        Shape (E,) by edge ID: bool (a mask), float32 or float64. Edges of weight 0 are never taken.
    eids : ndarray, optional
        Shape (E,), the edge ID of each slot, for ``weights``; None when slot k is edge k.
    excluded : ndarray, optional
        Shape (X,), int64, sorted slots that must not be taken.
    names : ndarray, optional
        Shape (S,): names of the seeds' random streams, by default their IDs. For a part of a graph
        pass original IDs, so that partitioning does not change the sample.

    Returns
    -------
    ptr, slots, sources : ndarray
        The edges of seed i are ``ptr[i]:ptr[i + 1]``, int64. For each of the K edges, its slot and
        its source ``indices[slot]``, shape (K,).
    """
    names = seeds if names is None else names
    dtype = ids_dtype(len(indices))
    if weights is not None and len(weights):
        excluded = _NOTHING if excluded is None else excluded
        ptr, slots = sample_weighted.sample_slots(
            indptr, seeds, fanout, key, replace, weights, eids, excluded, names, dtype
        )
        return ptr, slots, gather_numba.take(indices, slots, np.empty(len(slots), indices.dtype))
    left_out = _index(excluded, int(indptr[-1]))
    ptr = np.empty(len(seeds) + 1, np.int64)
    rows = unsigned(indptr), unsigned(seeds), unsigned(names)
    replace = replace and fanout >= 0
    begin = unsigned(ptr)
    _count(rows[0], rows[1], fanout, replace, left_out, begin)
    slots, sources = np.empty(ptr[-1], dtype), np.empty(ptr[-1], indices.dtype)
    arrays = (*rows, unsigned(indices), begin, unsigned(slots), unsigned(sources))
    table = None if fanout <= _FEW else _TABLE  # None compiles the loop without a table
    if fanout > _SCAN_LIMIT:
        table = max(_TABLE, int(_widest(*rows[:2])))

    def pick(lo: int, hi: int) -> None:
        _pick(lo, hi, table, replace, np.uint64(key), left_out, *arrays)

    threads.run_chunks(pick, len(seeds), _GRAIN)
    return ptr, slots, sources


def edge_slots(
    indptr: np.ndarray, eids: np.ndarray | None, dst: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """Return the sorted slots of edges, shape (X,), int64: the form of ``excluded``.

    ``dst`` and ``edges``, shape (X,), are destination and ID of each edge. ``eids``, shape (E,),
    has the edge ID of each slot, ascending within a row; None when slot k is edge k.
    """
    if eids is None:
        return np.unique(edges).astype(np.int64)
    return np.unique(_find_slots(indptr, eids, dst, edges))


@njit(nogil=True, cache=True)
def _find_slots(indptr, eids, dst, edges):  # type: ignore[no-untyped-def]
    slots = np.empty(len(edges), np.int64)
    for i in range(len(edges)):
        lo, hi = indptr[dst[i]], indptr[dst[i] + 1]
        while lo < hi:
            middle = (lo + hi) // 2
            if eids[middle] < edges[i]:
                lo = middle + 1
            else:
                hi = middle
        slots[i] = lo
    return slots


def _index(excluded: np.ndarray | None, num_slots: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Index the sorted slots: add the position where each run of 2**shift slots begins.

    Most rows have no excluded slot. With about four runs per excluded slot, checking that takes two
    lookups in a table that stays in the cache, instead of a binary search.
    """
    if excluded is None or not len(excluded):
        return _NO_INDEX
    shift = max(num_slots.bit_length() - (4 * len(excluded)).bit_length(), 0)
    runs = np.bincount(excluded >> shift, minlength=(num_slots >> shift) + 1)
    return unsigned(excluded), unsigned(np.concatenate([[0], np.cumsum(runs)])), shift


@njit(inline="always")
def _first_at_least(left_out, slot):  # type: ignore[no-untyped-def]
    excluded, begin, shift = left_out
    run = slot >> np.uint64(shift)
    lo, hi = begin[run], begin[run + _ONE]
    while lo < hi:
        middle = (lo + hi) >> _ONE
        if excluded[middle] < slot:
            lo = middle + _ONE
        else:
            hi = middle
    return lo


@njit(nogil=True, cache=True)
def _count(indptr, seeds, fanout, replace, left_out, ptr):  # type: ignore[no-untyped-def]
    total = ptr[0] = np.uint64(0)
    everything = np.uint64(fanout)  # a fanout below 0 is larger than any degree
    for i in range(len(seeds)):
        first, last = indptr[seeds[i]], indptr[seeds[i] + _ONE]
        d = last - first
        if len(left_out[0]):
            d -= _first_at_least(left_out, last) - _first_at_least(left_out, first)
        if replace and d:
            d = everything
        total += min(d, everything)
        ptr[i + 1] = total


@njit(nogil=True, cache=True)
def _pick(  # type: ignore[no-untyped-def]
    lo, hi, table, replace, key, left_out, indptr, seeds, names, indices, ptr, slots, sources
):
    # Indices are unsigned: for others numba tests at each access whether they count from the end.
    if table is not None:
        taken = np.zeros(table, np.bool_)
    for begin in range(lo, hi, _RUN):
        end = min(begin + _RUN, hi)
        for i in range(begin, end):
            first, last = indptr[seeds[i]], indptr[seeds[i] + _ONE]
            out, stop = ptr[i], ptr[i + 1]
            k, d = stop - out, last - first
            x = np.uint64(0)
            if len(left_out[0]):
                x = _first_at_least(left_out, first)
                d -= _first_at_least(left_out, last) - x
            stream = mix(key + np.uint64(names[i]))
            if k == d and not replace:
                for j in range(k):
                    slots[out + j] = first + j
            elif replace:
                for j in range(k):
                    slots[out + j] = first + np.uint64(below(draw(stream, j), d))
            elif table is None:
                _choose_few(stream, first, d, k, slots, out)
            else:
                _choose(stream, first, d, k, slots, out, taken)
            if d < last - first:
                _skip_excluded(left_out[0], x, last, slots, out, stop)
            for e in range(out, stop):
                prefetch(indices, slots[e])
        for e in range(ptr[begin], ptr[end]):
            sources[e] = indices[slots[e]]


@njit(nogil=True, cache=True)
def _widest(indptr, seeds):  # type: ignore[no-untyped-def]
    widest = np.uint64(0)
    for i in range(len(seeds)):
        widest = max(widest, indptr[seeds[i] + _ONE] - indptr[seeds[i]])
    return widest


@njit(inline="always")
def _choose_few(stream, first, d, k, slots, out):  # type: ignore[no-untyped-def]
    for j in range(k):
        choice = first + np.uint64(below(draw(stream, j), d - k + j + _ONE))
        for q in range(out, out + j):
            if slots[q] == choice:
                choice = first + d - k + j
                break
        slots[out + j] = choice


@njit(inline="always")
def _choose(stream, first, d, k, slots, out, taken):  # type: ignore[no-untyped-def]
    if d > np.uint64(len(taken)):  # the same picks, compared one by one
        _choose_few(stream, first, d, k, slots, out)
        return
    spare = d - k
    for j in range(k):
        slots[out + j] = np.uint64(below(draw(stream, j), spare + j + _ONE))
    for j in range(k):
        choice = np.uint64(slots[out + j])
        choice = spare + j if taken[choice] else choice
        taken[choice] = True
        slots[out + j] = first + choice
    for j in range(k):
        taken[slots[out + j] - first] = False


@njit(inline="always")
def _skip_excluded(excluded, x, last, slots, out, stop):  # type: ignore[no-untyped-def]
    # Picks count only candidates: add 1 for each excluded slot at or before a pick.
    for j in range(out, stop):
        slot = np.uint64(slots[j])
        y = x
        while y < len(excluded) and excluded[y] < last and excluded[y] <= slot:
            slot += _ONE
            y += _ONE
        slots[j] = slot
