"""Graphs and blocks that DGL makes under ``dgl.`` and gnnlab's core leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import random
from gnnlab.errors import InvalidInput, OutOfRange, list_of_graphs, whole_number
from gnnlab.graph import batch as batching
from gnnlab.graph.block import Block
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.core import refuse_block
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import ONE_ETYPE, describe
from gnnlab.graph.relation import Relation


def rand_bipartite(
    utype: str,
    etype: str,
    vtype: str,
    num_src_nodes: int,
    num_dst_nodes: int,
    num_edges: int,
    idtype: torch.dtype = torch.int64,
    device: Any = None,
) -> Graph:
    """Make a graph of ``num_edges`` distinct random edges from ``utype`` to ``vtype``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.rand_bipartite("user", "buys", "item", 3, 4, 12)
    >>> g.num_edges(), g.in_degrees()
    (12, tensor([3, 3, 3, 3]))
    """
    pairs = whole_number(num_src_nodes, "num_src_nodes")
    pairs *= whole_number(num_dst_nodes, "num_dst_nodes")
    num_edges = whole_number(num_edges, "num_edges")
    if num_edges > pairs:
        raise InvalidInput(
            f"{num_src_nodes} sources and {num_dst_nodes} destinations have {pairs} pairs; found "
            f"num_edges={num_edges}"
        )
    numbers = np.random.default_rng(random.next_key() % 2**63)
    chosen = torch.from_numpy(numbers.choice(pairs, num_edges, replace=False))
    return heterograph(
        {(utype, etype, vtype): (chosen // max(num_dst_nodes, 1), chosen % max(num_dst_nodes, 1))},
        {utype: num_src_nodes, vtype: num_dst_nodes},
        idtype=idtype,
        device=device,
    )


def rand_graph(
    num_nodes: int, num_edges: int, idtype: torch.dtype = torch.int64, device: Any = None
) -> Graph:
    """Make a graph of ``num_edges`` distinct random edges, as :func:`rand_bipartite` does."""
    num_nodes = whole_number(num_nodes, "num_nodes")
    pairs = rand_bipartite("src", "to", "dst", num_nodes, num_nodes, num_edges, idtype, device)
    return graph(pairs.edges(), num_nodes=num_nodes, idtype=idtype, device=device)


def bipartite(
    data: Any,
    utype: str = "_U",
    etype: str = "_E",
    vtype: str = "_V",
    num_nodes: tuple[int, int] | None = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
    **old: Any,
) -> Graph:
    """Make a graph of one relation between two node types, as before DGL 0.5.

    ``data`` has the forms of :func:`gnnlab.heterograph`, or is a scipy matrix; ``num_nodes`` has
    the two sizes, whose old name is ``card``. ``validate`` and ``restrict_format`` have no effect.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.bipartite([(0, 1), (2, 0)], "user", "buys", "item", num_nodes=(3, 4)).num_nodes("item")
    4
    """
    num_nodes = old.pop("card", None) or num_nodes
    if rest := set(old) - {"validate", "restrict_format", "index_dtype"}:
        raise InvalidInput(f"bipartite has no argument {describe(sorted(rest))}")
    idtype = idtype or {"int32": torch.int32, "int64": torch.int64}.get(old.get("index_dtype", ""))
    if hasattr(data, "tocoo"):
        matrix = data.tocoo()
        data, num_nodes = (matrix.row, matrix.col), num_nodes or matrix.shape
    elif isinstance(data, list):
        data = as_tensor(data, "data", integers=True).reshape(-1, 2).long().unbind(1)
    for name, value in ("utype", utype), ("etype", etype), ("vtype", vtype):
        if not isinstance(value, str):
            raise InvalidInput(f"{name} is the name of a type, a text; found {value!r}")
    if utype == vtype:
        raise InvalidInput(f"bipartite joins two node types; found {utype!r} twice: use dgl.graph")
    sizes = None if num_nodes is None else dict(zip((utype, vtype), num_nodes, strict=True))
    return heterograph({(utype, etype, vtype): data}, sizes, idtype=idtype, device=device)


def hetero_from_relations(
    rel_graphs: Sequence[Graph], num_nodes_per_type: dict[str, int] | None = None
) -> Graph:
    """Join graphs of one relation each to a typed graph, with their features.

    Node types have the given sizes, or the largest of any graph.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> buys = dgl.bipartite(([0, 1], [1, 0]), "user", "buys", "item")
    >>> knows = dgl.heterograph({("user", "knows", "user"): ([0], [2])})
    >>> dgl.hetero_from_relations([buys, knows]).num_nodes("user")
    3
    """
    graphs = list_of_graphs(rel_graphs, "hetero_from_relations")
    etypes = [etype for g in graphs for etype in g.canonical_etypes]
    if twice := sorted({etype for etype in etypes if etypes.count(etype) > 1}):
        raise InvalidInput(f"each relation may be in one graph only; {twice[0]} is in several")
    empty = [
        heterograph({}, {ntype: size}, graphs[0].idtype, graphs[0].device)
        for ntype, size in (num_nodes_per_type or {}).items()
    ]
    made = merge([*empty, *graphs])
    for ntype, size in (num_nodes_per_type or {}).items():
        if made.num_nodes(ntype) > size:
            raise OutOfRange(f"{ntype!r} has {made.num_nodes(ntype)} nodes; found a size of {size}")
    return made


def broadcast_nodes(graph: Graph, graph_feat: Any, *, ntype: str | None = None) -> torch.Tensor:
    """As in gnnlab; for one graph, ``graph_feat`` may lack the axis of graphs: (…) → (N, …).

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.broadcast_nodes(dgl.graph(([0], [1])), torch.tensor([5.0, 7.0]))
    tensor([[5., 7.],
            [5., 7.]])
    """
    return batching.broadcast_nodes(graph, _per_graph(graph, graph_feat), ntype=ntype)


def broadcast_edges(graph: Graph, graph_feat: Any, *, etype: Any = None) -> torch.Tensor:
    """As :func:`broadcast_nodes`, for the edges: (…) → (E, …)."""
    return batching.broadcast_edges(graph, _per_graph(graph, graph_feat), etype=etype)


def _per_graph(graph: Graph, feat: Any) -> torch.Tensor:
    feat = as_tensor(feat, "graph_feat")
    lacks_axis = feat.ndim == 0 or len(feat) != 1  # as DGL: one row counts as that of the graph
    return feat.unsqueeze(0) if graph.batch_size == 1 and lacks_axis else feat


def merge(graphs: Sequence[Graph]) -> Graph:
    """Join graphs on the same nodes: all edges of all graphs, one graph after the other.

    Node types have the largest number of nodes of any graph. Where several graphs have a feature of
    a node, the last one counts; features that a graph lacks are 0.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> both = dgl.merge([dgl.graph(([0], [1])), dgl.graph(([0, 2], [1, 1]))])
    >>> both.edges()
    (tensor([0, 0, 2]), tensor([1, 1, 1]))
    """
    graphs = list_of_graphs(graphs, "merge")
    if not graphs:
        raise InvalidInput("merge needs one graph or more; found an empty list")
    for g in graphs:
        refuse_block(g, "merge")
    etypes = sorted({etype for g in graphs for etype in g.canonical_etypes})
    sizes = {
        ntype: max(g.num_nodes(ntype) for g in graphs if ntype in g.ntypes)
        for ntype in sorted({ntype for g in graphs for ntype in g.ntypes})
    }
    relations, edge_frames = {}, {}
    for etype in etypes:
        parts = [g for g in graphs if etype in g.canonical_etypes]
        ends = zip(*(g.relation(etype).coo() for g in parts), strict=True)
        src, dst = (torch.cat([end.long() for end in column]) for column in ends)
        relations[etype] = Relation.from_edges(src, dst, sizes[etype[0]], sizes[etype[2]])
        frames = [g.edge_frames[etype] for g in parts]
        starts = [sum(frame.num_rows for frame in frames[:i]) for i in range(len(frames))]
        edge_frames[etype] = _overlay(frames, starts, len(src), graphs[0].device, "edge")
    node_frames = {}
    for ntype, size in sizes.items():
        frames = [g.node_frames()[ntype] for g in graphs if ntype in g.ntypes]
        node_frames[ntype] = _overlay(frames, [0] * len(frames), size, graphs[0].device, "node")
    first = graphs[0]
    return Graph(sizes, relations, node_frames, edge_frames, first.idtype, first.device)


def _overlay(
    frames: Sequence[Frame], starts: Sequence[int], size: int, device: torch.device, what: str
) -> Frame:
    """Write frames over each other, each from its first row; rows that none has are 0."""
    made = Frame(size, None, device, what)
    for frame, start in zip(frames, starts, strict=True):
        for name, value in frame.items():
            if name not in made:
                made[name] = value.new_zeros((size, *value.shape[1:]))
            if made[name].shape[1:] != value.shape[1:] or made[name].dtype != value.dtype:
                raise InvalidInput(
                    f"merge: the {what} feature {name!r} has rows of shape "
                    f"{tuple(made[name].shape[1:])} and {made[name].dtype} in one graph, "
                    f"{tuple(value.shape[1:])} and {value.dtype} in another"
                )
            made[name][start : start + len(value)] = value
    return made


def create_block(
    data_dict: Any,
    num_src_nodes: Any = None,
    num_dst_nodes: Any = None,
    idtype: torch.dtype | None = None,
    device: Any = None,
) -> Block:
    """Make a block from edges in the forms of ``dgl.graph``, or from them by canonical edge type.

    Sizes of the sides are numbers, or numbers by node type; by default the largest ID plus one.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.create_block(([0, 1, 2], [1, 1, 0]), num_src_nodes=4)
    Block(num_src_nodes=4, num_dst_nodes=2, num_edges=3)
    """
    typed = data_dict if isinstance(data_dict, dict) else {ONE_ETYPE: data_dict}
    # Sides that are numbered apart are two node types of a graph.
    apart = heterograph(
        {(f"src {u}", r, f"dst {v}"): edges for (u, r, v), edges in typed.items()}, idtype=idtype
    )
    sizes = {}
    for side, given in ("src", num_src_nodes), ("dst", num_dst_nodes):
        found = {n[4:]: apart.num_nodes(n) for n in apart.ntypes if n[:4] == f"{side} "}
        if isinstance(given, int):
            given = dict.fromkeys(found, given)
        for ntype, size in found.items():
            if given and ntype in given and given[ntype] < size:
                raise OutOfRange(
                    f"num_{side}_nodes is {given[ntype]} for {ntype!r}, but an edge has node "
                    f"{size - 1}"
                )
        sizes[side] = dict(sorted({**found, **(given or {})}.items()))
    relations = {}
    for (source, name, end), relation in apart.relations.items():
        u, v = source[4:], end[4:]
        relations[u, name, v] = Relation(sizes["src"][u], sizes["dst"][v], relation.coo())
    block = Block(sizes["src"], sizes["dst"], relations, idtype=apart.idtype)
    return block if device is None else block.to(device)


def block_to_graph(block: Block) -> Graph:
    """Return a block as a graph whose node types are those of its sides, ``"…_src"``, ``"…_dst"``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.block_to_graph(dgl.create_block(([0, 1, 2], [1, 1, 0])))
    >>> g.canonical_etypes, g.num_nodes("_N_src"), g.num_nodes("_N_dst")
    ([('_N_src', '_E', '_N_dst')], 3, 2)
    """
    if not block.is_block:
        raise InvalidInput("block_to_graph takes a block; this is a graph")
    frames = {f"{ntype}_src": frame for ntype, frame in block.src_frames.items()}
    frames |= {f"{ntype}_dst": frame for ntype, frame in block.dst_frames.items()}
    names = {etype: (f"{etype[0]}_src", etype[1], f"{etype[2]}_dst") for etype in block.relations}
    return Graph(
        {ntype: frame.num_rows for ntype, frame in frames.items()},
        {names[etype]: relation for etype, relation in block.relations.items()},
        {ntype: frame.copy() for ntype, frame in frames.items()},
        {names[etype]: frame.copy() for etype, frame in block.edge_frames.items()},
        block.idtype,
        block.device,
    )
