from __future__ import annotations

import errno
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import gnnlab as dgl
from gnnlab import compat
from gnnlab.errors import InvalidInput
from gnnlab.graph.relation import checked_adjacency
from tests.graph.samples import edges_of, graphs, same, toy, typed, typed_graphs
from tests.helpers import THOROUGH

SAME_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def test_one_position_or_several(tmp_path: Path) -> None:
    file = tmp_path / "some.graphs"
    dgl.save_graphs(file, [dgl.rand_graph(n, 0) for n in (1, 2, 3)])
    for wanted, sizes in (
        (2, [3]),
        (torch.tensor(0), [1]),
        (torch.tensor([2, 0]), [3, 1]),
        (range(1, 3), [2, 3]),
        ({1}, [2]),
        ([], []),
        ([True, False, True], [1, 3]),
    ):
        assert [g.num_nodes() for g in dgl.load_graphs(file, wanted)[0]] == sizes
    for wrong in (1.0, [0.5], True, "1"):
        with pytest.raises(InvalidInput):
            dgl.load_graphs(file, wrong)
    for out in (3, -1):
        with pytest.raises(dgl.OutOfRange, match=f"found {out}"):
            dgl.load_graphs(file, [out])


def test_a_file_with_more_nodes_than_its_ids_can_number(tmp_path: Path) -> None:
    dgl.save_graphs(tmp_path / "large", dgl.graph(([2**31 + 5], [0])))
    with safe_open(tmp_path / "large", framework="pt") as opened:
        metadata = {name: opened.metadata()[name] for name in ("format", "content")}  # unsigned
    metadata["content"] = metadata["content"].replace('"idtype": "int64"', '"idtype": "int32"')
    save_file(load_file(tmp_path / "large"), tmp_path / "wrong", metadata)
    assert edges_of(dgl.load_graphs(tmp_path / "large")[0][0]) == [(2**31 + 5, 0)]
    with pytest.raises(InvalidInput, match="do not fit"):
        dgl.load_graphs(tmp_path / "wrong")


@SAME_FOLDER
@given(st.lists(graphs() | typed_graphs(), max_size=3))
def test_any_graphs_come_back(tmp_path: Path, many: list[dgl.Graph]) -> None:
    dgl.save_graphs(tmp_path / "g", many, {"y": torch.arange(len(many)), "z": [0.5]})
    found, labels = dgl.load_graphs(str(tmp_path / "g"))
    assert labels["y"].tolist() == list(range(len(many))) and labels["z"].tolist() == [0.5]
    assert len(found) == len(many) and [path.name for path in tmp_path.iterdir()] == ["g"]
    for a, b in zip(found, many, strict=True):
        assert a.formats() == b.formats()
        assert same(a, b)


@pytest.mark.parametrize("formats", ["coo", "csc", "csr", ["csc", "csr"]])
def test_formats_asked_for_are_stored(tmp_path: Path, formats: Any) -> None:
    dgl.save_graphs(tmp_path / "g", toy(), formats=formats)
    (g,), _ = dgl.load_graphs(tmp_path / "g")
    assert set(g.formats()["created"]) == {*([formats] if isinstance(formats, str) else formats)}
    assert edges_of(g) == edges_of(toy())


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.bool, torch.uint16, torch.complex64, torch.complex128],
)
def test_features_of_every_dtype(tmp_path: Path, dtype: torch.dtype) -> None:
    g = toy()
    g.ndata["f"] = torch.tensor([0, 1, 1, 0]).to(dtype)
    g.edata["none"] = torch.empty(5, 0, 3)
    dgl.save_graphs(tmp_path / "g", g)
    assert same(dgl.load_graphs(tmp_path / "g")[0][0], g)


def test_a_dtype_that_does_not_fit_is_named(tmp_path: Path) -> None:
    g = toy()
    g.ndata["f"] = torch.zeros(4, dtype=torch.uint4)
    with pytest.raises(InvalidInput, match="uint4"):
        dgl.save_graphs(tmp_path / "g", g)
    assert list(tmp_path.iterdir()) == []


