"""Checkpoints of a job: the old one stays when a new one fails; other numbers of trainers go on."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import (
    DistEmbedding,
    DistTensor,
    SparseAdam,
    load_checkpoint,
    save_checkpoint,
)
from gnnlab.errors import GNNLabError, InvalidInput, NotFound
from gnnlab.simulate import simulate
from tests.distributed.cluster import outputs, run_job
from tests.helpers import THOROUGH, run_script

COMMON = """
import json, os, resource, shutil, sys
import torch
import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, DistTensor, SparseAdam, load_checkpoint
from gnnlab.distributed import save_checkpoint

config, folder = sys.argv[1:]
dgl.distributed.initialize()
g = dgl.distributed.DistGraph("path", part_config=config)
everything = torch.arange(40)
emb = DistEmbedding(40, 2, "emb", lambda shape, dtype: torch.zeros(shape, dtype=dtype))
sparse = SparseAdam([emb], lr=0.1)
table = DistTensor((40,), torch.int64, "table")
loader = dgl.distributed.DistNodeDataLoader(
    g, dgl.distributed.node_split(torch.ones(40, dtype=torch.bool), g.get_partition_book()),
    dgl.dataloading.NeighborSampler([1]), batch_size=5, shuffle=True,
)
parts = {"emb": emb, "sparse": sparse, "table": table, "loader": loader}

def step():
    emb(everything[:30]).sum().backward()
    sparse.step()

def failure(work, *args, **parts):
    try:
        work(*args, **parts)
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def rows():
    tables = [emb.weight, *sparse.states[0], table]
    found = [t[everything].flatten().tolist() for t in tables]
    g.barrier()
    return found

found = {}
"""

WRITE = f"""{COMMON}
rank = g.rank()
if rank == 0:
    table[everything] = everything * 7
step()
for number, batch in enumerate(loader):
    if number == 1:
        save_checkpoint(f"{{folder}}/middle", **parts)
save_checkpoint(f"{{folder}}/run", **parts, epochs=1)
found["saved"] = rows()
step()
found["later"] = rows()

limits = resource.getrlimit(resource.RLIMIT_FSIZE)
if rank == 1:  # as if the disk of machine 1 were full
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
found["full"] = failure(save_checkpoint, f"{{folder}}/run", **parts, epochs=2)
resource.setrlimit(resource.RLIMIT_FSIZE, limits)
found["files"] = sorted(os.listdir(f"{{folder}}/run/machine-{{rank}}"))
g.barrier()
if rank == 0:  # as if killed when machine 1 had not yet given a second one its name
    os.mkdir(f"{{folder}}/run/machine-0/2")
g.barrier()
found["epochs"] = load_checkpoint(f"{{folder}}/run", **parts)["epochs"]
found["loaded"] = rows()
print(json.dumps(found))
"""

READ = f"""{COMMON}
found["middle"] = failure(load_checkpoint, f"{{folder}}/middle", **parts)
found["epochs"] = load_checkpoint(f"{{folder}}/run", **parts)["epochs"]
found["loaded"] = rows()
found["position"] = loader.state_dict()["epoch"], len(list(loader))
step()
found["later"] = rows()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A path of 40 nodes in two parts, and in three."""
    folder = tmp_path_factory.mktemp("path")
    g = dgl.graph((torch.arange(39), torch.arange(39) + 1))
    for parts in (2, 3):
        place = str(folder / str(parts))
        dgl.distributed.partition_graph(g, "path", parts, place, part_method="random")
    return folder


@pytest.fixture(scope="module")
def written(path: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Checkpoints of two trainers, in the middle of an epoch and after it; what each found."""
    words = [str(path / "2" / "path.json"), str(path)]
    return path, [dict(outputs(text)) for text in run_job(WRITE, words[0], args=words)]


def test_a_full_disk_leaves_the_old_checkpoint(written: tuple[Path, list[dict[str, Any]]]) -> None:
    """Both trainers learn which of them failed and why; then the first checkpoint is loaded, though
    machine 0 already has something of the name of a second one."""
    for found in written[1]:
        assert "rank 1 failed" in found["full"] and "File too large" in found["full"]
        assert found["files"] == ["1"]
        assert found["later"] != found["saved"] == found["loaded"]
        assert found["epochs"] == 1


def test_other_numbers_of_trainers(written: tuple[Path, list[dict[str, Any]]]) -> None:
    """Four trainers go on after an epoch of two, and cut their own batches: ten nodes each."""
    folder, (before, _) = written
    words = [str(folder / "2" / "path.json"), str(folder)]
    for text in run_job(READ, words[0], args=words, trainers=2):
        found = outputs(text)
        assert "loader stood at batch 2" in found["middle"]
        assert found["loaded"] == before["saved"]
        assert found["epochs"] == 1 and found["position"] == [1, 2]
        # Four gradients of ones, averaged, are one gradient of ones.
        assert found["later"] == before["later"]


