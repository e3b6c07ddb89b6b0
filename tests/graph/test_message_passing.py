from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
import gnnlab.function as fn
from tests.graph.samples import graphs, same, typed
from tests.ops import reference


def path() -> dgl.Graph:
    """0 → 2, 1 → 2, 2 → 0, with h = 1, 3, 5 and w = 1, 2, 4."""
    g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    g.ndata["h"] = torch.tensor([1.0, 3.0, 5.0])
    g.edata["w"] = torch.tensor([1.0, 2.0, 4.0])
    return g


# ------------------------------------------------------------------------------ update_all


def test_functions_of_your_own() -> None:
    g = path()

    def message(edges: Any) -> dict[str, torch.Tensor]:
        assert len(edges) == edges.batch_size() == 3
        assert [x.tolist() for x in edges.edges()] == [[0, 1, 2], [2, 2, 0], [0, 1, 2]]
        assert edges.canonical_etype == ("_N", "_E", "_N")
        assert edges.dst["h"].tolist() == [5, 5, 1]
        return {"m": edges.src["h"] * edges.data["w"]}

    def reduce(nodes: Any) -> dict[str, torch.Tensor]:
        seen.append((nodes.nodes().tolist(), nodes.mailbox["m"].tolist(), len(nodes)))
        return {"o": nodes.mailbox["m"].sum(1) + nodes.data["h"]}

    seen: list[Any] = []
    g.update_all(message, reduce)
    assert seen == [([0], [[20]], 1), ([2], [[1, 6]], 1)]
    assert g.ndata["o"].tolist() == [21, 0, 12]
    g.update_all(message, fn.sum("m", "s"))
    assert g.ndata["s"].tolist() == [20, 0, 7]
    g.update_all(fn.copy_u("h", "m"), lambda nodes: {"t": nodes.mailbox["m"].max(1).values})
    assert g.ndata["t"].tolist() == [5, 0, 3]


def test_functions_may_change_what_they_are_given_in_place() -> None:
    """x = 1, 2, 4; 0 → 2, 1 → 2, 2 → 0: y_v = 3 Σ (2 x_u + x_v + 1), and dy/dx by hand."""
    g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    x = g.ndata["x"] = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)

    def message(edges: Any) -> Any:
        return {"m": edges.src["x"].mul_(2).add_(edges.dst["x"].add_(1))}

    def reduce(nodes: Any) -> Any:
        return {"y": nodes.mailbox["m"].mul_(3).sum(1)}

    g.update_all(message, reduce)
    assert g.ndata["y"].tolist() == [30.0, 0.0, 48.0]
    g.ndata["y"].sum().backward()
    assert x.grad.tolist() == [9.0, 6.0, 12.0]
    assert x.tolist() == [1.0, 2.0, 4.0]


def test_update_all_of_a_type() -> None:
    g = typed()
    g.update_all(fn.copy_u("x", "m"), fn.sum("m", "o"), etype="plays")
    assert g.nodes["game"].data["o"].tolist() == [0, 0, 1, 0]
    assert "o" not in g.nodes["user"].data
    part = g["made by"]
    part.update_all(fn.copy_u("x", "m"), fn.mean("m", "back"))
    assert g.nodes["user"].data["back"].tolist() == [0, 0, 0]
    g.update_all(fn.copy_u("x", "m"), fn.sum("m", "all"))  # of all types
    assert g.nodes["user"].data["all"].tolist() == [0, 1, 0]
    assert g.nodes["game"].data["all"].tolist() == [0, 0, 1, 0]
    empty = dgl.heterograph({}, {"user": 2})
    with pytest.raises(dgl.DGLError, match="etype="):
        empty.update_all(fn.copy_u("x", "m"), fn.sum("m", "o"))


