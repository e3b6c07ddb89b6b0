"""One node type and one edge type instead of many, and back.

A typed graph can be stored, partitioned and sampled as a plain one if its nodes are numbered
consecutively, type after type. A node then has two IDs: a *homogeneous* one, and one in its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.core import GraphCore, GraphT, check_counts, refuse_block
from gnnlab.graph.frame import Frame
from gnnlab.graph.ids import as_integers
from gnnlab.graph.names import EID, ETYPE, NID, NTYPE, ONE_ETYPE, EdgeType, describe
from gnnlab.graph.relation import Relation, narrow
from gnnlab.graph.subgraph import frame_of


def to_homogeneous(
    G: GraphCore,
    ndata: Iterable[str] | None = None,
    edata: Iterable[str] | None = None,
    store_type: bool = True,
    return_count: bool = False,
) -> Any:
    """Drop the types: number all nodes consecutively, type after type, and all edges likewise.

    Parameters
    ----------
    ndata, edata : list of str, optional
        Features to keep; each type with nodes, or edges, needs them, with rows of one shape.
    store_type : bool
        Keep the type IDs in ``ndata[dgl.NTYPE]`` and ``edata[dgl.ETYPE]``.
    return_count : bool
        Return also how many nodes and edges each type has.

    Returns
    -------
    Graph, or tuple of Graph, list of int and list of int
        ``ndata[dgl.NID]`` and ``edata[dgl.EID]`` hold the IDs within the types.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> typed = dgl.heterograph({("user", "plays", "game"): ([0, 1], [0, 0])})
    >>> g = dgl.to_homogeneous(typed)
    >>> g.ndata[dgl.NTYPE], g.edges()
    (tensor([0, 1, 1]), (tensor([1, 2]), tensor([0, 0])))
    """
    refuse_block(G, "to_homogeneous")
    node_counts = [G.num_nodes(ntype) for ntype in G.ntypes]
    edge_counts = [relation.num_edges for relation in G.relations.values()]
    total = sum(node_counts)
    check_counts([total, sum(edge_counts)], G.idtype, "nodes or edges")  # before arrays are made
    first = dict(zip(G.ntypes, np.cumsum([0, *node_counts]).tolist(), strict=False))
    ends: list[list[torch.Tensor]] = [[], []]
    for (src_type, _, dst_type), relation in G.relations.items():
        for side, (end, ntype) in enumerate(zip(relation.coo(), (src_type, dst_type), strict=True)):
            ends[side].append(narrow(end, total) + first[ntype])
    empty = narrow(torch.empty(0, dtype=torch.int64, device=G.device), total)
    relation = Relation(total, total, (torch.cat([empty, *ends[0]]), torch.cat([empty, *ends[1]])))
    result = G.derive(
        {ONE_ETYPE: relation},
        {"_N": total},
        {"_N": stacked(G, G.node_frames(), ndata or (), NID, NTYPE if store_type else None)},
        {ONE_ETYPE: stacked(G, G.edge_frames, edata or (), EID, ETYPE if store_type else None)},
    )
    return (result, node_counts, edge_counts) if return_count else result


def stacked(
    g: GraphCore,
    frames: Mapping[Any, Frame],
    names: Iterable[str],
    own_id: str,
    type_id: str | None,
    kinds: Sequence[int] | None = None,
) -> Frame:
    """Stack the rows of all types, with the ID within the type and the type ID of each.

    Without ``kinds``, the type IDs are the positions of the types.
    """
    counts = [frame.num_rows for frame in frames.values()]
    what = next((frame.what for frame in frames.values()), "node")
    made = Frame(sum(counts), None, g.device, what)
    filled = {kind: frame for kind, frame in frames.items() if frame.num_rows} or frames
    for name in names:
        lacking = [kind for kind, frame in filled.items() if name not in frame]
        if lacking:
            raise NotFound(
                f"{what} feature {name!r} cannot be stacked: types {describe(lacking)} lack it; "
                "leave it out, or give them rows of zeros"
            )
        columns = [frame[name] for frame in filled.values()]
        if len({(column.shape[1:], column.dtype) for column in columns}) > 1:
            raise InvalidInput(
                f"{what} feature {name!r} differs in shape or dtype between types: "
                + describe(f"{tuple(column.shape[1:])} {column.dtype}" for column in columns)
            )
        made[name] = torch.cat(columns)
    rows = [torch.arange(count, device=g.device) for count in counts]
    made[own_id] = g.as_ids(torch.cat([torch.arange(0, device=g.device), *rows]))
    if type_id is not None:
        ids = torch.tensor(range(len(counts)) if kinds is None else kinds, dtype=torch.int64)
        made[type_id] = ids.repeat_interleave(torch.tensor(counts, dtype=torch.int64)).to(g.device)
    return made


def to_heterogeneous(
    G: GraphT,
    ntypes: Sequence[str],
    etypes: Sequence[str],
    ntype_field: str = NTYPE,
    etype_field: str = ETYPE,
    metagraph: Any = None,
) -> GraphT:
    """Group nodes and edges by type: the inverse of :func:`to_homogeneous`.

    Parameters
    ----------
    G : Graph
        With one node type and one edge type, and a type ID for each node and edge.
    ntypes, etypes : list of str
        Names of the types, by type ID.
    ntype_field, etype_field : str
        Features that hold the type IDs.
    metagraph : networkx.MultiDiGraph, optional
        Edge types to expect, as ``Graph.metagraph`` returns; types without an edge are then kept.
        By default the edge types are those that occur.

    Returns
    -------
    Graph
        Types are ordered by name, nodes and edges of a type by their old ID, which is kept in
        ``ndata[dgl.NID]`` and ``edata[dgl.EID]``. Other features follow.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [2, 2]))
    >>> g.ndata[dgl.NTYPE] = torch.tensor([0, 0, 1])
    >>> g.edata[dgl.ETYPE] = torch.tensor([0, 0])
    >>> dgl.to_heterogeneous(g, ["user", "game"], ["plays"]).canonical_etypes
    [('user', 'plays', 'game')]
    """
    if G.is_block or not G.is_homogeneous:
        raise InvalidInput("to_heterogeneous needs a graph with one node type and one edge type")
    if len(set(ntypes)) < len(ntypes):
        raise InvalidInput(f"node types must have different names; found {describe(ntypes)}")
    node_kind = _type_ids(G.ndata, ntype_field, ntypes, "ntypes")
    edge_kind = _type_ids(G.edata, etype_field, etypes, "etypes")
    (one_type,), (one_etype,) = G.ntypes, G.canonical_etypes
    src, dst = G.relations[one_etype].coo()
    nodes = {name: (node_kind == i).nonzero().flatten() for i, name in enumerate(ntypes)}
    edges = _edges_by_type(node_kind[src], edge_kind, node_kind[dst], ntypes, etypes)
    if metagraph is not None:
        edges = _as_expected(edges, metagraph, ntypes, G.device)
    position = torch.empty_like(node_kind)
    for ids in nodes.values():
        position[ids] = torch.arange(len(ids), device=G.device)
    sizes = {name: len(nodes[name]) for name in sorted(nodes)}
    relations = {}
    for etype in sorted(edges):
        eids, num_src, num_dst = edges[etype], sizes[etype[0]], sizes[etype[2]]
        ends = narrow(position[src[eids]], num_src), narrow(position[dst[eids]], num_dst)
        relations[etype] = Relation(num_src, num_dst, ends)
    node_frame, edge_frame = G.src_frames[one_type].copy(), G.edge_frames[one_etype].copy()
    del node_frame[ntype_field], edge_frame[etype_field]
    return G.derive(
        relations,
        sizes,
        {name: frame_of(G, node_frame, nodes[name]) for name in sizes},
        {etype: frame_of(G, edge_frame, edges[etype]) for etype in relations},
    )


def _type_ids(frame: Frame, field: str, names: Sequence[str], argument: str) -> torch.Tensor:
    kinds = as_integers(frame[field], f"{frame.what} feature {field!r}: type IDs").long()
    if kinds.ndim != 1:
        raise InvalidInput(f"{field!r} must hold one type ID per {frame.what}")
    if len(kinds) and not 0 <= int(kinds.min()) <= int(kinds.max()) < len(names):
        raise InvalidInput(
            f"{frame.what} feature {field!r} holds type IDs from {int(kinds.min())} to "
            f"{int(kinds.max())}, but {argument} names {len(names)} types"
        )
    return kinds


def _edges_by_type(
    src_kind: torch.Tensor,
    edge_kind: torch.Tensor,
    dst_kind: torch.Tensor,
    ntypes: Sequence[str],
    etypes: Sequence[str],
) -> dict[EdgeType, torch.Tensor]:
    """The edges of each triple of types that occurs, ascending."""
    # A relation may be named several times; edges of the same triple of names belong together.
    same = torch.tensor([list(etypes).index(name) for name in etypes], device=edge_kind.device)
    shape = len(ntypes), len(etypes), len(ntypes)
    code = (src_kind * shape[1] + same.long()[edge_kind]) * shape[2] + dst_kind
    edges = {}
    for each in torch.unique(code).tolist():
        u, relation, v = (int(i) for i in np.unravel_index(each, shape))
        edges[ntypes[u], etypes[relation], ntypes[v]] = (code == each).nonzero().flatten()
    return edges


def _as_expected(
    found: dict[EdgeType, torch.Tensor], metagraph: Any, ntypes: Sequence[str], device: torch.device
) -> dict[EdgeType, torch.Tensor]:
    expected = [(u, relation, v) for u, v, relation in metagraph.edges(keys=True)]
    surprising = set(found) - set(expected)
    if surprising:
        raise InvalidInput(
            f"the graph has edges of types {describe(sorted(surprising))}, which are not in the "
            f"metagraph: {describe(sorted(expected))}"
        )
    unknown = {ntype for u, _, v in expected for ntype in (u, v)} - set(ntypes)
    if unknown:
        raise InvalidInput(f"ntypes lacks {describe(sorted(unknown))}, which the metagraph uses")
    none = torch.empty(0, dtype=torch.int64, device=device)
    return {etype: found.get(etype, none) for etype in expected}


def as_heterograph(g: GraphT, ntype: str = "_U", etype: str = "_E") -> GraphT:
    """Return the graph itself; every graph is a typed graph. Old scripts call it."""
    return g


as_immutable_graph = as_heterograph


def metagraph(g: GraphCore) -> Any:
    """Return the graph of the types: node types, and an edge for each edge type.

    Returns
    -------
    networkx.MultiDiGraph
        The relation is the key of its edge.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.heterograph({("user", "plays", "game"): ([0, 1], [0, 0])})
    >>> g.metagraph().edges(keys=True)
    OutMultiEdgeView([('user', 'game', 'plays')])
    """
    import networkx

    types = networkx.MultiDiGraph()
    types.add_nodes_from(g.ntypes)
    types.add_edges_from((u, v, relation) for u, relation, v in g.canonical_etypes)
    return types
