"""Measures of homophily against loops over nodes, edges and classes, and known extremes."""

from __future__ import annotations

import math
from collections import Counter

import networkx as nx
import pytest
import torch

import gnnlab as dgl
from gnnlab.compat import transforms
from tests.graph.samples import edges_of


def sample() -> tuple[dgl.Graph, list[int]]:
    made = nx.gnp_random_graph(30, 0.15, seed=4)
    made.add_nodes_from([30])  # without neighbors
    g = dgl.from_networkx(made)
    y = torch.randint(3, (31,), generator=torch.Generator().manual_seed(1)).tolist()
    return g, y


def test_shares_of_nodes_and_edges() -> None:
    g, y = sample()
    pairs = edges_of(g)
    near = {v: [u for u, w in pairs if w == v] for v in range(31)}
    shares = [sum(y[u] == y[v] for u in us) / len(us) if us else 0 for v, us in near.items()]
    assert transforms.node_homophily(g, torch.tensor(y)) == pytest.approx(sum(shares) / 31)
    same = sum(y[u] == y[v] for u, v in pairs) / len(pairs)
    assert transforms.edge_homophily(g, torch.tensor(y)) == pytest.approx(same)


def test_linkx_is_a_loop_over_classes() -> None:
    g, y = sample()
    pairs, total = edges_of(g), 0.0
    for k in range(3):
        into = [(u, v) for u, v in pairs if y[v] == k]
        total += max(0, sum(y[u] == k for u, _ in into) / len(into) - y.count(k) / 31)
    assert transforms.linkx_homophily(g, torch.tensor(y)) == pytest.approx(total / 2)


def test_adjusted_is_networkx_assortativity() -> None:
    g, y = sample()
    made = nx.Graph(g.to_networkx())
    nx.set_node_attributes(made, dict(enumerate(y)), "class")
    expected = nx.attribute_assortativity_coefficient(made, "class")
    once = g.edge_subgraph(g.edges()[0] < g.edges()[1], relabel_nodes=False)
    for graph in (g, once):  # with each pair of neighbors in both directions, and in one
        assert transforms.adjusted_homophily(graph, torch.tensor(y)) == pytest.approx(expected)


def test_informativeness_is_mutual_information() -> None:
    g, y = sample()
    joint = Counter((y[u], y[v]) for u, v in edges_of(g))
    ends, count = Counter(y[v] for _, v in edges_of(g)), g.num_edges()
    information = sum(
        n / count * math.log(n * count / (ends[a] * ends[b])) for (a, b), n in joint.items()
    )
    entropy = -sum(n / count * math.log(n / count) for n in ends.values())
    once = g.edge_subgraph(g.edges()[0] < g.edges()[1], relabel_nodes=False)
    for graph in (g, once):
        found = transforms.edge_label_informativeness(graph, torch.tensor(y))
        assert found == pytest.approx(information / entropy, abs=1e-6)
