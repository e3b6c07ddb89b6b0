"""From a bank's tables to scores by account number; a day later, scores of new accounts too.

python3 payments.py [FOLDER]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import gnnlab as dgl
from gnnlab.data import EdgeTable, NodeTable, graph_from_tables, to_table
from gnnlab.dataloading import MultiLayerFullNeighborSampler, NeighborSampler
from gnnlab.distributed import DistGraph, DistNodeDataLoader, node_split
from gnnlab.nn import HeteroGraphConv, SAGEConv
from gnnlab.partition import append_partition, partition_graph

PAYS, PAID_BY = ("account", "pays", "shop"), ("shop", "paid by", "account")


def tables(random: np.random.Generator, first: int, new: int, count: int) -> list[pd.DataFrame]:
    """Make new accounts, and payments of all: some cells empty, some rows twice or of nobody."""
    fraud = random.random(new) < 0.2
    accounts = pd.DataFrame({"account": [f"KR{number:06}" for number in range(first, first + new)]})
    accounts["income"] = random.lognormal(8 - fraud, 1)
    accounts["fraud"] = np.where(fraud, "yes", "no").astype(object)
    accounts.loc[random.random(new) < 0.5, "fraud"] = None  # nobody has looked yet
    accounts.loc[random.random(new) < 0.03, "income"] = np.nan
    who, shop = random.integers(first + new, size=count), random.integers(40, size=count)
    payments = pd.DataFrame({"account": [f"KR{number:06}" for number in who], "shop": shop + 1000})
    payments["amount"] = random.random(count).round(2)
    payments["time"] = pd.Timestamp("2025-11-01") + pd.to_timedelta(np.arange(count), "s")
    payments.loc[random.random(count) < 0.01, "account"] = "KR?"
    return [pd.concat([accounts, accounts[:3]], ignore_index=True), payments]


class Model(nn.Module):
    """GraphSAGE on accounts and shops; shops have embeddings."""

    def __init__(self, size: int = 32) -> None:
        super().__init__()
        self.shops = nn.Embedding(40, 2)
        self.layers = nn.ModuleList(
            HeteroGraphConv({name: SAGEConv(*sizes, "mean") for name in ("pays", "paid by")})
            for sizes in ((2, size), (size, 2))
        )

    def forward(self, g: DistGraph, nodes: dict[str, torch.Tensor], blocks: list) -> torch.Tensor:
        """Return a score for each class, shape (seeds, 2)."""
        income, is_empty = g.nodes["account"].data["feat"][nodes["account"]].T
        feat = torch.stack([income.clamp(1).log() - 8, is_empty], 1)
        shop = g.nodes["shop"].data["key"][nodes["shop"]] - 1000  # keys stay, IDs in parts may move
        h = self.layers[0](blocks[0], {"account": feat, "shop": self.shops(shop)})
        h = {ntype: x.relu() for ntype, x in h.items()}
        return self.layers[1](blocks[1], h)["account"]


def train(model: Model, g: DistGraph) -> None:
    """Train on the accounts whose label is known."""
    optimizer, label = (
        torch.optim.Adam(model.parameters(), lr=0.01),
        g.nodes["account"].data["label"],
    )
    known = node_split(label[:] >= 0, g.get_partition_book(), "account")
    sampler = NeighborSampler([10, 10])
    loader = DistNodeDataLoader(g, {"account": known}, sampler, batch_size=256, shuffle=True)
    for epoch in range(5):
        for nodes, seeds, blocks in loader:
            loss = cross_entropy(model(g, nodes, blocks), label[seeds["account"]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.2f}")


@torch.no_grad()
def score(model: Model, g: DistGraph) -> pd.DataFrame:
    """Return the probability of fraud of each account, by its number."""
    found = torch.empty(g.num_nodes("account"))
    everyone, sampler = {"account": torch.arange(len(found))}, MultiLayerFullNeighborSampler(2)
    for nodes, seeds, blocks in DistNodeDataLoader(g, everyone, sampler, batch_size=512):
        found[seeds["account"]] = model(g, nodes, blocks).softmax(1)[:, 1]
    return to_table(g, {"fraud": found}, ntype="account")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="payments", type=Path, help="for all files")
    folder, random = parser.parse_args().folder, np.random.default_rng(0)
    dgl.seed(0)
    torch.manual_seed(0)
    accounts, payments = tables(random, 0, 2000, 12_000)
    accounts_of = NodeTable(accounts, "account", ["income"], "fraud")
    shops_of = NodeTable({"shop": np.arange(1000, 1040)}, "shop")
    pays = EdgeTable(payments, "account", "shop", keep=["amount", "time"])
    paid_by = EdgeTable(payments, "shop", "account")
    drop = {"duplicates": "drop", "unknown": "drop"}
    nodes, edges = {"account": accounts_of, "shop": shops_of}, {PAYS: pays, PAID_BY: paid_by}
    g, report = graph_from_tables(nodes, edges, **drop, empty="fill")
    print(report)
    partition_graph(g, "bank", 2, folder)

    dgl.distributed.initialize()
    model = Model()
    train(model, DistGraph("bank", part_config=folder / "bank.json"))

    accounts, payments = tables(random, 2000, 50, 900)  # the next day, of which no label is known
    nodes, edges = {"account": accounts.drop(columns="fraud")}, {PAYS: payments, PAID_BY: payments}
    fill = {("account", "label"): -1}
    report = append_partition(folder / "bank.json", nodes, edges, report=report, fill=fill, **drop)
    print(report)
    scores = score(model, DistGraph("bank", part_config=folder / "bank.json"))
    scores.to_csv(folder / "scores.csv", index=False)
    print(
        f"scores: {len(scores)}, of new accounts: {scores['key'].isin(accounts['account']).sum()}"
    )
