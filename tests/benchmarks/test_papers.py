"""The replay of papers counts what a simulated cluster counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import gnnlab as dgl
from benchmarks import papers
from benchmarks.clusters import clustered
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.simulate import simulate


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
    g, train = clustered(2000, 30_000, 200, progress=False)
    g.ndata["x"] = torch.zeros(2000, 100)
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

    g.ndata["id"] = torch.arange(2000)
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


def test_the_tables_have_every_policy() -> None:
    found = papers.measure(0.001, 2, 1, "random", None, progress=False)
    caches, claims = papers.tables(found)
    assert len(caches) == 10 and len(claims) == 9
    rows = np.array([found["rows"][name] for name in ("belady", "vip", "halo", "none")])
    assert (rows[:3] <= rows[3]).all() and found["setup"]["nodes"] == 2449
    assert found["unions"][8] <= found["unions"][2] <= found["unions"][1] == rows[3][0]


def test_a_folder_of_ogb_is_read() -> None:
    """The digits have OGB's files; 9,929 edges in one direction."""
    found = papers.measure(1.0, 2, 1, "random", dgl.data.digits_folder(), progress=False)
    assert found["setup"]["edges"] == 2 * 9929 and found["setup"]["graph"] == "ogb"
