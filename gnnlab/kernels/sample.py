"""Neighbor sampling on the CPU.

For each seed node sample ``fanout`` of its in-edges. The work is divided into flat loops, which
first count and then pick for all seeds, so that the processor overlaps the cache misses of many
nodes. Each seed has a random stream of its own, named by its ID (see ``rng``), so the result does
not depend on the order of the seeds or on the number of threads.

Floyd's method picks k of d positions with k draws and without rejection. Sampling in proportion to
weights is in ``sample_weighted``.

References
----------
Bentley and Floyd, "Programming Pearls: A Sample of Brilliance", CACM 1987.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.kernels import gather, sample_weighted, threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import below, draw, mix

__all__ = ["edge_slots", "sample_neighbors"]

ALL = -1
_SCAN_LIMIT = 32
_GRAIN = 4096
_NOTHING = np.empty(0, np.int64)


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
        64-bit name of this call's randomness.
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
    ptr : ndarray
        Shape (S + 1,), int64; the edges of seed i are ``ptr[i]:ptr[i + 1]``.
    slots : ndarray
        Shape (K,), the slot of each sampled edge.
    sources : ndarray
        Shape (K,), ``indices[slots]``.
    """
    excluded = _NOTHING if excluded is None else excluded
    names = seeds if names is None else names
    dtype = ids_dtype(len(indices))
    if weights is not None and len(weights):
        ptr, slots = sample_weighted.sample_slots(
            indptr, seeds, fanout, key, replace, weights, eids, excluded, names, dtype
        )
    else:
        ptr, slots = _sample_slots(indptr, seeds, fanout, key, replace, excluded, names, dtype)
    # torch's gather is twice as fast as a compiled loop here
    sources = gather.rows(torch.from_numpy(indices), torch.from_numpy(slots)).numpy()
    return ptr, slots, sources


def _sample_slots(
    indptr: np.ndarray,
    seeds: np.ndarray,
    fanout: int,
    key: int,
    replace: bool,
    excluded: np.ndarray,
    names: np.ndarray,
    dtype: type[np.signedinteger],
) -> tuple[np.ndarray, np.ndarray]:
    left_out = _index(excluded, int(indptr[-1]))
    ptr = np.empty(len(seeds) + 1, np.int64)
    _count(indptr, seeds, fanout, replace, left_out, ptr)
    slots = np.empty(ptr[-1], dtype)

    def pick(lo: int, hi: int) -> None:
        name = np.uint64(key)
        _pick(indptr, seeds, names, lo, hi, fanout, replace, name, left_out, ptr, slots)

    threads.run_chunks(pick, len(seeds), _GRAIN)
    return ptr, slots


def edge_slots(
    indptr: np.ndarray, eids: np.ndarray | None, dst: np.ndarray, edges: np.ndarray
) -> np.ndarray:
    """Return the sorted slots of edges, the form of ``excluded``.

    Parameters
    ----------
    indptr : ndarray
        Shape (N + 1,), int64.
    eids : ndarray, optional
        Shape (E,), the edge ID of each slot, ascending within a row; None when slot k is edge k.
    dst, edges : ndarray
        Shape (X,): destination and ID of each edge.

    Returns
    -------
    ndarray
        Shape (X,), int64, ascending.
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


def _index(excluded: np.ndarray, num_slots: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Index the sorted slots: add the position where each run of 2**shift slots begins.

    Most rows have no excluded slot. With about four runs per excluded slot, checking that takes two
    lookups in a table that stays in the cache, instead of a binary search.
    """
    shift = max(num_slots.bit_length() - (4 * len(excluded)).bit_length(), 0)
    runs = np.bincount(excluded >> shift, minlength=(num_slots >> shift) + 1)
    return excluded, np.concatenate([[0], np.cumsum(runs)]), shift


@njit(inline="always")
def _first_at_least(left_out, slot):  # type: ignore[no-untyped-def]
    excluded, begin, shift = left_out
    lo, hi = begin[slot >> shift], begin[(slot >> shift) + 1]
    while lo < hi:
        middle = (lo + hi) // 2
        if excluded[middle] < slot:
            lo = middle + 1
        else:
            hi = middle
    return lo


@njit(inline="always")
def _quota(candidates, fanout, replace):  # type: ignore[no-untyped-def]
    if candidates == 0 or fanout < 0:
        return candidates
    return fanout if replace else min(candidates, fanout)


@njit(nogil=True, cache=True)
def _count(indptr, seeds, fanout, replace, left_out, ptr):  # type: ignore[no-untyped-def]
    ptr[0] = 0
    for i in range(len(seeds)):
        first, last = indptr[seeds[i]], indptr[seeds[i] + 1]
        d = last - first
        if len(left_out[0]):
            d -= _first_at_least(left_out, last) - _first_at_least(left_out, first)
        ptr[i + 1] = _quota(d, fanout, replace)
    for i in range(len(seeds)):
        ptr[i + 1] += ptr[i]


@njit(nogil=True, cache=True)
def _pick(indptr, seeds, names, lo, hi, fanout, replace, key, left_out, ptr, slots):  # type: ignore[no-untyped-def]
    taken = np.zeros(_widest(indptr, seeds, lo, hi) if fanout > _SCAN_LIMIT else 0, np.bool_)
    for i in range(lo, hi):
        first, last = indptr[seeds[i]], indptr[seeds[i] + 1]
        out, k = ptr[i], ptr[i + 1] - ptr[i]
        d = last - first
        x = 0
        if len(left_out[0]):
            x = _first_at_least(left_out, first)
            d -= _first_at_least(left_out, last) - x
        if k == d and not (replace and fanout >= 0):
            for j in range(k):
                slots[out + j] = first + j
        else:
            _choose(mix(key + np.uint64(names[i])), first, d, k, replace, slots, out, taken)
        if d < last - first:
            _skip_excluded(left_out[0], x, last, slots, out, k)


@njit(inline="always")
def _widest(indptr, seeds, lo, hi):  # type: ignore[no-untyped-def]
    widest = 0
    for i in range(lo, hi):
        widest = max(widest, indptr[seeds[i] + 1] - indptr[seeds[i]])
    return widest


@njit(inline="always")
def _choose(key, first, d, k, replace, slots, out, taken):  # type: ignore[no-untyped-def]
    if replace:
        for j in range(k):
            slots[out + j] = first + below(draw(key, j), d)
    elif k <= _SCAN_LIMIT:
        for j in range(k):
            top = d - k + j
            choice = first + below(draw(key, j), top + 1)
            for q in range(out, out + j):
                if slots[q] == choice:
                    choice = first + top
                    break
            slots[out + j] = choice
    else:
        # The same picks; a table replaces the scan of the earlier picks.
        taken[:d] = False
        for j in range(k):
            top = d - k + j
            choice = below(draw(key, j), top + 1)
            choice = top if taken[choice] else choice
            taken[choice] = True
            slots[out + j] = first + choice


@njit(inline="always")
def _skip_excluded(excluded, x, last, slots, out, k):  # type: ignore[no-untyped-def]
    # Picks count only candidates: add 1 for each excluded slot at or before a pick.
    for j in range(out, out + k):
        slot = slots[j]
        y = x
        while y < len(excluded) and excluded[y] < last and excluded[y] <= slot:
            slot += 1
            y += 1
        slots[j] = slot
