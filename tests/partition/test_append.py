"""A partition with rows appended is, file for file, that of the larger graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.data import EdgeTable, NodeTable, append_tables, graph_from_tables, keys_of
from gnnlab.errors import InvalidInput, NotFound, OutOfRange, PartitionError
from gnnlab.partition import append_partition, open_part, partition_graph
from gnnlab.partition.writer import PartitionWriter
from tests.helpers import scratch
from tests.partition.samples import content, cut_ring, ring

FOLLOWS, PLAYS = ("user", "follows", "user"), ("user", "plays", "game")
Rows = tuple[dict[str, Any], dict[Any, Any]]


def typed(random: np.random.Generator, users: int, games: int, edges: int) -> dgl.Graph:
    ends = {
        etype: tuple(
            random.integers({"user": users, "game": games}[t], size=edges) for t in etype[::2]
        )
        for etype in (FOLLOWS, PLAYS)
    }
    g = dgl.heterograph(ends, {"user": users, "game": games})
    g.nodes["user"].data["x"] = torch.from_numpy(random.normal(size=(users, 3))).bfloat16()
    g.nodes["game"].data["mask"] = torch.from_numpy(random.random(games) < 0.5)
    g.edges["plays"].data["w"] = torch.from_numpy(random.normal(size=(edges, 2)))
    return g


def new_rows(random: np.random.Generator, g: dgl.Graph, users: int, edges: int) -> Rows:
    counts = {"user": g.num_nodes("user") + users, "game": g.num_nodes("game")}
    u, v = (random.integers(counts[t], size=edges) for t in ("user", "user"))
    a, b = (random.integers(counts[t], size=edges // 2) for t in ("user", "game"))
    x, w = torch.from_numpy(random.normal(size=(users, 3))).bfloat16(), random.random((len(a), 2))
    return {"user": {"x": x}}, {"follows": (u, v), PLAYS: (a, b, {"w": w})}


def owners(config: Path, g: dgl.Graph) -> dict[str, torch.Tensor]:
    """The part of each node, by original ID."""
    found = {ntype: torch.full((g.num_nodes(ntype),), -1) for ntype in g.ntypes}
    for part_id in range(3):
        for ntype, nodes in open_part(config, part_id).nodes.items():
            found[ntype][nodes.orig_ids[: nodes.num_inner]] = part_id
    return found


@pytest.mark.filterwarnings("ignore:no nodes")
@given(st.integers(0, 2**32), st.integers(1, 2))
def test_appended_is_rebuilt(seed: int, hops: int) -> None:
    """Twice, with parts that own nothing of a type, and with rows of no bytes written again."""
    random = np.random.default_rng(seed)
    g = typed(random, *random.integers(1, 9, 2), random.integers(0, 20))
    parts = {ntype: random.integers(3, size=g.num_nodes(ntype)) for ntype in g.ntypes}
    with scratch() as name:
        folder = Path(name)
        partition_graph(g, "g", 3, folder, hops, part_method=lambda g, k: parts)
        before = owners(folder / "g.json", g)
        for _ in range(2):
            rows = new_rows(random, g, random.integers(0, 4), random.integers(0, 9))
            g = dgl.append(g, *rows)
            append_partition(folder / "g.json", *rows)
            after = owners(folder / "g.json", g)
            for ntype, part in before.items():
                assert torch.equal(after[ntype][: len(part)], part)
        partition_graph(g, "g", 3, folder / "again", hops, part_method=lambda g, k: after)
        found, wanted = content(folder), content(folder / "again")
        for files in (found, wanted):
            files["g.json"] = json.loads(files["g.json"]) | {"part_method": ""}
        assert {name: found[name] for name in wanted} == wanted
        assert not [name for name in found if name not in wanted and "again" not in name]


def test_new_nodes_go_to_most_of_their_neighbors(tmp_path: Path) -> None:
    """Node 6: parts 0, 0, 1. Node 7 hangs on 6 alone. Node 8, alone, goes to the emptier part."""
    config = cut_ring(tmp_path)
    edges = [1, 6, 6, 7], [6, 2, 3, 6], {"w": [8, 9, 10, 11]}
    report = append_partition(config, {"x": [6.0, 7.0, 8.0]}, edges)
    owned = [open_part(config, i).nodes["_N"] for i in range(2)]
    assert [each.orig_ids[: each.num_inner].tolist() for each in owned] == [
        [1, 2, 4, 6, 7],
        [0, 3, 5, 8],
    ]
    assert owned[0].data["x"].tolist() == [1, 2, 4, 6, 7]
    assert report.counts["_N: nodes appended"] == 3 and report.counts["_E: edges appended"] == 4


def test_what_does_not_change_is_linked(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    names = {path: path.stat().st_ino for path in tmp_path.rglob("*.npy")}
    size = sum(path.stat().st_size for path in names)
    report = append_partition(config, None, ([1], [2], {"w": [8]}))  # within part 0
    kept = {path for path in tmp_path.rglob("*.npy") if path.stat().st_ino == names[path]}
    own = {path.name for path in names if path not in kept and "part0" in path.parts}
    assert own == {"indptr.npy", "indices.npy", "orig_id.npy", "w.npy", "halo.npy"}
    assert {path.name for path in names if path not in kept and "part1" in path.parts} == {
        "halo.npy"  # the IDs of part 0's edges have moved up
    }
    linked = sum(path.stat().st_size for path in kept)
    assert report.counts["bytes linked"] == linked < size
    assert report.counts["bytes written"] == sum(
        path.stat().st_size for path in tmp_path.rglob("*.npy") if path not in kept
    )


@pytest.mark.parametrize("step", ["save", "link", "commit"])
def test_interrupted_leaves_what_was(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = cut_ring(tmp_path)
    before = content(tmp_path)

    def fail(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(PartitionWriter, step, fail)
        append_partition(config, {"x": [6.0]})
    assert content(tmp_path) == before
    with monkeypatch.context() as patch, pytest.raises(PartitionError, match=r"ring\.json"):
        save = PartitionWriter.save  # meanwhile, another process appends

        def slow(*args: Any) -> None:
            patch.setattr(PartitionWriter, "save", save)
            append_partition(config, {"x": [7.0]})
            save(*args)

        patch.setattr(PartitionWriter, "save", slow)
        append_partition(config, {"x": [6.0]})
    assert 7.0 in torch.cat([open_part(config, i).nodes["_N"].data["x"] for i in range(2)])


def test_wrong_rows(tmp_path: Path) -> None:
    """Each is refused by name on a graph and on a partition, which stay as they are."""
    config, g = cut_ring(tmp_path), ring()
    before = content(tmp_path)
    wrong: list[tuple[Any, str, Rows | tuple[Any, ...], dict[str, Any]]] = [
        (InvalidInput, "'x'", (2,), {}),
        (InvalidInput, "'w'", (None, ([0], [1])), {}),
        (InvalidInput, "'y'", ({"x": [1.0], "y": [2.0]},), {}),
        (InvalidInput, "'w'", (None, ([0], [1])), {"fill": {"w": 0.5}}),
        (InvalidInput, "'x'", (1,), {"fill": {"x": [1.0, 2.0]}}),
        (InvalidInput, "'x'", ({"x": [[1.0]]},), {}),
        (InvalidInput, "'x'", ({"x": 1.0},), {}),
        (InvalidInput, "list", ([1.0],), {}),
        (InvalidInput, "list", (None, ([0], [1], [5])), {}),
        (InvalidInput, "'w'", (None, ([0], [1], {"w": [0.5]})), {}),
        (InvalidInput, "2 sources and 3", (None, ([0, 1], [1, 2, 3], {"w": [1]})), {}),
        (InvalidInput, "list", (None, [[0], [1]]), {}),
        (NotFound, "'z'", (1,), {"fill": {"x": 0, "z": 1}}),
        (NotFound, "'user'", ({"user": {"x": [1.0]}},), {}),
        (OutOfRange, "7", ({"x": [1.0]}, ([7], [0], {"w": [1]})), {}),
        (OutOfRange, "-1", (None, ([-1], [0], {"w": [1]})), {}),
    ]
    for kind, named, rows, options in wrong:
        for call in (
            lambda *a, **k: dgl.append(g, *a, **k),
            lambda *a, **k: append_partition(config, *a, **k),
        ):
            with pytest.raises(kind, match=named):
                call(*rows, **options)
    assert content(tmp_path) == before
    g.set_n_initializer(lambda shape, dtype, device, rows: torch.full(shape, 5.0), "x")
    assert dgl.append(g, 2).ndata["x"].tolist() == [0, 1, 2, 3, 4, 5, 5, 5]
    assert dgl.append(g, 2, fill={"x": 7}).ndata["x"][6:].tolist() == [7, 7]


def day(names: list[str], first: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Accounts and payments among the last ones."""
    accounts = {"id": names, "age": [20.0 + first] * len(names), "fraud": ["no"] * len(names)}
    payments = {"who": [names[0], "Åsa"], "to": ["Åsa", names[-1]], "amount": [1.0, first + 2.0]}
    return accounts, payments