def test_update_all_on_blocks_and_bipartite_graphs() -> None:
    block = dgl.to_block(path(), [2, 0])
    block.update_all(fn.copy_u("h", "m"), fn.sum("m", "o"))
    assert block.dstdata["o"].tolist() == [4, 5]
    assert "o" not in block.srcdata
    g = dgl.heterograph({("user", "plays", "game"): ([0, 0, 1], [0, 0, 2])}, {"user": 3, "game": 4})
    with g.local_scope():
        g.srcdata["h"] = torch.tensor([1.0, 2.0, 3.0])
        g.update_all(fn.copy_u("h", "m"), fn.sum("m", "o"))
        assert g.dstdata["o"].tolist() == [2, 0, 2, 0]


# ----------------------------------------------------------------------------- apply_edges
@pytest.mark.parametrize(
    ("func", "expected"),
    [
        (fn.u_sub_v("h", "h", "o"), [-4, -2, 4]),
        (fn.copy_u("h", "o"), [1, 3, 5]),
        (lambda edges: {"o": edges.src["h"] - edges.data["w"]}, [0, 1, 1]),
    ],
)
def test_apply_edges(func: Any, expected: list[float]) -> None:
    g = path()
    assert g.apply_edges(func) is None
    assert torch.allclose(g.edata["o"], torch.tensor(expected, dtype=torch.float32))


@pytest.mark.parametrize("edges", [[2, 0], torch.tensor([2, 0]), ([2, 0], [0, 2])])
def test_apply_some_edges(edges: Any) -> None:
    g = path()
    g.apply_edges(fn.u_add_v("h", "h", "o"), edges=edges)
    assert g.edata["o"].tolist() == [6, 0, 6]
    g.apply_edges(lambda e: {"w": e.data["w"] * 10}, edges=edges)
    assert g.edata["w"].tolist() == [10, 2, 40]
    g.apply_edges(fn.u_mul_e("h", "w", "w"), edges=edges)
    assert g.edata["w"].tolist() == [10, 2, 200]


# ----------------------------------------------------------------------------- apply_nodes
def test_apply_nodes() -> None:
    g = path()
    g.apply_nodes(lambda nodes: {"h": nodes.data["h"] * 2, "id": nodes.nodes()})
    assert g.ndata["h"].tolist() == [2, 6, 10]
    assert g.ndata["id"].tolist() == [0, 1, 2]
    g.apply_nodes(lambda nodes: {"h": nodes.data["h"] + 1, "new": nodes.nodes()}, v=[2, 0])
    assert g.ndata["h"].tolist() == [3, 6, 11]
    assert g.ndata["new"].tolist() == [0, 0, 2]
    g = typed()
    g.apply_nodes(lambda nodes: {"y": nodes.data["x"] + 1}, ntype="game")
    assert g.nodes["game"].data["y"].tolist() == [1, 11, 21, 31]


