"""Loaders: every seed once an epoch, the same batches however they are made."""

from __future__ import annotations

import gc
import random
import threading
import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from tests.accelerator import DEVICE, GPU, NAME
from tests.dataloading.samples import content
from tests.helpers import HAS_GPU, let_go, run_ranks, run_script


@pytest.fixture
def graph() -> dgl.Graph:
    g = dgl.rand_graph(200, 4000)
    g.ndata["x"] = torch.randn(200, 3)
    g.ndata["y"] = torch.arange(200)
    g.edata["w"] = torch.rand(4000)
    return g


def loader(g, seeds=range(100), fanouts=(3, 4), **options):
    options = {"batch_size": 32, "shuffle": True, "seed": 1} | options
    return dgl.dataloading.DataLoader(
        g, seeds, dgl.dataloading.NeighborSampler(list(fanouts)), **options
    )


def test_every_seed_comes_once(graph):
    batches = [outputs for _, outputs, _ in loader(graph)]
    assert [len(b) for b in batches] == [32, 32, 32, 4]
    assert sorted(torch.cat(batches).tolist()) == list(range(100))
    assert torch.cat(batches).tolist() != list(range(100))
    full = loader(graph, drop_last=True)
    assert len(full) == 3 and [len(b[1]) for b in full] == [32, 32, 32]
    in_order = torch.cat([b[1] for b in loader(graph, shuffle=False)])
    assert in_order.tolist() == list(range(100))
    for inputs, outputs, blocks in loader(graph):
        assert torch.equal(blocks[0].srcdata["x"], graph.ndata["x"][inputs])
        assert torch.equal(blocks[-1].dstdata["y"], outputs)
        assert torch.equal(blocks[1].edata["w"], graph.edata["w"][blocks[1].edata[dgl.EID]])


def test_a_mini_batch_that_cannot_be_sent_is_an_error(graph):
    """torch pickles what a worker sends in a thread, whose errors the loader never hears of."""

    class Sampler(dgl.dataloading.NeighborSampler):
        def sample(self, g, seeds, *more):
            return lambda: seeds

    data = dgl.dataloading.DataLoader(graph, range(4), Sampler([1]), num_workers=1)
    with pytest.raises(AttributeError, match="pickle") as caught:
        next(iter(data))
    let_go(caught)


def test_a_mini_batch_without_room_is_an_error(graph, monkeypatch):
    def dumps(batch):
        raise RuntimeError("unable to allocate shared memory(shm): No space left on device")

    monkeypatch.setattr("gnnlab.dataloading.executors.ForkingPickler", SimpleNamespace(dumps=dumps))
    with pytest.raises(dgl.GNNLabError, match="/dev/shm") as caught:
        next(iter(loader(graph, num_workers=1)))
    let_go(caught)


def test_set_epoch_goes_back_to_an_epoch(graph):
    data = loader(graph)
    first, second = content(data), content(data)
    data.set_epoch(0)
    assert content(data) == first
    assert content(data) == second


def test_without_a_seed_the_base_seed_rules(graph):
    def epoch():
        return content(loader(graph, seed=None))

    dgl.seed(2)
    first, second = epoch(), epoch()
    assert first != second  # a loader made anew goes on, it does not repeat itself
    dgl.seed(2)
    assert [epoch(), epoch()] == [first, second]


def test_the_older_form(graph):
    sampler = dgl.dataloading.MultiLayerNeighborSampler([4, 4, 4])
    data = dgl.dataloading.NodeDataLoader(
        graph, nids=np.arange(70), block_sampler=sampler, batch_size=32, device="cpu"
    )
    assert [len(outputs) for _, outputs, blocks in data if len(blocks) == 3] == [32, 32, 6]


def test_seeds_of_types():
    g = dgl.heterograph({("user", "plays", "game"): ([0, 1, 2], [0, 1, 1])})
    g.nodes["user"].data["x"] = torch.arange(3.0)
    seeds = {"user": torch.tensor([2, 0]), "game": [1]}
    sampler = dgl.dataloading.NeighborSampler([2])
    seen = {"user": [], "game": []}
    data = dgl.dataloading.DataLoader(g, seeds, sampler, batch_size=2, shuffle=True)
    assert len(data) == 2
    for inputs, outputs, (block,) in data:
        for ntype, ids in outputs.items():
            seen[ntype] += ids.tolist()
        assert torch.equal(block.srcnodes["user"].data["x"], inputs["user"].float())
    assert {t: sorted(ids) for t, ids in seen.items()} == {"user": [0, 2], "game": [1]}


