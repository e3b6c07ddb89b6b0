"""Batches are the same wherever they are made, also those of samplers that a learner writes.

The three samplers here are the ones of the lesson on custom sampling, in their shortest form.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import (
    DataLoader,
    LaborSampler,
    NeighborSampler,
    as_edge_prediction_sampler,
    negative_sampler,
)
from tests.dataloading.samples import REVERSE, content


class DegreeSampler(dgl.dataloading.BlockSampler):
    """Prefer well-connected neighbors: draw them in proportion to degree ** power."""

    def __init__(self, g, fanouts, power=0.5):
        super().__init__(len(fanouts))
        self.fanouts = fanouts
        self.weights = g.out_degrees(g.edges()[0]).double() ** power

    def sample_frontier(self, layer_id, g, seed_nodes):
        return dgl.sampling.sample_neighbors(
            g, seed_nodes, self.fanouts[layer_id], prob=self.weights
        )


class LayerBudgetSampler(dgl.dataloading.BlockSampler):
    """Keep a number of nodes per layer, those that many seeds look at first."""

    def __init__(self, budgets):
        super().__init__(len(budgets))
        self.budgets = budgets

    def sample_frontier(self, layer_id, g, seed_nodes):
        frontier, budget = dgl.in_subgraph(g, seed_nodes), self.budgets[layer_id]
        src, _ = frontier.edges()
        nodes, edges_to_seeds = torch.unique(src, return_counts=True)
        if len(nodes) > budget:
            generator = dgl.random.generator()
            nodes = nodes[torch.multinomial(edges_to_seeds.double(), budget, generator=generator)]
        kept = torch.isin(src, nodes)
        return frontier.edge_subgraph(kept, relabel_nodes=False, store_ids=False)


class ClusterSampler(dgl.dataloading.Sampler):
    """A mini-batch is a few clusters of nodes and all edges between them."""

    def __init__(self, cluster_of_node):
        order = torch.argsort(cluster_of_node, stable=True)
        self.members = torch.split(order, torch.bincount(cluster_of_node).tolist())

    def sample(self, g, clusters):
        return g.subgraph(torch.cat([self.members[cluster] for cluster in clusters.tolist()]))


def pairs(negatives: Any = None) -> Any:
    return as_edge_prediction_sampler(
        NeighborSampler([3, 4]), "reverse_id", REVERSE, negative_sampler=negatives
    )


SAMPLERS: dict[str, Callable[[Any], Any]] = {
    "nodes": lambda g: NeighborSampler([3, 4]),
    "pairs": lambda g: pairs(),
    "uniform": lambda g: pairs(negative_sampler.Uniform(2)),
    "by degree": lambda g: pairs(negative_sampler.DegreePower(2)),
    "no edges": lambda g: pairs(negative_sampler.GlobalUniform(2)),
    "hard": lambda g: pairs(
        negative_sampler.Hard(
            negative_sampler.InBatch(4, True), torch.arange(9000).view(3000, 3) % 100
        )
    ),
    "labor": lambda g: LaborSampler([3, 3], importance_sampling=1),
    "degree": lambda g: DegreeSampler(g, [4, 6]),
    "budget": lambda g: LayerBudgetSampler([60, 30]),
    "cluster": lambda g: ClusterSampler(torch.arange(100) % 40),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_batches_do_not_depend_on_who_makes_them(graph, name, torch_threads):
    def epochs(**options):
        sampler = SAMPLERS[name](graph)
        loader = DataLoader(
            graph, range(40), sampler, batch_size=16, shuffle=True, seed=3, **options
        )
        return [content(loader), content(loader)]

    torch_threads(1)
    expected = epochs(prefetch=0)
    assert expected[0] != expected[1]
    torch_threads(2)
    assert epochs(prefetch=2) == expected
    assert epochs(num_workers=2) == expected
    if name in ("nodes", "uniform"):
        assert epochs(num_workers=1, persistent_workers=True) == expected
