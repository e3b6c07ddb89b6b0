from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from tests.graph.samples import edges_of, graphs, same, toy, typed, typed_graphs


def pair() -> dgl.Graph:
    """0 → 1 → 2 with x = 1, 2, 3 and w = 1, 2, beside 3 ⟲ with x = 4 and w = 3."""
    path, loop = dgl.graph(([0, 1], [1, 2])), dgl.graph(([0], [0]))
    path.ndata["x"], loop.ndata["x"] = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0])
    path.edata["w"], loop.edata["w"] = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
    return dgl.batch([path, loop])


def test_what_the_parts_may_be() -> None:
    """Batches beside graphs, graphs without nodes or edges, in any format, lazy columns, int32."""
    one = toy(torch.int32).formats("csc")
    one.ndata["twice"] = torch.arange(4) * 2
    one = dgl.node_subgraph(one, [0, 1, 2, 3], store_ids=False)  # its columns are lazy
    none = dgl.graph(([], []), idtype=torch.int32)
    g = dgl.batch([dgl.batch([one, one]), none, one])
    assert g.idtype == g.batch_num_nodes().dtype == g.batch_num_edges().dtype == torch.int32
    assert g.batch_num_nodes().tolist() == [4, 4, 0, 4]
    assert g.batch_num_edges().tolist() == [5, 5, 0, 5]
    assert g.ndata["twice"].tolist() == [0, 2, 4, 6] * 3
    edges = edges_of(one)
    assert edges_of(g) == [(u + 4 * i, v + 4 * i) for i in range(3) for u, v in edges]
    assert [edges_of(part) for part in dgl.unbatch(g)] == [edges, edges, [], edges]
    alone = dgl.batch([none])
    assert (alone.num_nodes(), alone.num_edges(), alone.batch_size) == (0, 0, 1)


def test_parts_of_a_batch_do_not_hold_the_edges_of_the_others() -> None:
    part = dgl.unbatch(pair())[0]
    assert all(end.untyped_storage().nbytes() == 2 * end.itemsize for end in part.relation().coo())


def test_which_features_are_kept() -> None:
    parts = dgl.unbatch(pair())
    parts[1].ndata["extra"] = torch.ones(1)
    with pytest.raises(dgl.DGLError, match="'extra'"):
        dgl.batch(parts)
    assert list(dgl.batch(parts, ndata=["x"]).ndata) == ["x"]
    g = dgl.batch(parts, ndata=None, edata=None)
    assert list(g.ndata) == list(g.edata) == []
    empty = dgl.graph(([], []))
    assert dgl.batch([empty, *dgl.unbatch(pair())]).ndata["x"].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "found an empty list"),
        ([toy(), typed()], "same node types"),
        ([toy(), toy(torch.int32)], "same ID dtype"),
        ([dgl.to_block(toy())], "found a block"),
        ([toy(), 3], "list of graphs, needs a graph; found int"),
    ],
)
def test_graphs_that_do_not_fit(parts: list[Any], message: str) -> None:
    with pytest.raises(dgl.DGLError, match=message):
        dgl.batch(parts)


@given(st.lists(graphs(max_nodes=4, max_edges=6), min_size=1, max_size=4))
def test_batch_and_back(parts: list[dgl.Graph]) -> None:
    parts = [dgl.graph(g.edges(), num_nodes=g.num_nodes(), idtype=torch.int64) for g in parts]
    for i, g in enumerate(parts):
        g.ndata["x"] = torch.full((g.num_nodes(),), float(i))
        g.edata["w"] = torch.full((g.num_edges(), 2), i)
    g = dgl.batch(parts)
    assert g.num_nodes() == sum(part.num_nodes() for part in parts)
    back = dgl.unbatch(g)
    assert len(back) == len(parts)
    assert all(same(a, b) for a, b in zip(parts, back, strict=True))


@given(typed_graphs(), st.integers(1, 3))
def test_typed_batch_and_back(g: dgl.Graph, count: int) -> None:
    joined = dgl.batch([g] * count)
    for etype in g.canonical_etypes:
        n, m = g.num_nodes(etype[0]), g.num_nodes(etype[2])
        expected = [(u + i * n, v + i * m) for i in range(count) for u, v in edges_of(g, etype)]
        assert edges_of(joined, etype) == expected
        assert joined.batch_num_edges(etype).tolist() == [g.num_edges(etype)] * count
        assert joined.batch_num_nodes(etype[0]).tolist() == [n] * count
    assert all(same(part, g) for part in dgl.unbatch(joined))