def test_named_features_are_fetched_ahead(graph):
    sampler = dgl.dataloading.NeighborSampler(
        [2, 2], prefetch_node_feats=["x"], prefetch_labels=["y"], prefetch_edge_feats=["w"]
    )
    _, _, blocks = next(iter(dgl.dataloading.DataLoader(graph, [1, 2], sampler, batch_size=2)))
    stored = blocks[0].src_frames["_N"]
    assert isinstance(stored.column("x"), torch.Tensor)
    assert not isinstance(stored.column("y"), torch.Tensor)
    assert isinstance(blocks[1].dst_frames["_N"].column("y"), torch.Tensor)


class Counted(dgl.dataloading.NeighborSampler):
    """Tells how many batches have been begun: those before the last are complete."""

    pure = True

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.begun = threading.Semaphore(0)

    def sample(self, g, seeds, *more):
        self.begun.release()
        return super().sample(g, seeds, *more)


@pytest.mark.parametrize("device", ["cpu", pytest.param(GPU, marks=pytest.mark.gpu)])
@pytest.mark.parametrize("edges", [False, True])
def test_features_fetched_ahead_are_those_at_the_time_of_the_batch(graph, edges, device):
    names = {f"prefetch_{each}_feats": [name] for each, name in (("node", "x"), ("edge", "w"))}
    sampler = Counted([2], prefetch_labels=["y"], **names)
    kind = dgl.dataloading.EdgeDataLoader if edges else dgl.dataloading.DataLoader
    batches = kind(graph, range(40), sampler, batch_size=5, device=device)
    for number, (inputs, *_, (block,)) in enumerate(batches):
        for _ in range(min(3, 8 - number) if not number else int(number < 6)):
            assert sampler.begun.acquire(timeout=60)
        new = ["new"] * (number > 0)
        for columns, source, ids, names in (
            (block.srcdata, graph.ndata, inputs, ["x", *new]),
            (block.dstdata, graph.ndata, block.dstdata[dgl.NID], ["y"]),
            (block.edata, graph.edata, block.edata[dgl.EID], ["w"]),
        ):
            for name in names:
                assert columns[name].device.type == device
                assert torch.equal(columns[name].cpu(), source[name][ids.cpu()])
        graph.ndata["x"][:] += 1
        graph.ndata["y"] = graph.ndata["y"] + 1
        graph.edata["w"][::2].zero_()
        graph.ndata["new"] = torch.full((200,), number)


def test_edges_are_drawn_by_the_weights_of_the_time_of_the_batch(graph):
    def drawn(**options):
        graph.edata["p"] = torch.ones(4000)
        sampler = dgl.dataloading.NeighborSampler([3], prob="p")
        found = []
        for _, _, (block,) in dgl.dataloading.DataLoader(
            graph, range(40), sampler, batch_size=10, seed=2, **options
        ):
            found.append(block.edata[dgl.EID].tolist())
            graph.edata["p"][found[-1]] = 0
        return found

    expected = drawn(prefetch=0)
    assert drawn(prefetch=4) == drawn(num_workers=1) == expected


def test_what_has_not_changed_is_fetched_once(graph, monkeypatch):
    fetched = []
    rows = dgl.kernels.gather.rows
    monkeypatch.setattr(dgl.kernels.gather, "rows", lambda *a: fetched.append(1) or rows(*a))
    sampler = dgl.dataloading.NeighborSampler([2], prefetch_labels=["y"])
    for _, _, (block,) in dgl.dataloading.DataLoader(graph, range(8), sampler, batch_size=2):
        assert block.dstdata["y"].shape == (2,)
    assert len(fetched) == 4
    with torch.inference_mode():
        graph.ndata["y"] = torch.zeros(200)
        for _, _, (block,) in dgl.dataloading.DataLoader(graph, range(8), sampler, batch_size=2):
            assert torch.equal(block.dstdata["y"], graph.ndata["y"][block.dstdata[dgl.NID]])
            graph.ndata["y"][:] += 1  # torch does not count writes here


@pytest.mark.parametrize(
    "options",
    [{"prefetch": 0}, {}, {"num_workers": 1}, {"num_workers": 1, "persistent_workers": True}],
)
def test_two_iterations_at_a_time(graph, options):
    def firsts(epoch):
        return [outputs.tolist()[0] for _, outputs, _ in epoch]

    data = loader(graph, range(12), batch_size=4, shuffle=False, **options)
    assert firsts(a for a in data if next(iter(data))) == [0, 4, 8]
    pairs = [(firsts([a]), firsts([b])) for a, b in zip(data, data, strict=True)]
    assert pairs == [([0], [0]), ([4], [4]), ([8], [8])]
    left = iter(data)
    next(left)
    assert firsts(data) == [0, 4, 8] and firsts(left) == [4, 8]


