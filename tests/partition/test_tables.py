"""Tables in chunks become the parts of the graph that the same tables make in memory."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gnnlab.data import EdgeTable, NodeTable, append_tables, graph_from_tables
from gnnlab.data.from_tables import decode_keys
from gnnlab.errors import InvalidInput, NotFound, PartitionError
from gnnlab.partition import append_partition, open_part, partition_graph, partition_tables
from gnnlab.partition.edgefiles import EdgeFiles
from tests.data.test_from_tables import bank
from tests.helpers import NO_PYARROW, small_files
from tests.partition.test_outofcore import content

PAYS, SENDS = ("account", "pays", "shop"), ("account", "sends", "account")


def tables() -> list[pd.DataFrame]:
    """Columns that look different in chunks: text all digits, integers beside empty cells."""
    accounts, shops, payments = bank()
    payments = payments[:90].assign(
        code=[str(n % 9) if n < 70 else f"x{n % 5}" for n in range(90)],
        stars=[float(n % 5) for n in range(89)] + [None],
        online=[n % 3 == 0 for n in range(88)] + [None, None],
        note=[None] * 60 + ["late", "b", None] * 10,
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(90)[::-1], "h"),
    )
    payments.loc[[5, 85], "amount"] = np.nan
    payments.loc[[0, 7, 89], "who"] = ["new", "alone", None]
    names = [*accounts["id"][:9], "9", "8", "7"]
    random = np.random.default_rng(1)
    sends = pd.DataFrame({"a": random.choice(names, 30), "b": random.choice(names, 30)})
    return [accounts, shops, payments, sends.assign(fee=random.integers(0, 3, 30))]


def given(accounts: Any, shops: Any, payments: Any, sends: Any) -> tuple[Any, Any]:
    keep = ["code", "stars", "online", "note", "day"]
    nodes = {
        "account": NodeTable(accounts, "id", ["age", "income"], "fraud", ["opened", "country"]),
        "shop": NodeTable(shops, "number"),
    }
    return nodes, {
        PAYS: EdgeTable(payments, "who", "where", ["amount", "stars"], keep=keep),
        SENDS: EdgeTable(sends, "a", "b", label="fee"),
    }


def write(folder: Path, form: str, frames: list[Any]) -> list[Any]:
    """Write the tables of edges to files; return all tables."""
    if form == "parquet":
        pytest.importorskip("pyarrow", reason=NO_PYARROW)
    paths = [folder / f"{number}.{form}" for number in range(2)]
    for frame, path in zip(frames[2:], paths, strict=True):
        (frame.to_parquet if form == "parquet" else frame.to_csv)(path, index=False)
    return [*frames[:2], *paths]


@pytest.mark.parametrize("form", ["csv", "csv.gz", "parquet", "frame"])
@pytest.mark.parametrize("unknown", ["drop", "add"])
def test_equals_the_graph_in_memory(tmp_path: Path, form: str, unknown: str) -> None:
    arguments = given(*(tables() if form == "frame" else write(tmp_path, form, tables())))
    policies = {"unknown": unknown, "empty": "fill"}
    g, expected = graph_from_tables(*arguments, **policies)
    parts = {ntype: np.arange(g.num_nodes(ntype)) % 2 for ntype in g.ntypes}
    partition_graph(g, "bank", 2, tmp_path / "memory", part_method=lambda g, k: parts)
    for rows in (1, 3, 1000):
        options = {"part_method": parts, "scratch": tmp_path / "scratch", "chunk_rows": rows}
        options |= {"out_path": tmp_path / f"{rows}", **policies}
        path, report = partition_tables(*arguments, "bank", 2, **options)
        assert content(path) == content(tmp_path / "memory" / "bank.json")
        assert report == expected and not list((tmp_path / "scratch").iterdir())
    day = {"pays": arguments[1][PAYS].table}
    _, expected = append_tables(g, expected, None, day, unknown="drop")
    report = pickle.loads(pickle.dumps(report))
    report = append_partition(path, None, day, report=report, unknown="drop")
    assert report.classes == expected.classes and expected.counts.items() <= report.counts.items()


def test_files_of_one_table(tmp_path: Path) -> None:
    """One has no rows, one text that looks like numbers; nodes are added in the order of rows."""
    rows, etype = ["", "a,9,007,3\n", "7,b,x,\n9,a,8,2\n"], ("person", "knows", "person")
    nodes = {"person": NodeTable({"name": ["a"]}, "name")}
    for number, text in enumerate([*rows, "".join(rows)]):
        (tmp_path / f"{number}.csv").write_text("u,v,kind,n\n" + text)
    *files, whole = [tmp_path / f"{number}.csv" for number in range(4)]
    made = []
    for table, chunk in ((files, 1), (whole, 100)):
        edges = {etype: EdgeTable(table, "u", "v", ["n"], "kind", ["n"])}
        options: Any = {"empty": "fill", "unknown": "add", "chunk_rows": chunk}
        path, report = partition_tables(nodes, edges, "g", 1, tmp_path / f"{chunk}", **options)
        made.append((content(path), report))
    assert made[0] == made[1]
    added = open_part(path, 0).nodes["person"].data["key"]
    assert decode_keys(added).tolist() == ["a", "9", "7", "b"]
    assert report.classes[etype, "kind"] == ["007", "8", "x"]


def test_errors_say_the_row_of_the_table(tmp_path: Path) -> None:
    """Nothing stays behind, neither of chunks that were read nor where the disk is full."""
    where: dict[str, Any] = {"out_path": tmp_path / "out", "scratch": tmp_path / "scratch"}
    frames = tables()
    good = frames[2].assign(who="Ä007", amount=1.0, stars=1.0).astype({"where": object})
    for change, options, named in (
        ({"who": "who?"}, {}, r"row 77: 'who\?'"),
        ({"where": "x"}, {}, "'where'"),
        ({"amount": None}, {"unknown": "drop"}, "row 77;"),
        ({}, {"unknown": "keep"}, "'keep'"),
        ({}, {"part_method": "metis"}, "'metis'"),
        ({}, {"chunk_rows": 0}, "chunk_rows"),
        ({}, {"num_parts": 0}, "num_parts"),
    ):
        wrong = good.copy()
        wrong.loc[77, [*change]] = [*change.values()]
        nodes, edges = given(*write(tmp_path, "csv", [*frames[:2], wrong, frames[3]]))
        call = {"graph_name": "bank", "num_parts": 2, "chunk_rows": 10} | where | options
        with pytest.raises(InvalidInput, match=named):
            partition_tables(nodes, edges, **call)
    with pytest.raises(NotFound, match=r"0\.csv.*'nought'.*'who', 'where'"):
        edges[PAYS].keep = ["nought"]
        partition_tables(nodes, edges, "bank", 2, **where)
    with pytest.raises(TypeError, match="part_metod"):  # before any file is opened
        missing = {PAYS: EdgeTable("none.csv", "a", "b")}
        partition_tables(nodes, missing, "bank", 2, **where, part_metod="ldg")
    for wrong in (frames[0], NodeTable(frames[0], "id")):
        with pytest.raises(InvalidInput, match=r"EdgeTable.*found (DataFrame|NodeTable)"):
            graph_from_tables(nodes, {PAYS: wrong})
    nodes, edges = given(*frames)
    full = pytest.raises(PartitionError, match=r"scratch.*File too large.*scratch=")
    with small_files(500), full:
        partition_tables(nodes, edges, "bank", 2, **where, unknown="drop", empty="fill")
    assert not any([*where["scratch"].iterdir(), *where["out_path"].glob("*")])
    np.save(tmp_path / "edges.npy", np.zeros((200, 2), int))
    with small_files(500), pytest.raises(OSError, match="File too large"):  # of 800 bytes
        EdgeFiles(tmp_path, {"a": 9}, 10, False).read(("a", "b", "a"), tmp_path / "edges.npy")
