"""The border of a part of a graph: edges of other parts, and the halo nodes at their ends.

The graph is given as edges grouped by destination, with IDs of which each part owns a range. These
kernels find the edges of other parts that touch a part, their halo nodes, and local IDs.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit

_CHUNKS = 64


def edges_near(
    indptr: np.ndarray,
    indices: np.ndarray,
    near_src: np.ndarray,
    near_dst: np.ndarray,
    lo: int,
    hi: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find edges with an end at a marked node whose destination is not in ``range(lo, hi)``.

    ``indptr`` and ``indices`` are edges grouped by destination; ``near_src`` and ``near_dst``,
    bool, mark nodes; the part owns the destinations in ``range(lo, hi)``. Returns ascending slots,
    and both ends of the edge in each, shapes (K,).

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.kernels import halo
    >>> near = np.array([True, False, False])
    >>> halo.edges_near(np.array([0, 1, 2, 4]), np.array([1, 0, 0, 2]), near, near, 0, 1)
    (array([1, 2], dtype=int32), array([0, 0]), array([1, 2], dtype=int32))
    """
    num_dst = len(indptr) - 1
    # Chunks of about equally many edges, whatever the distribution of degrees.
    rows = np.searchsorted(indptr, np.linspace(0, len(indices), _CHUNKS + 1)[1:-1])
    rows = np.concatenate([[0], rows, [num_dst]])
    first = np.zeros(_CHUNKS + 1, np.int64)

    def count(a: int, b: int) -> None:
        for i in range(a, b):
            first[i + 1] = _count_near(
                indptr, indices, near_src, near_dst, lo, hi, rows[i], rows[i + 1]
            )

    threads.run_chunks(count, _CHUNKS, threads.grain_for(_CHUNKS, len(indices)))
    np.cumsum(first, out=first)
    slots = np.empty(first[-1], ids_dtype(len(indices)))
    src = np.empty(first[-1], indices.dtype)
    dst = np.empty(first[-1], ids_dtype(num_dst))

    def fill(a: int, b: int) -> None:
        for i in range(a, b):
            _fill_near(
                *(indptr, indices, near_src, near_dst, lo, hi, rows[i], rows[i + 1]),
                *(first[i], slots, src, dst),
            )

    threads.run_chunks(fill, _CHUNKS, threads.grain_for(_CHUNKS, len(indices)))
    return slots, src, dst


@njit(nogil=True, cache=True)
def _count_near(indptr, indices, near_src, near_dst, lo, hi, a, b):  # type: ignore[no-untyped-def]
    found = 0
    for v in range(a, b):
        if lo <= v < hi:
            continue
        if near_dst[v]:
            found += indptr[v + 1] - indptr[v]
        else:
            for slot in range(indptr[v], indptr[v + 1]):
                found += near_src[indices[slot]]
    return found


@njit(nogil=True, cache=True)
def _fill_near(indptr, indices, near_src, near_dst, lo, hi, a, b, at, slots, src, dst):  # type: ignore[no-untyped-def]
    for v in range(a, b):
        if lo <= v < hi:
            continue
        whole = near_dst[v]
        for slot in range(indptr[v], indptr[v + 1]):
            u = indices[slot]
            if whole or near_src[u]:
                slots[at] = slot
                src[at] = u
                dst[at] = v
                at += 1


@njit(nogil=True, cache=True)
def spread(indptr, indices, near_src, near_dst, next_src, next_dst):  # type: ignore[no-untyped-def]
    """Mark, in ``next_src`` and ``next_dst``, the other ends of edges at marked nodes."""
    for v in range(len(indptr) - 1):
        whole = near_dst[v]
        for slot in range(indptr[v], indptr[v + 1]):
            u = indices[slot]
            if whole:
                next_src[u] = True
            if near_src[u]:
                next_dst[v] = True


@njit(nogil=True, cache=True)
def mark_outside(ids, lo, hi, mark):  # type: ignore[no-untyped-def]
    """Mark those IDs that are not in ``range(lo, hi)``."""
    for i in range(len(ids)):
        if not lo <= ids[i] < hi:
            mark[ids[i]] = True


def localize(ids: np.ndarray, lo: int, hi: int, position: np.ndarray, out: np.ndarray) -> None:
    """Write local IDs: ``id - lo`` for those in ``range(lo, hi)``, the position for others.

    ``ids`` and ``out`` have shape (K,), int32 or int64; ``position``, shape (N,), holds local IDs
    of the halo nodes, and its other entries are not read.
    """

    def write(a: int, b: int) -> None:
        _localize(ids[a:b], lo, hi, position, out[a:b])

    threads.run_chunks(write, len(ids), threads.grain_for(len(ids), 4 * len(ids)))


@njit(nogil=True, cache=True)
def _localize(ids, lo, hi, position, out):  # type: ignore[no-untyped-def]
    for i in range(len(ids)):
        v = ids[i]
        if lo <= v < hi:
            out[i] = v - lo
        else:
            out[i] = position[v]
