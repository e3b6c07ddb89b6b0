"""One part of a partitioned graph, opened from disk.

Local IDs number the part's own nodes (*inner*) from 0, then those of other parts that its edges
touch (*halo*), by ID. A part has all in-edges of inner nodes, of halo nodes those that touch it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from gnnlab.errors import PartitionError
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, ETYPE, NID, NTYPE, ONE_ETYPE, EdgeType
from gnnlab.graph.relation import Adjacency, Relation, narrow
from gnnlab.partition.book import GraphPartitionBook
from gnnlab.partition.files import (
    PartConfig,
    edge_folder,
    node_folder,
    open_arrays,
    read_config,
    unquote_name,
)


@dataclass
class NodePart:
    """The nodes of one type.

    Attributes
    ----------
    num_inner : int
        Number of nodes that the part owns.
    orig_ids : torch.Tensor
        Shape (local nodes,), int64: IDs in the user's graph, within the type.
    halo : torch.Tensor
        Shape (halo nodes,), int64, ascending: new type-wise IDs of the nodes of other parts.
    data : dict
        Features of the inner nodes.
    """

    num_inner: int
    orig_ids: torch.Tensor
    halo: torch.Tensor
    data: dict[str, torch.Tensor]


@dataclass
class EdgePart:
    """The edges of one type, grouped by local destination.

    Attributes
    ----------
    num_inner : int
        Number of edges that the part owns. They come first: edge k is the k-th of the part's range.
    indptr : torch.Tensor
        Shape (local destinations + 1,), int64.
    indices : torch.Tensor
        Shape (local edges,), int32 or int64: local source of each edge.
    orig_ids : torch.Tensor
        Shape (local edges,), int32 or int64: IDs in the user's graph, within the type.
    halo : torch.Tensor
        Shape (local edges − num_inner,), int64, ascending: new type-wise IDs of the other edges.
    data : dict
        Features of the inner edges.
    """

    num_inner: int
    indptr: torch.Tensor
    indices: torch.Tensor
    orig_ids: torch.Tensor
    halo: torch.Tensor
    data: dict[str, torch.Tensor]


@dataclass
class Part:
    """One part: its structure, its features and the book of all parts."""

    part_id: int
    book: GraphPartitionBook
    graph_name: str
    nodes: dict[str, NodePart]
    edges: dict[EdgeType, EdgePart]

    def new_nids(self, ntype: str) -> torch.Tensor:
        """Return the new type-wise ID of each local node; int64."""
        return torch.cat([self.book.partid2nids(self.part_id, ntype), self.nodes[ntype].halo])

    def new_eids(self, etype: EdgeType) -> torch.Tensor:
        """Return the new type-wise ID of each local edge; int64."""
        return torch.cat([self.book.partid2eids(self.part_id, etype), self.edges[etype].halo])

    def relation(self, etype: EdgeType) -> Relation:
        """Return the structure of one edge type over local IDs; slot k is local edge k."""
        edges = self.edges[etype]
        num_src, num_dst = (len(self.nodes[ntype].orig_ids) for ntype in (etype[0], etype[2]))
        return Relation(num_src, num_dst, csc=Adjacency(edges.indptr, edges.indices))

    def graph(self) -> Graph:
        """Return the part as a graph with one node type and one edge type.

        Nodes are sorted by homogeneous ID, inner ones first; edges likewise.

        Returns
        -------
        Graph
            ``ndata``: "inner_node" (uint8), "part_id" (int64), "orig_id" (within the type, int64),
            ``dgl.NID`` (homogeneous, int64) and, with several types, ``dgl.NTYPE`` (int32).
            ``edata``: "inner_edge", "orig_id", ``dgl.EID`` and ``dgl.ETYPE`` likewise.
        """
        nodes = {
            ntype: _LocalIDs(self.new_nids(ntype), each.orig_ids, each.num_inner)
            for ntype, each in self.nodes.items()
        }
        edges = {
            etype: _LocalIDs(self.new_eids(etype), each.orig_ids, each.num_inner)
            for etype, each in self.edges.items()
        }
        relations = {etype: self.relation(etype) for etype in self.edges}
        return _homogeneous_graph(self.book, nodes, edges, relations)


def open_part(
    part_config: str | os.PathLike[str] | PartConfig,
    part_id: int,
    verify: bool = True,
    load_feats: bool = True,
) -> Part:
    """Open one part of a partitioned graph; its arrays are mapped into memory.

    Parameters
    ----------
    part_config : path or PartConfig
        The JSON file that ``partition_graph`` wrote, or the result of :func:`read_config`.
    verify : bool
        Whether to compare checksums and to check the structure. Reads each file once.
    load_feats : bool
        Whether to open the features too.

    Returns
    -------
    Part
        Tensors may be written to; the files do not change.
    """
    config = part_config if isinstance(part_config, PartConfig) else read_config(part_config)
    structure = f"part{part_id}/graph/"
    found = open_arrays(config, part_id, lambda p: load_feats or p.startswith(structure), verify)
    book = config.book(part_id)

    def take(folder: str, name: str) -> torch.Tensor:
        path = f"{folder}/{name}.npy"
        if path not in found:
            raise PartitionError(f"{config.path} does not list {path}; partition the graph again")
        return found[path]

    def features(folder: str) -> dict[str, torch.Tensor]:
        paths = [path for path in found if path.startswith(folder + "/")]
        return {unquote_name(path[len(folder) + 1 : -len(".npy")]): found[path] for path in paths}

    nodes, edges = {}, {}
    for ntype, ranges in book.node_ranges.items():
        graph = node_folder(part_id, "graph", ntype)
        nodes[ntype] = NodePart(
            int(ranges[part_id + 1] - ranges[part_id]),
            take(graph, "orig_id"),
            take(graph, "halo"),
            features(node_folder(part_id, "node_data", ntype)),
        )
    for etype, ranges in book.edge_ranges.items():
        graph = edge_folder(part_id, "graph", etype)
        edges[etype] = EdgePart(
            int(ranges[part_id + 1] - ranges[part_id]),
            take(graph, "indptr"),
            take(graph, "indices"),
            take(graph, "orig_id"),
            take(graph, "halo"),
            features(edge_folder(part_id, "edge_data", etype)),
        )
    part = Part(part_id, book, config.graph_name, nodes, edges)
    _check(part, config, verify)
    return part


def _check(part: Part, config: PartConfig, values: bool) -> None:
    """Check that array shapes are consistent; with ``values``, that all indices are in range."""

    def expect(right: bool, folder: str, what: str) -> None:
        if not right:
            raise PartitionError(
                f"{config.path.parent / folder}: {what} does not fit the rest of {config.path}; "
                "copy both again from one folder, or partition the graph again"
            )

    for ntype, nodes in part.nodes.items():
        where, bound = node_folder(part.part_id, "graph", ntype), part.book.node_ranges[ntype][-1]
        owned = part.book.node_ranges[ntype][part.part_id : part.part_id + 2]
        expect(_is_list(nodes.halo), where, "halo")
        expect(_is_list(nodes.orig_ids, nodes.num_inner + len(nodes.halo)), where, "orig_id")
        if values:
            expect(_is_halo(nodes.halo, owned, bound), where, "halo")
            expect(_within(nodes.orig_ids, bound), where, "orig_id")
        for name, data in nodes.data.items():
            expect(data.shape[:1] == (nodes.num_inner,), where, f"feature {name!r}")
    for etype, edges in part.edges.items():
        where, bound = edge_folder(part.part_id, "graph", etype), part.book.edge_ranges[etype][-1]
        num_src, num_dst = (len(part.nodes[ntype].orig_ids) for ntype in (etype[0], etype[2]))
        owned = part.book.edge_ranges[etype][part.part_id : part.part_id + 2]
        expect(_is_list(edges.halo), where, "halo")
        total, indptr = edges.num_inner + len(edges.halo), edges.indptr
        expect(_is_list(edges.indices, total), where, "indices")
        expect(_is_list(edges.orig_ids, total), where, "orig_id")
        expect(_is_list(indptr, num_dst + 1), where, "indptr")
        ends = [int(indptr[i]) for i in (0, part.nodes[etype[2]].num_inner, -1)]
        expect(ends == [0, edges.num_inner, total], where, "indptr")
        if values:
            expect(bool((torch.diff(indptr) >= 0).all()), where, "indptr")
            expect(_within(edges.indices, num_src), where, "indices")
            expect(_is_halo(edges.halo, owned, bound), where, "halo")
            expect(_within(edges.orig_ids, bound), where, "orig_id")
        for name, data in edges.data.items():
            expect(data.shape[:1] == (edges.num_inner,), where, f"feature {name!r}")


def _is_list(ids: torch.Tensor, length: int | None = None) -> bool:
    fits = ids.dim() == 1 and length in (None, len(ids))
    return fits and ids.dtype in (torch.int32, torch.int64)


def _is_halo(ids: torch.Tensor, owned: np.ndarray, bound: int) -> bool:
    """Whether IDs ascend, exist, and belong to other parts."""
    lo, hi = owned.tolist()
    own = torch.searchsorted(ids.long(), torch.tensor([lo, hi]))
    ascends = bool((torch.diff(ids) > 0).all())
    return _within(ids, bound) and ascends and bool(own[0] == own[1])


def _within(ids: torch.Tensor, bound: int) -> bool:
    return len(ids) == 0 or (int(ids.min()) >= 0 and int(ids.max()) < bound)


class _LocalIDs(NamedTuple):
    """The local nodes, or edges, of one type; those that the part owns come first."""

    new: torch.Tensor  # type-wise IDs
    original: torch.Tensor  # IDs in the user's graph
    num_owned: int


def _homogeneous_graph(
    book: GraphPartitionBook,
    nodes: Mapping[str, _LocalIDs],
    edges: Mapping[EdgeType, _LocalIDs],
    relations: Mapping[EdgeType, Relation],
) -> Graph:
    """Stack the types of a part, in the order of type IDs."""
    new_nodes = [book.map_to_homo_nid(ids.new, ntype) for ntype, ids in nodes.items()]
    new_edges = [book.map_to_homo_eid(ids.new, etype) for etype, ids in edges.items()]
    ndata, node_order = _columns(new_nodes, [*nodes.values()], NID, NTYPE, "inner_node")
    edata, edge_order = _columns(new_edges, [*edges.values()], EID, ETYPE, "inner_edge")
    ndata["part_id"] = book.nid2partid(ndata[NID])
    total = len(node_order)
    if book.is_homogeneous:
        del ndata[NTYPE], edata[ETYPE]
        (relation,) = relations.values()
    else:
        positions = torch.empty_like(node_order)
        positions[node_order] = torch.arange(total)
        of_type = dict(zip(nodes, positions.split([*map(len, new_nodes)]), strict=True))
        ends = []
        for (u, _, v), each in relations.items():
            src, dst = each.coo()
            ends.append((of_type[u][src], of_type[v][dst]))
        src, dst = (torch.cat(side)[edge_order] for side in zip(*ends, strict=True))
        relation = Relation(total, total, (narrow(src, total), narrow(dst, total)))
    return Graph(
        {"_N": total},
        {ONE_ETYPE: relation},
        {"_N": Frame(total, ndata)},
        {ONE_ETYPE: Frame(relation.num_edges, edata, what="edge")},
    )


def _columns(
    new: list[torch.Tensor], kinds: list[_LocalIDs], own_id: str, type_id: str, inner: str
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Stack types and sort: owned ones first, each half by homogeneous ID."""
    ids = torch.cat(new)
    owned = torch.cat([torch.arange(len(each.new)) < each.num_owned for each in kinds])
    order = torch.argsort(ids, stable=True)
    order = torch.cat([order[owned[order]], order[~owned[order]]])
    counts = torch.tensor([*map(len, new)])
    kind = torch.repeat_interleave(torch.arange(len(kinds), dtype=torch.int32), counts)
    original = torch.cat([each.original.long() for each in kinds])
    columns = {inner: owned.to(torch.uint8), "orig_id": original, own_id: ids, type_id: kind}
    return {name: column[order] for name, column in columns.items()}, order
