import pytest
import torch

import gnnlab as dgl
from gnnlab.compat import transforms
from tests.graph.samples import edges_of, toy, typed


def test_line_graph_and_hops_are_the_functions() -> None:
    g = dgl.graph(([0, 0, 1, 2], [1, 2, 3, 3]))
    g.ndata["x"], g.edata["w"] = torch.arange(4), torch.arange(4) + 10
    line = transforms.LineGraph()(g)
    assert edges_of(line) == [(0, 2), (1, 3)] and line.ndata["w"].tolist() == [10, 11, 12, 13]
    loops = dgl.graph(([0, 0, 0], [0, 0, 1]))  # a loop is followed by the other, not by itself
    assert edges_of(transforms.LineGraph()(loops)) == [(0, 1), (0, 2), (1, 0), (1, 2)]
    pair = dgl.graph(([0, 1], [1, 0]))
    assert transforms.LineGraph(backtracking=False)(pair).num_edges() == 0
    hops = transforms.KHopGraph(2)(g)
    assert edges_of(hops) == [(0, 3), (0, 3)] and hops.ndata["x"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("keep", [True, False])
def test_metapaths_become_edge_types(keep: bool) -> None:
    """user 0 plays game 0, made by user 1: the only path; game 2 has no maker."""
    paths = {"through": ["plays", "made by"], "again": ["follows", "plays"]}
    made = transforms.AddMetaPaths(paths, keep_orig_edges=keep)(typed())
    assert edges_of(made, "through") == [(0, 1)]
    assert edges_of(made, "again") == [(0, 2), (1, 2)]
    assert made.to_canonical_etype("again") == ("user", "again", "game")
    before = typed().canonical_etypes if keep else []
    new = [("user", "again", "game"), ("user", "through", "user")]
    assert made.canonical_etypes == sorted([*before, *new])
    assert made.nodes["game"].data["price"].tolist() == [0, 1, 2, 3]
    if keep:
        assert made.edges["plays"].data["w"].tolist() == [0, 1, 2]


def test_levi_graph_has_edges_as_nodes() -> None:
    g = toy()
    levi = transforms.ToLevi()(g)
    assert levi.num_nodes("node") == 4 and levi.num_nodes("edge") == 5
    assert edges_of(levi, "n2e") == [(u, e) for e, (u, _) in enumerate(edges_of(g))]
    assert edges_of(levi, "e2n") == [(e, v) for e, (_, v) in enumerate(edges_of(g))]
    assert levi.nodes["node"].data["x"].equal(g.ndata["x"])
    assert levi.nodes["edge"].data["kind"].equal(g.edata["kind"])
