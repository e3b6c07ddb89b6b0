"""A partition that stays on the disk: the same batches and rows, within a budget."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.dataloading import NeighborSampler
from gnnlab.distributed import DistGraph, DistTensor, ondisk
from gnnlab.distributed.ondisk import read_size
from gnnlab.errors import InvalidInput, PartitionError
from tests.helpers import run_script


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two parts of a graph of two node types, with features that are 800 kB."""
    torch.manual_seed(0)
    sizes = {"user": 600, "item": 400}
    ends = {
        e: tuple(torch.randint(sizes[t], (5000,)) for t in e[::2])
        for e in [("user", "buys", "item"), ("item", "bought_by", "user")]
    }
    g = dgl.heterograph(ends, sizes)
    g.nodes["user"].data["x"] = torch.randn(600, 200)
    g.nodes["item"].data["x"] = torch.randn(400, 200)
    g.edges["buys"].data["w"] = torch.rand(5000)
    place = tmp_path_factory.mktemp("shop")
    dgl.distributed.partition_graph(g, "shop", 2, place, part_method="random")
    return place


def open_graph(folder: Path, **options: Any) -> DistGraph:
    dgl.distributed.initialize()
    return DistGraph("shop", part_config=folder / "shop.json", **options)


@pytest.mark.parametrize("policy", ["access", "degree", "vip", "belady"])
@pytest.mark.parametrize("memory", ["100KB", 1 << 30, 0])
def test_batches_are_those_of_memory(folder: Path, policy: str, memory: Any) -> None:
    sampler = NeighborSampler([4, 3], prefetch_node_feats={"user": ["x"], "item": ["x"]})

    def batches(g: DistGraph) -> list[Any]:
        loader = dgl.distributed.DistNodeDataLoader(
            g, {"user": torch.arange(600)}, sampler, batch_size=64, shuffle=True, seed=3
        )
        return [(b[0].srcdata["x"], b[0].edata[dgl.EID]) for _ in (0, 1) for *_, b in loader]

    expected = batches(open_graph(folder))
    g = open_graph(folder, memory=memory, cache_policy=policy)
    for one, other in zip(expected, batches(g), strict=True):
        for a, b in zip(one, other, strict=True):
            assert all(torch.equal(a[kind], b[kind]) for kind in a)
    info = g.client.cache.info()
    assert info.bytes <= read_size(memory) and (info.hits > 0) is (memory != 0)
    if policy in ("access", "degree") and memory == 1 << 30:  # all are read by the third batch
        assert info.misses <= sum(len(rows) for x, _ in expected[:2] for rows in x.values())
    copy = pickle.loads(pickle.dumps(g))
    assert torch.equal(copy.nodes["user"].data["x"][[7, 3]], g.nodes["user"].data["x"][[7, 3]])
    with pytest.raises(InvalidInput, match="node~user~x"):
        g.nodes["user"].data["x"][[1]] = torch.zeros(1, 200)
    own = DistTensor((600, 2), torch.float32, part_policy=g.get_node_partition_policy("user"))
    own[[5]] = torch.ones(1, 2)
    assert own[[5, 6]].sum() == 2
    dgl.distributed.exit_client()


@given(st.integers(18_000, 900_000), st.sampled_from(["access", "degree"]))
def test_any_budget_gives_the_same_rows_and_is_kept(folder: Path, memory: int, policy: str) -> None:
    plain = open_graph(folder).nodes["item"].data["x"]
    g = open_graph(folder, memory=memory, cache_policy=policy)
    for seed in range(4):
        ids = torch.randint(400, (50,), generator=torch.Generator().manual_seed(seed))
        assert torch.equal(g.nodes["item"].data["x"][ids], plain[ids])
    assert g.cache_info().bytes <= memory - 4 * 1000
    dgl.distributed.exit_client()


def test_budgets_that_do_not_fit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ondisk, "free_memory", lambda: 400_000_000)
    with pytest.raises(InvalidInput, match=r"3_000.*1,000 nodes"):
        open_graph(folder, memory=3000)
    with pytest.raises(InvalidInput, match=r"400_000_000.*memory=100_000_000"):
        open_graph(folder, memory=100_000_001)
    g = open_graph(folder, memory=100_000_000)
    g.nodes["item"].data["x"][[1]]  # the rows that are there already count once
    monkeypatch.setattr(ondisk, "free_memory", lambda: 100_000_000 - g.cache_info().bytes)
    DistGraph("shop", folder / "shop.json", memory=100_000_000)
    open_graph(folder, memory=100_000_000)
    dgl.distributed.exit_client()


@pytest.mark.thorough("the system's own limit")
@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_limit_of_the_address_space(folder: Path) -> None:
    text = run_script(
        f"""
        import resource, gnnlab as dgl
        dgl.distributed.initialize()
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 1_000_000_000,) * 2)
        for memory in ("900MB", "600MB"):
            try:
                g = dgl.distributed.DistGraph("shop", "{folder}/shop.json", memory=memory)
                print(len(g.nodes["item"].data["x"][[1, 2]]))
            except dgl.DGLError as error:
                print(error.code)
        """
    )
    assert text.split() == ["memory_too_large", "2"]


@pytest.mark.parametrize(("policy", "said"), [("access", "0 to 49"), ("vip", "does not exist")])
def test_damaged_edges_are_noticed(policy: str, said: str, tmp_path: Path) -> None:
    g = dgl.rand_graph(50, 300)
    g.ndata["x"] = torch.ones(50, 1)
    dgl.distributed.partition_graph(g, "shop", 1, tmp_path, part_method="random")
    (file,) = tmp_path.glob("**/indices.npy")
    np.save(file, np.full_like(np.load(file), 9999))
    g = open_graph(tmp_path, memory="1MB", cache_policy=policy)
    sampler = NeighborSampler([5], prefetch_node_feats=["x"])
    with pytest.raises(PartitionError, match=said):
        next(iter(dgl.distributed.DistNodeDataLoader(g, range(50), sampler, batch_size=50)))
    dgl.distributed.exit_client()


def test_a_policy_for_several_machines(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="'halo'"):
        open_graph(folder, memory="1MB", cache_policy="halo")
