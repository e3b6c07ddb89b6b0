"""A run that stops and goes on ends like one that never stopped, bit for bit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput, NotFound
from tests.helpers import run_script, small_files

STEPS = 12  # batches of an epoch


@pytest.fixture(scope="module")
def graph() -> dgl.Graph:
    torch.manual_seed(0)
    g = dgl.rand_graph(120, 900)
    g.ndata["x"], g.ndata["y"] = torch.randn(120, 4), torch.randint(3, (120,))
    return g


class Run:
    """All that a training run consists of; made anew after each stop."""

    def __init__(self, g: dgl.Graph, seed: int | None, **options) -> None:
        self.conv = dgl.nn.SAGEConv(4, 3, "mean", feat_drop=0.3)
        self.optimizer = torch.optim.Adam(self.conv.parameters(), lr=0.01)
        self.loader = dgl.dataloading.DataLoader(
            g,
            range(120),
            dgl.dataloading.NeighborSampler([3]),
            batch_size=10,
            shuffle=True,
            seed=seed,
            **options,
        )
        self.parts = {"model": self.conv, "optimizer": self.optimizer, "loader": self.loader}
        self.trail: list[float] = []

    def train(self, epochs: range, stop: tuple[int, int] | None = None, file=None) -> bool:
        """Train; after batch ``stop[1]`` of epoch ``stop[0]`` write a checkpoint and leave."""
        for epoch in epochs:
            for number, (_, _, (block,)) in enumerate(self.loader):
                scores = self.conv(block, block.srcdata["x"])
                loss = torch.nn.functional.cross_entropy(scores, block.dstdata["y"])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.trail.append(loss.item())
                if (epoch, number) == stop:
                    dgl.parallel.save_checkpoint(file, **self.parts, epoch=epoch)
                    return False
        return True


@pytest.mark.parametrize(
    ("stop", "prefetch", "seed"),
    [((0, 0), 0, 6), ((1, 4), 3, None), ((1, 4), 0, None), ((1, STEPS - 1), 3, 6)],
)
def test_a_resumed_run_is_bit_equal(graph, tmp_path, stop, prefetch, seed):
    def start() -> Run:
        dgl.seed(3)
        torch.manual_seed(4)
        return Run(graph, seed, prefetch=prefetch)

    whole = start()
    assert whole.train(range(3))

    first = start()
    first.train(range(3), stop, tmp_path / "run.pt")
    dgl.seed(100)
    torch.manual_seed(100)
    second = Run(graph, seed, prefetch=prefetch)
    values = dgl.parallel.load_checkpoint(tmp_path / "run.pt", **second.parts)
    assert values == {"epoch": stop[0]}
    second.train(range(stop[0], 3))
    assert first.trail + second.trail == whole.trail
    for mine, theirs in zip(second.conv.parameters(), whole.conv.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_positions(graph):
    loader = Run(graph, 1).loader
    other = Run(graph, 1, prefetch=0).loader

    def seeds(each) -> list[list[int]]:
        return [outputs.tolist() for _, outputs, _ in each]

    epochs = [seeds(other) for _ in range(3)]
    for _ in loader:
        break  # left early: the epoch is over
    state = loader.state_dict()
    assert (state["epoch"], state["batch"], state["key"]) == (1, 0, None)
    batches = iter(loader)
    next(batches), next(batches)
    state = loader.state_dict()
    assert (state["epoch"], state["batch"]) == (1, 2)
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.set_epoch(1)  # as training loops do: the same epoch goes on
    assert len(other) == STEPS and seeds(other) == epochs[1][2:]
    assert seeds(other) == epochs[2]
    other.load_state_dict(state)
    other.set_epoch(0)  # another one begins at its beginning
    assert seeds(other) == epochs[0]
    assert [outputs.tolist() for _, outputs, _ in batches] == epochs[1][2:]


def test_other_batches_cannot_be_continued(graph):
    state = Run(graph, 1).loader.state_dict()
    sampler = dgl.dataloading.NeighborSampler([3])
    other = dgl.dataloading.DataLoader(graph, range(120), sampler, batch_size=20, shuffle=True)
    with pytest.raises(InvalidInput, match="'batch_size': 10"):
        other.load_state_dict(state)
    ranks = dgl.parallel.create_dataloader(0, 2, graph, torch.arange(120), sampler, batch_size=10)
    with pytest.raises(InvalidInput, match="'ranks': 2"):
        ranks.load_state_dict(state)
    with pytest.raises(InvalidInput, match="not the state of a loader"):
        Run(graph, 1).loader.load_state_dict({"cut": state["cut"], "epoch": None})


@pytest.mark.parametrize("size", [2, 300])  # within what Python keeps before it writes, and beyond
def test_a_full_disk_is_named_and_leaves_the_old_checkpoint(tmp_path, size):
    file, model = tmp_path / "run.pt", torch.nn.Linear(size, size)
    dgl.parallel.save_checkpoint(file, model=model, step=1)
    with small_files(1000), pytest.raises(OSError, match="File too large") as found:
        dgl.parallel.save_checkpoint(file, model=model, step=2)
    assert isinstance(found.value, dgl.DGLError)
    assert (found.value.errno, found.value.filename) == (errno.EFBIG, str(file))
    assert os.listdir(tmp_path) == ["run.pt"]
    assert dgl.parallel.load_checkpoint(file, model=model) == {"step": 1}


def test_what_a_checkpoint_does_not_hold(tmp_path):
    with pytest.raises(InvalidInput, match=r"best\['x'\]\[1\] is a"):
        dgl.parallel.save_checkpoint(tmp_path / "run.pt", best={"x": [1, Path(".")]})
    assert not os.listdir(tmp_path)
    values = {"a": [1, None, (2.5, "x")], "b": {"c": torch.arange(2)}, "d": True}
    dgl.parallel.save_checkpoint(tmp_path / "run.pt", **values)
    again = dgl.parallel.load_checkpoint(tmp_path / "run.pt")
    assert again["a"] == values["a"] and again["d"] is True
    assert torch.equal(again["b"]["c"], torch.arange(2))


def test_damaged_files_and_wrong_names(tmp_path):
    file, model = tmp_path / "run.pt", torch.nn.Linear(2, 2)
    for path, builtin in ((file, FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(builtin) as found:
            dgl.parallel.load_checkpoint(path)
        assert isinstance(found.value, dgl.DGLError)
    dgl.parallel.save_checkpoint(file, model=model)
    other = torch.nn.Linear(2, 2)
    with pytest.raises(NotFound, match=r"optimizer.*: model"):
        optimizer = torch.optim.SGD(other.parameters())
        dgl.parallel.load_checkpoint(file, model=other, optimizer=optimizer)
    assert not torch.equal(other.weight, model.weight)  # all that is asked for, or nothing
    with pytest.raises(InvalidInput, match="model"):
        dgl.parallel.load_checkpoint(file, model=torch.nn.Linear(3, 3))
    whole = file.read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"nonsense", b"\x80\x02N.", b"\x80\x02."):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"run\.pt"):
            dgl.parallel.load_checkpoint(file)
    torch.save({"weights": torch.zeros(1)}, file)
    with pytest.raises(InvalidInput, match=r"run\.pt"):
        dgl.parallel.load_checkpoint(file)
    torch.save(Path("/"), file)  # code would have to run to read this
    with pytest.raises(InvalidInput, match="damaged"):
        dgl.parallel.load_checkpoint(file)


def test_one_changed_byte_anywhere_is_an_error(tmp_path):
    file = tmp_path / "run.pt"
    dgl.parallel.save_checkpoint(file, values=torch.arange(4.0))
    whole = file.read_bytes()
    for i in (*range(0, len(whole), 17), *range(len(whole) - 20, len(whole))):
        file.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(InvalidInput):
            dgl.parallel.load_checkpoint(file)


def test_checkpoints_without_a_checksum_or_an_entry(tmp_path):
    file, model = tmp_path / "run.pt", torch.nn.Linear(2, 2)
    dgl.parallel.save_checkpoint(file, model=model, step=1)
    content = torch.load(file, weights_only=True)  # torch's own reader opens the file
    del content["has_sum"]
    torch.save(content, file)  # as written before there were checksums
    assert dgl.parallel.load_checkpoint(file, model=model) == {"step": 1}
    for change in (
        lambda content: content.pop("generators"),
        lambda content: content.pop("states"),
        lambda content: content["generators"][0].pop("cpu"),
        lambda content: content["generators"].__setitem__(0, None),
        lambda content: content["states"].update(model=None),
    ):
        lacking = torch.load(file, weights_only=True)
        change(lacking)
        torch.save(lacking, tmp_path / "lacking.pt")
        with pytest.raises(InvalidInput):
            dgl.parallel.load_checkpoint(tmp_path / "lacking.pt", model=model)


def test_resumed_ranks_are_bit_equal() -> None:
    """Three ranks write one file, and go on in the middle of an epoch, each with its own generator.

    Ranks that start anew begin with DDP's first buckets, and sum gradients in the same order. There
    are several buckets, and no rank's slice of one ends where a parameter does.
    """
    run_script(
        """
        import tempfile, torch, gnnlab as dgl
        from pathlib import Path
        from gnnlab import parallel

        torch.set_num_threads(1)
        g, sampler = dgl.rand_graph(60, 200), dgl.dataloading.NeighborSampler([2])

        def make_model():
            torch.manual_seed(0)
            return torch.nn.Sequential(
                torch.nn.Linear(40, 30), torch.nn.Tanh(), torch.nn.Linear(30, 1)
            )

        def train(rank, world_size, file, step, last):
            device = parallel.init_process_group(device="cpu")
            model = parallel.init_model(make_model(), device, bucket_cap_mb=0.003)
            optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            loader = parallel.create_dataloader(
                rank, world_size, g, torch.arange(60), sampler, batch_size=4
            )
            parts = {"model": model, "optimizer": optimizer, "loader": loader}
            torch.manual_seed(rank)
            if step:
                assert parallel.load_checkpoint(file, **parts) == {"step": step}
            trail = []
            while step < last:
                for _, seeds, _ in loader:
                    x = torch.randn(16, 40)
                    trail.append((seeds.tolist(), x[0, 0].item()))
                    loss = model(x).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    step += 1
                    if step == last:
                        parallel.save_checkpoint(file, **parts, step=step)
                        break
            return trail, model.module.state_dict()

        with tempfile.TemporaryDirectory() as folder:
            def run(name, first, last):
                return parallel.launch_processes(
                    train, 3, Path(folder, name), first, last, start_method="fork"
                )

            whole, begun, resumed = run("whole", 0, 12), run("twice", 0, 7), run("twice", 7, 12)
            alone = make_model()  # one process reads it, for evaluation
            parallel.load_checkpoint(Path(folder, "twice"), model=alone)
        for (trail, state), (before, _), (after, found) in zip(whole, begun, resumed, strict=True):
            assert trail == before + after
            for name in state:
                assert torch.equal(found[name], state[name]), name
                assert torch.equal(found[name], alone.state_dict()[name]), name
        assert whole[0][0] != whole[1][0]
        """
    )
