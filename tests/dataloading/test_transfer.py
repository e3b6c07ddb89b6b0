"""The way of batches to a GPU. The pretend device refuses work of streams that is not ordered."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab import kernels
from gnnlab.dataloading.transfer import Transfer, tensors_in
from gnnlab.errors import OutOfRange
from gnnlab.system import accelerators
from tests import accelerator_streams as streams
from tests.accelerator import GPU, NAME, DeviceTensor, counting
from tests.helpers import HAS_GPU

pytestmark = pytest.mark.gpu
pretend = pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)
CACHE = {"node": {"x": 60, "y": 30}, "edge": {"w": 500}}


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNLAB_FAST_GPU", "1")


@pytest.fixture
def graph() -> dgl.Graph:
    torch.manual_seed(0)
    g = dgl.graph((torch.randint(200, (4000,)) ** 2 // 200, torch.randint(200, (4000,))))
    g.ndata["x"] = torch.randn(g.num_nodes(), 3)
    g.ndata["y"] = torch.arange(g.num_nodes()) % 5 == 0
    g.edata["w"] = torch.rand(4000, dtype=torch.float64)
    return g


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """Have the device read pinned rows itself; return the numbers of rows."""
    read: list[int] = []
    if GPU != NAME or "-device" in request.node.name:  # samplers ask for Triton there, too
        return read

    def rows(
        matrix: torch.Tensor, ids: Any, slots: Any = None, table: Any = None, hits: Any = None
    ):
        assert matrix.is_pinned()
        read.append(len(ids))
        found = matrix[ids.inside.long()]
        if slots is not None:
            slot = slots.inside[ids.inside.long()].long()
            hits += int((slot >= 0).sum())
            found[slot >= 0] = table.inside[slot[slot >= 0]]
        return found.to(ids.device)

    monkeypatch.setattr(accelerators, "runs_triton", lambda device: device.type != "cpu")
    # Not setattr, which would import the module: Triton need not be installed.
    monkeypatch.setitem(vars(kernels), "gather_triton", type("", (), {"rows": staticmethod(rows)}))
    return read


def loader(g: dgl.Graph, ahead: bool = True, edges: bool = False, **options: Any) -> Any:
    names = {"prefetch_node_feats": ["x"], "prefetch_labels": ["y"], "prefetch_edge_feats": ["w"]}
    sampler = dgl.dataloading.NeighborSampler([3, 4], **(names if ahead else {}))
    kind = dgl.dataloading.EdgeDataLoader if edges else dgl.dataloading.DataLoader
    options = {"batch_size": 20, "shuffle": True, "seed": 1, "device": GPU} | options
    return kind(g, range(100), sampler, **options)


def content(batch: Any) -> list[torch.Tensor]:
    inputs, outputs, *_, blocks = batch
    found = [inputs, outputs] if isinstance(outputs, torch.Tensor) else [inputs]
    for block in blocks:
        csc = block.relation().csc()
        found += [csc.indptr, csc.indices, csc.sizes, block.edata[dgl.EID], block.edata["w"]]
        found += [block.srcdata[dgl.NID], block.srcdata["x"], block.dstdata["y"]]
    return found


def same(batch: Any, expected: list[torch.Tensor]) -> bool:
    return all(torch.equal(a.cpu(), b) for a, b in zip(content(batch), expected, strict=True))


PLACES: dict[str, dict[str, Any]] = {
    "host": {},
    "device": {},
    "pinned": {"use_uva": True},
    "cached": {"gpu_cache": CACHE},
    "pinned and cached": {"use_uva": True, "gpu_cache": CACHE},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("how", [{}, {"prefetch": 0}, {"ahead": False}, {"edges": True}])
def test_batches_are_those_of_the_cpu(graph, place, how, direct) -> None:
    expected = [content(x) for x in loader(graph, **how | {"device": "cpu", "prefetch": 0})]
    g = graph.to(GPU) if place == "device" else graph
    batches = loader(g, **PLACES[place], **how)
    for _ in range(2):
        batches.set_epoch(0)
        for batch, there in zip(batches, expected, strict=True):
            assert batch[0].device.type == GPU and batch[-1][0].srcdata["x"].device.type == GPU
            assert same(batch, there)
    info = batches.cache_info()
    assert (info.hits > 0) == ("cached" in place)
    if GPU == NAME:
        assert (len(direct) > 0) == ("pinned" in place)


def test_worker_processes(graph) -> None:
    expected = [content(x) for x in loader(graph, device="cpu")]
    found = loader(graph, num_workers=1, gpu_cache=CACHE)
    assert all(same(*pair) for pair in zip(found, expected, strict=True))


@pretend
@pytest.mark.parametrize("place", ["host", "device", "cached"])
def test_all_memory_made_in_the_thread_is_recorded_for_the_training_stream(graph, place) -> None:
    training = streams.Stream(torch.device(NAME, 0))
    with streams.on_stream(training):
        batches = loader(graph.to(GPU) if place == "device" else graph, **PLACES[place])
        for number, held in enumerate(batches):
            if number == 4:  # the last one: the thread makes no other
                assert len(held[1]) == 20
                gc.collect()
                cached = tensors_in([vars(table) for table in batches._transfer._tables.values()])
                apart = set(map(id, cached))  # used in the loader's stream only
                there = [x for x in gc.get_objects() if isinstance(x, DeviceTensor)]
                found = [streams.of(x.inside) for x in there if id(x) not in apart]
                made = [m for m in found if m and m.owner is batches._transfer._stream]
                assert len(made) > 10 and all(training in m.recorded for m in made)


@pretend
def test_the_detector_finds_what_is_not_ordered(graph) -> None:
    """Reading without the event, or writing to a buffer that is still copied."""
    own = streams.Stream(torch.device(NAME, 0))
    with streams.on_stream(own):
        x = torch.ones(3, device=GPU) + 1
    with pytest.raises(RuntimeError, match="did not wait"):
        x.sum()
    streams.current_stream(x.device).wait_event(own.record_event())
    assert int(x.sum()) == 6
    buffer = accelerators.pinned(3)
    late = buffer.fill_(1).to(GPU, non_blocking=True)
    buffer.fill_(2)
    assert late.tolist() == [2, 2, 2]


def test_copies_from_several_threads(graph) -> None:
    transfer = Transfer(graph.to(GPU).device, [graph], {})
    transfer.begin()

    def work(number: int) -> bool:
        values = [torch.full((5000,), number * 100 + i) for i in range(20)]
        moved = [transfer.copy(x) for x in values]
        return all(torch.equal(x.cpu(), y) for x, y in zip(moved, values, strict=True))

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(work, range(3)))


@pretend
def test_a_structure_is_copied_at_once_and_lists_of_nodes_only_once(graph) -> None:
    batches = loader(graph, prefetch=0)
    list(batches)
    with counting() as counts:
        (inputs, outputs, blocks), *_ = batches
    assert counts["operators"] == 5 * 5  # of 5 batches: structure, x, y, w of two blocks
    assert inputs.inside.data_ptr() == blocks[0].srcdata[dgl.NID].inside.data_ptr()
    assert outputs.inside.data_ptr() == inputs.inside.data_ptr()


def test_a_thread_follows_what_is_queued_when_it_reads(graph) -> None:
    """Features of a graph on the device are written while batches are made ahead."""
    g = graph.to(GPU)
    g.ndata["x"] += 1
    begun, go = threading.Semaphore(0), threading.Semaphore(0)

    class Held(dgl.dataloading.NeighborSampler):
        pure = True

        def sample(self, g: dgl.Graph, seeds: Any, *more: Any) -> Any:
            begun.release()
            assert go.acquire(timeout=60)
            return super().sample(g, seeds, *more)

    sampler = Held([3], prefetch_node_feats=["x"])
    batches = iter(
        dgl.dataloading.DataLoader(g, range(60), sampler, batch_size=20, device=GPU, prefetch=1)
    )
    go.release()
    for number in range(3):
        inputs, _, (block,) = next(batches)
        assert torch.equal(block.srcdata["x"], g.ndata["x"][inputs])
        if number < 2:
            for _ in range(2 if not number else 1):
                assert begun.acquire(timeout=60)
            if number:
                g.ndata["x"] = g.ndata["x"] * 2
            else:
                g.ndata["x"].add_(1)  # while the thread samples; it gathers afterwards
            go.release()


@pytest.mark.parametrize("place", ["host", "cached", "pinned and cached"])
def test_rows_written_meanwhile_are_those_at_the_time_of_the_batch(graph, place, direct) -> None:
    batches = loader(graph, **PLACES[place])
    for _ in range(3):
        for inputs, _, blocks in batches:
            graph.ndata["x"] += 0  # counts as a write
            graph.ndata["y"] = ~graph.ndata["y"]
            held = blocks[0].srcdata["x"].cpu()
            assert torch.equal(held, graph.ndata["x"][inputs.cpu()])
    info = batches.cache_info()
    assert (info.misses > info.hits) == ("cached" in place)


def test_the_rate_of_a_cache(graph) -> None:
    batches = loader(graph, gpu_cache={"node": {"x": 10}, "edge": {"w": 10**6}})
    assert batches.cache_info().hit_rate == 0
    found = [inputs.cpu() for inputs, *_ in batches]
    info = batches.cache_info()
    best = torch.topk(graph.out_degrees().float(), 10).indices
    hits = int(torch.isin(torch.cat(found), best).sum())
    assert info.features["_N/x"].hits == hits and info.features["_N/x"].rows == 10
    assert info.features["_N/x"].misses == len(torch.cat(found)) - hits
    assert info.features["_E/w"].hit_rate == 1
    graph.ndata["x"] = graph.ndata["x"] + 1  # read from main memory, and cached again afterwards
    for _ in range(2):
        for inputs, _, blocks in batches:
            assert torch.equal(blocks[0].srcdata["x"].cpu(), graph.ndata["x"][inputs.cpu()])
    assert batches.cache_info().features["_N/x"].hits > 0


def test_features_that_are_not_plain_memory(graph) -> None:
    x = graph.ndata["x"]
    graph.ndata["turned"] = torch.stack([x[:, 1], x[:, 0]])[:, : len(x)].t()
    graph.ndata["learned"] = x.clone().requires_grad_()
    graph.ndata["none"] = x[:, :0]
    sampler = dgl.dataloading.NeighborSampler([3])
    names = {"node": {"turned": 20, "learned": 20, "none": 5}}
    for inputs, _, (block,) in dgl.dataloading.DataLoader(
        graph, range(40), sampler, batch_size=20, device=GPU, gpu_cache=names
    ):
        for name in names["node"]:
            assert torch.equal(block.srcdata[name].cpu(), graph.ndata[name][inputs.cpu()])
    block.srcdata["learned"].sum().backward()
    assert int(graph.ndata["learned"].grad.sum()) == 3 * block.num_src_nodes()


def test_two_iterations_at_once_and_one_that_is_left(graph) -> None:
    expected = [content(x) for x in loader(graph, device="cpu", prefetch=0)]
    batches = loader(graph)
    batches.set_epoch(0)
    first = iter(batches)
    next(first)
    batches.set_epoch(0)
    for batch, other, there in zip(batches, [None, *first], expected, strict=True):
        assert same(batch, there) and (other is None or same(other, there))
    left = iter(batches)
    next(left)
    del left
    gc.collect()
    assert not any(t.name.startswith("gnnlab-prefetch") for t in threading.enumerate())


def test_an_error_in_the_thread_is_that_of_the_loader(graph, direct) -> None:
    class Wrong(dgl.dataloading.NeighborSampler):
        pure = True

        def sample(self, g: dgl.Graph, seeds: Any, *more: Any) -> Any:
            inputs, outputs, blocks = super().sample(g, seeds, *more)
            blocks[0].srcdata[dgl.NID] = blocks[0].srcdata[dgl.NID] + 150
            return inputs, outputs, blocks

    for options in PLACES.values():
        sampler = Wrong([3], prefetch_node_feats=["x"])
        with pytest.raises(OutOfRange, match="does not exist"):
            list(dgl.dataloading.DataLoader(graph, range(99), sampler, device=GPU, **options))


def test_types_with_features_of_one_name_and_another_device_than_the_present_one() -> None:
    torch.manual_seed(0)
    follows, likes = (torch.randint(30, (2, 200)) for _ in range(2))
    g = dgl.heterograph({("u", "f", "u"): tuple(follows), ("i", "l", "u"): tuple(likes)})
    for ntype in g.ntypes:
        g.nodes[ntype].data["x"] = torch.randn(g.num_nodes(ntype), 2)
    number = torch.accelerator.device_count() - 1
    batches = dgl.dataloading.DataLoader(
        g,
        {"u": range(20)},
        dgl.dataloading.NeighborSampler([2, 2]),
        batch_size=6,
        device=f"{GPU}:{number}",
        gpu_cache={"node": {"x": 9}},
    )
    for inputs, _, (block, _) in batches:
        assert block.device.index == number
        for ntype, ids in inputs.items():
            found = block.srcnodes[ntype].data["x"].cpu()
            assert torch.equal(found, g.nodes[ntype].data["x"][ids.cpu()])
    assert {name: x.rows for name, x in batches.cache_info().features.items()} == {
        "i/x": 9,
        "u/x": 9,
    }
    assert torch.get_device_module(block.device).current_device() == 0
