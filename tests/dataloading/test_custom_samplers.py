"""Samplers that a learner writes: short, fast primitives underneath, the same batches everywhere.

The three samplers here are the ones of the lesson on custom sampling, in their shortest form.
"""

from __future__ import annotations

import inspect

import pytest
import torch

import gnnlab as dgl


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


@pytest.fixture
def graph() -> dgl.Graph:
    g = dgl.rand_graph(400, 8000)
    g.ndata["x"] = torch.randn(400, 3)
    g.edata["w"] = torch.rand(8000)
    return g


def samplers(g):
    return {
        "degree": DegreeSampler(g, [4, 6]),
        "budget": LayerBudgetSampler([60, 30]),
        "cluster": ClusterSampler(torch.arange(400) % 40),
    }


def content(loader):
    """Edges, their IDs and features of each mini-batch, as plain lists."""
    found = []
    for batch in loader:
        for part in [batch] if isinstance(batch, dgl.Graph) else batch[2]:
            x = part.srcdata["x"] if part.is_block else part.ndata["x"]
            tensors = (*part.edges(), part.edata[dgl.EID], part.edata["w"], x)
            found.append([tensor.tolist() for tensor in tensors])
    return found


@pytest.mark.parametrize("sampler", [DegreeSampler, LayerBudgetSampler, ClusterSampler])
def test_each_takes_at_most_twenty_lines(sampler):
    assert len(inspect.getsource(sampler).splitlines()) <= 20


@pytest.mark.parametrize("name", ["degree", "budget", "cluster"])
@pytest.mark.parametrize(
    "options", [{"prefetch": 2}, {"num_workers": 2}], ids=["thread", "two workers"]
)
def test_batches_do_not_depend_on_who_makes_them(graph, name, options, torch_threads):
    def epochs(**options):
        loader = dgl.dataloading.DataLoader(
            graph, range(40), samplers(graph)[name], batch_size=8, shuffle=True, seed=3, **options
        )
        return [content(loader), content(loader)]

    torch_threads(1)
    expected = epochs(prefetch=0)
    assert expected[0] != expected[1]
    torch_threads(2)
    assert epochs(**options) == expected