def test_shared_and_odd_tensors(tmp_path: Path) -> None:
    base = torch.arange(12.0).reshape(4, 3)
    g = toy()
    g.ndata.update({"all": base, "same": base, "column": base[:, 1], "t": base.T.reshape(3, 4).T})
    g.ndata["learned"] = torch.ones(4, requires_grad=True)
    dgl.save_graphs(tmp_path / "g", [g, g, g.local_var()], {"y": base[1:]})
    found, labels = dgl.load_graphs(tmp_path / "g")
    assert all(same(a, g) for a in found)
    assert torch.equal(labels["y"], base[1:])
    with safe_open(tmp_path / "g", "pt") as file:
        assert sum(key.endswith(" all") for key in file.keys()) == 1  # noqa: SIM118


def test_names_of_all_kinds(tmp_path: Path) -> None:
    g = dgl.heterograph({("사용자", "a/b c", "节点"): ([0], [1])})
    g.nodes["사용자"].data["x y/z"] = torch.ones(1)
    g.nodes["节点"].data["__metadata__"] = torch.ones(2)
    dgl.save_graphs(tmp_path / "g", g, {"": torch.ones(1)})
    found, labels = dgl.load_graphs(tmp_path / "g")
    assert same(found[0], g)
    assert list(labels) == [""]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "g"
    dgl.save_graphs(file, toy())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as found:
        dgl.save_graphs(file, typed())
    assert isinstance(found.value, dgl.DGLError)
    assert (found.value.errno, found.value.filename) == (errno.ENOSPC, str(file))
    assert same(dgl.load_graphs(file)[0][0], toy())
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes with names")
@pytest.mark.parametrize(
    "write",
    [
        lambda path: dgl.save_graphs(path, [toy()]),
        lambda path: dgl.parallel.save_checkpoint(path, epoch=1),
        lambda path: compat.data.utils.save_info(path, {"a": 1}),
        lambda path: compat.data.utils.download("https://example.org/a", path),
    ],
)
def test_what_is_no_regular_file_stays(tmp_path: Path, write: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="regular") as error:
        write(str(pipe))
    assert isinstance(error.value, dgl.DGLError)
    assert pipe.is_fifo() and os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize(
    ("what", "message"),
    [([toy(), 3], "needs a graph; found int"), (dgl.to_block(toy()), "found a block")],
)
def test_what_is_not_a_graph_is_refused(tmp_path: Path, what: Any, message: str) -> None:
    with pytest.raises(dgl.DGLError, match=message):
        dgl.save_graphs(tmp_path / "g", what)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"?\xa1\xb4F\xf0O.\xdd\x02\x00\x00\x00",
            "is a file of DGL; gnnlab.compat.load_graphs reads it",
        ),
        (b"PK\x03\x04rest", "is a zip archive"),
        (pickle.dumps({"a": 1}), "is a pickle.*only if you trust"),
        (b"", "damaged, cut short or not a file of save_graphs"),
        (b"src,dst\n0,1\n", "damaged, cut short or not a file of save_graphs"),
    ],
)
def test_files_of_others_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "g").write_bytes(content)
    with pytest.raises(dgl.DGLError, match=message) as error:
        dgl.load_graphs(tmp_path / "g")
    assert str(tmp_path / "g") in str(error.value)


