"""Graphs and samplers for the tests of mini-batches, and what a mini-batch holds."""

from __future__ import annotations

from typing import Any

import torch

import gnnlab as dgl
from gnnlab.dataloading import NeighborSampler

PLAYS, FOLLOWS, PLAYED = (
    ("user", "plays", "game"),
    ("user", "follows", "user"),
    ("game", "played-by", "user"),
)

REVERSE = torch.cat([torch.arange(1500, 3000), torch.arange(1500)])


def friends() -> dgl.Graph:
    """Edge e + 1500 is the reverse of edge e, and edge e that of edge e + 1500."""
    src, dst = torch.randint(100, (2, 1500), generator=torch.Generator().manual_seed(0))
    g = dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])))
    g.ndata["x"] = torch.randn(100, 3)
    g.edata["w"] = torch.rand(3000) + 0.1
    g.edata["y"] = torch.arange(3000)
    return g


def players() -> dgl.Graph:
    """Edge e of type played-by is the reverse of edge e of type plays."""
    generator = torch.Generator().manual_seed(1)
    users, games = (torch.randint(n, (400,), generator=generator) for n in (30, 20))
    follows = tuple(torch.randint(30, (2, 200), generator=generator))
    g = dgl.heterograph(
        {PLAYS: (users, games), FOLLOWS: follows, PLAYED: (games, users)}, {"user": 30, "game": 20}
    )
    g.nodes["user"].data["x"] = torch.randn(30, 3)
    g.edges["plays"].data["hours"] = torch.rand(400)
    return g


class Frontier(dgl.dataloading.BlockSampler):
    """All in-edges, by ``sample_frontier``."""

    def __init__(self) -> None:
        super().__init__(2)

    def sample_frontier(self, layer_id, g, seed_nodes):
        return dgl.in_subgraph(g, seed_nodes)


SAMPLERS = {
    "some": lambda: NeighborSampler([5, 5]),
    "all": lambda: NeighborSampler([-1, -1]),
    "again": lambda: NeighborSampler([5, 5], replace=True),
    "weighted": lambda: NeighborSampler([5, 5], prob="w"),
    "frontier": Frontier,
}


def content(epoch: Any) -> list[Any]:
    """Everything that mini-batches hold, as plain lists: edges, IDs, and features of all graphs."""

    def plain(part: Any) -> Any:
        if isinstance(part, torch.Tensor):
            return part.tolist()
        if isinstance(part, dgl.Graph):
            frames = part.src_frames, part.dst_frames, part.edge_frames
            columns = [{(kind, n): f[n] for kind, f in each.items() for n in f} for each in frames]
            return plain([{e: part.edges(etype=e) for e in part.canonical_etypes}, *columns])
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items()}
        return [plain(each) for each in part]

    return [plain(batch) for batch in epoch]
