"""Partitions that DGL 2.1 wrote (``tests/compat/fixtures/make.py``), read and turned into ours."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.compat.convert_partition import main
from gnnlab.compat.data.tensors import load_tensors
from gnnlab.compat.dglparts import convert_dgl_partition, read_dgl_partition
from gnnlab.errors import GNNLabError, PartitionError
from gnnlab.partition import load_partition
from tests.compat.fixtures.said import said_of_graph, said_of_tensors
from tests.compat.test_dglfile import EXPECTED, FIXTURES, SAME_FOLDER
from tests.helpers import examples

NAMES = ["plain", "games"]


def config(name: str, folder: Path = FIXTURES) -> Path:
    return folder / name / f"{name}.json"


def copy(name: str, folder: Path) -> Path:
    shutil.copytree(FIXTURES / name, folder / name)
    return config(name, folder)


def edit(path: Path, change: Any) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def all_edges(name: str) -> list[tuple[int, int, int]]:
    """Homogeneous (source, destination, ID) of each edge, as DGL has them."""
    found = []
    for part in EXPECTED[name]["parts"]:
        found += zip(*part["edges"], strict=True)
    return sorted(found, key=lambda edge: edge[2])


@pytest.mark.parametrize("name", NAMES)
def test_dgls_own_maps_lead_back_to_the_graph_that_it_cut(name: str) -> None:
    """New ID -> old ID of nodes and edges, as ``return_mapping=True`` gave them."""
    g, _ = read_dgl_partition(config(name))
    nodes = {t: torch.tensor(ids) for t, ids in EXPECTED[name]["node_map"]}
    edges = {tuple(t): torch.tensor(ids) for t, ids in EXPECTED[name]["edge_map"]}
    ends = {}
    for t in g.canonical_etypes:
        back = torch.argsort(edges[t])
        src, dst = (end[back] for end in g.edges(etype=t, order="eid"))
        ends[t] = nodes[t[0]][src], nodes[t[2]][dst]
    again = dgl.heterograph(ends, {t: g.num_nodes(t) for t in g.ntypes})
    for t in g.ntypes:
        for key, rows in g.nodes[t].data.items():
            again.nodes[t].data[key] = rows[torch.argsort(nodes[t])]
    for t in g.canonical_etypes:
        for key, rows in g.edges[t].data.items():
            again.edges[t].data[key] = rows[torch.argsort(edges[t])]
    expected = json.loads(json.dumps(EXPECTED[name]["graph"]).replace("torch.bool", "torch.uint8"))
    assert said_of_graph(again) == {**expected, "formats": ["coo", "csc", "csr"]}


@pytest.mark.parametrize("name", NAMES)
def test_converted_parts_keep_nodes_and_sort_edges(name: str, tmp_path: Path) -> None:
    assert main(["--part-config", str(config(name)), "--output", str(tmp_path)]) == 0
    whole, _ = read_dgl_partition(config(name))
    edges = []
    for i, part in enumerate(EXPECTED[name]["parts"]):
        g, node_feats, edge_feats, book, found_name, *_ = load_partition(
            tmp_path / f"{name}.json", i
        )
        assert found_name == name
        assert book.partid2nids(i).tolist() == part["nodes"]
        assert said_of_tensors(node_feats) == part["node_feats"]
        assert sorted(edge_feats) == sorted(part["edge_feats"])
        inner = g.edata["inner_edge"].bool()
        kinds, rows = book.map_to_per_etype(g.edata[dgl.EID][inner])
        for kind, etype in enumerate(book.canonical_etypes):
            old = g.edata["orig_id"][inner][kinds == kind]
            for key, values in edge_feats.items():
                if key.startswith(":".join(etype)):
                    own = rows[kinds == kind] - book.edge_ranges[etype][i]
                    column = whole.edges[etype].data[key.partition("/")[2]]
                    assert torch.equal(values[own], column[old])
            src, dst = (g.ndata[dgl.NID][end][inner][kinds == kind] for end in g.edges(order="eid"))
            homogeneous = read_dgl_partition(config(name))[1].map_to_homo_eid(old, etype)
            edges += zip(src.tolist(), dst.tolist(), homogeneous.tolist(), strict=True)
    assert sorted(edges, key=lambda edge: edge[2]) == all_edges(name)


def test_training_code_opens_what_was_converted(tmp_path: Path) -> None:
    convert_dgl_partition(config("plain"), tmp_path)
    dgl.distributed.initialize()
    g = dgl.distributed.DistGraph("plain", part_config=tmp_path / "plain.json")
    whole, _ = read_dgl_partition(config("plain"))
    assert torch.equal(g.ndata["x"][torch.arange(20)], whole.ndata["x"])
    train = dgl.distributed.node_split(g.ndata["train_mask"])
    assert sorted(train.tolist()) == whole.ndata["train_mask"].nonzero().flatten().tolist()
    assert torch.equal(g.in_degrees(torch.arange(20)), whole.in_degrees())
    dgl.distributed.exit_client()


def test_in_its_own_folder_dgls_files_are_replaced(tmp_path: Path) -> None:
    path = copy("plain", tmp_path)
    before = said_of_graph(read_dgl_partition(path)[0])
    convert_dgl_partition(path, path.parent)
    assert not list(path.parent.rglob("*.dgl"))
    assert load_partition(path, 0)[4] == "plain"
    with pytest.raises(PartitionError, match=r"plain.json"):
        read_dgl_partition(path)
    assert before == said_of_graph(read_dgl_partition(config("plain"))[0])


@pytest.mark.parametrize("name", NAMES)
def test_names_of_older_versions_are_relations_alone(name: str, tmp_path: Path) -> None:
    def shorten(content: dict[str, Any]) -> None:
        for key in ("etypes", "edge_map"):
            content[key] = {t.split(":")[1]: value for t, value in content[key].items()}

    path = copy(name, tmp_path)
    edit(path, shorten)
    for file in path.parent.rglob("edge_feat.dgl"):
        short = {
            f"{k.split(':')[1]}/{k.partition('/')[2]}": v for k, v in load_tensors(file).items()
        }
        _write_as_dgl(file, short)
    assert said_of_graph(read_dgl_partition(path)[0]) == said_of_graph(
        read_dgl_partition(config(name))[0]
    )


def _write_as_dgl(file: Path, tensors: dict[str, torch.Tensor]) -> None:
    """Rename the keys of a file of tensors in place; its values are int64 or float32 columns."""
    out = struct.pack("<3Q", 0xDD5A9FBE3FA2443F, len(tensors), len(tensors))
    for key, value in tensors.items():
        kind = {torch.int64: (0, 64), torch.float32: (2, 32)}[value.dtype]
        name = key.encode()
        out += struct.pack("<Q", len(name)) + name
        out += struct.pack("<2Q3I2BH", 0xDD5E40F096B4A13F, 0, 1, 0, 1, *kind, 1)
        out += struct.pack("<2Q", len(value), value.nbytes) + value.numpy().tobytes()
    file.write_bytes(out)


def test_names_that_our_files_do_not_have(tmp_path: Path, capsys: Any) -> None:
    path = copy("plain", tmp_path)
    edit(path, lambda content: content.update(graph_name="../products"))
    words = ["--part-config", str(path), "--output", str(tmp_path / "out")]
    assert main(words) == 1
    assert "'../products'" in capsys.readouterr().err
    assert main([*words, "--graph-name", "products"]) == 0
    assert (tmp_path / "out" / "products.json").exists()


def test_opening_dgls_files_says_how_to_convert_them() -> None:
    for open_it in (
        lambda path: load_partition(path, 0),
        lambda path: dgl.distributed.load_partition_book(path, 0),
    ):
        with pytest.raises(PartitionError, match=r"gnnlab convert_partition --part-config .*plain"):
            open_it(config("plain"))


def remove(file: str) -> Any:
    return lambda folder: (folder / file).unlink()


def change(key: str, value: Any) -> Any:
    return lambda folder: edit(folder / "games.json", lambda content: content.update({key: value}))


def swap(one: str, other: str) -> Any:
    return lambda folder: shutil.copy(folder / one, folder / other)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (remove("games.json"), r"games\.json"),
        (remove("part1/graph.dgl"), r"part1/graph\.dgl .*games\.json"),
        (change("num_parts", 3), "games.json.*'part-2'"),
        (change("halo_hops", None), "games.json"),
        (change("ntypes", {"game": 0, "user": 2}), "games.json"),
        (change("node_map", {"game": [[0, 4]], "user": [[4, 7]]}), "games.json"),
        (
            change("node_map", {"game": [[0, 4], [7, 9]], "user": [[4, 7], [9, 1 << 50]]}),
            "games.json",
        ),
        (change("part-0", {"part_graph_graphbolt": "x"}), "'part_graph'"),
        (swap("part0/graph.dgl", "part1/graph.dgl"), "games.json"),
        (swap("part0/node_feat.dgl", "part1/node_feat.dgl"), r"'user/x' has \d rows; .* owns \d"),
        (swap("part0/graph.dgl", "part0/node_feat.dgl"), "node_feat.dgl"),
        (swap("../typed.bin", "part0/graph.dgl"), r"part0/graph\.dgl"),
    ],
)
def test_refuses(tmp_path: Path, damage: Any, message: str) -> None:
    shutil.copy(FIXTURES / "typed.bin", tmp_path)
    path = copy("games", tmp_path)
    damage(path.parent)
    with pytest.raises(GNNLabError, match=message):
        read_dgl_partition(path)


@examples(80, SAME_FOLDER)
@given(st.data(), st.sampled_from(NAMES))
def test_changed_bytes_are_an_error_or_harmless(
    tmp_path: Path, data: st.DataObject, name: str
) -> None:
    shutil.rmtree(tmp_path / name, ignore_errors=True)
    path = copy(name, tmp_path)
    file = data.draw(st.sampled_from(sorted(p for p in path.parent.rglob("*") if p.is_file())))
    content = bytearray(file.read_bytes())
    start = 4096 if file.name == "graph.dgl" else 0
    place = data.draw(st.integers(start, len(content) - 1))
    new = data.draw(st.binary(min_size=1, max_size=8))
    content[place : place + len(new)] = new
    file.write_bytes(content)
    try:
        g, book = read_dgl_partition(path)
    except GNNLabError as error:
        assert str(path.parent) in str(error)
    else:
        assert g.num_nodes() == sum(each["num_nodes"] for each in book.metadata())
