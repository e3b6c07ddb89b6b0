"""The helper that gives ranks their mini-batches: shares and blocks are those of the library."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.helpers import block_sampler, ddp_loader
from gnnlab.helpers.ddp_loader import DDPLoader, RankSampler, rank_share
from tests.accelerator import DEVICE, GPU, NAME
from tests.helpers import HAS_GPU, run_ranks


class Seeds:
    """A sampler without neighbors: a mini-batch is its seeds."""

    def sample(self, g, seeds):
        return seeds


def batches(loader) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


@settings(deadline=None)
@given(
    count=st.integers(0, 200),
    world_size=st.integers(1, 7),
    batch_size=st.integers(1, 40),
    drop_last=st.booleans(),
    shuffle=st.booleans(),
    epoch=st.integers(0, 3),
)
def test_shares_are_those_of_the_library(
    count, world_size, batch_size, drop_last, shuffle, epoch
) -> None:
    options = {"batch_size": batch_size, "drop_last": drop_last, "shuffle": shuffle, "seed": 5}
    g, seeds, steps = dgl.graph(([], []), num_nodes=200), torch.arange(200 - count, 200), set()
    for rank in range(world_size):
        theirs = dgl.parallel.create_dataloader(
            rank, world_size, g, seeds, dgl.dataloading.NeighborSampler([1]), **options
        )
        mine = DDPLoader(None, seeds, Seeds(), rank=rank, world_size=world_size, **options)
        theirs.set_epoch(epoch)
        mine.set_epoch(epoch)
        assert len(mine) == len(theirs)
        found = batches(mine)
        assert found == [output.tolist() for _, output, _ in theirs]
        steps.add(len(found))
    assert len(steps) == 1


@pytest.mark.parametrize("prefetch", [0, 1, 3])
def test_blocks_are_those_of_the_library(prefetch) -> None:
    g = dgl.rand_graph(300, 4000)
    g.ndata["x"], g.ndata["y"] = torch.randn(300, 4), torch.arange(300)
    small = block_sampler.Graph(*g.edges(), 300)
    small.ndata = {"x": g.ndata["x"], "y": g.ndata["y"]}
    theirs = dgl.parallel.create_dataloader(
        1, 2, g, torch.arange(100), dgl.dataloading.NeighborSampler([3, 2]), batch_size=8, seed=9
    )
    sampler = block_sampler.NeighborSampler([3, 2])
    mine = DDPLoader(
        *(small, torch.arange(100), sampler, 8), rank=1, world_size=2, seed=9,
        node_feats=["x"], labels=["y"], prefetch=prefetch,
    )  # fmt: skip
    for _ in range(2):  # epochs count themselves in both
        for found, expected in zip(mine, theirs, strict=True):
            assert torch.equal(found[0], expected[0])
            for a, b in zip(found[2], expected[2], strict=True):
                assert torch.equal(a.edata["_ID"], b.edata[dgl.EID])
            assert torch.equal(found[2][0].srcdata["x"], g.ndata["x"][found[0]])
            assert torch.equal(found[2][-1].dstdata["y"], found[1])


def test_torchs_own_loader_takes_a_share() -> None:
    data = torch.arange(100, 111)
    for rank in range(3):
        sampler = RankSampler(data, rank, 3, seed=2)
        sampler.set_epoch(4)
        loader = torch.utils.data.DataLoader(data, 2, sampler=sampler)
        expected = data[rank_share(11, rank, 3, seed=2, epoch=4)].tolist()
        assert [seed for batch in batches(loader) for seed in batch] == expected
        assert len(expected) == len(sampler) == 4


def test_a_loop_that_is_left_early_leaves_no_thread() -> None:
    loader = DDPLoader(None, torch.arange(50), Seeds(), 5, rank=0, world_size=1)
    iteration = iter(loader)
    next(iteration)
    assert any(t.name.startswith("ddp-loader") for t in threading.enumerate())
    iteration.close()
    assert not any(t.name.startswith("ddp-loader") for t in threading.enumerate())


@pytest.mark.gpu
@pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)
@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_thread_copies_to_the_device_of_its_rank(prefetch) -> None:
    DEVICE.set_device(torch.device(NAME, 1))
    options = {"rank": 0, "world_size": 1, "device": NAME, "prefetch": prefetch}
    (batch,) = DDPLoader(None, torch.arange(5), Seeds(), 5, **options)
    assert batch.device == torch.device(NAME, 1)


def test_an_error_in_the_sampler_arrives_in_the_loop() -> None:
    class Broken:
        def sample(self, g, seeds):
            raise KeyError("no such feature")

    with pytest.raises(KeyError, match="no such feature"):
        list(DDPLoader(None, torch.arange(5), Broken(), 2, rank=0, world_size=1))


RANK = """
import doctest, sys
sys.path[:0] = sys.argv[1:]
sys.modules["gnnlab"] = sys.modules["numpy"] = None  # an import of them fails
import torch, torch.distributed as dist
import ddp_loader
from block_sampler import Graph, NeighborSampler
from ddp_loader import DDPLoader

assert doctest.testmod(ddp_loader).failed == 0
dist.init_process_group("gloo")
torch.manual_seed(0)
g = Graph(torch.randint(90, (900,)), torch.randint(90, (900,)), 90)
g.ndata["x"] = torch.randn(90, 4, dtype=torch.float64)

def train(model, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for input_nodes, output_nodes, (block,) in loader:
            optimizer.zero_grad()
            model(block.adjacency(mean=True) @ block.srcdata["x"]).square().mean().backward()
            optimizer.step()
    return [p.detach().clone() for p in model.parameters()]

def make_model():
    torch.manual_seed(1)
    return torch.nn.Linear(4, 2).double()

make = lambda size, **ranks: DDPLoader(g, torch.arange(60), NeighborSampler([3]), size,
                                       node_feats=["x"], **ranks)
alone = train(make_model(), make(10, rank=0, world_size=1))
model = torch.nn.parallel.DistributedDataParallel(make_model())
together = train(model, make(5))
assert all(torch.allclose(a, b, atol=1e-12) for a, b in zip(alone, together))
for wrong in ({"size": 5 + dist.get_rank()}, {"size": 5 - 5 * dist.get_rank()}):
    try:
        make(**wrong)
    except ValueError as error:
        print(str(error)[:24], "batch_size must be an integer" in str(error), end="; ")
dist.barrier()
del model
dist.destroy_process_group()
"""


def test_copied_alone_two_ranks_do_what_one_process_does(tmp_path: Path) -> None:
    for helper in (block_sampler, ddp_loader):
        shutil.copy(helper.__file__, tmp_path)
    printed = run_ranks(RANK, 2, args=[str(tmp_path)])
    assert [text.strip() for text in printed] == [
        "the ranks would make dif False; the ranks would make dif True;",
        "the ranks would make dif False; batch_size must be an in True;",
    ]
