"""Generated data sets against networkx, and against what their definition says."""

from __future__ import annotations

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
    with pytest.raises(InvalidInput, match="7 nodes cannot fall into 2 communities"):
        dgl.data.SBMMixtureDataset(1, 7, 2)
    with pytest.raises(InvalidInput, match="or 2 pairs; found 1"):
        dgl.data.SBMMixtureDataset(2, 8, 2, pq=[(1, 1)])
    with pytest.raises(TypeError, match="missing a required argument: 'n_nodes'"):
        dgl.data.SBMMixtureDataset(1)