USERS, EDGES = 50, 300


def moved(config: Path | str, folder: Path | str, save: bool) -> list[Any]:
    """Train and save, or load; return rows by original IDs then, and after another step."""
    dgl.distributed.initialize()
    g = dgl.distributed.DistGraph("g", part_config=config)
    policy = g.get_node_partition_policy("user")
    emb = DistEmbedding(USERS, 3, "emb", part_policy=policy)
    sparse = SparseAdam([emb], lr=0.1)
    table = DistTensor((EDGES, 2), torch.float64, "table")
    parts = {"emb": emb, "sparse": sparse, "table": table, "model": torch.nn.Linear(1, 1)}

    def rows() -> list[Any]:
        g.barrier()
        tensors = emb.weight, *sparse.states[0], table
        return [dgl.distributed.original_order(tensor)[:].tolist() for tensor in tensors]

    def step(slope: int) -> None:
        names = g.nodes["user"].data["name"][:]
        ids = (names % 3 == 0).nonzero()[:, 0]
        (emb(ids) * (names[ids] + slope)[:, None]).sum().backward()
        sparse.step()

    if save:
        if g.rank() == 0:
            table[:] = g.edges["buys"].data["name"][:][:, None] / 7
        step(1)
        step(2)
        save_checkpoint(folder, **parts)
    else:
        load_checkpoint(folder, **parts)
    found = [rows()]
    step(3)
    return [*found, rows()]


@pytest.fixture(scope="module")
def parts_of(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of two node types in 1 to 4 parts, in three by another method, and a larger one."""
    folder = tmp_path_factory.mktemp("moved")
    ends = torch.randint(30, (2, EDGES), generator=torch.Generator().manual_seed(0))
    for name, users in (("g", USERS), ("larger", USERS + 1)):
        g = dgl.heterograph({("user", "buys", "item"): (*ends,)}, {"user": users, "item": 30})
        g.nodes["user"].data["name"] = torch.arange(users)
        g.edges["buys"].data["name"] = torch.arange(EDGES, dtype=torch.float64)
        for way in [*"1234", "other"] if name == "g" else ["larger"]:
            parts = int(way) if way.isdigit() else 3
            method = (lambda g, k: torch.arange(g.num_nodes()) % 3) if way == "other" else "random"
            dgl.distributed.partition_graph(g, "g", parts, folder / way, part_method=method)
    return folder


def run_moved(parts_of: Path, way: str, folder: Path, save: bool = False) -> list[Any]:
    """On as many machines as there are parts, or with a trailing s standalone."""
    config = parts_of / way.removesuffix("s") / "g.json"
    if not way.endswith("s"):
        return simulate(config).run(moved, config, folder, save).returned
    try:
        return [moved(config, folder, save)]
    finally:
        dgl.distributed.exit_client()


@pytest.mark.parametrize("source", ["3", "3s"])
def test_a_checkpoint_moves(parts_of: Path, tmp_path: Path, source: str) -> None:
    """To other machines, another partition, one process: the same rows, and the same next step."""
    expected = run_moved(parts_of, source, tmp_path, save=True)[0]
    for way in ("1", "2", "3", "4", "other", "1s", "3s", "4s"):
        for found in run_moved(parts_of, way, tmp_path):
            assert found == expected, way


REAL = """
import json, os, sys
from tests.distributed.test_checkpoint import moved
disk = f"{sys.argv[2]}/{os.environ['GNNLAB_MACHINE']}"
print(json.dumps(moved(sys.argv[1], disk, len(sys.argv) > 3)))
"""


def test_a_checkpoint_of_processes_moves(parts_of: Path, tmp_path: Path) -> None:
    """From three machines with disks of their own to the disks of others, from 0 once more to 3."""

    def run(way: str, *save: str) -> list[Any]:
        args = [str(parts_of / way / "g.json"), str(tmp_path / way), *save]
        return [outputs(text) for text in run_job(REAL, args[0], args=args, machines=int(way))]

    expected = run("3", "save")[0]
    for way in ("2", "4s", *(("1", "4") if THOROUGH else ())):
        machines = int(way) if way.isdigit() else 1
        for number in range(max(3, machines)):
            source = tmp_path / "3" / str(number % 3) / f"machine-{number % 3}"
            shutil.copytree(source, tmp_path / way / str(number % machines) / source.name)
        found = run(way) if way[-1] != "s" else run_moved(parts_of, way, tmp_path / way / "0")
        assert found == [expected] * machines, way


def test_checkpoints_that_cannot_move(parts_of: Path, tmp_path: Path) -> None:
    """Missing, damaged and mixed files, and another graph."""
    folder = tmp_path / "run"
    run_moved(parts_of, "3", folder, save=True)
    with pytest.raises(InvalidInput, match=r"emb .* 50 .*node~user, .*51"):
        config = parts_of / "larger" / "g.json"
        dgl.distributed.initialize()
        g = dgl.distributed.DistGraph("g", part_config=config)
        emb = DistEmbedding(51, 3, part_policy=g.get_node_partition_policy("user"))
        load_checkpoint(folder, emb=emb)
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    run_moved(parts_of, "3", copy, save=True)  # the second one there
    os.rename(copy / "machine-0" / "2", copy / "machine-0" / "1")
    shutil.copytree(folder / "machine-1", copy / "machine-1", dirs_exist_ok=True)
    shutil.copytree(folder / "machine-2", copy / "machine-2", dirs_exist_ok=True)
    with pytest.raises(InvalidInput, match="several jobs"):
        run_moved(parts_of, "2s", copy)
    shutil.rmtree(copy / "machine-1")
    shutil.rmtree(copy / "machine-2" / "1")
    with pytest.raises(NotFound, match=r"1 lacks parts 1, 2; .* 2 lacks parts 0, 1"):
        run_moved(parts_of, "2s", copy)
    part = next((copy / "machine-0" / "1").glob("part-*"))
    part.write_bytes(part.read_bytes()[:-100])
    shutil.copytree(folder / "machine-1", copy / "machine-1")
    shutil.copytree(folder / "machine-2", copy / "machine-2", dirs_exist_ok=True)
    with pytest.raises(GNNLabError, match=r"part-0-of-3\.pt"):
        run_moved(parts_of, "2s", copy)


KILLED = """
import json, os, signal, sys
import torch
import gnnlab as dgl
from gnnlab.distributed import DistTensor, load_checkpoint, save_checkpoint

config, folder = sys.argv[1:]
dgl.distributed.initialize()
g = dgl.distributed.DistGraph("path", part_config=config)
table = DistTensor((40,), torch.int64, "table")

def save(epoch):
    table[:] = epoch
    save_checkpoint(folder, table=table, epoch=epoch)

def load():
    table[:] = -1
    epoch = load_checkpoint(folder, table=table)["epoch"]
    assert table[:].tolist() == [epoch] * 40
    return epoch

def killed(step, epoch):
    if not (child := os.fork()):
        steps = iter(range(step))
        changes = {"os.mkdir", "os.rename", "os.rmdir", "os.remove"}
        def hook(event, args):
            created = event == "open" and isinstance(args[2], int) and args[2] & os.O_CREAT
            if (event in changes or created) and next(steps, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        save(epoch)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])

