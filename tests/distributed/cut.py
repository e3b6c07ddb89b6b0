"""Graphs cut into parts, with the way back to the IDs of the whole graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, initialize, partition_graph

PARTS = [pytest.param(1, marks=pytest.mark.thorough("as with three parts")), 3]
FOLLOWS, PLAYS, MAKES = ("user", "follows", "user"), ("user", "plays", "game"), ("dev", "m", "game")


@dataclass
class Cut:
    """A graph, the same graph in parts, and for each type: new ID → original ID."""

    whole: dgl.Graph
    parts: DistGraph
    nodes: dict[str, torch.Tensor]
    edges: dict[Any, torch.Tensor]

    def new(self, ids: Any, ntype: str = "_N") -> torch.Tensor:
        """New IDs of original nodes."""
        return _inverse(self.nodes[ntype])[torch.as_tensor(ids)]

    def new_edges(self, ids: Any, etype: Any = ("_N", "_E", "_N")) -> torch.Tensor:
        """New IDs of original edges."""
        return _inverse(self.edges[etype])[torch.as_tensor(ids)]


def _inverse(order: torch.Tensor) -> torch.Tensor:
    found = torch.empty_like(order)
    found[order] = torch.arange(len(order))
    return found


def at_random(g: dgl.Graph, num_parts: int) -> torch.Tensor:
    """The same part for a node each time."""
    return torch.randint(num_parts, (g.num_nodes(),), generator=torch.Generator().manual_seed(7))


def write(g: dgl.Graph, num_parts: int, folder: Path) -> Path:
    """Partition a graph named g at random; return its JSON file."""
    partition_graph(g, "g", num_parts, folder, part_method=at_random)
    return folder / "g.json"


def cut(g: dgl.Graph, num_parts: int, folder: Path, name: str = "g", how: Any = None) -> Cut:
    """Partition a graph, at random unless said otherwise, and open it."""
    how = how or at_random
    maps = partition_graph(g, name, num_parts, folder, part_method=how, return_mapping=True)
    nodes, edges = (m if isinstance(m, dict) else None for m in maps)
    initialize()
    return Cut(
        g,
        DistGraph(name, part_config=folder / f"{name}.json"),
        nodes or {"_N": maps[0]},
        edges or {("_N", "_E", "_N"): maps[1]},
    )


def plain() -> dgl.Graph:
    """200 nodes; node 0 has 300 in-edges, nodes 190 to 199 have none, edges may be doubled."""
    generator = torch.Generator().manual_seed(1)
    src = torch.randint(200, (2300,), generator=generator)
    dst = torch.randint(190, (2300,), generator=generator)
    dst[torch.randperm(2300, generator=generator)[:300]] = 0
    g = dgl.graph((src, dst), num_nodes=200)
    g.ndata["x"] = torch.arange(200 * 3.0).reshape(200, 3)
    g.edata["w"] = torch.rand(2300, generator=generator)
    g.edata["w"][::5] = 0
    g.edata["m"] = g.edata["w"] > 0.5
    return g


def typed() -> dgl.Graph:
    """60 users, 25 games, 7 devs; one relation inside a type, two that end at games."""
    generator = torch.Generator().manual_seed(2)

    def edges(num_src: int, num_dst: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
        return tuple(torch.randint(n, (count,), generator=generator) for n in (num_src, num_dst))

    g = dgl.heterograph(
        {FOLLOWS: edges(60, 60, 400), PLAYS: edges(60, 25, 300), MAKES: edges(7, 25, 40)},
        {"user": 60, "game": 25, "dev": 7},
    )
    g.nodes["user"].data["x"] = torch.arange(60.0)
    g.nodes["game"].data["x"] = torch.arange(25.0)
    g.edges[PLAYS].data["w"] = torch.rand(300, generator=generator)
    return g


def renumbered(c: Cut) -> dgl.Graph:
    """The whole graph in one memory, with the IDs and features of the parts."""
    ends = {
        etype: tuple(
            c.new(end, ntype)[c.edges[etype]]
            for end, ntype in zip(c.whole.edges(etype=etype), etype[::2], strict=True)
        )
        for etype in c.whole.canonical_etypes
    }
    g = dgl.heterograph(ends, {ntype: c.whole.num_nodes(ntype) for ntype in c.whole.ntypes})
    for ntype, order in c.nodes.items():
        g.nodes[ntype].data.update(
            {name: values[order] for name, values in c.whole.nodes[ntype].data.items()}
        )
    for etype, order in c.edges.items():
        g.edges[etype].data.update(
            {name: values[order] for name, values in c.whole.edges[etype].data.items()}
        )
    return g


class Original:
    """Original IDs of a mini-batch: of the whole graph as they are, of parts by the mapping."""

    def __init__(self, c: Cut | None) -> None:
        self.c = c

    def nodes(self, ids: torch.Tensor, ntype: str) -> list[int]:
        return (ids if self.c is None else self.c.nodes[ntype][ids]).tolist()

    def edges(self, ids: torch.Tensor, etype: Any) -> list[int]:
        return (ids if self.c is None else self.c.edges[etype][ids]).tolist()

    def graph(self, g: dgl.Graph) -> list[Any]:
        """Nodes of both sides, ends and IDs of the edges, and all features."""
        found: list[Any] = []
        for frames in (g.src_frames, g.dst_frames):
            for ntype, frame in frames.items():
                found.append(self.nodes(frame[dgl.NID], ntype))
                found += [(name, frame[name].tolist()) for name in sorted(set(frame) - {dgl.NID})]
        for etype, frame in g.edge_frames.items():
            found.append([end.tolist() for end in g.edges(etype=etype)])
            if dgl.EID in frame:
                found.append(self.edges(frame[dgl.EID], etype))
            found += [(name, frame[name].tolist()) for name in sorted(set(frame) - {dgl.EID})]
        return found

    def batch(self, batch: Any) -> list[Any]:
        found: list[Any] = []
        for part in batch:
            if isinstance(part, dgl.Graph):
                found.append(self.graph(part))
            elif isinstance(part, list):
                found.append([self.graph(block) for block in part])
            else:
                by_type = part if isinstance(part, dict) else {"_N": part}
                found.append({t: self.nodes(ids, t) for t, ids in by_type.items()})
        return found
