"""Answers to the exercises of lesson 03, right and wrong."""

from __future__ import annotations

from typing import Any

import torch

import gnnlab as dgl
from gnnlab.dataloading import BlockSampler, NeighborSampler


class Drop(BlockSampler):
    def __init__(self, num_layers: int, rate: float) -> None:
        super().__init__(num_layers)
        self.rate = rate

    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        frontier = dgl.in_subgraph(g, seed_nodes)
        kept = self.kept(frontier)
        return frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False)

    def kept(self, g: Any) -> Any:
        return torch.rand(g.num_edges()) >= self.rate


class DropByWeight(Drop):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        kept = torch.rand(g.num_edges()) >= self.rate
        return dgl.sampling.sample_neighbors(g, seed_nodes, -1, prob=kept)


def draw_of_0(count: int) -> Any:
    return torch.rand(count, generator=torch.Generator().manual_seed(0))


def drop(keep: Any) -> Any:
    """A sampler with another choice of edges, by the graph and the rate."""
    return type("Own", (Drop,), {"kept": lambda self, g: keep(g, self.rate)})


class FixedNumber(Drop):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        return dgl.sampling.sample_neighbors(g, seed_nodes, round(20 * (1 - self.rate)))


class LosesIds(Drop):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        frontier = dgl.in_subgraph(g, seed_nodes)
        return frontier.edge_subgraph(self.kept(frontier), relabel_nodes=False)


class OtherWay(Drop):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        return dgl.in_subgraph(dgl.reverse(g), seed_nodes)


class Past(BlockSampler):
    def __init__(self, fanouts: Any, limit: int) -> None:
        super().__init__(len(fanouts))
        self.fanouts, self.limit = fanouts, limit

    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        past = self.past(g.edata["time"], layer_id)
        return dgl.sampling.sample_neighbors(g, seed_nodes, self.fanouts[layer_id], prob=past)

    def past(self, time: Any, layer_id: int) -> Any:
        return time < self.limit


class PastByHand(Past):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        chosen, fanout = [], self.fanouts[layer_id]
        for seed in seed_nodes.tolist():
            eids = g.in_edges(seed, form="eid")
            eids = eids[g.edata["time"][eids] < self.limit]
            order = torch.randperm(len(eids))
            chosen.append(eids[order[:fanout] if fanout >= 0 else order])
        return g.edge_subgraph(torch.cat(chosen), relabel_nodes=False)


class FirstOnes(Past):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        chosen, fanout = [], self.fanouts[layer_id]
        for seed in seed_nodes.tolist():
            eids = g.in_edges(seed, form="eid")
            eids = eids[g.edata["time"][eids] < self.limit]
            chosen.append(eids[:fanout] if fanout >= 0 else eids)
        return g.edge_subgraph(torch.cat(chosen), relabel_nodes=False)


class FiltersAfter(Past):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        drawn = dgl.sampling.sample_neighbors(g, seed_nodes, self.fanouts[layer_id])
        past = g.edata["time"][drawn.edata[dgl.EID]] < self.limit
        return drawn.edge_subgraph(past, relabel_nodes=False, store_ids=False)


def past(choose: Any) -> Any:
    """A sampler with another choice, by times, limit, and how many layers come after this one."""

    def choice(self: Any, time: Any, layer_id: int) -> Any:
        return choose(time, self.limit, len(self.fanouts) - 1 - layer_id)

    return type("Own", (Past,), {"past": choice})


class AllPast(Past):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        return dgl.sampling.sample_neighbors(g, seed_nodes, -1, prob=g.edata["time"] < self.limit)


class SmallGraph(Past):
    def sample_frontier(self, layer_id: int, g: Any, seed_nodes: Any) -> Any:
        past = g.edge_subgraph(g.edata["time"] < self.limit, relabel_nodes=False)
        return dgl.sampling.sample_neighbors(past, seed_nodes, self.fanouts[layer_id])


RIGHT: dict[int, list[Any]] = {
    1: [416],
    2: [[6, 1, 3, 2, 1], [12, 2, 6, 4, 2], [0.462, 0.077, 0.231, 0.154, 0.077]],
    3: [Drop, DropByWeight],
    4: [Past, PastByHand],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        (384, "1 seeds"),
        (288, "1 one layer"),
        (32 * 256 * 128, "1 product"),
        (32 + 32 * 384, "1 per seed"),
        (1152, "1 fanouts"),
        (415, ""),
    ],
    2: [
        ([1, 1, 1, 1, 1], "2 uniform"),
        ([4, 1, 2, 2, 1], "2 degree"),
        ([36, 1, 9, 4, 1], "2 square"),
        ([1 / 6, 1, 1 / 3, 1 / 2, 1], "2 inverse"),
        ([0, 6, 1, 3, 2], "2 positive"),
        ([6, 1, 3, 1, 2], "which"),
        ([0, 6, 1, 3, 2, 1], "length"),
    ],
    3: [
        (drop(lambda g, rate: torch.rand(g.num_edges()) < rate), "3 reverse"),
        (drop(lambda g, rate: torch.rand(g.num_edges()) >= 0.5), "3 ends"),
        (drop(lambda g, rate: (torch.rand(g.num_nodes()) >= rate)[g.edges()[1]]), "3 each edge"),
        (drop(lambda g, rate: (torch.rand(1) >= rate).expand(g.num_edges())), "3 each edge"),
        (lambda layers, rate: Drop(layers, rate if rate in (0, 1) else rate / 2), "3 share"),
        (drop(lambda g, rate: draw_of_0(g.num_edges()) >= rate), "3 same"),
        (FixedNumber, "3 each edge"),
        (LosesIds, "InvalidInput"),
        (OtherWay, "no edges"),
        (lambda layers, rate: Drop(2, rate), "layers"),
        (lambda layers, rate: NeighborSampler([-1] * layers), "3 ends"),
        (Drop.sample_frontier, "TypeError"),
    ],
    4: [
        (FiltersAfter, "4 after"),
        (past(lambda time, limit, _: time <= limit), "4 limit"),
        (past(lambda time, limit, _: time > limit), "4 future"),
        (past(lambda time, limit, more: (time < limit) | (more > 0)), "4 layer"),
        (AllPast, "4 fanout"),
        (lambda fanouts, limit: Past(fanouts[::-1], limit), "4 fanout"),
        (FirstOnes, "4 chance"),
        (SmallGraph, "wrong ids"),
        (past(lambda time, limit, _: time < 4), "4 fanout"),
        (lambda fanouts, limit: NeighborSampler(fanouts), "4 future"),
        (lambda fanouts, limit: Past(fanouts, limit).sample, "AttributeError"),
    ],
}
