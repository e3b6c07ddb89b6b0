"""Graphs that tests share, and hypothesis strategies that draw them.

``toy()`` is one graph with all that is awkward: a doubled edge, a self-loop, a node without edges::

    0 ═══▶ 1 ⟲        edge  0: 0 → 1    1: 0 → 1    2: 1 → 1
    ▲                       3: 2 → 2    4: 2 → 0
    2 ⟲       3

``typed()`` has two node types and three edge types::

    user 0 ──follows──▶ user 1 ⟲ follows     user 0 ══plays══▶ game 0
    game 0 ──made by──▶ user 1                user 1 ──plays──▶ game 2
"""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st

import gnnlab as dgl

ENDS = ([0, 0, 1, 2, 2], [1, 1, 1, 2, 0])
Triple = tuple[str, str, str]


def toy(idtype: torch.dtype = torch.int64) -> dgl.Graph:
    g = dgl.graph(ENDS, num_nodes=4, idtype=idtype)
    g.ndata["x"] = torch.arange(4.0)
    g.edata["w"] = torch.arange(5.0)
    g.edata["kind"] = torch.tensor([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]])
    return g


def typed(idtype: torch.dtype = torch.int64) -> dgl.Graph:
    g = dgl.heterograph(
        {
            ("user", "plays", "game"): ([0, 0, 1], [0, 0, 2]),
            ("user", "follows", "user"): ([0, 1], [1, 1]),
            ("game", "made by", "user"): ([0], [1]),
        },
        {"user": 3, "game": 4},
        idtype=idtype,
    )
    g.nodes["user"].data["x"] = torch.arange(3.0)
    g.nodes["game"].data["x"] = torch.arange(4.0) * 10
    g.nodes["game"].data["price"] = torch.arange(4)
    g.edges["plays"].data["w"] = torch.arange(3.0)
    return g


def edges_of(g: dgl.Graph, etype: Any = None) -> list[tuple[int, int]]:
    """All edges in the order of their IDs."""
    src, dst = g.edges(etype=etype)
    return list(zip(src.tolist(), dst.tolist(), strict=True))


def same_structure(a: dgl.Graph, b: dgl.Graph) -> bool:
    return (
        a.ntypes == b.ntypes
        and a.canonical_etypes == b.canonical_etypes
        and a.idtype == b.idtype
        and all(a.num_nodes(t) == b.num_nodes(t) for t in a.ntypes)
        and all(edges_of(a, t) == edges_of(b, t) for t in a.canonical_etypes)
    )


def same(a: dgl.Graph, b: dgl.Graph) -> bool:
    """Equal structure, and equal features in equal order."""
    frames = [(a.nodes[t].data, b.nodes[t].data) for t in a.ntypes]
    frames += [(a.edges[t].data, b.edges[t].data) for t in a.canonical_etypes]
    return same_structure(a, b) and all(
        list(x) == list(y) and all(torch.equal(x[n], y[n]) and x[n].dtype == y[n].dtype for n in x)
        for x, y in frames
    )


@st.composite
def edge_lists(
    draw: st.DrawFn, max_nodes: int = 8, max_edges: int = 20
) -> tuple[int, list[int], list[int]]:
    """(number of nodes, sources, destinations); self-loops, doubled edges and no edges occur."""
    num_nodes = draw(st.integers(0, max_nodes))
    if num_nodes == 0:
        return 0, [], []
    node = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=max_edges))
    return num_nodes, [u for u, _ in pairs], [v for _, v in pairs]


@st.composite
def graphs(draw: st.DrawFn, max_nodes: int = 8, max_edges: int = 20) -> dgl.Graph:
    num_nodes, src, dst = draw(edge_lists(max_nodes, max_edges))
    idtype = draw(st.sampled_from([torch.int64, torch.int32]))
    g = dgl.graph((src, dst), num_nodes=num_nodes, idtype=idtype)
    if draw(st.booleans()):
        g.ndata["x"] = torch.arange(num_nodes) * 1.5
    if draw(st.booleans()):
        g.edata["w"] = torch.arange(len(src) * 2).reshape(-1, 2)
    if draw(st.booleans()):
        g = g.formats(draw(st.sampled_from(["coo", "csc", "csr", ["csc", "csr"]])))
    return g


@st.composite
def typed_graphs(draw: st.DrawFn, features: bool = True) -> dgl.Graph:
    """Up to three node types and four edge types, which may share names or have no edges."""
    names = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True))
    sizes = {name: draw(st.integers(0, 5)) for name in names}
    triple = st.tuples(st.sampled_from(names), st.sampled_from(["r", "s"]), st.sampled_from(names))
    edges: dict[Triple, tuple[list[int], list[int]]] = {}
    for u, r, v in draw(st.lists(triple, min_size=1, max_size=4, unique=True)):
        count = draw(st.integers(0, 6)) if sizes[u] and sizes[v] else 0
        ends = [
            draw(st.lists(st.integers(0, max(sizes[t] - 1, 0)), min_size=count, max_size=count))
            for t in (u, v)
        ]
        edges[u, r, v] = ends[0], ends[1]
    idtype = draw(st.sampled_from([torch.int64, torch.int32]))
    g = dgl.heterograph(edges, sizes, idtype=idtype)
    if features:
        for name in names:
            g.nodes[name].data["x"] = torch.arange(sizes[name]) + 0.5
        for etype in edges:
            g.edges[etype].data["w"] = torch.arange(g.num_edges(etype))
    return g
