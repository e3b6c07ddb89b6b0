"""sample_neighbors on graphs: which edges, which IDs, which features."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl


@pytest.fixture
def star() -> dgl.Graph:
    """Edges by ID: 0→4, 1→4, 4→0, 2→4, 3→4. Node 4 has the in-edges 0, 1, 3, 4."""
    g = dgl.graph(([0, 1, 4, 2, 3], [4, 4, 0, 4, 4]))
    g.ndata["x"] = torch.arange(5.0) * 10
    g.edata["w"] = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0])
    return g


@pytest.fixture
def typed() -> dgl.Graph:
    """Users 0, 1, 2 follow user 0; users 0 and 1 play game 0; dev 0 makes game 0."""
    return dgl.heterograph(
        {
            ("user", "follows", "user"): ([0, 1, 2], [0, 0, 0]),
            ("user", "plays", "game"): ([0, 1], [0, 0]),
            ("dev", "makes", "game"): ([0], [0]),
        }
    )


def test_all_neighbors_keep_ids_and_features(star):
    frontier = dgl.sampling.sample_neighbors(star, [4], -1)
    assert frontier.num_nodes() == 5
    assert frontier.edata[dgl.EID].tolist() == [0, 1, 3, 4]
    assert frontier.edges()[0].tolist() == [0, 1, 2, 3]
    assert frontier.edges()[1].tolist() == [4, 4, 4, 4]
    assert frontier.edata["w"].tolist() == [0.0, 1.0, 1.0, 0.0]
    assert frontier.ndata["x"].tolist() == [0.0, 10.0, 20.0, 30.0, 40.0]


def test_none_means_all_and_zero_none(star):
    assert star.sample_neighbors([4], None).num_edges() == 4
    assert star.sample_neighbors([4], 0).num_edges() == 0


def test_weights_by_name_or_tensor(star):
    for prob in ("w", star.edata["w"], star.edata["w"].bool(), star.edata["w"][:, None]):
        frontier = dgl.sampling.sample_neighbors(star, [4], 3, prob=prob)
        assert sorted(frontier.edata[dgl.EID].tolist()) == [1, 3]
    frontier = dgl.sampling.sample_neighbors(star, [4], 3, prob="w", replace=True)
    assert frontier.num_edges() == 3 and set(frontier.edata[dgl.EID].tolist()) <= {1, 3}


def test_out_edges(star):
    frontier = dgl.sampling.sample_neighbors(star, [4, 1], -1, edge_dir="out")
    assert frontier.edges()[0].tolist() == [4, 1]
    assert frontier.edges()[1].tolist() == [0, 4]
    assert frontier.edata[dgl.EID].tolist() == [2, 1]


def test_excluded_edges(star):
    frontier = dgl.sampling.sample_neighbors(star, [4, 0], -1, exclude_edges=[1, 2])
    assert frontier.edata[dgl.EID].tolist() == [0, 3, 4]


def test_features_stay_behind_when_not_wanted(star):
    frontier = dgl.sampling.sample_neighbors(star, [4], 1, copy_ndata=False, copy_edata=False)
    assert list(frontier.ndata) == [] and list(frontier.edata) == [dgl.EID]


def test_seeds_and_calls_name_the_sample():
    g = dgl.rand_graph(50, 3000)

    def draw():
        return dgl.sampling.sample_neighbors(g, range(50), 5).edata[dgl.EID].tolist()

    dgl.seed(1)
    first, second = draw(), draw()
    dgl.seed(1)
    assert [draw(), draw()] == [first, second] and first != second


def test_typed_graphs(typed):
    frontier = dgl.sampling.sample_neighbors(
        typed, {"user": [0], "game": [0]}, {"follows": 2, ("user", "plays", "game"): -1, "makes": 0}
    )
    assert frontier.num_edges("follows") == 2
    assert frontier.num_edges("plays") == 2
    assert frontier.num_edges("makes") == 0
    assert frontier.num_nodes("user") == 3
    one = dgl.sampling.sample_neighbors(typed, {"game": [0]}, 1)
    assert [one.num_edges(e) for e in ("follows", "plays", "makes")] == [0, 1, 1]


def test_weights_may_be_learned(star):
    weights = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0], requires_grad=True)
    frontier = dgl.sampling.sample_neighbors(star, [4], -1, prob=weights)
    assert frontier.edata[dgl.EID].tolist() == [1, 3]


def test_typed_weights_and_exclusions(typed):
    typed.edges["plays"].data["p"] = torch.tensor([0.0, 1.0])
    frontier = dgl.sampling.sample_neighbors(typed, {"game": [0]}, -1, prob="p")
    assert frontier.edges["plays"].data[dgl.EID].tolist() == [1]
    assert frontier.num_edges("makes") == 1
    frontier = dgl.sampling.sample_neighbors(typed, {"game": [0]}, -1, exclude_edges={"plays": [1]})
    assert frontier.edges["plays"].data[dgl.EID].tolist() == [0]
