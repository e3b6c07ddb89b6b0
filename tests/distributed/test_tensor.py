"""DistTensor: every way to read and write rows, names, lifetimes, and what is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, DistTensor, initialize
from gnnlab.errors import InvalidInput, OutOfRange
from tests.distributed import cut as cuts


@pytest.fixture(params=cuts.PARTS)
def g(request, tmp_path) -> DistGraph:
    """Node features ``x`` and edge features ``w``, ``m``; the rows of ``x`` are distinct."""
    return cuts.cut(cuts.plain(), request.param, tmp_path).parts


@pytest.fixture
def typed(tmp_path) -> DistGraph:
    return cuts.cut(cuts.typed(), 2, tmp_path).parts


INDICES = {
    "int": 7,
    "numpy int": np.int64(199),
    "scalar tensor": torch.tensor(0),
    "list": [3, 0, 3, 199],
    "tuple of nothing": [],
    "range": range(5, 9),
    "slice": slice(20, 170),
    "all": slice(None),
    "tail": slice(-3, None),
    "step": slice(None, 150, 7),
    "backward": slice(None, None, -1),
    "empty slice": slice(9, 3),
    "ellipsis": ...,
    "numpy": np.array([150, 2, 99]),
    "numpy int32": np.array([150, 2, 99], np.int32),
    "int64": torch.randperm(200),
    "int32": torch.randperm(200).int(),
    "uint8 IDs": torch.tensor([3, 4], dtype=torch.int16),
    "mask": torch.arange(200) % 3 == 0,
    "numpy mask": np.arange(200) % 5 == 0,
    "list mask": [True] + [False] * 199,
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES.keys())
def test_read_and_write_by_any_index(g, index):
    """As an ordinary tensor does; a single ID keeps the first dimension."""
    x = g.ndata["x"]
    plain = torch.cat([x[i] for i in range(200)])
    key = torch.tensor(index) if isinstance(index, list) else index
    key = list(index) if isinstance(index, range) else key
    if isinstance(index, slice) and index.step == -1:
        key = torch.arange(199, -1, -1)
    if isinstance(key, torch.Tensor) and not key.numel():
        key = key.long()
    if isinstance(key, torch.Tensor) and key.dtype is torch.int16:
        key = key.long()
    expected = plain[key]
    if expected.ndim == 1:
        expected = expected[None]
    found = x[index]
    assert type(found) is torch.Tensor and torch.equal(found, expected)
    found += 1  # nobody else's memory
    assert torch.equal(x[:], plain)
    x[index] = -expected
    plain[key] = -plain[key]
    assert torch.equal(x[:], plain)


def test_every_form_of_value(g):
    x = g.ndata["x"]
    for value in (2, 3.5, [1, 2, 3], [[1], [2]], np.ones((2, 3), np.float32), torch.ones(3)):
        x[[4, 190]] = value
        expected = torch.as_tensor(value, dtype=torch.float32).expand(2, 3)
        assert torch.equal(x[[4, 190]], expected)
    x[[4, 4, 4]] = torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 3)
    assert x[4].tolist() == [[3.0] * 3]
    y = DistTensor((200, 3), torch.float32, "y")
    y[:] = x
    assert torch.equal(y[:], x[:])
    weights = torch.ones(1, 3, requires_grad=True)
    y[0] = weights * 2
    assert not y[0].requires_grad


def test_masks_join(g):
    one, two = (DistTensor((200,), torch.bool) for _ in range(2))
    one[[1, 2]] = True
    two[[2, 199]] = True
    assert (one | two)[:].nonzero().flatten().tolist() == [1, 2, 199]
    assert torch.equal(g.ndata["x"][one], g.ndata["x"][[1, 2]])
    with pytest.raises(InvalidInput, match=r"bool.*float32"):
        one | g.ndata["x"]


# ------------------------------------------------------------------------------ making tensors


@pytest.mark.parametrize(
    ("init", "message"),
    [
        (lambda s, d: torch.zeros(3, 2), r"returned torch.float32 of shape \(3, 2\)"),
        (lambda s, d: torch.zeros(s, dtype=torch.float64), "returned torch.float64"),
        (lambda s, d: None, r"init_func\(shape, dtype\) must return a tensor .* returned NoneType"),
        (lambda s, d: 1 / 0, "division by zero"),
    ],
)
def test_nothing_is_made_when_the_first_values_fail(g, init, message):
    with pytest.raises((InvalidInput, ZeroDivisionError), match=message):
        DistTensor((200, 2), torch.float32, "t", init)
    assert "t" not in g.ndata
    assert DistTensor((200, 2), torch.float32, "t")[:].count_nonzero() == 0


def test_equal_tensors_are_joined_others_refused(g):
    one = DistTensor((200, 2), torch.float32, "t")
    one[5] = 1
    two = DistTensor((200, 2), torch.float32, "t", lambda s, d: torch.ones(s))
    assert torch.equal(two[:], one[:]) and two[5].sum() == 2
    for shape, dtype in (((200, 3), torch.float32), ((200, 2), torch.float64)):
        with pytest.raises(InvalidInput, match=r"'node~_N~t'.*float32"):
            DistTensor(shape, dtype, "t")
    with pytest.raises(InvalidInput, match="'node~_N~x' exists"):
        DistTensor((200,), torch.float32, "x")


def test_which_type_a_tensor_is_on(typed, tmp_path):
    assert DistTensor((25, 2), torch.float32).part_policy.policy_str == "node~game"
    assert DistTensor((400,), torch.int64).name.startswith("edge~user:follows:user~")
    with pytest.raises(InvalidInput, match=r"26.*node~game has 25"):
        DistTensor((26, 2), torch.float32)
    ring = cuts.cut(dgl.graph(([0, 1, 2], [1, 2, 0])), 2, tmp_path / "ring").parts
    ask = "3 rows may belong to 'node~_N', 'edge~_N:_E:_N'; say which by part_policy=g.get_node"
    with pytest.raises(InvalidInput, match=ask):
        DistTensor((3, 2), torch.float32, "h")
    for policy in (ring.get_node_partition_policy("_N"), ring.get_edge_partition_policy("_E")):
        h = DistTensor((3, 2), torch.float32, "h", part_policy=policy)
        assert h.part_policy == policy
    game = typed.get_node_partition_policy("game")  # not the graph opened last
    n = DistTensor((25,), torch.int64, "n", part_policy=game)
    assert n[24].tolist() == [0] and "n" in typed.nodes["game"].data
    with pytest.raises(InvalidInput, match=r"node~game has 25 rows; the shape \(3,\) begins"):
        DistTensor((3,), torch.int64, part_policy=game)


# ----------------------------------------------------------------------------------- lifetimes
def test_rows_live_as_long_as_somebody_has_them(g):
    first = DistTensor((200,), torch.float32, "t")
    first[:] = 1
    second = DistTensor((200,), torch.float32, "t")  # as when a notebook cell is run again
    del first
    assert second[:].sum() == 200 and "t" in g.ndata
    third = g.ndata["t"]
    del second
    assert third[:].sum() == 200
    del third
    assert "t" not in g.ndata
    DistTensor((200, 7), torch.int64, "t", persistent=True)
    assert g.ndata["t"].shape == (200, 7)
    x = g.ndata["x"]
    del x
    assert len(g.ndata["x"]) == 200


def test_tensors_without_a_name_are_apart(g):
    one, two = (DistTensor((200,), torch.float32) for _ in range(2))
    one[:] = 1
    assert two[:].sum() == 0 and one.name != two.name
    assert list(g.ndata) == ["x"]
    hidden = DistTensor((200,), torch.float32, "hidden", is_gdata=False)
    assert list(g.ndata) == ["x"] and hidden[0].item() == 0


def test_handles_of_several_threads(g):
    """A loader's thread reads features while the program does, too."""
    keep = DistTensor((200,), torch.float32, "u", init_func=lambda s, d: torch.ones(s))

    def read(_):
        for _ in range(200):
            assert g.ndata["u"][[1, 2]].sum() == 2

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, range(4)))
    assert keep[:].sum() == 200


