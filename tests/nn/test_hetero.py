"""HeteroGraphConv: what meets at a node type, arguments of modules, pairs, blocks, errors."""

from __future__ import annotations

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from gnnlab.nn import GraphConv, HeteroGraphConv, SAGEConv
from tests.nn.toy import assert_close

ROWS = {
    "user": torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
    "game": torch.tensor([[5.0, 6.0], [7.0, 8.0]]),
    "shop": torch.tensor([[10.0, 20.0]]),
}


def shop_graph():
    """Two users who follow each other, two games, one shop::

    user 0 ──plays──> game 0      user 1 ──follows──> user 0
    user 0 ──plays──> game 1      user 0 ──follows──> user 1
    user 1 ──plays──> game 1      shop 0 ──sells────> game 1
    """
    return dgl.heterograph(
        {
            ("user", "follows", "user"): ([0, 1], [1, 0]),
            ("user", "plays", "game"): ([0, 0, 1], [0, 1, 1]),
            ("shop", "sells", "game"): ([0], [1]),
        }
    )


def means() -> dict[str, GraphConv]:
    """Modules that average the sources' rows."""
    names = ("follows", "plays", "sells")
    return {name: GraphConv(2, 2, norm="right", weight=False, bias=False) for name in names}


# At game 0: plays 1, 2 and sells 0, 0. At game 1: plays 2, 3 and sells 10, 20. (Values of DGL 2.1.)
@pytest.mark.parametrize(
    ("aggregate", "game"),
    [
        ("sum", [[1, 2], [12, 23]]),
        ("max", [[1, 2], [10, 20]]),
        ("min", [[0, 0], [2, 3]]),
        ("mean", [[0.5, 1], [6, 11.5]]),
        ("stack", [[[0, 0], [1, 2]], [[10, 20], [2, 3]]]),
    ],
)
def test_aggregates(aggregate, game):
    out = HeteroGraphConv(means(), aggregate)(shop_graph(), ROWS)
    assert sorted(out) == ["game", "user"]
    assert_close(out["game"], game)
    user = torch.tensor([[3.0, 4.0], [1.0, 2.0]])
    assert_close(out["user"], user.unsqueeze(1) if aggregate == "stack" else user)


def test_aggregate_may_be_a_function():
    layer = HeteroGraphConv(means(), lambda outputs, ntype: (ntype, len(outputs)))
    assert layer(shop_graph(), ROWS) == {"game": ("game", 2), "user": ("user", 1)}


def test_canonical_names_come_first():
    plays = GraphConv(2, 2, norm="none", weight=False, bias=False)
    layer = HeteroGraphConv({**means(), ("user", "plays", "game"): plays})
    assert_close(layer(shop_graph(), ROWS)["game"], [[1.0, 2.0], [14.0, 26.0]])


def test_arguments_of_modules():
    """DGL 2.1: a weight for one relation, an edge weight for another."""
    out = HeteroGraphConv(means())(
        shop_graph(),
        ROWS,
        mod_args={"plays": (torch.eye(2) * 2,)},
        mod_kwargs={("shop", "sells", "game"): {"edge_weight": torch.tensor([5.0])}},
    )
    assert_close(out["game"], [[2.0, 4.0], [54.0, 106.0]])


def test_relations_without_source_rows_are_skipped():
    rows = {"user": ROWS["user"], "game": ROWS["game"]}
    assert_close(HeteroGraphConv(means())(shop_graph(), rows)["game"], [[1.0, 2.0], [2.0, 3.0]])
    assert sorted(HeteroGraphConv(means())(shop_graph(), ({"shop": ROWS["shop"]}, ROWS))) == [
        "game"
    ]


def test_block_takes_the_first_rows_as_destinations():
    graph = shop_graph()
    block = dgl.to_block(dgl.in_subgraph(graph, {"game": [1]}), {"game": [1]})
    rows = {ntype: ROWS[ntype][block.srcnodes[ntype].data[dgl.NID]] for ntype in block.srctypes}
    torch.manual_seed(0)
    layer = HeteroGraphConv({name: SAGEConv(2, 3, "mean") for name in means()})
    out = layer(block, rows)
    assert_close(out["game"], layer(graph, ROWS)["game"][1:])
    assert "user" not in out or out["user"].shape == (0, 3)


def test_destination_types_that_a_block_or_a_pair_lacks_are_skipped():
    """Only game 1 is computed; no row of user or shop is a destination."""
    graph, layer = shop_graph(), HeteroGraphConv(means())
    block = dgl.to_block(dgl.in_subgraph(graph, {"game": [1]}), {"game": [1]})
    rows = {ntype: ROWS[ntype][block.srcnodes[ntype].data[dgl.NID]] for ntype in block.srctypes}
    rows_of_game = {"game": rows["game"]}
    for inputs in (rows, (rows, rows_of_game)):
        out = layer(block, inputs)
        assert_close(out.pop("game"), [[12, 23]])
        assert not any(len(empty) for empty in out.values())
    assert layer(block, {"user": rows["user"]}).keys() <= {"user"}
    assert layer(block, (rows, {})) == layer(block, {}) == {}
    assert list(layer(graph, (ROWS, {"user": ROWS["user"]}))) == ["user"]
    nobody = dgl.to_block(
        dgl.edge_subgraph(graph, {"plays": []}, relabel_nodes=False), {"game": []}
    )
    assert layer(nobody, {ntype: ROWS[ntype][:0] for ntype in ROWS})["game"].shape == (0, 2)


@pytest.mark.parametrize("name", ["mod_args", "mod_kwargs"])
def test_arguments_for_relations(name):
    empty = () if name == "mod_args" else {}
    layer = HeteroGraphConv({**means(), ("user", "owns", "shop"): GraphConv(2, 2)})
    known = ["plays", "owns", ("user", "owns", "shop"), ("user", "plays", "game")]
    part = dgl.edge_type_subgraph(shop_graph(), ["sells"])  # lacks all but one relation
    for graph in (shop_graph(), part):
        layer(graph, ROWS, **{name: dict.fromkeys(known, empty)})
        for wrong in ("play", ("user", "play", "game"), 3):
            with pytest.raises(dgl.errors.NotFound, match=f"{name} .*'sells'"):
                layer(graph, ROWS, **{name: {wrong: empty}})


def test_nan_in_the_rows_of_one_side():
    pair = ROWS["user"], torch.full((2, 2), torch.inf)
    with pytest.warns(UserWarning, match="'game'"):
        SAGEConv(2, 3, "mean")(shop_graph()["plays"], pair)


def test_a_pair_has_two_sides():
    for inputs in ((ROWS,), (ROWS, ROWS, ROWS)):
        with pytest.raises(InvalidInput, match="inputs"):
            HeteroGraphConv(means())(shop_graph(), inputs)
