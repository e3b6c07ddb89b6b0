"""Sorting edges by one of their ends.

A graph is given as a list of edges (COO). To find the in-edges of a node v quickly, the edges are
grouped by destination: ``indptr[v]:indptr[v + 1]`` is then the slice of v's in-edges (CSC; grouped
by source it is called CSR). Grouping is a counting sort, and it is stable: within a group the edges
keep the order in which they were given, which makes sampling reproducible.

For large graphs a plain counting sort writes to random addresses. Two passes are faster: the first
distributes the edges to buckets of adjacent keys, the second sorts each bucket inside the cache.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.kernels import threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit

_SMALL = 1 << 17
_BUCKETS = 512


def group_by(
    keys: np.ndarray, values: np.ndarray | None, num_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Group values by key, stably.

    Both have shape (E,), int32 or int64; keys are in ``range(num_groups)`` (not checked), and
    values None stand for the positions 0 … E−1. Returns ``indptr``, shape (num_groups + 1,), int64,
    and the grouped values: group k is ``indptr[k]:indptr[k + 1]``.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.kernels import csc
    >>> csc.group_by(np.array([2, 0, 2]), np.array([7, 8, 9]), 3)
    (array([0, 1, 1, 3]), array([8, 7, 9]))
    """
    dtype = ids_dtype(len(keys)) if values is None else values.dtype
    source = np.empty(0, dtype) if values is None else values
    grouped = np.empty(len(keys), dtype)
    if len(keys) < _SMALL or num_groups < _BUCKETS:
        return _group_small(keys, source, num_groups, grouped), grouped
    return _group_large(keys, source, num_groups, grouped), grouped


def contains(
    indptr: np.ndarray, indices: np.ndarray, groups: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Return whether each value occurs in its group, shape (K,): whether pairs of nodes have edges.

    ``indptr`` and ``indices`` are edges grouped by one end; ``groups``, in range (not checked), and
    ``values`` have shape (K,), int32 or int64.
    """
    found = np.zeros(len(groups), np.bool_)

    def search(lo: int, hi: int) -> None:
        _contains(indptr, indices, groups, values, lo, hi, found)

    threads.run_chunks(search, len(groups), 4096)
    return found


@njit(nogil=True, cache=True)
def insert(old, at, new, out):  # type: ignore[no-untyped-def]
    """Write ``old`` with new rows inserted to ``out``: one pass of copies, no sort.

    Row j of ``new`` is written before the old row ``at[j]`` and after earlier new rows; ``at``,
    shape (K,), int64, ascends. Arrays have the same number of dimensions, 1 or 2.
    """
    done = 0
    for j in range(len(at)):
        stop = at[j]
        out[done + j : stop + j] = old[done:stop]
        out[stop + j] = new[j]
        done = stop
    out[done + len(at) :] = old[done:]


@njit(nogil=True, cache=True)
def _contains(indptr, indices, groups, values, lo, hi, found):  # type: ignore[no-untyped-def]
    for i in range(lo, hi):
        for slot in range(indptr[groups[i]], indptr[groups[i] + 1]):
            if indices[slot] == values[i]:
                found[i] = True
                break


@njit(nogil=True, cache=True)
def _group_small(keys, values, num_groups, grouped):  # type: ignore[no-untyped-def]
    indptr = np.zeros(num_groups + 1, np.int64)
    for e in range(len(keys)):
        indptr[keys[e] + 1] += 1
    for k in range(num_groups):
        indptr[k + 1] += indptr[k]
    free = indptr[:-1].copy()
    if len(values) == len(keys):
        for e in range(len(keys)):
            k = keys[e]
            grouped[free[k]] = values[e]
            free[k] += 1
    else:
        for e in range(len(keys)):
            k = keys[e]
            grouped[free[k]] = e
            free[k] += 1
    return indptr


def _group_large(
    keys: np.ndarray, values: np.ndarray, num_groups: int, grouped: np.ndarray
) -> np.ndarray:
    shift = max((num_groups - 1).bit_length() - _BUCKETS.bit_length() + 1, 0)
    num_buckets = ((num_groups - 1) >> shift) + 1
    workers = torch.get_num_threads()
    step = -(-len(keys) // workers)
    counts = np.zeros((workers, num_buckets), np.int64)

    def count(lo: int, hi: int) -> None:
        _count_buckets(keys, lo, hi, shift, counts[lo // step])

    threads.run_chunks(count, len(keys), step)
    # free[t, b]: where thread t writes its first edge of bucket b
    starts = np.concatenate([[0], np.cumsum(counts.sum(0))])
    free = starts[:-1] + np.cumsum(counts, 0) - counts
    # The low bits of the key are all that the second pass needs.
    low_keys = np.empty(len(keys), np.uint16 if shift <= 16 else np.uint32)
    dealt = np.empty(len(keys), grouped.dtype)

    def deal(lo: int, hi: int) -> None:
        _deal_to_buckets(keys, values, lo, hi, shift, free[lo // step], low_keys, dealt)

    threads.run_chunks(deal, len(keys), step)
    indptr = np.empty(num_groups + 1, np.int64)
    indptr[-1] = len(keys)

    def sort(lo: int, hi: int) -> None:
        _sort_buckets(low_keys, dealt, starts, lo, hi, shift, indptr, grouped)

    threads.run_chunks(sort, num_buckets, -(-num_buckets // (4 * workers)))
    return indptr


@njit(nogil=True, cache=True)
def _count_buckets(keys, lo, hi, shift, counts):  # type: ignore[no-untyped-def]
    for e in range(lo, hi):
        counts[keys[e] >> shift] += 1


@njit(nogil=True, cache=True)
def _deal_to_buckets(keys, values, lo, hi, shift, free, low_keys, dealt):  # type: ignore[no-untyped-def]
    low = (1 << shift) - 1
    positions = len(values) != len(keys)
    for e in range(lo, hi):
        k = keys[e]
        p = free[k >> shift]
        free[k >> shift] = p + 1
        low_keys[p] = k & low
        if positions:
            dealt[p] = e
        else:
            dealt[p] = values[e]


@njit(nogil=True, cache=True)
def _sort_buckets(low_keys, dealt, starts, lo, hi, shift, indptr, grouped):  # type: ignore[no-untyped-def]
    width = 1 << shift
    free = np.empty(width, np.int64)
    for b in range(lo, hi):
        first = b << shift
        last = min(first + width, len(indptr) - 1)
        free[:] = 0
        for p in range(starts[b], starts[b + 1]):
            free[low_keys[p]] += 1
        total = starts[b]
        for i in range(last - first):
            count = free[i]
            free[i] = total
            indptr[first + i] = total
            total += count
        for p in range(starts[b], starts[b + 1]):
            i = low_keys[p]
            grouped[free[i]] = dealt[p]
            free[i] += 1
