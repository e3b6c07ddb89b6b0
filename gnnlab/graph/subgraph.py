"""Subgraphs.

A subgraph keeps the original IDs of its nodes and edges in ``ndata[NID]`` and ``edata[EID]``, and
has their features, which are gathered when they are first read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.core import GraphCore, GraphT, copied_node_frames
from gnnlab.graph.frame import Frame, LazyTensor
from gnnlab.graph.ids import edge_dict, node_dict, read_ids
from gnnlab.graph.names import EID, NID, EdgeType
from gnnlab.graph.queries import incident_slots
from gnnlab.graph.relation import Relation

_SMALL_SHARE = 4


def node_subgraph(
    graph: GraphT, nodes: Any, *, relabel_nodes: bool = True, store_ids: bool = True
) -> GraphT:
    """Return the graph of the given nodes and of all edges between them.

    Parameters
    ----------
    nodes : IDs, boolean mask, or dict of them by node type
        Distinct. Types that are left out of a dict keep no node.
    relabel_nodes : bool
        Number the kept nodes from 0, in the order given. Without it all nodes stay.
    store_ids : bool
        Keep original IDs in ``ndata[NID]`` and ``edata[EID]``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> part = g.subgraph([1, 2, 0])
    >>> part.edges(), part.edata[dgl.EID]
    ((tensor([2, 0]), tensor([0, 1])), tensor([0, 1]))
    """
    if not isinstance(graph, GraphCore):  # a DistGraph: its edges are on servers
        return graph.subgraph(nodes, relabel_nodes=relabel_nodes, store_ids=store_ids)
    given = node_dict(graph, nodes)
    kept = {ntype: _distinct(graph, given, ntype) for ntype in graph.ntypes}
    position = {}
    for ntype, ids in kept.items():
        position[ntype] = torch.full((graph.num_nodes(ntype),), -1, device=graph.device)
        position[ntype][ids] = numbers = torch.arange(len(ids), device=graph.device)
        if not torch.equal(position[ntype][ids], numbers):
            raise InvalidInput(
                f"nodes of type {ntype!r} repeat; give each once: torch.unique(nodes)"
            )
    edges = {}
    for etype, relation in graph.relations.items():
        if _SMALL_SHARE * len(kept[etype[2]]) < relation.num_dst:
            # Only in-edges of the kept nodes can be in the result, so no others are read.
            slots = incident_slots(relation.csc(), kept[etype[2]])[1]
            inside = position[etype[0]][relation.csc().indices[slots]] >= 0
            edges[etype] = torch.unique(relation.csc().eids_at(slots[inside]))
        else:
            src, dst = relation.coo()
            inside = (position[etype[0]][src] >= 0) & (position[etype[2]][dst] >= 0)
            edges[etype] = inside.nonzero().flatten()
    return keep_edges(graph, edges, kept if relabel_nodes else None, store_ids)


def edge_subgraph(
    graph: GraphT,
    edges: Any,
    *,
    relabel_nodes: bool = True,
    store_ids: bool = True,
    preserve_nodes: bool | None = None,
) -> GraphT:
    """Return the graph of the given edges and of their ends.

    Parameters
    ----------
    edges : IDs, boolean mask, or dict of them by edge type
    relabel_nodes : bool
        Keep only the ends of the edges, numbered from 0 in the order of their first appearance
        among the sources of the edges, then the destinations; one edge type after the other.
        Without it all nodes stay.
    store_ids : bool
        Keep original IDs in ``ndata[NID]`` and ``edata[EID]``.
    preserve_nodes : bool, optional
        Old name for ``not relabel_nodes``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> g.edge_subgraph([0, 3]).ndata[dgl.NID]
    tensor([0, 3, 1])
    """
    relabel = relabel_nodes if preserve_nodes is None else not preserve_nodes
    if not isinstance(graph, GraphCore):
        return graph.edge_subgraph(edges, relabel_nodes=relabel, store_ids=store_ids)
    given = edge_dict(graph, edges)
    kept = {
        # An edge may be given twice, so [0, 0, 1] need not be a mask.
        etype: read_ids(given.get(etype, []), relation.num_edges, "edge", graph.device)
        for etype, relation in graph.relations.items()
    }
    if not relabel:
        return keep_edges(graph, kept, None, store_ids)
    used: dict[str, list[torch.Tensor]] = {ntype: [] for ntype in graph.ntypes}
    for etype, eids in kept.items():
        src, dst = graph.relations[etype].coo()
        used[etype[0]].append(src[eids])
        used[etype[2]].append(dst[eids])
    empty = torch.empty(0, dtype=torch.int64, device=graph.device)
    nodes = {n: number_nodes([empty, *ids], graph.num_nodes(n))[0] for n, ids in used.items()}
    return keep_edges(graph, kept, nodes, store_ids)


def in_subgraph(
    graph: GraphT, nodes: Any, *, relabel_nodes: bool = False, store_ids: bool = True
) -> GraphT:
    """Return the graph of all in-edges of the nodes; all nodes stay unless ``relabel_nodes``.

    The edges of a node that is given twice are in the result twice.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([0, 1, 2, 3], [2, 2, 3, 0]))
    >>> g.in_subgraph([2]).edges()
    (tensor([0, 1]), tensor([2, 2]))
    """
    if not isinstance(graph, GraphCore):  # a DistGraph: its edges are on servers
        return graph.in_subgraph(nodes, relabel_nodes=relabel_nodes, store_ids=store_ids)
    return _incident_subgraph(graph, nodes, relabel_nodes, store_ids, inward=True)


def out_subgraph(
    graph: GraphT, nodes: Any, *, relabel_nodes: bool = False, store_ids: bool = True
) -> GraphT:
    """Return the graph of all out-edges of the nodes; all nodes stay unless ``relabel_nodes``."""
    if not isinstance(graph, GraphCore):
        return graph.out_subgraph(nodes, relabel_nodes=relabel_nodes, store_ids=store_ids)
    return _incident_subgraph(graph, nodes, relabel_nodes, store_ids, inward=False)


def _incident_subgraph(
    graph: GraphT, nodes: Any, relabel_nodes: bool, store_ids: bool, inward: bool
) -> GraphT:
    given = node_dict(graph, nodes)
    edges = {}
    for etype, relation in graph.relations.items():
        ids = _distinct(graph, given, etype[2] if inward else etype[0])
        adjacency = relation.csc() if inward else relation.csr()
        edges[etype] = adjacency.eids_at(incident_slots(adjacency, ids)[1])
    if relabel_nodes:
        return edge_subgraph(graph, edges, store_ids=store_ids)
    return keep_edges(graph, edges, None, store_ids)


def node_type_subgraph(graph: GraphT, ntypes: Iterable[str]) -> GraphT:
    """The graph of some node types and of all edge types between them; features are shared."""
    kept = [graph.resolve_ntype(ntype) for ntype in ntypes]
    etypes = [e for e in graph.canonical_etypes if e[0] in kept and e[2] in kept]
    return _keep_types(graph, [ntype for ntype in graph.ntypes if ntype in kept], etypes)


def edge_type_subgraph(graph: GraphT, etypes: Iterable[str | EdgeType]) -> GraphT:
    """The graph of some edge types and of the node types at their ends; features are shared."""
    kept = [graph.to_canonical_etype(etype) for etype in etypes]
    ends = {ntype for etype in kept for ntype in (etype[0], etype[2])}
    return _keep_types(
        graph,
        [ntype for ntype in graph.ntypes if ntype in ends],
        [etype for etype in graph.canonical_etypes if etype in kept],
    )


def _keep_types(graph: GraphT, ntypes: list[str], etypes: list[EdgeType]) -> GraphT:
    return graph.derive(
        {etype: graph.relations[etype] for etype in etypes},
        {ntype: graph.num_nodes(ntype) for ntype in ntypes},
        {ntype: graph.node_frames()[ntype].copy() for ntype in ntypes},
        {etype: graph.edge_frames[etype].copy() for etype in etypes},
    )


def keep_edges(
    graph: GraphT,
    edges: Mapping[EdgeType, torch.Tensor],
    nodes: Mapping[str, torch.Tensor] | None,
    store_ids: bool,
) -> GraphT:
    """Return the graph with the given edges of some types, in this order, and all of the others.

    It has the given nodes, by default all. Features are gathered when they are read.
    """
    sizes: dict[str, int] | None = None
    if nodes is None:
        node_frames = copied_node_frames(graph)
    else:
        sizes = {name: len(ids) for name, ids in nodes.items()}
        node_frames = {
            name: frame_of(graph, graph.node_frames()[name], ids, store_ids)
            for name, ids in nodes.items()
        }
    relations = dict(graph.relations)
    edge_frames = {etype: frame.copy() for etype, frame in graph.edge_frames.items()}
    for etype, eids in edges.items():
        old = graph.relations[etype]
        src, dst = (end[eids] for end in old.coo())
        if sizes is None or nodes is None:
            relations[etype] = Relation(old.num_src, old.num_dst, (src, dst))
        else:
            src = _local(nodes[etype[0]], src, old.num_src)
            dst = _local(nodes[etype[2]], dst, old.num_dst)
            relations[etype] = Relation(sizes[etype[0]], sizes[etype[2]], (src, dst))
        edge_frames[etype] = frame_of(graph, graph.edge_frames[etype], eids, store_ids)
    return graph.derive(relations, sizes, node_frames, edge_frames)


def number_nodes(parts: list[torch.Tensor], bound: int) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Distinct IDs by first appearance, and the position of each given ID among them."""
    with kernels.node_list(bound, parts[0].device) as nodes:
        nodes.start(parts[0][:0])
        local = [nodes.add(part) for part in parts]
        return nodes.ids.clone(), local


def _distinct(graph: GraphCore, given: dict[str, Any], ntype: str) -> torch.Tensor:
    bound = graph.num_nodes(ntype)
    return read_ids(given.get(ntype, []), bound, "node", graph.device, distinct=True)


def _local(kept: torch.Tensor, ids: torch.Tensor, bound: int) -> torch.Tensor:
    position = torch.full((bound,), -1, dtype=ids.dtype, device=ids.device)
    position[kept.long()] = torch.arange(len(kept), dtype=ids.dtype, device=ids.device)
    return position[ids]


def frame_of(graph: GraphCore, frame: Frame, rows: torch.Tensor, store_ids: bool = True) -> Frame:
    """Return a frame of lazily gathered rows of another, with their IDs under ``NID``/``EID``."""
    columns: dict[str, torch.Tensor | LazyTensor] = frame.rows(rows)
    made = Frame(len(rows), columns, graph.device, frame.what, frame.initializers)
    if store_ids:
        name = NID if frame.what == "node" else EID
        made[name] = graph.as_ids(rows)
        if name in columns:
            made.replace_ids(graph.relations)
    return made
