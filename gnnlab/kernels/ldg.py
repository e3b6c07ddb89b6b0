"""Dealing nodes to parts in one look at each: linear deterministic greedy (LDG).

Nodes come by one after the other. Each joins the part that holds most of its neighbors, weighted by
the room that the part has left: friends attract, crowds repel. A first pass knows little, because
most neighbors have no part yet; so the stream is gone through again with what the last pass decided
(*restreaming*). Where the graph has communities the result comes close to that of METIS; where it
is more like a map, of which each part ends up with many small patches, it does not. LDG needs no
memory but the parts themselves, and one node's neighbors at a time: edges may come from a file.

References
----------
Stanton and Kliot, "Streaming graph partitioning for large distributed graphs", KDD 2012.
Nishimura and Ugander, "Restreaming graph partitioning", KDD 2013.
"""

from __future__ import annotations

import numpy as np

from gnnlab.kernels import threads
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit
from gnnlab.kernels.rng import draw, mix, uniform

__all__ = ["place", "undirected"]


@njit(nogil=True, cache=True)
def place(nodes, first, neighbors, weights, room, part, load):  # type: ignore[no-untyped-def]
    """Give each node of a stream the part that suits it best now.

    Parameters
    ----------
    nodes : ndarray
        Shape (B,), int64: the nodes in the order in which they come.
    first : int
        The node whose neighbors stand first in ``neighbors``.
    neighbors : tuple of tuple of ndarray
        One or more times ``indptr`` and ``indices``: row v − ``first`` holds neighbors of v.
    weights : ndarray
        Shape (N, C), int64: how much of each of C loads a node brings.
    room : ndarray
        Shape (C,), float64: the most that a part should hold of each load.
    part : ndarray
        Shape (N,), int32, changed: part of each node, −1 where it has none yet.
    load : ndarray
        Shape (K, C), int64, changed: what each part holds now.

    Returns
    -------
    int
        How many nodes changed their part.
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
    """The part of most neighbors times free share; the emptiest where the node fits nowhere."""
    best, emptiest = -1, 0
    highest, least = -1.0, np.inf
    for p in range(num_parts):
        full = 0.0
        for c in range(num_loads):
            if weight[c] > 0:
                full = max(full, (load[p, c] + weight[c]) / room[c])
        if full < least:
            least, emptiest = full, p
        # A node without placed neighbors goes where there is most room.
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

    Parameters
    ----------
    incoming, outgoing : tuple of ndarray
        ``indptr``, shape (N + 1,), and ``indices`` of the edges grouped by destination and by
        source.
    dtype : type
        Of the result's ``indices``.
    most : float
        Thin out what is dense: where both ends of an edge have d > ``most`` neighbors or more, it
        is kept with probability ``most`` / d. (Degrees are the larger one of in and out.)

    Returns
    -------
    indptr, indices : ndarray
        Shape (N + 1,), int64, and one entry a neighbor.

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

    grain = max(1, -(-num_nodes // (2 * threads.num_threads())))
    threads.run_chunks(join, num_nodes, grain)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(indptr[-1], dtype)
    if len(indices):
        threads.run_chunks(join, num_nodes, grain)
    return indptr, indices


@njit(nogil=True, cache=True)
def _join(in_ptr, in_idx, out_ptr, out_idx, lo, hi, seen, indptr, indices, most):  # type: ignore[no-untyped-def]
    """Write the distinct neighbors of nodes lo … hi − 1; without room, only count them."""
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
    """Draw whether the edge between two nodes is kept; the same for (u, v) and (v, u)."""
    degree_u = max(in_ptr[u + 1] - in_ptr[u], out_ptr[u + 1] - out_ptr[u])
    degree_v = max(in_ptr[v + 1] - in_ptr[v], out_ptr[v + 1] - out_ptr[v])
    fewer = min(degree_u, degree_v)
    return fewer <= most or _chance(u, v) * fewer < most


@njit(inline="always")
def _chance(u, v):  # type: ignore[no-untyped-def]
    return uniform(draw(mix(np.uint64(min(u, v))), max(u, v)))
