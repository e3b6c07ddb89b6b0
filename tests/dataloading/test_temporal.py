"""Sampling in time: no later edge at any hop, the same on parts, and the right distribution."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.dataloading import DataLoader, NeighborSampler, as_edge_prediction_sampler
from gnnlab.dataloading.seeds import Timed
from gnnlab.errors import InvalidInput
from gnnlab.graph.temporal import by_time
from gnnlab.kernels.temporal import TimedNodes, TimedNodesOnDevice
from tests.dataloading.samples import content
from tests.helpers import THOROUGH

ETYPES = [("user", "buys", "item"), ("item", "bought_by", "user"), ("user", "knows", "user")]


def typed_graph(seed: int = 0, edges: int = 3000, dtype: torch.dtype = torch.int64) -> Any:
    """Users and items; edges of two types have times, those of the third have those of users."""
    make = torch.Generator().manual_seed(seed)
    sizes = {"user": 60, "item": 40}
    ends = {
        e: tuple(torch.randint(sizes[t], (edges,), generator=make) for t in e[::2]) for e in ETYPES
    }
    g = dgl.heterograph(ends, sizes)
    for etype in ETYPES[:2]:
        g.edges[etype].data["t"] = torch.randint(50, (edges,), generator=make).to(dtype)
    g.nodes["user"].data["t"] = torch.randint(20, (60,), generator=make).to(dtype)
    return g


def seen(g: Any, block: Any, etype: Any) -> tuple[torch.Tensor, ...]:
    """For each edge of a block: its ID, its time, the seed's at both ends."""
    u, v = block.edges(etype=etype)
    ids = block.edges[etype].data[dgl.EID]
    src, dst = g.find_edges(ids, etype=etype)
    assert torch.equal(src, block.srcnodes[etype[0]].data[dgl.NID][u])
    assert torch.equal(dst, block.dstnodes[etype[2]].data[dgl.NID][v])
    limit = block.dstnodes[etype[2]].data["seed_time"][v]
    assert torch.equal(block.srcnodes[etype[0]].data["seed_time"][u], limit)
    own, of_source = g.edges[etype].data.get("t"), g.nodes[etype[0]].data.get("t")
    times = [x[i] for x, i in ((own, ids), (of_source, src)) if x is not None]
    return ids, torch.stack(times).amax(0), limit, v


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_no_edge_is_later_than_its_seed(strategy: str, dtype: torch.dtype) -> None:
    """Brute force, a million edges in all, with types and, in every other graph, without."""
    sampler = NeighborSampler([4, 3, 2], time="t", strategy=strategy)
    seed = count = 0
    while count < (250_000 if THOROUGH else 10_000) or seed < 2:
        g = typed_graph(seed, dtype=dtype)
        given = {"user": torch.arange(60).repeat(3), "item": torch.arange(40)}
        if seed % 2:
            g = g.edge_type_subgraph(["knows"])
            g.edata["t"] = torch.arange(3000).to(dtype) % 50
            del given["item"]
        times = {ntype: torch.arange(len(ids)) % 47 for ntype, ids in given.items()}
        seed += 1
        for _, output, blocks in DataLoader(g, given, sampler, batch_size=50, seed_times=times):
            for ntype, ids in output.items():
                assert torch.equal(ids, blocks[-1].dstnodes[ntype].data[dgl.NID])
            for block in blocks:
                for etype in g.canonical_etypes:
                    _, time, limit, _ = seen(g, block, etype)
                    assert bool((time <= limit).all())
                    count += len(time)


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from(["uniform", "last"]))
def test_a_row_takes_as_many_as_are_allowed(seed: int, fanout: int, strategy: str) -> None:
    """By brute force, with excluded edges: the count, and with "last" the edges themselves."""
    g = typed_graph(seed, edges=200)
    etype = ETYPES[0]
    left_out = torch.arange(0, 200, 3)
    ids, until = torch.arange(40), torch.arange(40) * 51 % 60
    given = {"item": ids}, {"item": until}
    sampler = NeighborSampler([fanout], time="t", strategy=strategy)
    block = sampler.sample(g, Timed(*given), {etype: left_out})[2][0]
    edges, _, _, at = seen(g, block, etype)
    src, dst = g.edges(etype=etype)
    times = torch.maximum(g.edges[etype].data["t"], g.nodes["user"].data["t"][src])
    for item in range(40):
        may = (dst == item) & (times <= until[item])
        may[left_out] = False
        allowed = may.nonzero().flatten()
        got = edges[at == item].tolist()
        assert len(got) == min(fanout, len(allowed)) and set(got) <= set(allowed.tolist())
        if strategy == "last":
            newest = sorted(allowed.tolist(), key=lambda e: (int(times[e]), e))[-fanout:]
            assert got == newest