def test_unbatch_where_told() -> None:
    g = pair()
    parts = dgl.unbatch(g, torch.tensor([3, 0, 1]), torch.tensor([2, 0, 1]))
    assert [part.num_nodes() for part in parts] == [3, 0, 1]
    for split, message in (
        (([2, 2], [2, 1]), "graph 0 leaves the graph"),
        (([3, 2], [2, 1]), "add up to 4"),
        (([3, 1], [3]), "equally many graphs"),
        (({"_N": [4], "other": [0]}, None), "no node type 'other'"),
    ):
        with pytest.raises(dgl.DGLError, match=message):
            dgl.unbatch(g, *split)


def test_what_keeps_a_batch_and_what_forgets_it() -> None:
    g = pair()
    for kept in (
        g.local_var(),
        copy.copy(g),
        copy.deepcopy(g),
        pickle.loads(pickle.dumps(g)),
        g.to("cpu"),
        g.int(),
        g.reverse(),
        g.formats("csc"),
    ):
        assert kept.batch_num_nodes().tolist() == [3, 1]
        assert kept.batch_num_edges().tolist() == [2, 1]
    for changed in (
        dgl.add_self_loop(g),
        dgl.to_simple(g),
        g.subgraph([0, 3]),
        dgl.add_nodes(g, 1),
    ):
        assert changed.batch_size == 1
    g.add_nodes(1)
    assert g.batch_size == 1
    assert g.batch_num_nodes().tolist() == [5]


def test_a_forgotten_batch_can_be_told() -> None:
    g = dgl.add_self_loop(pair())
    g.set_batch_num_nodes(torch.tensor([3, 1]))
    assert g.batch_size == 2
    g = typed()
    g.set_batch_num_nodes({"user": torch.tensor([1, 2]), "game": torch.tensor([4, 0])})
    g.set_batch_num_edges({e: torch.tensor([g.num_edges(e), 0]) for e in g.canonical_etypes})
    assert g.batch_num_edges("plays").tolist() == [3, 0]
    with pytest.raises(dgl.DGLError, match=r"'game'.*4"):
        g.set_batch_num_nodes({"game": torch.tensor([1, 2])})
    with pytest.raises(dgl.DGLError, match=r"ntype=.*'game'"):
        g.batch_num_nodes()


def test_broadcast() -> None:
    g = pair()
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert dgl.broadcast_nodes(g, rows).tolist() == [[1, 2]] * 3 + [[3, 4]]
    assert dgl.broadcast_edges(g, rows).tolist() == [[1, 2]] * 2 + [[3, 4]]
    g = dgl.batch([typed(), typed()])
    assert dgl.broadcast_nodes(g, torch.tensor([1, 2]), ntype="user").tolist() == [1, 1, 1, 2, 2, 2]
    assert len(dgl.broadcast_edges(g, rows, etype="plays")) == 6


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda g: dgl.sum_nodes(g, "x"), [6, 4]),
        (lambda g: dgl.mean_nodes(g, "x"), [2, 4]),
        (lambda g: dgl.max_nodes(g, "x"), [3, 4]),
        (lambda g: dgl.readout_nodes(g, "x", op="min"), [1, 4]),
        (lambda g: dgl.sum_nodes(g, "x", "x"), [14, 16]),
        (lambda g: dgl.sum_edges(g, "w"), [3, 3]),
        (lambda g: dgl.mean_edges(g, "w"), [1.5, 3]),
        (lambda g: dgl.max_edges(g, "w"), [2, 3]),
        (lambda g: dgl.readout_edges(g, "w", "w"), [5, 9]),
    ],
)
def test_readout(call: Any, expected: list[float]) -> None:
    assert call(pair()).tolist() == expected


def test_readout_weights_every_column_and_lets_gradients_through() -> None:
    g = pair()
    g.ndata["h"] = torch.ones(4, 3, requires_grad=True)
    g.ndata["a"] = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    total = dgl.sum_nodes(g, "h", "a")
    assert total.tolist() == [[6] * 3, [4] * 3]
    total.sum().backward()
    assert g.ndata["h"].grad.tolist() == [[1] * 3, [2] * 3, [3] * 3, [4] * 3]
