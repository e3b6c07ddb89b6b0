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


@pytest.mark.parametrize("name", ["degree", "budget"])
def test_blocks_hold_edges_of_the_graph_with_their_ids(graph, name):
    inputs, outputs, blocks = samplers(graph)[name].sample(graph, [7, 3, 9])
    assert outputs.tolist() == [7, 3, 9] == blocks[-1].dstdata[dgl.NID].tolist()
    assert torch.equal(inputs, blocks[0].srcdata[dgl.NID])
    assert torch.equal(blocks[0].dstdata[dgl.NID], blocks[1].srcdata[dgl.NID])
    for block in blocks:
        src, dst = block.edges()
        ends = graph.find_edges(block.edata[dgl.EID])
        assert torch.equal(block.srcdata[dgl.NID][src], ends[0])
        assert torch.equal(block.dstdata[dgl.NID][dst], ends[1])


def test_degree_sampler_prefers_hubs():
    """Nodes 1 to 8 point at node 0; node 8 also at 99 others."""
    src = torch.cat([torch.arange(1, 9), torch.full((99,), 8)])
    dst = torch.cat([torch.zeros(8, dtype=torch.long), torch.arange(9, 108)])
    g = dgl.graph((src, dst))
    sampler = DegreeSampler(g, [1], power=1)
    taken = [int(sampler.sample(g, [0])[0][1]) for _ in range(100)]
    assert taken.count(8) > 80  # expected 100 · 100 / 107


def test_layer_budget_holds_and_spares_small_layers(graph):
    _, _, (first, last) = LayerBudgetSampler([60, 30]).sample(graph, range(50))
    for block, budget in ((first, 60), (last, 30)):
        assert len(torch.unique(block.edges()[0])) == budget
        assert block.num_src_nodes() <= block.num_dst_nodes() + budget
    _, _, (all_of_it,) = LayerBudgetSampler([10_000]).sample(graph, range(50))
    assert all_of_it.num_edges() == graph.in_degrees(range(50)).sum()


def test_clusters_partition_the_graph(graph):
    cluster_of_node = torch.arange(400) % 40
    loader = dgl.dataloading.DataLoader(
        graph, range(40), ClusterSampler(cluster_of_node), batch_size=4, shuffle=True
    )
    seen = []
    for part in loader:
        inside = torch.zeros(400, dtype=torch.bool)
        inside[part.ndata[dgl.NID]] = True
        src, dst = graph.edges()
        expected = (inside[src] & inside[dst]).nonzero().flatten()
        assert torch.equal(part.edata[dgl.EID], expected)
        assert torch.equal(part.ndata["x"], graph.ndata["x"][part.ndata[dgl.NID]])
        seen.append(part.ndata[dgl.NID])
    assert sorted(torch.cat(seen).tolist()) == list(range(400))


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 399, 400])
def test_cutting_out_nodes_finds_the_same_edges_whether_few_or_many(graph, count):
    """For few nodes their in-edges are looked at, for many all edges."""
    nodes = torch.randperm(400)[:count]
    part = graph.subgraph(nodes)
    inside = torch.zeros(400, dtype=torch.bool)
    inside[nodes] = True
    src, dst = graph.edges()
    assert torch.equal(part.edata[dgl.EID], (inside[src] & inside[dst]).nonzero().flatten())
    assert torch.equal(nodes[part.edges()[1]], dst[part.edata[dgl.EID]])


@pytest.mark.parametrize("name", ["degree", "budget"])
def test_they_serve_link_prediction(graph, name):
    loader = dgl.dataloading.EdgeDataLoader(
        graph, range(100), samplers(graph)[name], exclude="self", batch_size=25
    )
    for _, pair_graph, blocks in loader:
        for block in blocks:
            assert not torch.isin(block.edata[dgl.EID], pair_graph.edata[dgl.EID]).any()
