"""Generated data sets against networkx, and against what their definition says."""

import networkx as nx
import numpy as np
import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.errors import InvalidInput
from tests.compat.test_data_sets import pairs

pytestmark = pytest.mark.timeout(60)


def test_karate_club():
    dataset = dgl.data.KarateClubDataset()
    g, club = dataset[0], nx.karate_club_graph()
    assert (dataset.num_classes, len(dataset), g.num_edges()) == (2, 1, 156)
    assert set(pairs(g)) == set(club.to_directed().edges())
    officer = [int(club.nodes[node]["club"] != "Mr. Hi") for node in range(34)]
    assert g.ndata["label"].tolist() == officer
    assert dgl.data.KarateClubDataset(transform=dgl.AddSelfLoop())[0].num_edges() == 190


def test_block_model():
    rng = np.random.RandomState(0)
    dataset = dgl.data.SBMMixtureDataset(6, 40, 2, rng=rng)
    for i in range(6):
        g, line, degree, line_degree, source = dataset[i]
        assert set(pairs(g)) == {(v, u) for u, v in pairs(g)} and g.num_nodes() == 40
        assert torch.equal(degree, g.in_degrees().float()) and torch.equal(source, g.edges()[0])
        edges = pairs(g)
        expected = {
            (a, b)
            for a, (u, v) in enumerate(edges)
            for b, (x, y) in enumerate(edges)
            if v == x and u != y
        }
        assert set(pairs(line)) == expected and line.num_nodes() == len(edges)
        assert line_degree.sum() == len(expected)
    batched = dataset.collate_fn([dataset[0], dataset[2]])
    g, line, degree, line_degree, source = batched
    assert (g.num_nodes(), len(degree), len(line_degree)) == (80, 80, line.num_nodes())
    assert torch.equal(source, g.edges()[0])


def test_block_model_has_the_densities_asked_for():
    n, p, q = 400, 20, 4
    dataset = dgl.data.SBMMixtureDataset(3, n, 2, pq=[(p, q)] * 3, rng=np.random.RandomState(1))
    for g in dataset.graphs:
        src, dst = (ends // (n // 2) for ends in g.edges())
        inside = int((src == dst).sum()) / n
        outside = int((src != dst).sum()) / n
        assert inside == pytest.approx(p / 2, rel=0.1) and outside == pytest.approx(q / 2, rel=0.15)
    with pytest.raises(InvalidInput, match="n_communities; found 7"):
        dgl.data.SBMMixtureDataset(1, 7, 2)
    with pytest.raises(InvalidInput, match="or 2 pairs; found 1"):
        dgl.data.SBMMixtureDataset(2, 8, 2, pq=[(1, 1)])
    with pytest.raises(TypeError, match="n_nodes"):
        dgl.data.SBMMixtureDataset(1)


def test_eight_shapes():
    dataset = dgl.data.MiniGCDataset(24, 6, 20, seed=3)
    assert (len(dataset), dataset.num_classes) == (24, 8)
    for i, (g, label) in enumerate(dataset):
        found = nx.Graph(pairs(g))
        loops = list(nx.selfloop_edges(found))
        assert int(label) == i // 3 and len(loops) == g.num_nodes() == len(found)
        found.remove_edges_from(loops)
        n = len(found)
        side = int(n**0.5)
        expected = [
            nx.cycle_graph(n),
            nx.star_graph(n - 1),
            nx.wheel_graph(n),
            nx.lollipop_graph(n // 2 + n % 2, n // 2),
            nx.hypercube_graph(int(np.log2(n))),
            nx.grid_2d_graph(side, n // side),
            nx.complete_graph(n),
            nx.circular_ladder_graph(n // 2),
        ][int(label)]
        if int(label) == 5:  # its sides follow from the number that was drawn
            sides = [a for a in range(2, n) if n % a == 0]
            assert any(nx.is_isomorphic(found, nx.grid_2d_graph(a, n // a)) for a in sides)
        else:
            assert nx.is_isomorphic(found, expected)
    again = dgl.data.MiniGCDataset(24, 6, 20, seed=3)
    assert all(pairs(g) == pairs(h) for (g, _), (h, _) in zip(dataset, again, strict=True))
    with pytest.raises(InvalidInput, match="6 <= min_num_v < max_num_v; found 3 and 9"):
        dgl.data.MiniGCDataset(8, 3, 9)
