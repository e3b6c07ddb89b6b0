"""Streaming partitioning: linear deterministic greedy (LDG).

Nodes are processed one by one. Each is assigned to the part with most of its neighbors, weighted by
the part's free capacity. In the first pass most neighbors have no part yet, so the stream is
processed again, starting from the assignment of the last pass (*restreaming*). For graphs with
communities the result is close to that of METIS; for map-like graphs it is not: there each part
consists of many small pieces. LDG needs memory only for the assignment and the neighbors of one
node at a time, so the edges may be read from a file.

References
----------
Stanton and Kliot, "Streaming graph partitioning for large distributed graphs", KDD 2012.
Nishimura and Ugander, "Restreaming graph partitioning", KDD 2013.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.kernels import threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import draw, mix, uniform


@njit(nogil=True, cache=True)
def place(nodes, first, neighbors, weights, room, part, load):  # type: ignore[no-untyped-def]
    """Assign each node of a stream to the best part at that time; return how many parts changed.

    Parameters
    ----------
    nodes : ndarray
        Shape (B,), int64: the nodes in stream order.
    first, neighbors : int, tuple of tuple of ndarray
        One or more pairs ``indptr``, ``indices``: row v − ``first`` holds neighbors of v.
    weights : ndarray
        Shape (N, C), int64: contribution of each node to each of C loads.
    room : ndarray
        Shape (C,), float64: capacity of a part for each load.
    part : ndarray
        Shape (N,), int32, changed in place: part of each node, −1 if it has none yet.
    load : ndarray
        Shape (K, C), int64, changed in place: current loads of each part.
    """
    num_parts, num_loads = load.shape
    near = np.empty(num_parts, np.int64)
    moved = 0
    for v in nodes:
        near[:] = 0
        for indptr, indices in neighbors:
            for slot in range(indptr[v - first], indptr[v - first + 1]):
                u = indices[slot]
                if u != v and part[u] >= 0:
                    near[part[u]] += 1
        before = part[v]
        if before >= 0:
            load[before] -= weights[v]
        best = _best(near, weights[v], room, load, num_parts, num_loads)
        part[v] = best
        load[best] += weights[v]
        moved += best != before
    return moved


@njit(inline="always")
def _best(near, weight, room, load, num_parts, num_loads):  # type: ignore[no-untyped-def]
    """Return the part with most neighbors times free share; if none has room, the emptiest."""
    best, emptiest = -1, 0
    highest, least = -1.0, np.inf
    for p in range(num_parts):
        full = 0.0
        for c in range(num_loads):
            if weight[c] > 0:
                full = max(full, (load[p, c] + weight[c]) / room[c])
        if full < least:
            least, emptiest = full, p
        # A node without assigned neighbors goes to the part with most room.
        score = (near[p] + 1e-3) * (1.0 - full)
        if full <= 1.0 and score > highest:
            highest, best = score, p
    return best if best >= 0 else emptiest


def undirected(
    incoming: tuple[np.ndarray, np.ndarray],
    outgoing: tuple[np.ndarray, np.ndarray],
    dtype: type[np.signedinteger] = np.int64,
    most: float = np.inf,
) -> tuple[np.ndarray, np.ndarray]:
    """List the neighbors of each node in either direction, each once and never itself.

    Takes and returns ``indptr`` and ``indices``: of the edges grouped by destination and by source,
    and of the neighbors. Dense regions are thinned out: an edge whose ends both have at least
    d > ``most`` neighbors, the larger degree of in and out, is kept with probability ``most`` / d.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.kernels import ldg
    >>> edges = np.array([0, 1, 3]), np.array([1, 0, 1])  # 1 → 0, 0 → 1 and 1 → 1
    >>> ldg.undirected(edges, edges)
    (array([0, 1, 2]), array([1, 0]))
    """
    num_nodes = len(incoming[0]) - 1
    indptr, indices = np.zeros(num_nodes + 1, np.int64), np.empty(0, dtype)

    def join(lo: int, hi: int) -> None:
        seen = np.full(num_nodes, -1, ids_dtype(num_nodes))
        _join(*incoming, *outgoing, lo, hi, seen, indptr, indices, most)

    grain = max(1, -(-num_nodes // (2 * torch.get_num_threads())))
    threads.run_chunks(join, num_nodes, grain)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], dtype)
    if len(indices):
        threads.run_chunks(join, num_nodes, grain)
    return indptr, indices


@njit(nogil=True, cache=True)
def _join(in_ptr, in_idx, out_ptr, out_idx, lo, hi, seen, indptr, indices, most):  # type: ignore[no-untyped-def]
    """Write the distinct neighbors of nodes lo … hi − 1; if ``indices`` is empty, only count."""
    writes = len(indices) > 0
    for v in range(lo, hi):
        seen[v] = v
        free = indptr[v] if writes else 0
        for side in range(2):
            ptr, idx = (in_ptr, in_idx) if side == 0 else (out_ptr, out_idx)
            for slot in range(ptr[v], ptr[v + 1]):
                u = idx[slot]
                if seen[u] != v:
                    seen[u] = v
                    if most < np.inf and not _stays(in_ptr, out_ptr, u, v, most):
                        continue
                    if writes:
                        indices[free] = u
                    free += 1
        if not writes:
            indptr[v + 1] = free


@njit(inline="always")
def _stays(in_ptr, out_ptr, u, v, most):  # type: ignore[no-untyped-def]
    """Decide at random whether an edge is kept; the same for (u, v) and (v, u)."""
    degree_u = max(in_ptr[u + 1] - in_ptr[u], out_ptr[u + 1] - out_ptr[u])
    degree_v = max(in_ptr[v + 1] - in_ptr[v], out_ptr[v + 1] - out_ptr[v])
    fewer = min(degree_u, degree_v)
    return fewer <= most or _chance(u, v) * fewer < most


@njit(inline="always")
def _chance(u, v):  # type: ignore[no-untyped-def]
    return uniform(draw(mix(np.uint64(min(u, v))), max(u, v)))
