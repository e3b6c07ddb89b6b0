from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import Frame, LazyTensor, as_tensor
from tests.graph.samples import toy, typed


def frame() -> Frame:
    return Frame(3, {"x": torch.tensor([1.0, 2.0, 3.0])}, torch.device("cpu"))


def test_a_frame_is_a_dictionary() -> None:
    f = frame()
    f["y"] = [4, 5, 6]
    f["z"] = np.zeros((3, 2), np.float32)
    assert list(f) == list(f.keys()) == ["x", "y", "z"]
    assert len(f) == 3
    assert "x" in f
    assert "w" not in f
    assert f["y"].dtype == torch.int64
    assert f.pop("z").shape == (3, 2)
    assert f.get("w") is None
    del f["y"]
    f.update({"x": torch.zeros(3)})
    assert {name: value.tolist() for name, value in f.items()} == {"x": [0, 0, 0]}
    assert f.setdefault("x", torch.ones(3)).tolist() == [0, 0, 0]
    f.clear()
    assert len(f) == 0


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda f: f.pop("w"), KeyError, "no node feature 'w'"),
        (lambda f: f.__delitem__("w"), KeyError, "no node feature 'w'"),
        (lambda f: f.update(y=torch.ones(3, device="meta")), ValueError, "on meta.*on cpu"),
    ],
)
def test_bad_columns_are_explained(call: Any, kind: Any, message: str) -> None:
    f = frame()
    with pytest.raises(kind, match=message) as error:
        call(f)
    assert isinstance(error.value, dgl.DGLError)
    assert list(f) == ["x"]


def test_a_deferred_column_is_made_once_when_read() -> None:
    made: list[str] = []

    def make() -> torch.Tensor:
        made.append("h")
        return torch.ones(3)

    f = frame()
    f.defer("h", make)
    twin = f.copy()
    part = Frame(1, f.rows(torch.tensor([2])))
    assert list(f) == ["x", "h"]
    assert made == []
    assert f["h"].tolist() == twin["h"].tolist() == [1, 1, 1]
    assert part["h"].tolist() == [1]
    assert made == ["h"]
    f.defer("h", lambda: torch.zeros(3))
    assert f["h"].tolist() == [0, 0, 0]


def test_rows_show_the_columns_of_their_time() -> None:
    f = frame()
    part = Frame(2, f.rows(torch.tensor([2, 0])))
    f["x"] = torch.zeros(3)
    assert part["x"].tolist() == [3, 1]


def test_a_deferred_column_can_be_overwritten_and_pickled() -> None:
    f = frame()
    f.defer("h", lambda: torch.ones(3))
    g = pickle.loads(pickle.dumps(f))
    assert g["h"].tolist() == [1, 1, 1]
    assert (g.num_rows, g.what) == (3, "node")
    f["h"] = torch.zeros(3)
    assert f["h"].tolist() == [0, 0, 0]


# ------------------------------------------------------------- features of graphs
def test_features_of_one_type() -> None:
    g = toy()
    g.ndata["h"] = np.arange(4)
    assert g.nodes["_N"].data["h"] is g.ndata["h"] is g.srcdata["h"] is g.dstdata["h"]
    g.srcdata["k"] = torch.ones(4)
    assert "k" in g.ndata
    assert g.edges["_E"].data["w"] is g.edata["w"]
    assert g.edges["_N", "_E", "_N"].data["w"] is g.edata["w"]
    assert g.ndata.pop("h").tolist() == [0, 1, 2, 3]
    g.ndata = {"only": torch.ones(4)}
    assert "only" in g.ndata
    with pytest.raises(ValueError, match="5 rows"):
        g.edata["w"] = torch.ones(4)


def test_features_of_several_types() -> None:
    g = typed()
    assert {k: v.tolist() for k, v in g.ndata["x"].items()} == {
        "game": [0, 10, 20, 30],
        "user": [0, 1, 2],
    }
    assert {k: v.tolist() for k, v in g.edata["w"].items()} == {
        ("user", "plays", "game"): [0, 1, 2]
    }
    g.ndata["h"] = {"user": torch.ones(3)}
    assert list(g.nodes["user"].data) == ["x", "h"]
    assert "h" not in g.nodes["game"].data
    g.edata["h"] = {"follows": torch.ones(2), ("user", "plays", "game"): torch.ones(3)}
    assert "h" in g.edges["follows"].data
    assert sorted(g.ndata) == ["h", "price", "x"]
    assert "price" in g.ndata
    assert "nope" not in g.ndata
    del g.ndata["x"]
    assert "x" not in g.nodes["game"].data
    assert list(g.ndata.pop("h")) == ["user"]


@pytest.mark.parametrize("dtypes", [("Int64", "Float64"), ("Int32", "boolean"), ("UInt8", "Int8")])
def test_columns_with_dtypes_of_pandas(dtypes: tuple[str, str]) -> None:
    """They may lack values, and are then refused; a column of floats has NaN."""
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 0, 1]})
    frame = frame.astype(dict(zip("ab", dtypes, strict=True)))
    assert as_tensor(frame).tolist() == [[0, 1], [1, 0], [2, 1]]
    assert str(as_tensor(frame["a"]).dtype) == f"torch.{dtypes[0].lower()}"
    g = dgl.graph((frame["a"], frame["a"].array))
    assert g.edges()[1].tolist() == [0, 1, 2]
    frame.loc[1, "b"] = None
    for value in (frame, frame["b"], frame[["b", "a"]]):
        with pytest.raises(InvalidInput, match=r"'b'.*row 1"):
            g.edata["x"] = value
    assert as_tensor(frame[["a"]]).tolist() == [[0], [1], [2]]
    assert as_tensor(pd.DataFrame({"a": [1.0, None]})).isnan().tolist() == [[False], [True]]


def test_both_sides_of_a_bipartite_graph() -> None:
    g = dgl.heterograph({("user", "plays", "game"): ([0, 0, 1], [0, 0, 2])}, {"user": 3, "game": 4})
    assert (g.ntypes, g.srctypes, g.dsttypes) == (["game", "user"], ["user"], ["game"])
    assert (g.num_src_nodes(), g.num_dst_nodes(), g.num_nodes()) == (3, 4, 7)
    g.srcdata["h"], g.dstdata["k"] = torch.ones(3), torch.ones(4)
    assert g.nodes["user"].data["h"] is g.srcdata["h"] is g.srcnodes["user"].data["h"]
    assert list(g.dstdata) == ["k"]
    assert g.srcnodes().tolist() == [0, 1, 2]
    assert g.dstnodes().tolist() == [0, 1, 2, 3]
    assert g.reverse().srctypes == ["game"]
    with pytest.raises(KeyError, match="'user'"):
        g.num_src_nodes("game")


@pytest.mark.parametrize(("device", "may_come_later"), [("cpu", False), ("cuda:0", True)])
def test_only_a_gpu_waits_by_itself_for_what_is_copied(device: str, may_come_later: bool) -> None:
    """torch copies from a GPU in the background, too, and tells nobody when it is done."""
    asked = []

    class Elsewhere:
        def to(self, device: torch.device, non_blocking: bool) -> Elsewhere:
            asked.append(non_blocking)
            return self

    LazyTensor(Elsewhere, torch.device(device))()
    assert asked == [may_come_later]
