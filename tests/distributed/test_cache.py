"""Rows of other machines that a process keeps: the same values, fewer messages, never a stale row.

Servers run in threads of the test's process.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistGraph, partition_graph
from gnnlab.distributed.cache import CacheInfo
from gnnlab.distributed.client import Client
from gnnlab.distributed.messages import Create
from gnnlab.distributed.schema import GraphSchema
from gnnlab.errors import InvalidInput
from tests.distributed import cut as cuts
from tests.distributed.live import connected, make_job, serving

ONE = ("_N", "_E", "_N")
MAPS: dict[Path, Any] = {}  # of the graphs that were cut so far


def friends() -> dgl.Graph:
    """400 nodes; an edge comes from node u with a probability that falls with u."""
    generator = torch.Generator().manual_seed(5)
    src = (400 * torch.rand(6000, generator=generator) ** 3).long()
    g = dgl.graph((src, torch.randint(400, (6000,), generator=generator)), num_nodes=400)
    g.ndata["x"] = torch.randn(400, 5, generator=generator)
    g.ndata["y"] = torch.arange(400)
    g.ndata["half"] = torch.randn(400, 3, generator=generator).half()
    g.ndata["brain"] = torch.randn(400, 2, 2, generator=generator).bfloat16()
    g.ndata["mask"] = torch.rand(400, generator=generator) < 0.5
    g.ndata["wide"] = torch.randn(400, 32, generator=generator)
    g.ndata["none"] = torch.empty(400, 0)
    g.edata["w"] = torch.rand(6000, generator=generator)
    return g


@contextmanager
def opened(whole: dgl.Graph, folder: Path, parts: int, ranks: int = 1) -> Iterator[Any]:
    """The graph as trainers of a job see it, ``graphs[rank]``, and the old IDs of its rows."""
    if (folder := folder / f"{parts}") not in MAPS:
        how = cuts.at_random
        MAPS[folder] = partition_graph(
            whole, "g", parts, folder, part_method=how, return_mapping=True
        )
    job = make_job(folder / "g.json", machines=parts, ranks=ranks)
    with ExitStack() as stack:
        stack.enter_context(serving(job))
        graphs = []
        for rank in range(ranks):
            remote = stack.enter_context(
                connected(job, rank=rank, machine=rank % parts, local_rank=rank // parts)
            )
            g = object.__new__(DistGraph)
            GraphSchema.__init__(
                g, Client(remote.part().book, remote, ("g", str(folder / "g.json")))
            )
            graphs.append(g)
        nodes, edges = MAPS[folder] if whole.is_homogeneous else (None, None)
        yield SimpleNamespace(g=graphs[0], graphs=graphs, nodes=nodes, edges=edges)


def settings(g: DistGraph) -> tuple[int, str]:
    return g.client.cache.num_bytes, g.client.cache.policy


def far_rows(g: DistGraph) -> int:
    """Rows of features that other machines were asked for so far."""
    return g.client.transport.traffic.total("features").rows


def is_far(g: DistGraph, ids: torch.Tensor) -> torch.Tensor:
    return g.get_partition_book().nid2partid(ids) != g.client.transport.local_part


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("friends")


@pytest.mark.filterwarnings("ignore:cache_bytes=")
@pytest.mark.parametrize(
    "policy", ["access", pytest.param("degree", marks=pytest.mark.thorough("as by access"))]
)
@pytest.mark.parametrize("num_bytes", [40, 700, 5_000, 1_000_000])
def test_values_are_those_of_the_owners(folder, policy, num_bytes) -> None:
    names = ["x", "y", "half", "brain", "mask", "none"]
    generator = torch.Generator().manual_seed(1)
    whole = friends()
    with opened(whole, folder, 3) as job:
        g = job.g
        expected = {name: whole.ndata[name][job.nodes] for name in names}
        weights = whole.edata["w"][job.edges]
        g.client.use_cache(num_bytes, policy)
        before, asked = far_rows(g), 0
        for _ in range(60):
            name = names[int(torch.randint(len(names), (), generator=generator))]
            ids = (400 * torch.rand(70, generator=generator) ** 2).long()
            ids = ids.int() if len(ids) % 2 else ids
            found = g.ndata[name][ids]
            assert torch.equal(found, expected[name][ids]) and found.dtype == expected[name].dtype
            eids = torch.randint(6000, (50,), generator=generator)
            assert torch.equal(g.edata["w"][eids], weights[eids])
            asked += int(is_far(g, ids).sum())
            found.zero_()  # nobody else's memory
            info = g.cache_info()
            assert info.bytes <= num_bytes
            assert info.hits + info.misses >= asked
            assert far_rows(g) - before == info.misses
        assert set(info.features) == {f"node~_N~{n}" for n in names} | {"edge~_N:_E:_N~w"}
        assert sum(f.hits for f in info.features.values()) == info.hits
        if num_bytes == 1_000_000:
            assert info.hit_rate > 0.2


def test_which_rows_stay(folder) -> None:
    """By degree: from the start, those with many edges into this part; by access: those asked for.

    Every row passes by in turn, which is the worst for a cache that keeps what came last.
    """
    with opened(friends(), folder, 2) as job:
        g, rows = job.g, torch.arange(400)
        far = rows[is_far(g, rows)]
        part = g.client.transport.part()
        edges, inner = part.edges[ONE], part.nodes["_N"].num_inner
        degrees = torch.zeros(400)
        counts = torch.bincount(
            edges.indices[: edges.num_inner], minlength=len(part.new_nids("_N"))
        )
        degrees[part.nodes["_N"].halo] = counts[inner:].float()
        best = far[degrees[far].argsort(descending=True)]
        some = 20
        for policy in ("degree", "access"):
            g.client.use_cache(8_000, policy)
            for batch in far.split(30):
                g.ndata["wide"][batch]
            before = g.cache_info()
            g.ndata["wide"][best[:some]]
            now = g.cache_info()
            assert now.hits - before.hits >= 0.8 * some, policy
            for _ in range(200):  # now others are asked for
                g.ndata["wide"][best[-some:]]
            before = g.cache_info()
            g.ndata["wide"][best[-some:]]
            hits = g.cache_info().hits - before.hits
            assert hits >= 0.8 * some if policy == "access" else hits < 0.2 * some


# ------------------------------------------------------------------------------ writes


def test_only_written_parts_are_left_out(folder) -> None:
    """Somebody wrote to rows of part 1; those of part 2 are kept, and refuse writes."""
    with opened(friends(), folder, 3, ranks=2) as job:
        one, two = job.graphs
        ids = torch.arange(400)
        owner = one.get_partition_book().nid2partid(ids)
        second, third = ids[owner == 1], ids[owner == 2]
        two.ndata["y"][second[:1]] = torch.tensor([-5])
        one.client.use_cache(100_000)
        one.ndata["y"][ids]
        two.ndata["y"][second] = second + 1000
        assert torch.equal(one.ndata["y"][second], second + 1000)
        with pytest.raises(InvalidInput, match=r"~y .*cache_bytes"):
            two.ndata["y"][third] = third
        assert one.cache_info().rows == len(third)


def test_what_is_kept_refuses_writes(folder) -> None:
    with opened(friends(), folder, 2, ranks=2) as job:
        one, two = job.graphs
        one.client.use_cache(100_000)
        before = friends().ndata["x"][job.nodes]
        far = torch.arange(400)[is_far(one, torch.arange(400))]
        one.ndata["x"][far]
        for g in (one, two):
            with pytest.raises(InvalidInput, match=r"~x .*cache_bytes"):
                g.ndata["x"][far[:3]] = torch.zeros(3, 5)
            with pytest.raises(InvalidInput, match=r"~x .*cache_bytes"):
                g.client.delete("node~_N~x")
            policy = g.get_node_partition_policy("_N")
            with pytest.raises(InvalidInput, match=r"~x .*cache_bytes"):
                g.client.update(policy, "node~_N~x", far[:2], torch.ones(2, 5), "sgd", {"lr": 1.0})
        assert torch.equal(one.ndata["x"][:], before) and torch.equal(two.ndata["x"][:], before)
        two.ndata["y"][far] = far * 0  # other features are as they were
        assert one.ndata["y"][far].sum() == 0


@pytest.mark.parametrize("is_gdata", [True, False])
def test_tensors_made_in_the_job_are_never_kept(folder, is_gdata) -> None:
    with opened(friends(), folder, 2) as job:
        client = job.g.client
        for server in range(2):
            made = Create("node~_N~h", (2,), "float32", is_gdata)
            client.transport.request([(server, made)])
        client.refresh()
        client.use_cache(100_000)
        policy, ids = job.g.get_node_partition_policy("_N"), torch.arange(400)
        for value in (1.0, 2.0, 3.0):
            client.push(policy, "node~_N~h", ids, torch.full((400, 2), value))
            assert bool((client.pull(policy, "node~_N~h", ids) == value).all())
        assert job.g.cache_info() == CacheInfo()


# ------------------------------------------------------------------------------ others


def test_threads_may_ask_at_once(folder) -> None:
    with opened(friends(), folder, 2) as job:
        g = job.g
        names = ["x", "y"]
        expected = {name: friends().ndata[name][job.nodes] for name in names}
        g.client.use_cache(2_500)

        def ask(seed: int) -> None:
            generator = torch.Generator().manual_seed(seed)
            for step in range(150):
                ids = torch.randint(400, (60,), generator=generator)
                name = names[(seed + step) % 2]
                assert torch.equal(g.ndata[name][ids], expected[name][ids])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(4), timeout=60))
        assert g.cache_info().hits > 0


def test_a_forked_child_starts_empty(folder) -> None:
    with opened(friends(), folder, 2) as job:
        job.g.client.use_cache(100_000)
        job.g.ndata["x"][:]
        cache = job.g.client.cache
        with cache.alone():
            pid = os.fork()
            if pid == 0:  # the lock is held by a thread that is not here
                os._exit(0 if cache.info().rows == cache.info().misses == 0 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert cache.info().rows > 0


def test_standalone_mode_has_every_row(tmp_path) -> None:
    c = cuts.cut(friends(), 3, tmp_path)
    g = DistGraph("g", part_config=tmp_path / "g.json", cache_bytes=10_000)
    g.ndata["x"][:] = torch.ones(400, 5)
    assert bool((g.ndata["x"][:] == 1).all())
    assert g.cache_info() == CacheInfo()
    assert settings(g) == settings(pickle.loads(pickle.dumps(g))) == (10_000, "access")
    same = DistGraph("g", part_config=tmp_path / "g.json")
    assert same.client is g.client and settings(same)[0] == 10_000
    assert (
        DistGraph("g", part_config=tmp_path / "g.json", cache_bytes=0).client.cache.num_bytes == 0
    )
    assert c.parts.num_nodes() == 400
