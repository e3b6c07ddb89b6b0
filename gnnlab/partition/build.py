"""Building the arrays of each part from an assignment of nodes to parts.

First all nodes get new IDs, sorted by (part, old ID), so that a part owns a range of them. Then the
edges are grouped by new destination, which gives each edge its new ID: its slot. An edge belongs to
the part of its destination, so a part owns a range of slots as well. A part stores its ranges and
the *halo*: edges of other parts that touch its nodes, and endpoints that others own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.partition.book import GraphPartitionBook

Arrays = dict[str, np.ndarray]


@dataclass
class IDMap:
    """New type-wise IDs of the nodes of one type; IDs are int32 or int64."""

    ranges: np.ndarray  # (K + 1,), int64: part p owns the new IDs ranges[p] to ranges[p + 1] − 1
    new: np.ndarray  # (N,): the new ID of each old one
    old: np.ndarray  # (N,): the old ID of each new one


def renumber_nodes(part_of: np.ndarray, num_parts: int) -> IDMap:
    """Number the nodes of one type part by part, within a part in the old order.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.partition.build import renumber_nodes
    >>> renumber_nodes(np.array([1, 0, 1, 0]), 2)
    IDMap(ranges=array([0, 2, 4]), new=array([2, 0, 3, 1], dtype=int32),
              old=array([1, 3, 0, 2], dtype=int32))
    """
    ranges, old = kernels.csc.group_by(part_of, None, num_parts)
    new = np.empty_like(old)
    new[old] = np.arange(len(old), dtype=old.dtype)
    return IDMap(ranges, new, old)


@dataclass
class Edges:
    """Edges of one type under new IDs, grouped by destination; slot k is the k-th of them."""

    indptr: np.ndarray  # (N_dst + 1,), int64
    indices: np.ndarray  # (E,): new source ID of each edge
    old: np.ndarray  # (E,): old ID of each edge


@dataclass
class HaloEdges:
    """Edges of one type that touch a part but belong to other parts, by new edge ID; (H,) each."""

    eids: np.ndarray  # new IDs
    src: np.ndarray  # new IDs of both ends
    dst: np.ndarray
    old: np.ndarray  # old edge IDs


@dataclass
class RenumberedGraph:
    """A whole graph under new IDs, and its partition book: a part owns in-edges of its nodes."""

    nodes: dict[str, IDMap]
    edges: dict[EdgeType, Edges]

    def __post_init__(self) -> None:
        """Build the partition book."""
        nodes = {ntype: each.ranges for ntype, each in self.nodes.items()}
        edges = {etype: each.indptr[nodes[etype[2]]] for etype, each in self.edges.items()}
        self.book = GraphPartitionBook(0, nodes, edges)

    def owned_edges(self, etype: EdgeType, part_id: int) -> Edges:
        """Return the edges of one type that a part owns; ``indptr`` is over its own nodes."""
        edges = self.edges[etype]
        lo, hi = self.book.node_ranges[etype[2]][part_id : part_id + 2]
        first, last = self.book.edge_ranges[etype][part_id : part_id + 2]
        indptr = edges.indptr[lo : hi + 1] - first
        return Edges(indptr, edges.indices[first:last], edges.old[first:last])

    def halo_edges(self, part_id: int, num_hops: int) -> dict[EdgeType, HaloEdges]:
        """Find other parts' edges with an end within ``num_hops`` − 1 steps of a part's nodes.

        A step follows an edge in either direction.
        """
        near = {}
        for ntype, ranges in self.book.node_ranges.items():
            near[ntype] = np.zeros(ranges[-1], np.bool_)
            near[ntype][ranges[part_id] : ranges[part_id + 1]] = True
        for _ in range(num_hops - 1):
            further = {ntype: mark.copy() for ntype, mark in near.items()}
            for (u, _, v), edges in self.edges.items():
                ends = near[u], near[v], further[u], further[v]
                kernels.halo.spread(edges.indptr, edges.indices, *ends)
            near = further
        found = {}
        for (u, name, v), edges in self.edges.items():
            lo, hi = self.book.node_ranges[v][part_id : part_id + 2]
            eids, src, dst = kernels.halo.edges_near(
                edges.indptr, edges.indices, near[u], near[v], lo, hi
            )
            found[u, name, v] = HaloEdges(eids, src, dst, edges.old[eids])
        return found


def renumber_graph(g: Graph, part_of: np.ndarray, num_parts: int) -> RenumberedGraph:
    """Give all nodes and edges of a graph new IDs; ``part_of`` is that of :func:`assign`."""
    parts = split_by_type(g, part_of)
    nodes = {ntype: renumber_nodes(part, num_parts) for ntype, part in parts.items()}
    edges = {
        etype: _sort_edges(relation, nodes[etype[0]].new, nodes[etype[2]].new)
        for etype, relation in g.relations.items()
    }
    return RenumberedGraph(nodes, edges)


def _sort_edges(relation: Relation, new_src: np.ndarray, new_dst: np.ndarray) -> Edges:
    """Sort edges by new destination, then by old ID."""
    rows, (src, dst) = kernels.gather.rows, relation.coo()
    keys = rows(torch.from_numpy(new_dst), dst).numpy()
    indptr, old = kernels.csc.group_by(keys, None, len(new_dst))
    del keys
    indices = rows(rows(torch.from_numpy(new_src), src), torch.from_numpy(old)).numpy()
    return Edges(indptr, indices, old)


def assemble_part(
    graph: RenumberedGraph, part_id: int, num_hops: int
) -> tuple[dict[str, Arrays], dict[EdgeType, Arrays]]:
    """Assemble the structure of one part in its form on disk.

    Returns node type → {"halo": new type-wise IDs, ascending; "orig_id": of all local nodes},
    int64, and canonical edge type → {"indptr", "indices", "orig_id", "halo"}; see ``EdgePart``.
    """
    owned = {etype: graph.owned_edges(etype, part_id) for etype in graph.edges}
    halo_edges = graph.halo_edges(part_id, num_hops)
    position, nodes, lo, hi = {}, {}, {}, {}
    for ntype, ranges in graph.book.node_ranges.items():
        lo[ntype], hi[ntype] = ranges[part_id : part_id + 2].tolist()
        mark = np.zeros(ranges[-1], np.bool_)
        for etype, others in halo_edges.items():
            if etype[0] == ntype:
                for ids in (owned[etype].indices, others.src):
                    kernels.halo.mark_outside(ids, lo[ntype], hi[ntype], mark)
            if etype[2] == ntype:
                kernels.halo.mark_outside(others.dst, lo[ntype], hi[ntype], mark)
        halo = np.flatnonzero(mark)
        num_owned = hi[ntype] - lo[ntype]
        position[ntype] = np.empty(ranges[-1], ids_dtype(num_owned + len(halo)))
        position[ntype][halo] = np.arange(num_owned, num_owned + len(halo))
        old = graph.nodes[ntype].old
        ids = np.concatenate([old[lo[ntype] : hi[ntype]], old[halo]])
        nodes[ntype] = {"halo": halo, "orig_id": ids.astype(np.int64)}

    def local(ntype: str, *ids: np.ndarray) -> np.ndarray:
        out = np.empty(sum(map(len, ids)), position[ntype].dtype)
        for target, some in zip(np.split(out, [len(ids[0])]), ids, strict=False):
            kernels.halo.localize(some, lo[ntype], hi[ntype], position[ntype], target)
        return out

    edges = {}
    for etype, own in owned.items():
        u, _, v = etype
        others = halo_edges[etype]
        # Edges of other parts are sorted by destination, as rows are.
        rows = np.arange(hi[v] - lo[v] + 1, len(nodes[v]["orig_id"]) + 1)
        ends = np.searchsorted(local(v, others.dst), rows) + len(own.indices)
        edges[etype] = {
            "indptr": np.concatenate([own.indptr, ends]),
            "indices": local(u, own.indices, others.src),
            "orig_id": np.concatenate([own.old, others.old]),
            "halo": others.eids.astype(np.int64),
        }
    return nodes, edges


def split_by_type(g: Graph, part_of: np.ndarray) -> dict[str, np.ndarray]:
    """Split an array over homogeneous node IDs of a graph by node type."""
    sizes = [g.num_nodes(ntype) for ntype in g.ntypes]
    return dict(zip(g.ntypes, np.split(part_of, np.cumsum(sizes)[:-1]), strict=True))