def test_missing_files_and_foreign_safetensors(tmp_path: Path) -> None:
    for path, builtin in ((tmp_path / "none", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(builtin) as found:
            dgl.load_graphs(path)
        assert isinstance(found.value, dgl.DGLError) and found.value.filename == str(path)
    with pytest.raises(FileExistsError) as found:
        dgl.save_graphs(Path(__file__) / "g", toy())  # in a file, as if it were a folder
    assert isinstance(found.value, dgl.DGLError)
    save_file({"a": torch.ones(2)}, tmp_path / "weights")
    with pytest.raises(dgl.DGLError, match=r"gnnlab.graphs/1"):
        dgl.load_graphs(tmp_path / "weights")


@SAME_FOLDER
@given(st.data())
def test_a_file_cut_anywhere_is_an_error(tmp_path: Path, data: st.DataObject) -> None:
    dgl.save_graphs(tmp_path / "g", toy())
    whole = (tmp_path / "g").read_bytes()
    (tmp_path / "cut").write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    with pytest.raises(dgl.DGLError):
        dgl.load_graphs(tmp_path / "cut")


def test_one_changed_byte_anywhere_is_an_error(tmp_path: Path) -> None:
    g = dgl.graph(([0, 1], [1, 2]))
    g.ndata["x"] = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    g.edata["c"] = torch.ones(2, dtype=torch.complex128)
    dgl.save_graphs(tmp_path / "g", g, {"y": torch.tensor([True])})
    whole = (tmp_path / "g").read_bytes()
    for i in range(0, len(whole), 1 if THOROUGH else 5):
        byte = whole[i]
        for other in {byte ^ 1, byte ^ 0x80, 0x20, 0x09} - {byte}:
            (tmp_path / "changed").write_bytes(whole[:i] + bytes([other]) + whole[i + 1 :])
            with pytest.raises(InvalidInput):
                dgl.load_graphs(tmp_path / "changed")


def test_only_the_graphs_asked_for_are_checked(tmp_path: Path) -> None:
    g, h = toy(), toy()
    g.ndata["x"], h.ndata["x"] = torch.full((4, 2), 1.5), torch.full((4, 2), 2.5)
    dgl.save_graphs(tmp_path / "g", [g, h])
    whole = (tmp_path / "g").read_bytes()
    at = whole.index(h.ndata["x"].numpy().tobytes())
    (tmp_path / "g").write_bytes(whole[:at] + b"\1" + whole[at + 1 :])
    assert same(dgl.load_graphs(tmp_path / "g", [0])[0][0], g)
    with pytest.raises(InvalidInput, match="checksum"):
        dgl.load_graphs(tmp_path / "g", [1])


def forge(path: Path, change: Any) -> None:
    """Rewrite a good file, with other arrays or another description, and without checksums."""
    g = toy().formats(["coo", "csc"])
    _ = g.relation().csc().eids
    dgl.save_graphs(path, g)
    arrays = load_file(path)
    with safe_open(path, "pt") as file:
        metadata = {name: file.metadata()[name] for name in ("format", "content")}
    content = json.loads(metadata["content"])
    structure = content["graphs"][0]["edges"][0]["structure"]
    change(arrays, content["graphs"][0], structure)
    save_file(arrays, path, {**metadata, "content": json.dumps(content)})


def put(kind: str, part: int, values: list[int]) -> Any:
    def change(arrays: Any, graph: Any, structure: Any) -> None:
        key = structure[kind][part]
        arrays[key] = torch.tensor(values, dtype=arrays[key].dtype)

    return change


@pytest.mark.parametrize(
    "change",
    [
        put("coo", 0, [0, 0, 1, 2, 9]),
        put("coo", 1, [0, 0, 1, 2, -1]),
        put("coo", 1, [0, 0, 1]),
        put("csc", 0, [0, 1, 4, 5, 99]),
        put("csc", 0, [0, 4, 1, 5, 5]),
        put("csc", 0, [0, 5]),
        put("csc", 1, [2, 0, 0, 1, 4]),
        put("csc", 2, [4, 0, 1, 2, 2]),
        put("csc", 2, [4, 0, 1, 2, 7]),
        put("csc", 2, [4, 1, 0, 2, 3]),
        lambda arrays, graph, structure: arrays.pop(structure["csc"][1]),
        lambda arrays, graph, structure: structure.clear(),
        lambda arrays, graph, structure: structure.update(coo=3),
        lambda arrays, graph, structure: structure.update(sparse=structure["coo"]),
        lambda arrays, graph, structure: graph.update(idtype="float32"),
        lambda arrays, graph, structure: graph["nodes"][0].update(count=-4),
        lambda arrays, graph, structure: graph["nodes"][0].update(count=5),
        lambda arrays, graph, structure: graph["edges"][0].update(type=["a", "b", "c"]),
        lambda arrays, graph, structure: graph["edges"][0].update(type="abc"),
        lambda arrays, graph, structure: graph.clear(),
        lambda arrays, graph, structure: graph.update(formats=["nope"]),
    ],
)
def test_forged_files_are_errors(tmp_path: Path, change: Any) -> None:
    forge(tmp_path / "g", change)
    with pytest.raises(dgl.DGLError, match="damaged"):
        dgl.load_graphs(tmp_path / "g")


def test_no_edges_have_no_ids() -> None:
    none = torch.empty(0, dtype=torch.int64)
    with pytest.raises(dgl.InvalidInput):
        checked_adjacency(1, 1, torch.tensor([0, 0]), none, torch.arange(5))


def test_forged_files_are_errors_for_a_reason(tmp_path: Path) -> None:
    forge(tmp_path / "g", lambda arrays, graph, structure: None)
    assert same(dgl.load_graphs(tmp_path / "g")[0][0], toy().formats(["coo", "csc"]))