def test_tables_by_key(tmp_path: Path) -> None:
    """Two days on the graph and on its parts, keys longer than all before."""
    accounts, payments = day(["Åsa", "B", "C"], 0)
    accounts["fraud"][1] = "yes"
    g, report = graph_from_tables(
        {"account": NodeTable(accounts, "id", ["age"], "fraud")},
        {("account", "pays", "account"): EdgeTable(payments, "who", "to", keep=["amount"])},
    )
    partition_graph(g, "bank", 2, tmp_path, part_method="random")
    config, far_report = tmp_path / "bank.json", report
    for number, names in enumerate((["D"], ["a key of many letters", "F"]), 1):
        new, more = day(names, number)
        del new["fraud"]
        tables = {"account": new}, {"pays": more}
        with pytest.raises(InvalidInput, match="'label'"):
            append_tables(g, report, *tables)
        with pytest.raises(InvalidInput, match="'label'"):
            append_partition(config, *tables, report=far_report)
        fill = {"label": -1}
        g, report = append_tables(g, report, *tables, fill=fill)
        far_report = append_partition(config, *tables, report=far_report, fill=fill)
    assert keys_of(g).tolist() == ["Åsa", "B", "C", "D", "a key of many letters", "F"]
    assert g.ndata["label"].tolist() == [0, 1, 0, -1, -1, -1]
    assert far_report.counts["account: nodes appended"] == 2
    for part_id in range(2):
        nodes = open_part(config, part_id).nodes["account"]
        own = nodes.orig_ids[: nodes.num_inner]
        for name, values in g.ndata.items():
            assert torch.equal(nodes.data[name], values[own])
    with pytest.raises(InvalidInput, match="'_N'"):
        append_partition(cut_ring(tmp_path / "ring"), {"account": new}, report=report)
