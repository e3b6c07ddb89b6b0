from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from tests.graph.samples import edges_of, typed


def small() -> dgl.Graph:
    g = dgl.graph(([0, 0, 1], [0, 1, 1]))
    g.edata["w"] = torch.tensor([1.0, 2.0, 3.0])
    return g


def test_add_self_loop_leaves_one_loop_per_node() -> None:
    g = dgl.AddSelfLoop()(small())
    assert edges_of(g) == [(0, 1), (0, 0), (1, 1)]
    assert g.edata["w"].tolist() == [2, 1, 1]
    g = dgl.AddSelfLoop(allow_duplicate=True, edge_feat_names=["w"], fill_data=7)(small())
    assert edges_of(g)[3:] == [(0, 0), (1, 1)]
    assert g.edata["w"].tolist() == [1, 2, 3, 7, 7]


def test_add_self_loop_to_types() -> None:
    g = dgl.AddSelfLoop()(typed())
    assert edges_of(g, "follows") == [(0, 1), (0, 0), (1, 1), (2, 2)]
    assert g.canonical_etypes == typed().canonical_etypes
    g = dgl.AddSelfLoop(new_etypes=True)(typed())
    assert g.canonical_etypes == sorted(
        [*typed().canonical_etypes, ("game", "self", "game"), ("user", "self", "user")]
    )
    assert edges_of(g, ("game", "self", "game")) == [(i, i) for i in range(4)]
    assert g.edges["plays"].data["w"].tolist() == [0, 1, 2]
    assert g.nodes["game"].data["price"].tolist() == [0, 1, 2, 3]


def test_remove_self_loop() -> None:
    assert edges_of(dgl.RemoveSelfLoop()(typed()), "follows") == [(0, 1)]
    assert edges_of(dgl.RemoveSelfLoop()(small())) == [(0, 1)]


@pytest.mark.parametrize(("copy", "weights"), [(True, [1, 2, 3]), (False, [0, 0, 0])])
def test_add_reverse_of_one_type(copy: bool, weights: list[float]) -> None:
    g = dgl.AddReverse(copy_edata=copy)(small())
    assert edges_of(g)[3:] == [(0, 0), (1, 0), (1, 1)]
    assert g.edata["w"].tolist() == [1, 2, 3, *weights]


def test_add_reverse_adds_types() -> None:
    g = dgl.AddReverse()(typed())
    assert g.canonical_etypes == [
        ("game", "made by", "user"),
        ("game", "rev_plays", "user"),
        ("user", "follows", "user"),
        ("user", "plays", "game"),
        ("user", "rev_made by", "game"),
    ]
    assert edges_of(g, "follows") == [(0, 1), (1, 1), (1, 0), (1, 1)]
    assert edges_of(g, "rev_plays") == [(0, 0), (0, 0), (2, 1)]
    assert list(g.edges["rev_plays"].data) == []
    g = dgl.AddReverse(copy_edata=True, sym_new_etype=True)(typed())
    assert edges_of(g, "rev_follows") == [(1, 0), (1, 1)]
    assert edges_of(g, "follows") == [(0, 1), (1, 1)]
    assert g.edges["rev_plays"].data["w"].tolist() == [0, 1, 2]


def test_to_simple_keeps_features() -> None:
    g = dgl.ToSimple(return_counts="n", aggregator="sum")(dgl.AddReverse(copy_edata=True)(small()))
    assert edges_of(g) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert g.edata["w"].tolist() == [2, 2, 2, 6]
    assert g.edata["n"].tolist() == [2, 1, 1, 2]


def test_compose_and_repr() -> None:
    change = dgl.Compose([dgl.AddSelfLoop(), dgl.ToSimple(), lambda g: g.reverse()])
    assert edges_of(change(small())) == [(0, 0), (1, 0), (1, 1)]
    assert repr(dgl.Compose([dgl.AddReverse(), dgl.RemoveSelfLoop()])) == (
        "Compose([\n  AddReverse(),\n  RemoveSelfLoop()\n])"
    )
    with pytest.raises(TypeError, match="abstract"):
        dgl.BaseTransform()
