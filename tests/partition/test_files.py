"""Damaged, foreign and unfinished files: each is refused by name, and nothing older is lost."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.partition import load_partition, load_partition_book, open_part, partition_graph
from gnnlab.partition.files import read_config
from gnnlab.partition.part import Part
from gnnlab.partition.writer import PartitionWriter
from gnnlab.simulate import simulate
from tests.helpers import save_as_windows, scratch, small_files
from tests.partition.samples import PART_OF, content, cut_ring, ring

Damage = Callable[[Path], None]
ARRAYS = [
    "graph/nodes/_N/orig_id.npy",
    "graph/nodes/_N/halo.npy",
    "graph/edges/_N%3A_E%3A_N/indptr.npy",
    "graph/edges/_N%3A_E%3A_N/indices.npy",
    "graph/edges/_N%3A_E%3A_N/orig_id.npy",
    "graph/edges/_N%3A_E%3A_N/halo.npy",
    "node_data/_N/x.npy",
    "edge_data/_N%3A_E%3A_N/w.npy",
]


def change(position: int) -> Damage:
    def damage(file: Path) -> None:
        data = bytearray(file.read_bytes())
        data[position] ^= 1
        file.write_bytes(data)

    return damage


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


# ------------------------------------------------------------------------------ damaged arrays
@pytest.mark.parametrize("array", ARRAYS)
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_short, "bytes"),
        (lambda file: file.write_bytes(file.read_bytes() + b"\0"), "bytes"),
        (Path.unlink, "missing"),
        (change(-1), "checksum"),
    ],
    ids=["short", "long", "missing", "last-byte"],
)
def test_damaged_array(array: str, damage: Damage, message: str, tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    file = tmp_path / "part1" / array
    damage(file)
    opens = [lambda: load_partition(config, 1)]
    if message != "checksum":  # sizes are compared in any case
        opens.append(lambda: open_part(config, 1, verify=False))
    for open_it in opens:
        with pytest.raises(PartitionError, match=message) as caught:
            open_it()
        assert str(file) in str(caught.value)
    assert load_partition(config, 0)[4] == "ring"  # the other part is sound
    with pytest.raises(PartitionError, match=message):
        simulate(config)  # which did not make the parts, so verifies them


def test_features_that_are_not_asked_for_may_be_missing(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    shutil.rmtree(tmp_path / "part0" / "node_data")
    assert open_part(config, 0, load_feats=False).nodes["_N"].data == {}


def test_an_array_may_be_larger_than_memory(tmp_path: Path) -> None:
    """A file of zeros that takes no room on disk."""
    config = cut_ring(tmp_path)
    width = 2 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    file = tmp_path / "part0" / ARRAYS[6]
    with open(file, "wb") as opened:
        header = {"descr": "|u1", "fortran_order": False, "shape": (3, width)}
        np.lib.format.write_array_header_1_0(opened, header)
        opened.truncate(opened.tell() + 3 * width)
    arrays = json.loads(config.read_text("utf8"))["arrays"]
    entry = {"dtype": "uint8", "shape": [3, width], "bytes": file.stat().st_size, "sha256": ""}
    _with(config, arrays=arrays | {f"part0/{ARRAYS[6]}": entry})
    data = open_part(config, 0, verify=False).nodes["_N"].data["x"]
    data[2, -1] = 7
    assert data[2, -2:].tolist() == [0, 7]


def _with(path: Path, **entries: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf8")) | entries), "utf8")


def _part_0(config: Path) -> Any:
    return json.loads(config.read_text("utf8"))["part-0"]


def _replace(config: Path, array: str, values: Any) -> None:
    """Exchange an array and, as a liar would, its entry in the JSON file."""
    file, about = config.parent / array, json.loads(config.read_text("utf8"))
    np.save(file, values)
    about["arrays"][array] = {
        "dtype": str(values.dtype),
        "shape": list(values.shape),
        "bytes": file.stat().st_size,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }
    config.write_text(json.dumps(about), "utf8")


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (ARRAYS[0], np.arange(5)),
        (ARRAYS[0], np.arange(6.0)),
        (ARRAYS[1], np.array([3, 4, 6])),
        (ARRAYS[1], np.array([-1, 4, 5])),
        (ARRAYS[1], np.array([4, 3, 5])),  # does not ascend
        (ARRAYS[1], np.array([3, 3, 5])),
        (ARRAYS[1], np.array([2, 4, 5])),  # part 0 owns 2
        (ARRAYS[2], np.array([0, 1, 3, 4, 5, 6, 8])),
        (ARRAYS[2], np.array([0, 3, 1, 4, 5, 6, 7])),
        (ARRAYS[2], np.array([0, 1, 3, 4, 5, 7])),
        (ARRAYS[3], np.array([3, 0, 4, 4, 0, 1, 6])),
        (ARRAYS[3], np.array([3, 0, 4, 4, 0, 1, -2])),
        (ARRAYS[3], np.zeros((7, 1), np.int64)),
        (ARRAYS[4], np.arange(8)),
        (ARRAYS[5], np.array([5, 6, 8])),
        (ARRAYS[5], np.array([6, 5, 7])),
        (ARRAYS[5], np.array([5, 5, 7])),
        (ARRAYS[5], np.array([3, 5, 7])),
        (ARRAYS[6], np.arange(4.0)),
        (ARRAYS[6], np.array(4.0)),
        (ARRAYS[7], np.arange(3)),
    ],
)
def test_arrays_that_do_not_fit_never_reach_a_kernel(
    array: str, values: Any, tmp_path: Path
) -> None:
    config = cut_ring(tmp_path)
    _replace(config, f"part0/{array}", values)
    with pytest.raises(PartitionError, match="not fit"):
        open_part(config, 0)


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    _replace(config, f"part0/{ARRAYS[6]}", np.array([print, print, print], object))
    for claim in ("object", "float32"):
        config.write_text(config.read_text("utf8").replace('"object"', f'"{claim}"'), "utf8")
        with pytest.raises(PartitionError):
            open_part(config, 0)


# ------------------------------------------------------------------------------ the JSON file
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": None}, "'gnnlab-partition', version 1; found None"),
        ({"version": 2}, "version 2"),
        ({"num_parts": 3}, "damaged"),
        ({"num_parts": 1}, "damaged"),
        ({"num_parts": "two"}, "damaged"),
        ({"num_parts": float("inf")}, "damaged"),
        ({"num_parts": -1}, "damaged"),
        ({"graph_name": "../ring"}, "damaged"),
        ({"node_map": {"_N": [[0, 3], [2, 6]]}}, "follow"),
        ({"node_map": {"_N": [[0, 7], [7, 6]]}}, "follow"),
        ({"node_map": {"_N": [[0, 3], [3, 7]]}}, "disagree"),
        ({"node_map": {"_N": [[0, 10**30], [3, 6]]}}, "damaged"),
        ({"edge_map": {}}, "damaged"),
        ({"ntypes": {}}, "damaged"),
        ({"ntypes": {"_N": 1}}, "numbered"),
        ({"etypes": {"_E": 0}}, "damaged"),
        ({"arrays": {"part9/graph/x.npy": {}}}, "damaged"),
        ({"arrays": {"x.npy": {}}}, "damaged"),
        ({"arrays": {}}, "part0/graph/nodes/_N/orig_id.npy"),
        ({"part-0": {}}, "damaged"),
        ({"num_parts": 10**8}, "damaged"),
        ({"num_parts": 2.0}, "damaged"),
        ({"num_parts": "2"}, "damaged"),
        ({"halo_hops": -1}, "damaged"),
        ({"node_map": {"_N": [[0, 3], [3, 2**63]]}}, "damaged"),
        ({"node_map": {"_N": [[0, 3.5], [3.5, 6]]}}, "damaged"),
        ({"node_map": {"_N": [["0", "3"], ["3", "6"]]}}, "damaged"),
        ({"node_map": {"_N": [[-3, 0], [0, 3]]}}, "damaged"),
        ({"ntypes": {"_N": "0"}}, "damaged"),
        ({"etypes": {"_N:_E:other": 0}, "edge_map": {"_N:_E:other": [[0, 4], [4, 8]]}}, "damaged"),
        ({"arrays": []}, "damaged"),
        ({"arrays": {"part-1/graph/x.npy": {}}}, "damaged"),
        ({"graph_name": "a\0"}, "damaged"),
    ],
)
def test_wrong_entries(entries: dict[str, Any], message: str, tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    _with(config, **entries)
    with pytest.raises(PartitionError, match=message) as caught:
        open_part(config, 0)
    assert str(config) in str(caught.value)


def test_a_byte_order_mark_does_not_matter(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    save_as_windows(config)
    assert load_partition(config, 0)[0].num_nodes() and read_config(config).num_parts == 2


def test_every_entry_is_needed(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    about = json.loads(config.read_text("utf8"))
    for key in set(about) - {"num_nodes", "num_edges"}:  # for people; counts by type are checked
        config.write_text(json.dumps({k: v for k, v in about.items() if k != key}), "utf8")
        with pytest.raises(PartitionError, match=r"ring\.json"):
            load_partition_book(config, 0)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "null", "3", "\x00", "{}" * 2, "[" * 100_000, "9" * 5000),
        *('{"format": 1}', '{"format": {}}'),
    ],
)
def test_no_json_of_ours(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf8")
    for read in (lambda: load_partition_book(path, 0), lambda: read_config(path)):
        with pytest.raises(PartitionError, match=r"x\.json"):
            read()


@given(st.data())
def test_changed_json_is_refused_or_harmless(data: st.DataObject) -> None:
    """Whatever happens to the text, it is a PartitionError or the part that was written."""
    with scratch() as folder:
        config = cut_ring(Path(folder))
        expected = open_part(config, 0).graph().edges()
        text = bytearray(config.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(text) - 1))
            text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        config.write_bytes(text)
        try:
            part = open_part(config, 0)
        except PartitionError:
            return
        for found, wanted in zip(part.graph().edges(), expected, strict=True):
            assert found.equal(wanted)


@given(array=st.sampled_from(ARRAYS), data=st.data(), lies=st.booleans())
def test_changed_headers_are_refused_or_harmless(
    array: str, data: st.DataObject, lies: bool
) -> None:
    """So are headers of arrays, also where the JSON file vouches for the changed bytes."""
    with scratch() as folder:
        config = cut_ring(Path(folder))
        expected = _arrays(open_part(config, 0))
        file, about = Path(folder, "part0", array), json.loads(config.read_text("utf8"))
        written = file.read_bytes()
        raw = bytearray(written)
        for _ in range(data.draw(st.integers(1, 3))):
            raw[data.draw(st.integers(0, 127))] ^= 1 << data.draw(st.integers(0, 7))
        file.write_bytes(raw)
        if lies:
            about["arrays"][f"part0/{array}"]["sha256"] = hashlib.sha256(raw).hexdigest()
            config.write_text(json.dumps(about), "utf8")
        began = time.process_time()
        try:
            found = _arrays(open_part(config, 0))
        except PartitionError as error:
            assert str(file) in str(error)
        else:
            assert found == expected and (lies or raw == written)
        assert time.process_time() - began < 1


@pytest.mark.parametrize("array", ARRAYS)
def test_a_header_of_another_length_is_refused(tmp_path: Path, array: str) -> None:
    """Two bytes less are still a header; the values would begin two bytes early."""
    config = cut_ring(tmp_path)
    file, about = tmp_path / "part0" / array, json.loads(config.read_text("utf8"))
    raw = bytearray(file.read_bytes())
    raw[8] -= 2
    file.write_bytes(raw)
    about["arrays"][f"part0/{array}"]["sha256"] = hashlib.sha256(raw).hexdigest()
    config.write_text(json.dumps(about), "utf8")
    with pytest.raises(PartitionError, match=array):
        open_part(config, 0)


def _arrays(part: Part) -> list[list[Any]]:
    nodes, edges = part.nodes["_N"], part.edges["_N", "_E", "_N"]
    tensors = [nodes.halo, nodes.orig_ids, nodes.data["x"], edges.indptr, edges.indices]
    tensors += [edges.halo, edges.orig_ids, edges.data["w"]]
    return [tensor.tolist() for tensor in tensors]


def test_a_pipe_for_the_json_file_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ring.json")
    for read in (open_part, load_partition, load_partition_book):
        with pytest.raises(PartitionError, match=r"ring\.json"):
            read(tmp_path / "ring.json", 0)


def test_missing_and_foreign_files(tmp_path: Path) -> None:
    for path, builtin in (("nothing.json", FileNotFoundError), ("", IsADirectoryError)):
        with pytest.raises(PartitionError) as found:
            load_partition(tmp_path / path, 0)
        assert isinstance(found.value, builtin) and found.value.filename == str(tmp_path / path)
        assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)
    config = cut_ring(tmp_path)
    read_config(config, graph_name="ring", num_parts=2)
    with pytest.raises(PartitionError, match=r"'other'.* 'ring'"):
        read_config(config, graph_name="other")
    with pytest.raises(PartitionError, match=r"4.* 2"):
        read_config(config, num_parts=4)


def test_parts_of_two_results_do_not_mix(tmp_path: Path) -> None:
    one, other = cut_ring(tmp_path / "a"), tmp_path / "b"
    g = ring()
    g.ndata["x"] += 1
    partition_graph(g, "ring", 2, other, part_method=lambda g, k: PART_OF)
    shutil.rmtree(tmp_path / "a" / "part0")
    shutil.copytree(other / "part0", tmp_path / "a" / "part0")
    with pytest.raises(PartitionError, match=r"x\.npy"):
        open_part(one, 0)


def test_folders_may_move(tmp_path: Path) -> None:
    """All of it, or a part alone to a place beside it that the JSON file then names."""
    config = cut_ring(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    config = tmp_path / "there" / "ring.json"
    assert open_part(config, 0).nodes["_N"].data["x"].tolist() == [1, 2, 4]
    shutil.move(tmp_path / "there" / "part0", tmp_path / "there" / "elsewhere")
    part = _part_0(config)
    _with(config, **{"part-0": {k: f"elsewhere/{Path(v).name}" for k, v in part.items()}})
    assert open_part(config, 0).nodes["_N"].data["x"].tolist() == [1, 2, 4]


# ------------------------------------------------------------------------------ writing
@pytest.mark.parametrize(("size", "name"), [(0, ""), (100, ""), (160, ""), (10_000, "big.npy")])
def test_full_disk_leaves_the_old_result(size: int, name: str, tmp_path: Path) -> None:
    """Headers, small arrays or a large one do not fit."""

    def cut_other(folder: Path) -> None:
        g = ring()
        g.ndata["big"] = torch.zeros(6, 10_000)
        partition_graph(g, "ring", 2, folder, 2, lambda g, k: PART_OF)

    cut_other(tmp_path / "other")  # compiled code is stored in files, too
    config = cut_ring(tmp_path / "own")
    before = content(tmp_path)
    with small_files(size), pytest.raises(PartitionError, match="File too large") as caught:
        cut_other(tmp_path / "own")
    assert name in str(caught.value)
    assert content(tmp_path) == before
    open_part(config, 1)


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_interrupted(error: BaseException, tmp_path: Path) -> None:
    cut_ring(tmp_path)
    before = content(tmp_path)
    with pytest.raises(type(error)):
        cut_ring(tmp_path, part_method=Mock(side_effect=error))
    assert content(tmp_path) == before


@pytest.mark.parametrize("step", range(3))
def test_failure_while_exchanging_leaves_the_old_result(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of what to remove is written twice, then the JSON file takes its place."""
    cut_ring(tmp_path)
    before = content(tmp_path)
    replace, calls = os.replace, [0]

    def fail(source: Any, target: Any) -> None:
        calls[0] += 1
        if calls[0] == step + 1:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(PartitionError, match="Input/output error"):
        cut_ring(tmp_path, num_hops=2)
    assert content(tmp_path) == before