# ----------------------------------------------------------------- some edges, some nodes
def test_send_and_recv_leaves_others_alone() -> None:
    g = path()
    g.send_and_recv([0, 1], fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert g.ndata["h"].tolist() == [1, 3, 4]
    g = path()
    g.send_and_recv(([1], [2]), fn.copy_u("h", "m"), fn.sum("m", "new"))
    assert g.ndata["new"].tolist() == [0, 0, 3]
    g = path()
    double = [2], fn.copy_u("h", "m"), fn.sum("m", "h")
    g.send_and_recv(*double, lambda nodes: {"h": nodes.data["h"] * 2})
    assert g.ndata["h"].tolist() == [10, 3, 5]
    assert sorted(g.edata) == ["w"]


def test_pull_and_push() -> None:
    g = path()
    g.pull([2, 1, 2], fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert g.ndata["h"].tolist() == [1, 0, 4]
    g = path()
    g.push([0, 0], fn.copy_u("h", "m"), fn.sum("m", "h"))
    assert g.ndata["h"].tolist() == [1, 3, 1]
    g = typed()
    g.pull([0], fn.copy_u("x", "m"), fn.max("m", "x"), etype="plays")
    assert g.nodes["game"].data["x"].tolist() == [0, 10, 20, 30]
    g.push([1], fn.copy_u("x", "m"), fn.max("m", "x"), etype="plays")
    assert g.nodes["game"].data["x"].tolist() == [0, 10, 1, 30]


# ------------------------------------------------------------------------- multi_update_all
def meeting() -> dgl.Graph:
    """user 0 and user 1 hear of user 1 from "a": 1 → 1 and from "b": 0 → 1 and 1 → 0."""
    g = dgl.heterograph(
        {("user", "a", "user"): ([1], [1]), ("user", "b", "user"): ([0, 1], [1, 0])}
    )
    g.ndata["x"] = torch.tensor([2.0, 5.0])
    return g


@pytest.mark.parametrize(
    ("cross", "expected"),
    [
        ("sum", [5, 7]),
        ("mean", [2.5, 3.5]),
        ("max", [5, 5]),
        ("min", [0, 2]),
        ("stack", [[0, 5], [5, 2]]),
        (lambda values: values[0] - values[1], [-5, 3]),
    ],
)
def test_multi_update_all(cross: Any, expected: Any) -> None:
    g = meeting()
    both = {etype: (fn.copy_u("x", "m"), fn.sum("m", "y")) for etype in ("a", "b")}
    g.multi_update_all(both, cross)
    assert g.ndata["y"].tolist() == expected


def test_features_that_nobody_asks_for_are_not_made() -> None:
    g, read = meeting(), []
    g.node_frames()["user"].defer("z", lambda: read.append("z") or torch.ones(2))
    both = {etype: (fn.copy_u("x", "m"), fn.sum("m", "y")) for etype in ("a", "b")}
    g.multi_update_all(both, "sum")
    g.pull([0], *both["a"], etype="a")
    assert not read and g.ndata["z"].tolist() == [1, 1]


def test_multi_update_all_with_apply_functions_and_several_types() -> None:
    g = typed()
    send = fn.copy_u("x", "m"), fn.sum("m", "x")
    g.multi_update_all(
        {
            "follows": (*send, lambda nodes: {"x": nodes.data["x"] * 10}),
            "made by": send,
            ("user", "plays", "game"): send,
        },
        "sum",
        lambda nodes: {"x": nodes.data["x"] + 100},
    )
    assert g.nodes["user"].data["x"].tolist() == [100, 110, 100]
    assert g.nodes["game"].data["x"].tolist() == [100, 100, 101, 100]


def apart(x: torch.Tensor, y: torch.Tensor) -> dgl.Graph:
    """A 0 → B 0 with x, C 0 → B 1 with y; no message reaches B 2."""
    ends = {("A", "a", "B"): ([0], [0]), ("C", "c", "B"): ([0], [1])}
    g = dgl.heterograph(ends, {"A": 1, "B": 3, "C": 1})
    g.nodes["A"].data["x"], g.nodes["C"].data["x"] = x, y
    return g


def _smallest(nodes: Any) -> dict[str, torch.Tensor]:
    return {"y": nodes.mailbox["m"].amin(1)}


@pytest.mark.parametrize("cross", ["min", "max"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_a_type_counts_where_its_messages_arrive(cross: str, dtype: torch.dtype) -> None:
    for sign in (1, -1):
        x, y = torch.tensor([5 * sign], dtype=dtype), torch.tensor([7 * sign], dtype=dtype)
        for reduce in (fn.min("m", "y"), fn.max("m", "y"), fn.mean("m", "y"), _smallest):
            if dtype == torch.int64 and reduce == fn.mean("m", "y"):
                continue
            for g in (apart(x, y), dgl.to_block(apart(x, y), {"B": [0, 1, 2]})):
                both = {etype: (fn.copy_u("x", "m"), reduce) for etype in ("a", "c")}
                g.multi_update_all(both, cross)
                found = g.dstnodes["B"].data["y"]
                assert found.dtype == dtype and found.tolist() == [5 * sign, 7 * sign, 0]


def test_a_type_that_sums_counts_everywhere() -> None:
    g = apart(torch.tensor([-5.0]), torch.tensor([-7.0]))
    send = fn.copy_u("x", "m")
    g.multi_update_all({"a": (send, fn.max("m", "y")), "c": (send, fn.sum("m", "y"))}, "max")
    assert g.nodes["B"].data["y"].tolist() == [0, -7, 0]


def test_gradients_across_types() -> None:
    x, y = (torch.tensor([row], requires_grad=True) for row in ([5.0, -1.0], [7.0, -2.0]))
    g = apart(x, y)
    both = {etype: (fn.copy_u("x", "m"), fn.min("m", "y")) for etype in ("a", "c")}
    g.multi_update_all(both, "min", lambda nodes: {"z": nodes.data["y"] * torch.tensor([1.0, 3])})
    found = g.nodes["B"].data
    assert found["y"].tolist() == [[5, -1], [7, -2], [0, 0]]
    found["z"].sum().backward()
    assert x.grad is not None and y.grad is not None
    assert x.grad.tolist() == y.grad.tolist() == [[1, 3]]


# ------------------------------------------------------------ results of functions of your own
def degrees() -> dgl.Graph:
    """Node 0 has in-degree 1, nodes 1 and 2 have 2; h = 1, 3, 5."""
    g = dgl.graph(([1, 0, 2, 0, 1], [0, 1, 1, 2, 2]))
    g.ndata["h"] = torch.tensor([1.0, 3.0, 5.0])
    return g


def _by_degree(one: Any, two: Any) -> Any:
    def reduce(nodes: Any) -> dict[str, Any]:
        h = nodes.mailbox["m"].sum(1)
        return one(h) if nodes.mailbox["m"].shape[1] == 1 else two(h)

    return reduce


@pytest.mark.parametrize(
    ("reduce", "words"),
    [
        (lambda nodes: {"o": nodes.mailbox["m"].sum(0)}, "'o'.*in-degree 2"),
        (lambda nodes: {"o": nodes.mailbox["m"].sum()}, "'o'.*in-degree 1"),
        (lambda nodes: {"o": nodes.mailbox["m"].max(1)}, "'o'.*in-degree 1"),
        (lambda nodes: {"o": 1.0}, "'o'.*in-degree 1"),
        (lambda nodes: {"o": [0.0] * len(nodes)}, "'o'.*in-degree 1"),
        (lambda nodes: {"o": nodes.mailbox["m"]}, "'o'.*in-degree 1.*in-degree 2"),
        (_by_degree(lambda h: {"o": h}, lambda h: {"o": h.double()}), "'o'.*in-degree 2"),
        (_by_degree(lambda h: {"o": h}, lambda h: {"p": h}), "'o'.*in-degree 2"),
        (_by_degree(lambda h: {"o": h}, lambda h: {"o": h, "p": h}), "'p'.*in-degree 2"),
    ],
)
def test_each_degree_returns_a_row_per_node(reduce: Any, words: str) -> None:
    for call in (
        lambda g: g.update_all(fn.copy_u("h", "m"), reduce),
        lambda g: g.pull([0, 1, 2], fn.copy_u("h", "m"), reduce),
        lambda g: g.multi_update_all({"_E": (fn.copy_u("h", "m"), reduce)}, "sum"),
    ):
        g = degrees()
        with pytest.raises(dgl.GNNLabError, match=f"{reduce.__name__} .*{words}"):
            call(g)
        assert same(g, degrees())


def test_message_and_apply_functions_return_a_row_for_each() -> None:
    g = degrees()
    whole = {"x": torch.ones(4)}
    for call in (
        lambda: g.update_all(lambda edges: whole, fn.sum("x", "o")),
        lambda: g.update_all(lambda edges: whole, lambda nodes: {}),
        lambda: g.apply_edges(lambda edges: whole),
        lambda: g.apply_edges(lambda edges: whole, [0]),
        lambda: g.apply_nodes(lambda nodes: whole),
        lambda: g.apply_nodes(lambda nodes: whole, [0]),
        lambda: g.apply_nodes(lambda nodes: {"x": None}),
        lambda: g.update_all(fn.copy_u("h", "m"), fn.sum("m", "o"), lambda nodes: whole),
    ):
        with pytest.raises(dgl.GNNLabError, match=r"<lambda> .*'x'"):
            call()
    for rows in (torch.ones(1).double(), torch.ones(1, 2)):
        with pytest.raises(dgl.GNNLabError, match="'h'"):
            g.apply_nodes(lambda nodes, rows=rows: {"h": rows}, [0])
    assert g.ndata["h"].tolist() == [1, 3, 5] and not g.edata


# ------------------------------------------------------------------------------ initial rows
def test_initial_rows_of_features_that_are_written_in_part() -> None:
    def nines(shape: Any, dtype: torch.dtype, device: Any, ids: slice) -> torch.Tensor:
        assert shape[0] == ids.stop - ids.start
        return torch.full(shape, 9, dtype=dtype, device=device)

    send, own = fn.copy_u("h", "m"), lambda nodes: {"o": nodes.mailbox["m"].sum(1)}
    ones = lambda rows: {"o": torch.ones(len(rows), dtype=torch.int64)}  # noqa: E731
    for call, expected in (
        (lambda g: g.pull([0, 1], send, fn.sum("m", "o")), [5, 0, 9]),
        (lambda g: g.pull([0, 1], send, own), [5, 9, 9]),
        (lambda g: g.push([0, 1], send, own), [9, 9, 4]),
        (lambda g: g.update_all(send, own), [5, 9, 4]),
        (lambda g: g.update_all(send, fn.sum("m", "o")), [5, 0, 4]),
        (lambda g: g.apply_nodes(ones, [1]), [9, 1, 9]),
    ):
        g = path()
        g.set_n_initializer(nines)
        with g.local_scope():
            call(g)
            assert g.ndata["o"].tolist() == expected
        g.set_n_initializer(lambda shape, dtype, device, ids: torch.zeros(shape), "o")
        call(g)
        assert g.ndata["o"].tolist() == [0 if x == 9 else x for x in expected]
    g.set_e_initializer(nines)
    g.apply_edges(ones, [2])
    assert g.edata["o"].tolist() == [9, 9, 1]
    g.set_n_initializer(lambda shape, dtype, device, ids: torch.zeros(7), "x")
    with pytest.raises(dgl.DGLError, match="'x'"):
        g.apply_nodes(lambda nodes: {"x": torch.ones(1)}, [0])


# ------------------------------------------------------------------------------- reference
@given(
    graphs(),
    st.sampled_from(["sum", "mean", "max", "min"]),
    st.sampled_from(["copy_u", "copy_e", "u_mul_e", "u_add_v", "e_sub_v"]),
)
def test_update_all_against_loops(g: dgl.Graph, reducer: str, message: str) -> None:
    generator = torch.Generator().manual_seed(g.num_edges())
    g.ndata["h"] = torch.rand(g.num_nodes(), 2, generator=generator) + 0.5
    g.edata["k"] = torch.rand(g.num_edges(), 2, generator=generator) + 0.5
    first, *op, last = message.split("_")
    ends = f"{first}{last}" if op else f"{last}e"
    rows = {"u": g.ndata["h"], "v": g.ndata["h"], "e": g.edata["k"]}
    fields = ["k" if end == "e" else "h" for end in ends[: len(op) + 1]]
    builtin = getattr(fn, message)(*fields, "m")
    expected = torch.zeros(g.num_nodes(), 2)
    if g.num_edges():
        pair = rows[ends[0]], rows[ends[1]]
        messages = reference.sddmm(g, op[0] if op else "copy_lhs", *pair, ends)
        expected = reference.spmm(g, "copy_rhs", reducer, None, messages)
    g.update_all(builtin, getattr(fn, reducer)("m", "o"))
    assert torch.allclose(g.ndata["o"], expected)

    def own(nodes: Any) -> dict[str, torch.Tensor]:
        name = {"max": "amax", "min": "amin"}.get(reducer, reducer)
        return {"own": getattr(nodes.mailbox["m"], name)(1)}

    g.update_all(builtin, own)
    if g.num_edges():
        assert torch.allclose(g.ndata["own"], expected)
