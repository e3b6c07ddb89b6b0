"""Typed graphs of tables: what is in a cell arrives, keys come back, each policy is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import gnnlab as dgl
from gnnlab.data import EdgeTable, NodeTable, append_tables, graph_from_tables, keys_of, to_table
from gnnlab.errors import InvalidInput, NotFound

PAYS = ("account", "pays", "shop")


def bank(seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    random = np.random.default_rng(seed)
    accounts = pd.DataFrame(
        {
            "id": [f"Ä{number:03}" for number in random.permutation(200)],
            "age": random.integers(18, 90, 200),
            "income": random.normal(size=200),
            "fraud": random.choice(["no", "yes", None], 200),
            "opened": pd.Timestamp("2024-01-01")
            + pd.to_timedelta(random.integers(9**6, size=200), "s"),
            "country": random.choice(["CN", "KR", "US"], 200),
        }
    )
    shops = pd.DataFrame({"number": random.permutation(5000)[:30] * 10**12})
    payments = pd.DataFrame(
        {
            "who": random.choice(accounts["id"], 900),
            "where": random.choice(shops["number"], 900),
            "amount": random.random(900),
        }
    )
    return accounts, shops, payments


def make(accounts: Any, shops: Any, payments: Any, **options: Any) -> Any:
    return graph_from_tables(
        {
            "account": NodeTable(accounts, "id", ["age", "income"], "fraud", ["opened", "country"]),
            "shop": NodeTable(shops, "number"),
        },
        {PAYS: EdgeTable(payments, "who", "where", keep=["amount"])},
        **options,
    )


def as_arrays(table: pd.DataFrame) -> dict[str, np.ndarray]:
    return {name: table[name].to_numpy() for name in table}


@pytest.mark.parametrize("form", ["pandas", "arrays", "csv"])
def test_cells_arrive(form: str, tmp_path: Path) -> None:
    tables: list[Any] = list(bank())
    accounts, shops, payments = tables
    if form == "arrays":
        tables = [as_arrays(table) for table in tables]
    if form == "csv":
        for number, table in enumerate(tables):
            table.to_csv(tmp_path / f"{number}.csv", index=False)
            tables[number] = tmp_path / f"{number}.csv"
    g, report = make(*tables)
    data = g.nodes["account"].data
    assert torch.equal(data["feat"][:, 0], torch.tensor(accounts["age"].to_numpy()).float())
    assert report.classes["account", "fraud"] == ["no", "yes"] and not report.counts
    assert data["label"].tolist() == [{"no": 0, "yes": 1}.get(x, -1) for x in accounts["fraud"]]
    assert data["country"].tolist() == [["CN", "KR", "US"].index(x) for x in accounts["country"]]
    if form != "csv":  # where dates are text
        seconds = accounts["opened"].to_numpy().astype("datetime64[s]").astype(int)
        assert data["opened"].tolist() == seconds.tolist()
    assert keys_of(g, ntype="account").tolist() == accounts["id"].tolist()
    assert keys_of(g, [4, 2], "shop").tolist() == shops["number"].iloc[[4, 2]].tolist()
    src, dst = g.edges(etype="pays")
    assert keys_of(g, src, "account").tolist() == payments["who"].tolist()
    assert keys_of(g, dst, "shop").tolist() == payments["where"].tolist()
    assert torch.equal(g.edges["pays"].data["amount"], torch.tensor(payments["amount"].to_numpy()))


def test_keys_come_back_from_files_parts_and_batches(tmp_path: Path) -> None:
    g, _ = make(*bank())
    dgl.save_graphs(str(tmp_path / "g.bin"), [g])
    (again,), _ = dgl.load_graphs(str(tmp_path / "g.bin"))
    names = keys_of(g, ntype="account")
    assert (keys_of(again, ntype="account") == names).all()
    dgl.distributed.partition_graph(g, "bank", 2, tmp_path / "parts", part_method="random")
    dgl.distributed.initialize()
    far = dgl.distributed.DistGraph("bank", part_config=tmp_path / "parts/bank.json")
    scores = far.nodes["account"].data["feat"][:][:, 1]
    table = to_table(far, {"score": scores}, ntype="account").set_index("key")
    expected = pd.Series(g.nodes["account"].data["feat"][:, 1].numpy(), names)
    assert (table["score"].sort_index() == expected.sort_index()).all()
    dgl.distributed.exit_client()


def test_each_policy_is_counted() -> None:
    accounts, shops, payments = bank()
    accounts = pd.concat([accounts, accounts.iloc[[3, 5]].assign(age=1)], ignore_index=True)
    accounts.loc[[1, 4], "income"] = np.nan
    payments.loc[[0, 7], "who"] = ["nobody", "nobody"]
    payments.loc[9, "where"] = 1
    for option, named in (("duplicates", "account"), ("unknown", "nobody"), ("empty", "income")):
        others = {"duplicates": "drop", "unknown": "drop", "empty": "fill"}
        with pytest.raises(InvalidInput, match=named):
            make(accounts, shops, payments, **(others | {option: "error"}))
    g, report = make(accounts, shops, payments, duplicates="drop", unknown="drop", empty="fill")
    assert sorted(report.counts.values()) == [2, 2, 3]
    assert g.num_nodes("account") == 200 and g.num_edges("pays") == 897
    feat = g.nodes["account"].data["feat"]
    assert feat.shape == (200, 4) and feat[:, 3].nonzero().flatten().tolist() == [1, 4]
    mean = accounts["income"][:200].mean()
    assert feat[1, 1] == pytest.approx(mean, abs=1e-6)
    g, report = make(accounts, shops, payments, duplicates="drop", unknown="add", empty="fill")
    assert g.num_nodes("account") == 201 and g.num_edges("pays") == 900
    assert keys_of(g, [200], "account").tolist() == ["nobody"]
    data = g.nodes["account"].data
    assert data["label"][200] == data["country"][200] == data["opened"][200] == -1
    assert data["feat"][200, 2:].tolist() == [1, 1]
    assert "nodes added" in str(report)


def same_graph(a: dgl.Graph, b: dgl.Graph) -> None:
    assert a.num_nodes("account") == b.num_nodes("account")
    for x, y in zip(a.edges(etype="pays"), b.edges(etype="pays"), strict=True):
        assert torch.equal(x, y)
    for frames in ((a.nodes["account"], b.nodes["account"]), (a.edges["pays"], b.edges["pays"])):
        assert set(frames[0].data) == set(frames[1].data)
        for name, values in frames[0].data.items():
            assert torch.equal(values, frames[1].data[name]), name


def test_appended_tables_are_one_table() -> None:
    """Cut anywhere, if the first part has all classes; means are those of the first part."""
    accounts, shops, payments = bank()
    payments = payments[payments["who"].isin(accounts["id"][:190])]
    whole, _ = make(accounts, shops, pd.concat([payments[:300], payments[300:]]))
    g, report = make(accounts[:190], shops, payments[:300])
    g, report = append_tables(g, report, {"account": accounts[190:195]})
    day = {"account": accounts[195:]}, {"pays": payments[300:]}
    g, report = append_tables(g, report, *day)
    same_graph(g, whole)
    accounts.loc[[3, 195], "income"] = np.nan
    g, report = make(accounts[:190], shops, payments[:0], empty="fill")
    before = g.nodes["account"].data["feat"]
    g, report = append_tables(g, report, {"account": accounts[190:]})
    feat = g.nodes["account"].data["feat"]
    assert torch.equal(feat[:190], before) and feat[195, 1] == before[3, 1]
    assert feat[:, 3].nonzero().flatten().tolist() == [3, 195]
    assert list(report.counts.values()) == [1]


def test_append_policies() -> None:
    accounts, shops, payments = bank()
    again = accounts.iloc[[7]].assign(age=1)
    new = accounts.iloc[[8, 8]].assign(id="new")
    g, report = make(accounts, shops, payments)
    for tables, named in (
        (({"account": again},), accounts["id"][7]),
        (({"account": new},), "new"),
        (({"account": new[:1].assign(country="FR")},), "FR"),
        (({"account": new[:1].assign(income=None)},), "income"),
        (({"account": new[:1].drop(columns="income")},), "income"),
        (({"account": new[:1].drop(columns=["income", "age"])},), "feat"),
        (({"account": new[:1].drop(columns="fraud")},), "label"),
        (({"account": new[:1].assign(id=5)},), "account"),
        (({"account": new[:1].assign(opened=5)},), "opened"),
        (({"account": new[:1].assign(opened="2024-01-02")},), "opened"),
        ((None, {"pays": payments[:1].assign(who="none")}), "none"),
        ((None, {"pays": payments[:1].assign(amount=pd.Timestamp(0))}), "amount"),
        ((None, {"pays": payments[:1].drop(columns="amount")}), "amount"),
        ((None, {"owns": payments[:1]}), "owns"),
    ):
        with pytest.raises((InvalidInput, NotFound), match=f"'{named}'|{named},"):
            append_tables(g, report, *tables)
    for wrong in ((report, new), (new, {})):
        with pytest.raises(InvalidInput, match="TableReport"):
            append_tables(g, *wrong)
    with pytest.raises(InvalidInput, match="NoneType"):
        append_tables(None, report)
    more, told = append_tables(g, report, {"account": pd.concat([again, new])}, duplicates="drop")
    assert more.num_nodes("account") == 201 and list(told.counts.values()) == [2]
    assert more.nodes["account"].data["feat"][7, 0] == accounts["age"][7]
    with pytest.raises(InvalidInput, match="'feat'"):  # no table says what the new account has
        append_tables(g, report, None, {"pays": payments[:1].assign(who="z")}, unknown="add")
    fill = {"feat": [0.5, 2.0], "label": -1, "country": -1, "opened": -1}
    edges = payments[:2].assign(who=["z", "y"])
    more, told = append_tables(g, report, None, {"pays": edges}, unknown="add", fill=fill)
    assert keys_of(more, [200, 201], "account").tolist() == ["z", "y"]
    assert more.nodes["account"].data["feat"][200].tolist() == [0.5, 2]
    g, report = make(accounts, shops, payments, empty="fill")
    more, told = append_tables(g, report, {"account": new[:1].assign(country="FR", fraud=None)})
    assert more.nodes["account"].data["country"][200] == -1
    assert more.nodes["account"].data["label"][200] == -1
    assert list(told.counts.values()) == [1]


def test_other_frames_need_columns_only() -> None:
    class Frame:
        column_names = ("name",)

        def __getitem__(self, name: str) -> Any:
            return pd.Series(["a", "b"])

    g, report = graph_from_tables({"t": NodeTable(Frame(), "name")}, {})
    assert keys_of(g).tolist() == ["a", "b"]
    g, _ = append_tables(g, report, {"t": {"name": ["ccc"]}})
    assert keys_of(g).tolist() == ["a", "b", "ccc"]


def test_wrong_tables() -> None:
    accounts, shops, payments = bank()
    with pytest.raises(NotFound, match="'ident'"):
        graph_from_tables({"a": NodeTable(accounts, "ident")}, {})
    with pytest.raises(NotFound, match="'shop'"):
        graph_from_tables(
            {"account": NodeTable(accounts, "id")}, {PAYS: EdgeTable(payments, "who", "where")}
        )
    with pytest.raises(InvalidInput, match="'country'"):
        graph_from_tables({"a": NodeTable(accounts, "id", feat=["country"])}, {})
    with pytest.raises(InvalidInput, match="row 2"):
        graph_from_tables({"a": NodeTable({"k": ["x", "y", None]}, "k")}, {})
    with pytest.raises(InvalidInput, match="'k': 2, 'x': 1"):
        graph_from_tables({"a": NodeTable({"k": ["x", "y"], "x": [1]}, "k")}, {})
    with pytest.raises(InvalidInput, match="'keep'"):
        make(accounts, shops, payments, unknown="keep")
    with pytest.raises(InvalidInput, match=r"none\.csv"):
        graph_from_tables({"a": NodeTable("none.csv", "id")}, {})
    with pytest.raises(InvalidInput, match="'opened'"):  # not a count of nanoseconds
        graph_from_tables({"a": NodeTable(accounts, "id", feat=["opened"])}, {})
    for option in ("drop", "add"):  # the same numbers as text would be other nodes
        numbers = payments.assign(where=payments["where"].astype(str))
        with pytest.raises(InvalidInput, match="'where'"):
            make(accounts, shops, numbers, unknown=option)
    with pytest.raises(InvalidInput, match="'key'"):
        graph_from_tables({"a": NodeTable({"id": [1], "key": [2]}, "id", keep=["key"])}, {})
    g, _ = make(accounts, shops, payments)
    with pytest.raises(InvalidInput, match="'score' "):
        to_table(g, {"score": [1, 2, 3]}, ntype="account")
