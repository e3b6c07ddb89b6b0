"""Edges in parts: inference layer by layer, ranking and negatives as on the whole graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading.negative_sampler import DegreePower, Fixed, Hard, InBatch, Uniform
from gnnlab.dataloading.ranking import RankMetrics, rank_among_all
from gnnlab.distributed import full_neighbor_inference, original_order
from tests.distributed import cut as cuts
from tests.distributed.cluster import outputs, run_job, run_simulated
from tests.distributed.cut import FOLLOWS, PLAYS, Cut


def layers() -> list[Any]:
    """Two layers on three edge types."""
    torch.manual_seed(5)

    def relations(size: int, out: int) -> dgl.nn.HeteroGraphConv:
        sage = dgl.nn.SAGEConv(size, out, "mean"), dgl.nn.SAGEConv(size, out, "gcn")
        gcn = dgl.nn.GraphConv(size, out, norm="right")
        return dgl.nn.HeteroGraphConv({"follows": sage[0], "plays": sage[1], "m": gcn})

    first, second = relations(6, 4), relations(4, 3)
    return [lambda g, x: {t: h.relu() for t, h in first(g, x).items()}, second]


def typed_graph() -> dgl.Graph:
    g = cuts.typed()
    generator = torch.Generator().manual_seed(6)
    for ntype in g.ntypes:
        g.nodes[ntype].data["h"] = torch.randn(g.num_nodes(ntype), 6, generator=generator)
    return g


def on_the_whole() -> dict[str, torch.Tensor]:
    g = typed_graph()
    h = {ntype: g.nodes[ntype].data["h"] for ntype in g.ntypes}
    with torch.no_grad():
        for layer in layers():
            h = layer(g, h)
    return h


@pytest.mark.parametrize("num_parts", [1, 2, 3])
def test_typed_layers_equal_the_whole_graph(num_parts: int, tmp_path: Path) -> None:
    """Devs have no in-edges, hence no rows after the first layer."""
    c, whole = cuts.cut(typed_graph(), num_parts, tmp_path), on_the_whole()
    x = {ntype: c.parts.nodes[ntype].data["h"] for ntype in c.parts.ntypes}
    for batch_size in (7, 1000):
        before = dgl.random.get_state()
        found = full_neighbor_inference(c.parts, layers(), x, batch_size)
        assert dgl.random.get_state() == before, "later draws are the same"
        assert found.keys() == whole.keys() == {"user", "game"}
        for ntype, rows in whole.items():
            torch.testing.assert_close(found[ntype][:], rows[c.nodes[ntype]])
            torch.testing.assert_close(original_order(found[ntype])[:], rows)
    hours = c.parts.edges[PLAYS].data["w"]
    assert torch.equal(original_order(hours)[:], c.whole.edges[PLAYS].data["w"])
    with pytest.raises(dgl.InvalidInput, match="inputs of 'game'"):
        full_neighbor_inference(c.parts, layers(), {"game": x["user"]})


def test_means_equal_those_of_the_whole_graph_bit_for_bit(plain: Cut) -> None:
    layer = dgl.nn.GraphConv(
        3, 3, norm="right", weight=False, bias=False, allow_zero_in_degree=True
    )
    x = plain.parts.ndata["x"]
    found = original_order(full_neighbor_inference(plain.parts, [layer, layer], x, 64))
    whole = plain.whole.ndata["x"]
    assert torch.equal(found[:], layer(plain.whole, layer(plain.whole, whole)))


def test_negatives_and_ranks_equal_those_of_the_whole_graph(plain: Cut, typed: Cut) -> None:
    for c, etype in ((plain, ("_N", "_E", "_N")), (typed, PLAYS), (typed, FOLLOWS)):
        whole = cuts.renumbered(c)
        num_edges, num_dst = whole.num_edges(etype), whole.num_nodes(etype[2])
        eids = torch.randperm(num_edges)[:50]
        table = torch.randint(num_dst, (num_edges, 3))
        c.parts.edges[etype].data["negatives"] = table
        whole.edges[etype].data["negatives"] = table
        uniform, hard = Uniform(4, True), Hard(Uniform(4), "negatives")
        powers = DegreePower(4, exclude_positives=True)
        for sampler in (uniform, powers, InBatch(4, True), Fixed(3, "negatives"), hard):
            pairs = []
            for g in (whole, c.parts):
                dgl.seed(3)
                pairs.append(torch.stack(sampler(g, {etype: eids})[etype]))
            assert torch.equal(*pairs)
        src, dst = (ends[eids] for ends in whole.edges(etype=etype))
        scores = torch.randint(9, (whole.num_nodes(etype[0]), num_dst)).float()
        for corrupt in ("head", "tail"):
            given = src, dst, lambda u, v, table=scores: table[u][:, v], etype, corrupt
            ranks = [rank_among_all(g, *given, chunk_size=17) for g in (whole, c.parts)]
            assert torch.equal(*ranks)


JOB = """
import json, sys
import torch
import gnnlab as dgl
from gnnlab.dataloading.ranking import RankMetrics, rank_among_all
from gnnlab.distributed import edge_split, full_neighbor_inference, original_order
from tests.distributed.test_inference import layers

dgl.distributed.initialize("unused.txt")
torch.distributed.init_process_group("gloo")
g = dgl.distributed.DistGraph("g", part_config=sys.argv[1])
x = {ntype: g.nodes[ntype].data["h"] for ntype in g.ntypes}
h = full_neighbor_inference(g, layers(), x, batch_size=9)
rows = {ntype: original_order(tensor)[:].tolist() for ntype, tensor in h.items()}
mine = edge_split(torch.arange(g.num_edges("plays")), g.get_partition_book(), "plays",
    force_even=False)
metrics = RankMetrics()
score = lambda src, dst: (h["user"][src] @ h["game"][dst].T).round(decimals=2)
for eids in mine.split(32):
    ends = g.find_edges(eids, "plays")
    metrics.update_ranks(rank_among_all(g, *ends, score, "plays", chunk_size=10))
found = {"rank": g.rank(), "traffic": g.traffic.to_list(), "metrics": metrics.compute()}
print(json.dumps(found | {"rows": rows}), flush=True)
g.barrier()
"""


def test_two_machines_compute_what_one_process_computes(tmp_path: Path) -> None:
    """And a simulation counts their bytes."""
    whole, g = on_the_whole(), cuts.cut(typed_graph(), 2, tmp_path).whole
    user, game = whole["user"], whole["game"]
    metrics, ends = RankMetrics(), g.edges(etype=PLAYS)
    score = lambda u, v: (user[u] @ game[v].T).round(decimals=2)  # noqa: E731
    metrics.update_ranks(rank_among_all(g, *ends, score, PLAYS))
    config, script = tmp_path / "g.json", tmp_path / "script.py"
    real = [outputs(text) for text in run_job(JOB, config, args=[str(config)])]
    script.write_text(JOB, encoding="utf8")
    for found, other in zip(real, run_simulated(script, config)[1], strict=True):
        assert all(found[name] == other[name] for name in ("traffic", "metrics"))
        assert found["metrics"] == metrics.compute()
        for ntype, each in found["rows"].items():
            torch.testing.assert_close(torch.tensor(each), whole[ntype])
