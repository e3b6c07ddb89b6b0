"""The replay of papers counts what a simulated cluster counts."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import torch

import gnnlab as dgl
from benchmarks import papers
from benchmarks.clusters import clustered
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.simulate import simulate
from tests.helpers import ROOT

STORED = "papers.json"


def test_clusters_are_found_by_a_partition() -> None:
    g, train = clustered(3000, 60_000, 240, progress=False)
    src, dst = g.edges()
    assert (g.num_nodes(), g.num_edges(), len(train)) == (3000, 60_000, 240)
    assert not bool((src == dst).any()) and len(torch.unique(src * 3000 + dst)) == 60_000
    assert torch.equal(torch.sort(src * 3000 + dst).values, torch.sort(dst * 3000 + src).values)
    part, _ = papers.assign(g, 2, "metis")
    assert (part[src] != part[dst]).mean() < 0.15  # 0.5 if parts were drawn at random


def test_rows_are_those_of_a_simulated_cluster() -> None:
    """Remote rows of an epoch without a cache, and with Belady's, on two machines."""
    g, train = clustered(1000, 10_000, 100, progress=False)
    g.ndata["x"] = torch.zeros(1000, 100)
    part, _ = papers.assign(g, 2, "metis")

    def epochs(batch_size: int) -> Any:
        initialize()
        d = DistGraph("graph")
        mask = torch.isin(d.ndata["id"][:], train)
        nodes = node_split(mask, d.get_partition_book(), force_even=False)
        nodes = nodes[d.ndata["id"][nodes].argsort()]  # in the order of the whole graph
        sampler = dgl.dataloading.NeighborSampler(papers.FANOUTS, prefetch_node_feats=["x"])
        loader = DistNodeDataLoader(
            d, nodes, sampler, batch_size=batch_size, shuffle=True, seed=d.rank(), prefetch=0
        )
        misses = 0
        for _ in range(2):
            before = count(d)
            for _ in loader:
                pass
            misses = count(d) - before
        return misses

    def count(d: DistGraph) -> int:
        info = d.cache_info().features.get("node~_N~x")
        return 0 if info is None else info.misses

    g.ndata["id"] = torch.arange(1000)
    size = papers._batch(train)
    slots = papers._slots(part)[1]
    mine = papers._policies(papers.Setup(g, part, train), 2, False)["rows"]
    for policy, name, num_bytes in (("belady", "belady", slots * 404), ("halo", "none", 1)):
        found = simulate(
            g, 2, part_method=lambda g, k: torch.from_numpy(part), cache_bytes=num_bytes,
            cache_policy=policy,
        ).run(epochs, size)  # fmt: skip
        expected = mine[name][1] if name == "belady" else mine[name][0]
        assert abs(sum(found.returned) - expected) <= (0 if name == "none" else 0.05 * expected)


def test_the_least_misses_are_those_of_the_best_rows_at_every_moment() -> None:
    """Two slots. At first rows 0 and 1 are held, then 0 and 2: batch 2 fetches 2, batch 4 fetches 1
    (row 3, needed once, is always fetched)."""
    batches = [np.array(rows) for rows in ([0, 1], [0, 2], [2, 3], [0, 1])]
    assert papers._least_misses(batches, 4, 2) == 3
    assert papers._misses_of_belady(batches, batches, 4, 2) == 5
    assert papers._least_misses(batches, 4, 4) == 0


def test_lesson_11_shows_the_stored_figures() -> None:
    """Millions of rows of benchmarks/results, and SALIENT++'s as they are in benchmarks.papers."""
    lesson = (ROOT / "notebooks" / "src" / "11_replayed_papers.py").read_text("utf8")
    shown: dict[str, Any] = {}
    for name in ("PUBLISHED", "LARGE", "GATHERED", "OTHERS"):
        (literal,) = re.findall(rf"^{name} = (\{{.*?\}})$", lesson, re.DOTALL | re.MULTILINE)
        shown[name] = eval(literal)
    names = {"VIP": "vip", "degree": "degree of the graph", "halo": "halo"}
    for name, ours in names.items():
        assert shown["PUBLISHED"][name] == papers.SALIENT[ours]
    assert shown["PUBLISHED"]["none"] == papers.UNCACHED
    names |= {"most requested": "access", "Belady": "belady", "least": "least"}
    found = json.loads((ROOT / "benchmarks" / "results" / STORED).read_text("utf8"))
    for name, counts in (("LARGE", found["rows"]), ("GATHERED", found["gathered"]["rows"])):
        for policy, ours in names.items():
            assert shown[name][policy] == tuple(round(n / 1e6, 2) for n in counts[ours])
        assert shown[name]["none"] == round(counts["none"][0] / 1e6, 2)
    unions, last = found["unions"], {name: hops[-1] for name, hops in found["labor"].items()}
    labor = tuple(round(last["neighbors"] / last[name], 1) for name in ("labor-0", "labor-*"))
    assert shown["OTHERS"]["union"] == round(unions["4"] / unions["1"], 2)
    assert shown["OTHERS"]["LABOR"] == labor
    assert shown["OTHERS"]["width"] == round(found["p3"]["break-even width"])