def test_new_result_replaces_all_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folders have the plain names too, unless the file system has no hard links."""

    def no_links(*_: object) -> None:
        raise OSError("Operation not permitted")

    partition_graph(ring(), "ring", 5, tmp_path, part_method="random")
    opened = open_part(tmp_path / "ring.json", 0).nodes["_N"].orig_ids
    held = opened.tolist()
    plain, named = ["part0", "part1"], ["part0-ring", "part1-ring"]
    for link, folders in ((os.link, plain), (no_links, named), (os.link, plain)):
        monkeypatch.setattr(os, "link", link)
        cut_ring(tmp_path)
        assert sorted(p.name for p in tmp_path.iterdir()) == [*folders, "ring.json"]
        assert open_part(tmp_path / "ring.json", 1).nodes["_N"].data["x"].tolist() == [0, 3, 5]
    assert opened.tolist() == held  # who had opened the old one goes on with it


def test_graphs_live_side_by_side_and_strange_files_stay(tmp_path: Path) -> None:
    first = cut_ring(tmp_path)
    before = content(tmp_path)
    (tmp_path / "part2-other").mkdir()
    (tmp_path / "part2-other" / "thesis.txt").write_text("years of work")
    for _ in range(2):
        partition_graph(ring(), "other", 3, tmp_path, part_method="random")
        after = content(tmp_path)
        assert after.items() >= before.items()
        assert "part2-other/thesis.txt" in after
        for name, number in (("ring", 2), ("other", 3)):
            assert read_config(tmp_path / f"{name}.json").num_parts == number
            for part_id in range(number):
                open_part(tmp_path / f"{name}.json", part_id)
    (tmp_path / "part0" / "notes.txt").write_text("mine")
    cut_ring(tmp_path)
    open_part(first, 0)
    assert [p.name for p in (tmp_path / "part0").iterdir()] == ["notes.txt"]


def test_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PartitionError, match="cannot be written"):
        partition_graph(ring(), "ring", 2, tmp_path / "file" / "out", part_method="random")


def test_array_file_counts_its_rows(tmp_path: Path) -> None:
    with (
        PartitionWriter(tmp_path, "g", 1) as writer,
        pytest.raises(InvalidInput, match="8 bytes"),
        writer.open("part0/graph/x.npy", (2,), torch.int64) as file,
    ):
        file.write(torch.arange(1))
    assert list(tmp_path.iterdir()) == []


def test_array_written_in_blocks(tmp_path: Path) -> None:
    rows = torch.arange(30).reshape(10, 3).to(torch.bfloat16)
    with PartitionWriter(tmp_path, "g", 1) as writer:
        with writer.open("part0/graph/x.npy", (10, 3), torch.bfloat16) as file:
            for lo in range(0, 10, 4):
                file.write(rows[lo : lo + 4])
        writer.save("part0/graph/y.npy", rows, torch.tensor([9, 0]))
        writer.commit({})
    stored = np.load(tmp_path / "part0" / "graph" / "x.npy")
    assert stored.dtype == np.int16
    assert torch.equal(torch.from_numpy(stored).view(torch.bfloat16), rows)
    about = json.loads((tmp_path / "g.json").read_text("utf8"))["arrays"]
    assert about["part0/graph/y.npy"]["dtype"] == "bfloat16"
    assert np.load(tmp_path / "part0" / "graph" / "y.npy").shape == (2, 3)


# ------------------------------------------------------------------------------ crafted files


@pytest.mark.parametrize(
    "place", ["../code", "part0/../../x", "/etc", "..", "", "\0", 3, None, ["part0"], {}]
)
def test_places_outside_are_refused(place: Any, tmp_path: Path) -> None:
    path = cut_ring(tmp_path)
    _with(path, **{"part-0": _part_0(path) | {"part_graph": place}})
    with pytest.raises(PartitionError, match=r"ring\.json"):
        read_config(path)


@pytest.mark.parametrize("rest", ["../../../x.npy", "/x.npy", "x.py", "nodes/_N/orig_id.npy/.", ""])
def test_array_names_that_lead_elsewhere_are_refused(rest: str, tmp_path: Path) -> None:
    path = cut_ring(tmp_path)
    arrays = json.loads(path.read_text("utf8"))["arrays"]
    _with(path, arrays={**arrays, f"part0/graph/{rest}": next(iter(arrays.values()))})
    with pytest.raises(PartitionError, match=r"ring\.json"):
        read_config(path)


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    path = cut_ring(tmp_path / "in")
    file = tmp_path / "in" / "part0" / ARRAYS[6]
    shutil.move(file, tmp_path / "secret.npy")
    file.symlink_to(tmp_path / "secret.npy")
    with pytest.raises(PartitionError, match=r"x\.npy .*secret\.npy"):
        open_part(path, 0)