def test_neighbors_are_drawn_uniformly_from_the_past() -> None:
    g = dgl.graph((torch.arange(1, 9), torch.zeros(8, dtype=torch.int64)), num_nodes=9)
    g.edata["t"] = torch.tensor([7, 3, 5, 1, 8, 2, 6, 4])
    times = 4 + torch.arange(3000) / 3001  # all different
    block = NeighborSampler([2], time="t").sample(g, Timed(torch.zeros(3000).long(), times))[2][0]
    found = Counter(tuple(pair) for pair in block.edata[dgl.EID].view(-1, 2).sort().values.tolist())
    assert len(found) == 6  # pairs out of the edges of times 1 to 4
    assert max(found.values()) < 600 and min(found.values()) > 400


def test_draws_at_two_times_are_independent() -> None:
    g = dgl.graph((torch.arange(1, 101), torch.zeros(100, dtype=torch.int64)), num_nodes=101)
    g.edata["t"] = torch.zeros(100, dtype=torch.int64)
    block = NeighborSampler([50], time="t").sample(g, Timed([0, 0], [1, 2]))[2][0]
    first, second = block.edata[dgl.EID].view(2, 50)
    both = len(np.intersect1d(first, second))
    assert 10 < both < 40


@pytest.mark.parametrize("num_parts", [1, 2, 4])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_parts_make_the_same_batches(strategy: str, num_parts: int, tmp_path: Path) -> None:
    g = typed_graph()
    times = g.nodes["user"].data.pop("t")
    g.edges["knows"].data["t"] = times[g.edges(etype="knows")[0]]
    new, edges = dgl.distributed.partition_graph(
        *(g, "shop", num_parts, tmp_path), part_method="random", return_mapping=True
    )
    dgl.distributed.initialize()
    far = dgl.distributed.DistGraph("shop", part_config=tmp_path / "shop.json")
    sampler = NeighborSampler([3, 2], time="t", strategy=strategy)
    until = {"item": torch.arange(40) + 5}
    left_out = {ETYPES[0]: torch.arange(0, 3000, 7)}
    there = {ETYPES[0]: torch.argsort(edges[ETYPES[0]])[left_out[ETYPES[0]]]}
    with dgl.random.stream(1):
        expected = sampler.sample(g, Timed({"item": torch.arange(40)}, until), left_out)[2]
    with dgl.random.stream(1):
        found = sampler.sample(far, Timed({"item": torch.argsort(new["item"])}, until), there)[2]
    for a, b in zip(expected, found, strict=True):
        for etype in ETYPES:
            assert torch.equal(torch.stack(a.edges(etype=etype)), torch.stack(b.edges(etype=etype)))
            ids = edges[etype][b.edges[etype].data[dgl.EID]]
            assert torch.equal(a.edges[etype].data[dgl.EID], ids)
        for ntype in g.ntypes:
            one, other = a.srcnodes[ntype].data, b.srcnodes[ntype].data
            assert torch.equal(one["seed_time"], other["seed_time"])
            assert torch.equal(one[dgl.NID], new[ntype][other[dgl.NID]])


def test_times_of_nodes_must_be_on_the_edges_of_a_partition(tmp_path: Path) -> None:
    g = typed_graph()
    dgl.distributed.partition_graph(g, "shop", 2, tmp_path, part_method="random")
    dgl.distributed.initialize()
    far = dgl.distributed.DistGraph("shop", part_config=tmp_path / "shop.json")
    with pytest.raises(InvalidInput, match=r"'user'.*'buys'.*data.pop\('t'\)"):  # which has both
        NeighborSampler([2], time="t").sample(far, Timed({"item": [0]}, {"item": [1]}))