save(0)
found, step = [], 0
while killed(step, step + 1):
    before = os.listdir(f"{folder}/machine-0")
    found.append([len(before), load() == step + 1])
    last = max(int(name) for name in before if name.isdigit())
    os.mkdir(f"{folder}/machine-0/{last + 1}")  # as if another machine had been ahead
    save(step + 1)
    assert load() == step + 1
    assert all(name.isdigit() for name in os.listdir(f"{folder}/machine-0"))
    assert len(os.listdir(f"{folder}/machine-0")) == 1
    step += 1
    assert step < 100
print(json.dumps(found))
"""


def test_killed_at_every_step(path: Path, tmp_path: Path) -> None:
    """The old checkpoint or the new one is there; the next save clears what else is left."""
    found = outputs(run_script(KILLED, args=[str(path / "2" / "path.json"), str(tmp_path)]))
    is_new = [new for _, new in found]
    assert is_new == sorted(is_new) and {*is_new} == {False, True}
    assert max(entries for entries, _ in found) == 3  # old, new and what is left of the draft


@pytest.mark.parametrize("name", ["mkdir", "replace"])
def test_a_disk_that_is_full_for_folders(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Then no draft, or no name for it: the place is named, and what to do."""
    dgl.distributed.initialize()
    g = dgl.distributed.DistGraph("path", part_config=path / "2" / "path.json")
    policy = g.get_node_partition_policy("_N")
    table = dgl.distributed.DistTensor((40,), torch.int64, "table", part_policy=policy)
    dgl.distributed.save_checkpoint(tmp_path, table=table, epoch=1)

    def full(path: Any, *_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch, pytest.raises(dgl.GNNLabError) as caught:
        patch.setattr(os, name, full)
        dgl.distributed.save_checkpoint(tmp_path, table=table, epoch=2)
    text = str(caught.value)
    assert "No space left on device" in text and f"{tmp_path}/machine-0" in text
    assert os.listdir(tmp_path / "machine-0") == ["1"]
    assert dgl.distributed.load_checkpoint(tmp_path, table=table) == {"epoch": 1}