@pytest.mark.parametrize("options", [{}, {"num_workers": 1}])
def test_random_numbers_of_the_program_are_left_alone(graph, options):
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    state = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    data = loader(graph, **options)
    assert len([*data, *data]) == 8
    assert torch.equal(torch.get_rng_state(), state[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state[1:]


def test_all_batches_of_workers_may_be_kept():
    """Each tensor that came from a worker is an open file; its task is none."""
    printed = run_script(
        """
        import resource
        import gnnlab as dgl

        def epoch(soft, hard, size=3):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            data = dgl.dataloading.DataLoader(
                dgl.rand_graph(300, 900), range(300), dgl.dataloading.NeighborSampler([2]),
                batch_size=size, num_workers=1)
            return len(list(data))

        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        print(epoch(300, hard), epoch(300, 300, 5))
        try:
            epoch(300, 300)
        except dgl.GNNLabError as error:
            print("open files" in str(error), "300" in str(error))
        """
    )
    assert printed.split() == ["100", "60", "True", "True"]


def test_ranks_with_the_same_seeds_are_told_once():
    printed = run_ranks(
        """
        import warnings
        import torch
        import gnnlab as dgl

        torch.distributed.init_process_group("gloo")
        g, sampler = dgl.rand_graph(20, 50), dgl.dataloading.NeighborSampler([2])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for how in True, (0, 1):
                list(dgl.dataloading.DataLoader(g, range(20), sampler, use_ddp=how))
            list(dgl.dataloading.GraphDataLoader([g, g], use_ddp=True))
            with torch.no_grad():
                list(dgl.dataloading.DataLoader(g, range(20), sampler))
            print(len(caught))
            for kind in dgl.dataloading.DataLoader, dgl.dataloading.EdgeDataLoader:
                data = kind(g, range(20), sampler)
                list(data), list(data)
            list(dgl.dataloading.GraphDataLoader([g, g]))
            print(len(caught), "use_ddp=True" in str(caught[0].message))
        torch.distributed.destroy_process_group()
        """,
        2,
    )
    assert [text.split() for text in printed] == [["0", "1", "True"]] * 2


def test_only_what_says_so_itself_is_sampled_in_a_thread(graph):
    class Own(dgl.dataloading.NeighborSampler):
        def sample_blocks(self, g, seeds, exclude_eids=None):
            threads.add(threading.current_thread())
            return super().sample_blocks(g, seeds, exclude_eids)

    class Labor(dgl.dataloading.LaborSampler):
        pass

    class Pure(Own):
        pure = True

    class Negatives(dgl.dataloading.negative_sampler.Uniform):
        pass

    class Pairs(dgl.dataloading.EdgePredictionSampler):
        pass

    def prefetch(sampler):
        return dgl.dataloading.DataLoader(graph, [1], sampler).prefetch

    threads = set()
    list(dgl.dataloading.DataLoader(graph, [1, 2], Own([2])))
    assert threads == {threading.main_thread()}
    kinds = Own, Labor, Pure, type("Sub", (Pure,), {})
    assert [prefetch(kind([2])) for kind in kinds] == [0, 0, 2, 0]
    pairs, plain = dgl.dataloading.EdgePredictionSampler, dgl.dataloading.NeighborSampler([2])
    uniform = dgl.dataloading.negative_sampler.Uniform(2)
    assert prefetch(pairs(plain, negative_sampler=uniform)) == 2
    assert prefetch(pairs(plain, negative_sampler=Negatives(2))) == 0
    assert prefetch(pairs(Own([2]), negative_sampler=uniform)) == 0
    assert prefetch(Pairs(plain)) == 0
    assert prefetch(pairs(plain, exclude="self")) == 2
    assert prefetch(pairs(plain, exclude=lambda eids: eids)) == 0
    assert prefetch(pairs(plain, negative_sampler=lambda g, eids: ([0], [1]))) == 0
    plain.sample_blocks = plain.sample_blocks  # as if replaced by a function of the user
    assert prefetch(plain) == prefetch(pairs(plain)) == 0


def test_a_neighbor_sampler_with_a_frontier_of_your_own(graph):
    class Everything(dgl.dataloading.NeighborSampler):
        def sample_frontier(self, layer_id, g, seed_nodes):
            return dgl.in_subgraph(g, seed_nodes)

    expected = dgl.dataloading.MultiLayerFullNeighborSampler(2).sample(graph, [1, 2])[2]
    found = Everything([1, 1]).sample(graph, [1, 2])[2]
    assert [b.num_edges() for b in found] == [b.num_edges() for b in expected]


def test_errors_of_a_sampler_arrive(graph):
    class Broken(dgl.dataloading.Sampler):
        def sample(self, g, indices):
            raise RuntimeError("no luck")

    for options in ({"prefetch": 0}, {"prefetch": 2}, {"num_workers": 1}):
        with pytest.raises(RuntimeError, match="no luck"):
            list(dgl.dataloading.DataLoader(graph, [1, 2], Broken(), **options))


def test_leaving_early_ends_the_thread(graph):
    before = set(threading.enumerate())
    iterator = iter(loader(graph, prefetch=2, batch_size=5))
    next(iterator)
    (mine,) = (t for t in set(threading.enumerate()) - before if "prefetch" in t.name)
    iterator.close()
    assert not mine.is_alive()


def test_an_iteration_is_lost_in_a_thread_that_its_own_waits_for():
    """The garbage collector runs wherever it likes, also in a thread that works for a kernel."""
    run_script(
        """
        import gc, threading, time, torch, gnnlab as dgl
        from gnnlab.kernels import threads

        begun, lost = threading.Event(), threading.Event()

        def work(lo, hi):
            if threading.current_thread().name.startswith("gnnlab_"):
                gc.collect()
            time.sleep(0.05)  # the helper has its share too

        class Sampler(dgl.dataloading.NeighborSampler):
            pure = True

            def sample(self, g, seeds, *more):
                if int(seeds[0]):
                    begun.set()
                    lost.wait()
                    threads.run_chunks(work, 4, 1)
                return super().sample(g, seeds, *more)

        torch.set_num_threads(2)
        gc.disable()
        g = dgl.rand_graph(10, 20)
        iterator = iter(dgl.dataloading.DataLoader(g, range(10), Sampler([2]), batch_size=5))
        next(iterator)
        begun.wait()
        circle = [iterator]
        circle.append(circle)
        del iterator, circle
        lost.set()
        for thread in threading.enumerate():
            if "prefetch" in thread.name:
                thread.join()
        """,
        timeout=60,
    )


def test_a_folder_in_which_sockets_have_no_room_is_refused(tmp_path):
    """Where TMPDIR is long, workers of torch's loader would be waited for without end."""
    folder = tmp_path / ("long" * 20)
    folder.mkdir()
    printed = run_script(
        """
        import gnnlab as dgl
        sampler = dgl.dataloading.NeighborSampler([2])
        g = dgl.rand_graph(9, 9)
        for make in (
            lambda: dgl.dataloading.DataLoader(g, [1], sampler, num_workers=1),
            lambda: dgl.dataloading.GraphDataLoader([g], num_workers=1),
        ):
            try:
                list(make())
            except dgl.errors.InvalidInput as error:
                print(error)
            else:
                print("Python has put them elsewhere")  # as later versions do
        """,
        env={"TMPDIR": str(folder)},
    )
    for line in printed.splitlines():
        assert "elsewhere" in line or (
            f"sockets in {folder}" in line and "Set TMPDIR to a shorter path" in line
        )
    assert len(printed.splitlines()) == 2


def test_batches_are_freed_without_the_garbage_collector(graph):
    gc.collect()
    gc.disable()
    try:
        for _inputs, _outputs, blocks in loader(graph, prefetch=0):
            alive = weakref.ref(blocks[0].relation().csc().indices)
            del _inputs, _outputs, blocks
            assert alive() is None
    finally:
        gc.enable()


def test_batches_go_to_the_device_that_is_asked_for(graph):
    for inputs, _, blocks in loader(graph, device="meta"):
        assert inputs.is_meta and all(block.device.type == "meta" for block in blocks)
        assert blocks[0].srcdata["x"].is_meta


@pytest.mark.gpu
def test_batches_of_a_graph_on_a_gpu_may_go_to_the_cpu(graph):
    for inputs, _, blocks in loader(graph.to(GPU), device="cpu"):
        assert torch.equal(blocks[0].srcdata["x"], graph.ndata["x"][inputs])


@pytest.mark.gpu
@pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)
@pytest.mark.parametrize("fast", ["0", "1"])
def test_the_thread_has_the_device_of_its_rank(graph, fast, monkeypatch):
    """``output_device`` is read there: "cuda" is the rank's GPU, not the first one."""
    monkeypatch.setenv("GNNLAB_FAST_GPU", fast)
    DEVICE.set_device(torch.device(NAME, 1))
    sampler = dgl.dataloading.NeighborSampler([2], output_device=NAME)
    for prefetch in (0, 2):
        made = dgl.dataloading.DataLoader(graph, [0, 1], sampler, batch_size=2, prefetch=prefetch)
        ((_, _, (block,)),) = made
        assert block.device == torch.device(NAME, 1)


def test_bad_input_says_what_is_wrong(graph):
    for options, named in (
        ({"batchsize": 5}, "'batchsize'.*'persistent_workers'"),
        ({"use_uva": True}, "use_uva"),
    ):
        with pytest.raises(InvalidInput, match=named):
            loader(graph, **options)
    with pytest.raises(InvalidInput, match="init_process_group"):
        list(loader(graph, use_ddp=True))