def test_times_are_read_again_after_a_write() -> None:
    g = dgl.graph(([1, 2, 3], [0, 0, 0]))
    g.edata["t"] = torch.tensor([1, 2, 3])
    first = by_time(g, g.canonical_etypes[0], "t")
    assert by_time(g, g.canonical_etypes[0], "t") is first  # sorted once
    sampler = NeighborSampler([-1], time="t")
    g.edata["t"][0] = 9
    assert sampler.sample(g, Timed([0], [3]))[2][0].edata[dgl.EID].tolist() == [1, 2]
    g.edata["t"] = torch.tensor([5, 9, 9])
    assert sampler.sample(g, Timed([0], [5]))[2][0].edata[dgl.EID].tolist() == [0]
    assert sampler.sample(g, Timed([0], [4.5]))[2][0].num_edges() == 0  # 5 is later than 4.5


def test_pairs_of_edges_have_the_time_of_their_edge() -> None:
    g = typed_graph()
    sampler = as_edge_prediction_sampler(
        NeighborSampler([3, 2], time="t"),
        exclude="self",
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(2),
    )
    eids = {ETYPES[0]: torch.arange(500), ETYPES[1]: torch.arange(300)}
    for _, pairs, negative, blocks in DataLoader(g, eids, sampler, batch_size=200, shuffle=True):
        assert pairs.num_nodes("item") == blocks[-1].num_dst_nodes("item")
        for etype in ETYPES[:2]:
            u, v = pairs.edges(etype=etype)
            ids = pairs.edges[etype].data[dgl.EID]
            time = g.edges[etype].data["t"][ids]
            src, dst = g.find_edges(ids, etype=etype)
            for ends, nodes, ntype in ((u, src, etype[0]), (v, dst, etype[2])):
                data = pairs.nodes[ntype].data
                assert torch.equal(data["seed_time"][ends], time)
                assert torch.equal(data[dgl.NID][ends], nodes)
            of_negative = negative.nodes[etype[0]].data["seed_time"][negative.edges(etype=etype)[0]]
            assert torch.equal(of_negative, time.repeat_interleave(2))
            for block in blocks:
                for kind in ETYPES:
                    edges, when, limit, _ = seen(g, block, kind)
                    assert bool((when <= limit).all())
                    assert not set(edges.tolist()) & set(
                        pairs.edges[kind].data[dgl.EID].tolist() if kind in ETYPES[:2] else []
                    )


def test_negatives_are_not_later_than_their_edge() -> None:
    g = typed_graph()
    etype = ETYPES[1]  # to users, who have times from 0 to 19
    sampler = dgl.dataloading.negative_sampler.Uniform(3, time="t")
    eids = torch.arange(2000)
    _, dst = sampler(g, {etype: eids})[etype]
    until = g.edges[etype].data["t"].repeat_interleave(3)[: 3 * 2000]
    times = g.nodes["user"].data["t"]
    assert bool((times[dst] <= until.clamp(min=int(times.min()))).all())
    late = dst[until >= times.max()]
    assert len(torch.unique(late)) == 60  # all users are drawn once they are there
    g.nodes["user"].data["t"] = torch.zeros(60, dtype=torch.int64)
    assert len(torch.unique(sampler(g, {etype: eids[:200]})[etype][1])) == 60


def test_threads_and_workers_make_the_same_batches() -> None:
    g = typed_graph()
    sampler = NeighborSampler([3, 2], time="t")
    times = torch.arange(60) % 50

    def batches(**options: Any) -> list[Any]:
        return content(
            DataLoader(
                g, {"user": range(60)}, sampler, batch_size=16, shuffle=True, seed=5,
                seed_times={"user": times}, **options,
            )
        )  # fmt: skip

    assert batches(prefetch=2) == batches(num_workers=2) == batches(prefetch=0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), min_size=1, max_size=60))
def test_lists_number_pairs_by_first_appearance(pairs: list[tuple[int, int]]) -> None:
    ids, places = torch.tensor(pairs, dtype=torch.int32).T.contiguous()
    known = torch.tensor([7, -3, 5, 0])
    distinct = list(dict.fromkeys(pairs))
    cut = len(pairs) // 2
    for nodes in (TimedNodes(21, known), TimedNodesOnDevice(21, known)):
        found = [
            nodes.add(x, of, torch.arange(len(x) + 1))
            for x, of in zip(ids.tensor_split([cut]), places.tensor_split([cut]), strict=True)
        ]
        assert torch.cat(found).tolist() == [distinct.index(pair) for pair in pairs]
        assert nodes.times.tolist() == [int(known[place]) for _, place in distinct]
        assert nodes.ids.tolist() == [node for node, _ in distinct]
