"""partition_graph and load_partition: literal results, awkward graphs, wrong arguments."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gnnlab as dgl
import gnnlab.partition
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.partition import (
    load_partition,
    load_partition_book,
    load_partition_feats,
    open_part,
    partition_graph,
)
from tests.graph.samples import typed
from tests.partition.samples import PART_OF, content, cut_ring, ring

ONE = ("_N", "_E", "_N")


def by_hand(g: dgl.Graph, num_parts: int) -> list[int]:
    return [i % num_parts for i in range(g.num_nodes())]


# ------------------------------------------------------------------------------ literal results
def test_load_partition(tmp_path: Path) -> None:
    """Part 0 owns 1, 2 and 4 as new nodes 0, 1, 2, and holds the edges that enter or leave them."""
    g, nodes, edges, book, name, ntypes, etypes = load_partition(cut_ring(tmp_path), 0)
    assert g.ndata[dgl.NID].tolist() == [0, 1, 2, 3, 4, 5]
    assert g.ndata["inner_node"].tolist() == [1, 1, 1, 0, 0, 0]
    assert g.ndata["inner_node"].dtype is torch.uint8
    assert g.ndata["part_id"].tolist() == [0, 0, 0, 1, 1, 1]
    assert g.ndata["orig_id"].tolist() == [1, 2, 4, 0, 3, 5]
    src, dst = g.edges()
    assert src.tolist() == [3, 0, 4, 4, 0, 1, 2]
    assert dst.tolist() == [0, 1, 1, 2, 3, 4, 5]
    assert g.edata[dgl.EID].tolist() == [0, 1, 2, 3, 5, 6, 7]
    assert g.edata["inner_edge"].tolist() == [1, 1, 1, 1, 0, 0, 0]
    assert g.edata["orig_id"].tolist() == [0, 1, 7, 3, 6, 2, 4]
    assert nodes["_N/x"].tolist() == [1, 2, 4]
    assert edges["_N:_E:_N/w"].tolist() == [0, 1, 7, 3]
    assert (name, ntypes, etypes, book.partid) == ("ring", ["_N"], [ONE], 0)


def test_json_has_the_fields_of_the_guide(tmp_path: Path) -> None:
    about = json.loads(cut_ring(tmp_path).read_text("utf8"))
    arrays = about.pop("arrays")
    assert about == {
        "format": "gnnlab-partition",
        "version": 1,
        "graph_name": "ring",
        "num_nodes": 6,
        "num_edges": 8,
        "part_method": "custom",
        "num_parts": 2,
        "halo_hops": 1,
        "node_map": {"_N": [[0, 3], [3, 6]]},
        "edge_map": {"_N:_E:_N": [[0, 4], [4, 8]]},
        "ntypes": {"_N": 0},
        "etypes": {"_N:_E:_N": 0},
        "node_counts": {"_N": 6},
        "edge_counts": {"_N:_E:_N": 8},
        **{
            f"part-{i}": {
                "node_feats": f"part{i}/node_data",
                "edge_feats": f"part{i}/edge_data",
                "part_graph": f"part{i}/graph",
            }
            for i in range(2)
        },
    }
    assert set(arrays) == {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.suffix == ".npy"
    }
    first = arrays["part0/graph/edges/_N%3A_E%3A_N/indices.npy"]
    assert (first["dtype"], first["shape"], first["bytes"]) == ("int32", [7], 156)


def test_typed_graph(tmp_path: Path) -> None:
    """Homogeneous IDs go part by part, in a part type by type; JSON ranges are homogeneous."""
    parts = {"user": [0, 1, 0], "game": [1, 0, 0, 1]}
    partition_graph(typed(), "shop", 2, tmp_path, part_method=lambda g, k: parts)
    about = json.loads((tmp_path / "shop.json").read_text("utf8"))
    assert about["node_map"] == {"game": [[0, 2], [4, 6]], "user": [[2, 4], [6, 7]]}
    flat, node_feats, edge_feats, *_ = load_partition(tmp_path / "shop.json", 0)
    assert flat.ndata[dgl.NTYPE].dtype is flat.edata[dgl.ETYPE].dtype is torch.int32
    assert node_feats["game/price"].tolist() == [1, 2]
    assert node_feats["user/x"].tolist() == [0, 2]
    assert edge_feats["user:plays:game/w"].tolist() == [2]


def test_one_line_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut_ring(tmp_path)
    (line,) = capsys.readouterr().out.splitlines()
    for found in ("ring: 2 parts (custom)", "75.0%", "1.00 halo", "nodes 1.00", "edges 1.00"):
        assert found in line


def test_warns_where_the_disk_will_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100))
    with pytest.warns(UserWarning, match="disk.*out_path"):
        cut_ring(tmp_path)
    assert (tmp_path / "ring.json").exists()  # a prediction refuses nothing


def test_book_and_features_alone(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    book, name, ntypes, etypes = load_partition_book(config, 1)
    assert (book.partid, name, ntypes, etypes) == (1, "ring", {"_N": 0}, {ONE: 0})
    nodes, edges = load_partition_feats(config, 1)
    assert nodes is not None and nodes["_N/x"].tolist() == [0, 3, 5]
    assert edges is not None and edges["_N:_E:_N/w"].tolist() == [5, 6, 2, 4]
    assert load_partition_feats(config, 1, load_nodes=False)[0] is None
    assert load_partition_feats(config, 1, load_edges=False)[1] is None
    assert load_partition(config, 1, load_feats=False)[1:3] == ({}, {})


@pytest.mark.parametrize("name", ["a/b", "..", ".", "", "é 名", "x.npy", "%2E", "a\\b"])
def test_names_stay_in_the_folder(name: str, tmp_path: Path) -> None:
    g = dgl.heterograph({(name, "r", name): ([0, 1], [1, 0])})
    g.nodes[name].data[name] = torch.arange(2)
    partition_graph(g, "g", 2, tmp_path / "out", part_method=by_hand)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    part = open_part(tmp_path / "out" / "g.json", 1)
    assert part.nodes[name].data[name].tolist() == [1]


def test_features_may_be_views_or_carry_gradients(tmp_path: Path) -> None:
    g = ring()
    g.ndata["view"] = torch.arange(12.0).reshape(2, 6).t()
    g.ndata["weight"] = torch.nn.Parameter(torch.arange(6.0))
    g.ndata["complex"] = torch.arange(6.0) * 1j
    partition_graph(g, "g", 2, tmp_path, part_method=lambda g, k: PART_OF)
    data = open_part(tmp_path / "g.json", 0).nodes["_N"].data
    assert data["view"].tolist() == [[1, 7], [2, 8], [4, 10]]
    assert data["weight"].tolist() == [1, 2, 4] and not data["weight"].requires_grad
    assert data["complex"].dtype is torch.complex64


def test_columns_of_an_older_partition_are_left_out(tmp_path: Path) -> None:
    g = ring()
    g.ndata.update({dgl.NID: torch.arange(6), "inner_node": torch.ones(6)})
    g.edata.update({dgl.EID: torch.arange(8), "inner_edge": torch.ones(8)})
    partition_graph(g, "g", 2, tmp_path, part_method=by_hand)
    _, nodes, edges, *_ = load_partition(tmp_path / "g.json", 0)
    assert (list(nodes), list(edges)) == (["_N/x"], ["_N:_E:_N/w"])


# ------------------------------------------------------------------------------ wrong arguments


@pytest.mark.parametrize(
    "name", ["a b", "ogbn-products", "그래프-1", "图.v2", "a.json", "x[1]*?'\"%~:$", "그" * 33]
)
def test_graph_names(name: str, tmp_path: Path) -> None:
    for _ in range(2):
        partition_graph(ring(), name, 2, tmp_path, part_method=by_hand)
        assert (tmp_path / "part0" / "graph").is_dir()
        assert load_partition(tmp_path / f"{name}.json", 1)[4] == name
    assert len(list(tmp_path.iterdir())) == 3


def test_long_names_of_types_and_features(tmp_path: Path) -> None:
    node, edge, feature = "노" * 33, "관" * 33, "特征" * 16 + "."
    g = dgl.heterograph(
        {(node, edge, node): ([0, 1], [1, 0]), (node, edge + "2", node): ([0], [1])}
    )
    g.nodes[node].data[feature] = torch.arange(2)
    g.edges[edge].data["%" * 30 + feature] = torch.arange(2)
    partition_graph(g, "g", 2, tmp_path, part_method=by_hand)
    part = open_part(tmp_path / "g.json", 1)
    assert part.nodes[node].data[feature].tolist() == [1]
    assert [*part.edges[node, edge, node].data] == ["%" * 30 + feature]
    assert part.edges[node, edge + "2", node].num_inner == 1
    g.nodes[node].data["a" * 300] = torch.arange(2)
    with pytest.raises(InvalidInput, match="300 bytes"):
        partition_graph(g, "h", 2, tmp_path, part_method=by_hand)


def test_keywords_of_dgl(tmp_path: Path) -> None:
    """One warning names all that are unknown here."""
    cut_ring(tmp_path / "a")
    with pytest.warns(UserWarning, match="balance_edge, seed") as caught:
        cut_ring(tmp_path / "b", seed=1, balance_edge=True)
    assert len(caught) == 1 and caught[0].filename.endswith("samples.py")
    assert content(tmp_path / "a") == content(tmp_path / "b")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"num_parts": 0}, "num_parts .* 0"),
        ({"num_parts": True}, "num_parts .* True"),
        ({"num_hops": 0}, "num_hops .* 0"),
        ({"num_trainers_per_machine": 0}, "num_trainers_per_machine"),
        ({"part_method": lambda g, k: [7] * 6}, "node 0 .* part 7"),
        ({"reshuffle": False}, "reshuffle=False"),
        ({"g": dgl.to_block(ring())}, "block"),
        ({"g": dgl.heterograph({("a:b", "r", "c"): ([0], [0])})}, "'a:b'"),
        *(
            ({"graph_name": name}, "graph name")
            for name in ("../x", ".x", "x/y", "a\n", "a\0", "a\u2028", "\udc80", "그" * 34, 3, None)
        ),
    ],
)
def test_wrong_arguments(options: dict[str, Any], named: str, tmp_path: Path) -> None:
    good = {"g": ring(), "graph_name": "g", "num_parts": 2, "out_path": tmp_path}
    with pytest.raises(InvalidInput, match=named):
        partition_graph(**{**good, **options})
    assert list(tmp_path.iterdir()) == []


def test_part_ids(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    for load in (load_partition, load_partition_book, open_part):
        for part_id in (2, -1):
            with pytest.raises(OutOfRange, match=f"part {part_id}"):
                load(config, part_id)


def test_a_part_is_written_to_in_memory_only(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    data = open_part(config, 0).nodes["_N"].data["x"]
    data += 100
    assert data.tolist() == [101, 102, 104]
    assert open_part(config, 0).nodes["_N"].data["x"].tolist() == [1, 2, 4]