# ------------------------------------------------------------------------------- the two frames
def test_features_are_set_by_name(g):
    t = DistTensor((200,), torch.float32, "t")
    g.ndata["alias"] = t
    assert g.ndata["alias"] is t and set(g.ndata) == {"x", "t", "alias"}
    g.ndata["y"] = torch.arange(200)
    assert isinstance(g.ndata["y"], DistTensor) and g.ndata["y"][[199, 0]].tolist() == [199, 0]
    g.ndata["y"] = torch.ones(200, 2)
    assert g.ndata["y"].shape == (200, 2)
    before = torch.zeros(200)
    g.ndata["z"] = before
    g.ndata["z"][:] = 1
    assert before.sum() == 0
    del g.ndata["y"], g.ndata["alias"]
    assert set(g.ndata) == {"x", "t", "z"} and len(g.ndata) == 3
    assert "x" in g.ndata and "y" not in g.ndata
    assert g.ndata.get("y") is None


# --------------------------------------------------------------------------------------- faults
def test_rows_that_do_not_exist(g):
    x = g.ndata["x"]
    for index, row in ((200, 200), (-1, -1), ([0, 200], 200), (torch.tensor([-3]), -3)):
        with pytest.raises(OutOfRange, match=f"row {row} of node~_N~x|node~_N~x: row {row} does"):
            x[index]
        with pytest.raises(OutOfRange):
            x[index] = 0
    assert x[:].sum() == torch.arange(600.0).sum()


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ((0, 1), "is indexed by rows alone"),
        (None, "is indexed by rows alone"),
        ([0.5], "row IDs must be integers; found torch.float32"),
        (torch.tensor([[0, 1]]), "row IDs must be one-dimensional"),
        (torch.ones(7, dtype=torch.bool), r"a mask needs one entry per row, 200; found shape \(7"),
    ],
)
def test_indices_that_make_no_sense(g, index, message):
    with pytest.raises(InvalidInput, match=message):
        g.ndata["x"][index]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            torch.ones(2, 3, dtype=torch.float64),
            "holds torch.float32; found values of torch.float64",
        ),
        (np.ones((2, 3)), r"Convert them with .to\(torch.float32\)"),
        (torch.ones(2, 3).long(), "found values of torch.int64"),
        (torch.ones(2, 4), r"2 rows of node~_N~x need values of shape \(2, 3\); found \(2, 4\)"),
        (torch.ones(3, 3), r"need values of shape \(2, 3\); found \(3, 3\)"),
    ],
)
def test_values_that_do_not_fit(g, value, message):
    before = g.ndata["x"][:]
    with pytest.raises(InvalidInput, match=message):
        g.ndata["x"][[0, 150]] = value
    assert torch.equal(g.ndata["x"][:], before)
    counts = DistTensor((200,), torch.int64)
    with pytest.raises(InvalidInput, match=r"torch\.int64.*torch\.float32"):
        counts[0] = 0.5


def test_files_do_not_change(tmp_path):
    c = cuts.cut(cuts.plain(), 2, tmp_path)
    c.parts.ndata["x"][:] = -1
    initialize()
    again = DistGraph("g", tmp_path / "g.json")
    assert torch.equal(again.ndata["x"][:], c.whole.ndata["x"][c.nodes["_N"]])
    assert (c.parts.ndata["x"][:] == -1).all()
