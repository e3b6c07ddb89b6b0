"""What a partition must be, worked out edge by edge with sets and dictionaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import gnnlab as dgl
from gnnlab.partition import Part, open_part

Triple = tuple[str, str, str]
Node = tuple[str, int]  # type, old ID
Edge = tuple[Triple, int]


@dataclass
class Expected:
    """Old IDs of what one part owns, and of what it holds besides."""

    nodes: set[Node] = field(default_factory=set)
    edges: set[Edge] = field(default_factory=set)
    halo_nodes: set[Node] = field(default_factory=set)
    halo_edges: set[Edge] = field(default_factory=set)


def all_edges(g: dgl.Graph) -> list[tuple[Edge, Node, Node]]:
    found = []
    for etype in g.canonical_etypes:
        src, dst = (ends.tolist() for ends in g.edges(etype=etype))
        for i, (u, v) in enumerate(zip(src, dst, strict=True)):
            found.append(((etype, i), (etype[0], u), (etype[2], v)))
    return found


def expected(g: dgl.Graph, part_of: dict[Node, int], part_id: int, hops: int) -> Expected:
    own = Expected(nodes={node for node, part in part_of.items() if part == part_id})
    near = set(own.nodes)
    for _ in range(hops - 1):
        near |= {x for _, u, v in all_edges(g) if {u, v} & near for x in (u, v)}
    for edge, u, v in all_edges(g):
        if v in own.nodes:
            own.edges.add(edge)
        if v in own.nodes or {u, v} & near:
            own.halo_nodes |= {u, v} - own.nodes
            own.halo_edges |= {edge} - own.edges
    return own


def by_type(mapping: Any, g: dgl.Graph) -> tuple[dict[str, list[int]], dict[Triple, list[int]]]:
    """What ``return_mapping`` gave, as lists by type."""
    nodes, edges = mapping
    if isinstance(nodes, torch.Tensor):
        nodes, edges = {g.ntypes[0]: nodes}, {g.canonical_etypes[0]: edges}
    assert {ids.dtype for ids in [*nodes.values(), *edges.values()]} == {torch.int64}
    return {t: ids.tolist() for t, ids in nodes.items()}, {
        t: ids.tolist() for t, ids in edges.items()
    }


def check_parts(g: dgl.Graph, config: str | Path, mapping: Any, num_parts: int, hops: int) -> None:
    """Open all parts and compare them, and their flat graphs, with the slow way."""
    node_map, edge_map = by_type(mapping, g)
    parts = [open_part(config, i) for i in range(num_parts)]
    part_of: dict[Node, int] = {}
    for part in parts:
        for ntype in g.ntypes:
            for new in part.book.partid2nids(part.part_id, ntype).tolist():
                part_of[ntype, node_map[ntype][new]] = part.part_id
    assert len(part_of) == g.num_nodes()
    for ntype in g.ntypes:  # sorted by (part, old ID)
        order = [(part_of[ntype, old], old) for old in node_map[ntype]]
        assert order == sorted(order) and len(set(order)) == g.num_nodes(ntype)
    for etype in g.canonical_etypes:  # sorted by (new destination, old ID)
        place = {old: new for new, old in enumerate(node_map[etype[2]])}
        dst = g.edges(etype=etype)[1].tolist()
        order = [(place[dst[old]], old) for old in edge_map[etype]]
        assert order == sorted(order) and len(set(order)) == g.num_edges(etype)
    for part in parts:
        want = expected(g, part_of, part.part_id, hops)
        _check_part(g, part, want, node_map, edge_map)
        _check_flat(g, part, want)


def _check_part(
    g: dgl.Graph,
    part: Part,
    want: Expected,
    node_map: dict[str, list[int]],
    edge_map: dict[Triple, list[int]],
) -> None:
    nodes, halo_nodes, edges, halo_edges = [], [], [], []
    for ntype, here in part.nodes.items():
        new, old = part.new_nids(ntype).tolist(), here.orig_ids.tolist()
        assert old == [node_map[ntype][i] for i in new]
        assert here.halo.tolist() == sorted(here.halo.tolist())
        nodes += [(ntype, i) for i in old[: here.num_inner]]
        halo_nodes += [(ntype, i) for i in old[here.num_inner :]]
        for name, values in g.nodes[ntype].data.items():
            same(here.data[name], values[here.orig_ids[: here.num_inner]])
        assert set(here.data) == set(g.nodes[ntype].data)
    for etype, there in part.edges.items():
        new, old = part.new_eids(etype).tolist(), there.orig_ids.tolist()
        assert old == [edge_map[etype][i] for i in new]
        assert there.halo.tolist() == sorted(there.halo.tolist())
        edges += [(etype, i) for i in old[: there.num_inner]]
        halo_edges += [(etype, i) for i in old[there.num_inner :]]
        src, dst = part.relation(etype).coo()
        true_src, true_dst = g.edges(etype=etype)
        assert part.nodes[etype[0]].orig_ids[src].tolist() == true_src[old].tolist()
        assert part.nodes[etype[2]].orig_ids[dst].tolist() == true_dst[old].tolist()
        for name, values in g.edges[etype].data.items():
            same(there.data[name], values[there.orig_ids[: there.num_inner].long()])
        assert set(there.data) == set(g.edges[etype].data)
    for found, wanted in (
        (nodes, want.nodes),
        (halo_nodes, want.halo_nodes),
        (edges, want.edges),
        (halo_edges, want.halo_edges),
    ):
        assert len(found) == len(set(found))
        assert set(found) == wanted


def _check_flat(g: dgl.Graph, part: Part, want: Expected) -> None:
    """The graph of ``load_partition``: homogeneous IDs, inner ones first, each half ascending."""
    flat, book = part.graph(), part.book
    several = not g.is_homogeneous
    for data, inner_name, split, types in (
        (flat.ndata, "inner_node", book.map_to_per_ntype, book.ntypes),
        (flat.edata, "inner_edge", book.map_to_per_etype, book.canonical_etypes),
    ):
        assert ("_TYPE" in data) == several
        if several:
            assert data["_TYPE"].tolist() == split(data["_ID"])[0].tolist()
        inner, ids = data[inner_name].tolist(), data["_ID"].tolist()
        order = [(1 - i, new) for i, new in zip(inner, ids, strict=True)]
        assert order == sorted(order)
        old = {(*n, i) for n, i in zip(_names(data, split, types), inner, strict=True)}
        own, halo = (
            (want.nodes, want.halo_nodes) if types == book.ntypes else (want.edges, want.halo_edges)
        )
        assert old == {(t, i, 1) for t, i in own} | {(t, i, 0) for t, i in halo}
    assert flat.ndata["part_id"].tolist() == book.nid2partid(flat.ndata["_ID"]).tolist()
    names = _names(flat.ndata, book.map_to_per_ntype, book.ntypes)
    eids = _names(flat.edata, book.map_to_per_etype, book.canonical_etypes)
    ends = {edge: (u, v) for edge, u, v in all_edges(g)}
    src, dst = (side.tolist() for side in flat.edges())
    assert [ends[e] for e in eids] == [(names[u], names[v]) for u, v in zip(src, dst, strict=True)]


def _names(data: Any, split: Any, types: list[Any]) -> list[tuple[Any, int]]:
    """Type and old ID of each row."""
    kinds = split(data["_ID"])[0].tolist()
    return [(types[k], old) for k, old in zip(kinds, data["orig_id"].tolist(), strict=True)]


def same(a: torch.Tensor, b: torch.Tensor) -> None:
    assert a.dtype == b.dtype and a.shape == b.shape
    assert torch.equal(a, b)
