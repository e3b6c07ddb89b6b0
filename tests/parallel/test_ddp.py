"""Ranks together do what one process does: the same batches, steps, parameters and metrics."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.parallel import ddp
from gnnlab.system import accelerators
from tests.helpers import examples, run_ranks, run_script


@pytest.fixture(scope="module")
def graph() -> dgl.Graph:
    return dgl.rand_graph(1000, 5000)


def loaders(graph, seeds, world_size, **options):
    options = {"batch_size": 3, "seed": 1} | options
    sampler = dgl.dataloading.NeighborSampler([2])
    return [
        dgl.parallel.create_dataloader(rank, world_size, graph, seeds, sampler, **options)
        for rank in range(world_size)
    ]


# ------------------------------------------------------------------------------- batches
@examples(1000)
@given(
    num_seeds=st.integers(0, 400),
    world_size=st.integers(1, 9),
    batch_size=st.integers(1, 50),
    drop_last=st.booleans(),
)
def test_every_rank_makes_the_same_number_of_steps(
    graph, num_seeds, world_size, batch_size, drop_last
):
    """Without sampling: of batches only the seeds are made."""
    ranks = loaders(
        graph, torch.arange(num_seeds), world_size, batch_size=batch_size, drop_last=drop_last
    )
    shares = [[batch.tolist() for batch in each.seeds_of_batches(key=5)] for each in ranks]
    (steps,) = {len(share) for share in shares}
    assert {len(each) for each in ranks} == {steps}
    for i in range(steps):
        together = [seed for share in shares for seed in share[i]]
        (size,) = {len(share[i]) for share in shares}
        assert len(together) == size * world_size
        assert size == batch_size or (i == steps - 1 and not drop_last)
        if i < steps - 1 or drop_last:
            assert len(set(together)) == len(together)
    everything = [seed for share in shares for batch in share for seed in batch]
    if drop_last:
        assert len(set(everything)) == len(everything)
        assert num_seeds - len(everything) < world_size * (batch_size + 1)
    else:
        assert set(everything) == set(range(num_seeds))
        assert len(everything) - num_seeds < world_size
        for share in shares:  # repeated seeds are on different ranks
            mine = [seed for batch in share for seed in batch]
            assert len(set(mine)) == len(mine)


def test_typed_seeds_are_shared_too():
    g = dgl.heterograph({("u", "r", "v"): ([0, 1, 2, 3], [0, 1, 2, 0])})
    seeds = {"u": torch.arange(4), "v": torch.arange(3)}
    found = []
    for each in loaders(g, seeds, 2, batch_size=2, drop_last=True):
        found += [(t, i) for _, nodes, _ in each for t in nodes for i in nodes[t].tolist()]
    assert len(set(found)) == len(found) == 4


# ----------------------------------------------------------------------------- real ranks
def test_ranks_train_the_model_of_one_process() -> None:
    """20 steps with 1, 2, 3 and 4 ranks on the same global batches; then one mean of all."""
    run_script(
        """
        import torch, gnnlab as dgl
        import torch.nn.functional as F
        from gnnlab import parallel

        torch.set_num_threads(1)
        dgl.seed(0)
        torch.manual_seed(0)
        g = dgl.rand_graph(300, 3000)
        g.ndata["x"], g.ndata["y"] = torch.randn(300, 8), torch.randint(3, (300,))
        seeds, evaluated = torch.randperm(300)[:240], torch.arange(0, 300, 7)
        dgl.helpers.prepare_mp(g)

        class SAGE(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = dgl.nn.SAGEConv(8, 16, "mean")
                self.second = dgl.nn.SAGEConv(16, 3, "mean")

            def forward(self, blocks, x):
                return self.second(blocks[1], F.relu(self.first(blocks[0], x)))

        def train(loader, model):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            trail = []
            for epoch in range(2):
                loader.set_epoch(epoch)
                for inputs, outputs, blocks in loader:
                    loss = F.cross_entropy(
                        model(blocks, blocks[0].srcdata["x"]), blocks[-1].dstdata["y"]
                    )
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    trail.append(outputs.tolist())
            return trail

        def work(rank, world_size):
            device = parallel.init_process_group(device="cpu")
            torch.manual_seed(1 if rank == 0 else 99)  # rank 0's parameters count
            model = parallel.init_model(SAGE(), device)
            loader = parallel.create_dataloader(
                rank, world_size, g, seeds, dgl.dataloading.NeighborSampler([3, 3]),
                batch_size=24 // world_size, seed=5,
            )
            also = dgl.dataloading.DataLoader(
                g, seeds, loader.graph_sampler, use_ddp=True, ddp_seed=5,
                batch_size=24 // world_size, shuffle=True,
            )
            assert [o.tolist() for _, o, _ in also] == [o.tolist() for _, o, _ in loader]
            trail = train(loader, model)
            mine = parallel.rank_share(evaluated)
            return trail, model.module.state_dict(), parallel.global_mean(mine.sum(), len(mine))

        torch.manual_seed(1)
        model = SAGE()
        sampler = dgl.dataloading.NeighborSampler([3, 3])
        trail = train(
            dgl.dataloading.DataLoader(g, seeds, sampler, batch_size=24, shuffle=True, seed=5),
            model,
        )
        assert len(trail) == 20
        expected = evaluated.double().mean().item()
        for world_size in (1, 2, 3, 4):
            results = parallel.launch_processes(work, world_size, start_method="fork")
            for step, batch in enumerate(trail):
                shares = [each[0][step] for each in results]
                assert sorted(sum(shares, [])) == sorted(batch) and len(set(batch)) == 24
            for _, state, found in results:
                for name, value in model.state_dict().items():
                    assert (state[name] - value).abs().max() < 1e-6, (world_size, name)
                assert found == expected, (world_size, found, expected)
        """
    )


def test_a_model_may_outlive_its_process_group() -> None:
    """Freed just after a reduction, a model of torch's own stands still once in about 200 times."""
    printed = run_script(
        """
        import tempfile, torch, torch.distributed as dist
        import gnnlab as dgl

        def work(number):
            meeting = f"file://{folder}/{number}"
            dgl.parallel.init_process_group(0, 1, init_method=meeting, device="cpu")
            model = dgl.parallel.init_model(torch.nn.Linear(64, 64))
            model(torch.ones(4, 64)).sum().backward()
            for _ in range(3):
                dist.all_reduce(torch.zeros(1))
            dist.destroy_process_group()

        with tempfile.TemporaryDirectory() as folder:
            for number in range(300):
                work(number)
        print("done")
        """,
        timeout=60,
    )
    assert printed == "done\n"


def test_ranks_of_torchrun_find_each_other() -> None:
    """The environment that torchrun sets is enough."""
    printed = run_ranks(
        """
        import torch, gnnlab as dgl
        device = dgl.parallel.init_process_group(device="cpu")
        print(device, dgl.parallel.global_mean(torch.distributed.get_rank(), 1))
        torch.distributed.destroy_process_group()
        """,
        2,
    )
    assert printed == ["cpu 0.5\n"] * 2


# --------------------------------------------------------------------- devices and errors
@pytest.mark.parametrize(
    ("gpus", "device", "expected"),
    [
        (0, None, "cpu"),
        (1, None, "cuda:0"),
        (4, None, "cuda:1"),
        (4, "cpu", "cpu"),
        (4, "cuda", "cuda:1"),
        (4, "cuda:3", "cuda:3"),
    ],
)
def test_the_device_of_rank_1(monkeypatch, gpus, device, expected):
    monkeypatch.setattr(accelerators, "count", lambda: gpus)
    monkeypatch.setattr(accelerators, "kind", lambda: "cuda" if gpus else None)
    assert str(ddp._place(1, device)) == expected
