"""Whole jobs: they compute what one process computes, end cleanly, and say what broke."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import gnnlab as dgl
from tests.distributed.cluster import environments, outputs, run_job
from tests.helpers import THOROUGH, run_script, start_script, wait_until

TRAIN = """
import hashlib, json, os, sys
import torch
import torch.nn.functional as F
import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, DistNodeDataLoader, SparseAdam, node_split
from gnnlab.nn import SAGEConv

config, epochs = sys.argv[1], int(sys.argv[2])
RANKS = int(os.environ.get("RANKS", 4))
dgl.distributed.initialize("unused.txt")
torch.distributed.init_process_group("gloo")
g = dgl.distributed.DistGraph("g", part_config=config)
rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
mine = [rank] if world == RANKS else range(RANKS)  # one process takes the place of all

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = SAGEConv(12, 16, "mean"), SAGEConv(16, 3, "mean")
    def forward(self, blocks, x):
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))

torch.manual_seed(0)
model = Model()
trained = torch.nn.parallel.DistributedDataParallel(model) if world > 1 else model
dense = torch.optim.Adam(model.parameters(), lr=0.01)
init = lambda shape, dtype: torch.full(shape, 0.5, dtype=dtype)
emb = DistEmbedding(g.num_nodes(), 4, "emb", init)
sparse = SparseAdam([emb], lr=0.01)
mask = torch.ones(g.num_nodes(), dtype=torch.bool)
loaders = []
for r in mine:
    nids = node_split(mask, g.get_partition_book(), rank=r, num_trainers=RANKS)
    sampler = dgl.dataloading.NeighborSampler([4, 3], prefetch_node_feats=["x"])
    loaders.append(DistNodeDataLoader(g, nids, sampler, batch_size=16, shuffle=True, seed=r))
digests = {r: hashlib.sha256() for r in mine}
for epoch in range(epochs):
    for batches in zip(*loaders, strict=True):
        losses = []
        for r, (inputs, seeds, blocks) in zip(mine, batches):
            for block in blocks:
                for t in (block.srcdata[dgl.NID], block.edata[dgl.EID], *block.edges()):
                    digests[r].update(t.long().numpy().tobytes())
            x = torch.cat([blocks[0].srcdata["x"], emb(inputs)], 1)
            losses.append(F.cross_entropy(trained(blocks, x), g.ndata["y"][seeds]))
        loss = sum(losses) / len(losses)
        dense.zero_grad()
        loss.backward()
        dense.step()
        sparse.step()
parameters = torch.cat([p.detach().flatten() for p in model.parameters()])
if world > 1:
    g.client.barrier()
print(json.dumps({
    "blocks": {r: d.hexdigest() for r, d in digests.items()},
    "parameters": parameters.tolist(),
    "rows": emb.weight[torch.arange(g.num_nodes())].flatten().tolist(),
}))
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: Any) -> Path:
    return cut(tmp_path_factory.mktemp("graph"), 2)


def cut(folder: Path, num_parts: int) -> Path:
    """A graph of 200 nodes in parts."""
    generator = torch.Generator().manual_seed(1)
    ends = torch.randint(200, (2, 1500), generator=generator)
    g = dgl.graph((ends[0], ends[1]), num_nodes=200)
    g.ndata["x"] = torch.randn(200, 8, generator=generator)
    g.ndata["y"] = torch.randint(3, (200,), generator=generator)
    dgl.distributed.partition_graph(g, "g", num_parts, str(folder), part_method="random")
    return folder / "g.json"


# Two trainers on each machine in CI.
TRAINERS = 2 if THOROUGH else 1
RANKS = str(2 * TRAINERS)
CLUSTER = {"machines": 2, "servers": 2, "trainers": TRAINERS, "samplers": 1, "RANKS": RANKS}


def close(one: list[float], other: list[float]) -> bool:
    return torch.allclose(torch.tensor(one), torch.tensor(other), rtol=0, atol=1e-6)


def test_a_job_computes_what_one_process_computes(config: Path) -> None:
    """2 machines with 2 servers and trainers that have a sampler each, encrypted: the same blocks,
    and parameters and embeddings within 1e-6 of those of a process that does all of it."""
    env = {"OMP_NUM_THREADS": "1", "RANKS": RANKS}
    text = run_script(TRAIN, args=[str(config), "3"], env=env)
    alone = outputs(text)
    found = run_job(TRAIN, config, args=[str(config), "3"], security="tls", **CLUSTER)
    ranks = [dict(outputs(each)) for each in found]
    assert {r: d for rank in ranks for r, d in rank["blocks"].items()} == alone["blocks"]
    for rank in ranks:
        assert rank["parameters"] == ranks[0]["parameters"]
        assert close(rank["parameters"], alone["parameters"])
        assert rank["rows"] == ranks[0]["rows"] and close(rank["rows"], alone["rows"])


# ------------------------------------------------------------------------------- failures
LOOP = """
import os, sys, time, torch, gnnlab as dgl

dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("g")
ids = dgl.distributed.node_split(torch.ones(200, dtype=torch.bool), g.get_partition_book())
def collate(ids):
    x = g.ndata["x"][dgl.distributed.sample_neighbors(g, ids, 5).edges()[0]]
    return x, os.getpid()
print("ready", flush=True)
while True:
    for x, pid in dgl.distributed.DistDataLoader(ids, batch_size=8, collate_fn=collate):
        os.write(1, f"sampler {pid}\\n".encode())  # a line at once: somebody waits for it
    time.sleep(0.01)
"""


class Running:
    """A job whose processes a test may kill."""

    def __init__(self, script: Path, config: Path, log: Path, **job: Any) -> None:
        roles = environments(config, **job)
        self.job = roles[0][0]["GNNLAB_JOB"]
        self.servers, self.trainers = (
            [start_script(script, (), env, log / f"{role}{i}") for i, env in enumerate(envs)]
            for role, envs in zip(("server", "trainer"), roles, strict=True)
        )
        self._log = log

    def said(self, who: str) -> str:
        return "".join((self._log / f"{who}.{end}").read_text() for end in ("out", "err"))

    def wait_for(self, who: str, word: str, seconds: float = 150) -> str:
        def what() -> str:
            return f"{word!r} of {who}, which said:\n{self.said(who)[-3000:]}\n"

        wait_until(what, lambda: word in self.said(who), seconds)
        return self.said(who)

    def end(self) -> None:
        everyone = self.servers + self.trainers
        for process in everyone:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGINT if process in self.trainers else signal.SIGTERM)
        for process in everyone:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def await_arrival(pid: int) -> None:
    """Wait until no signal is on its way to a process."""
    status, pending = Path(f"/proc/{pid}/status"), r"(?m)^(Sig|Shd)Pnd:\s*0*[1-9a-f]"
    wait_until("the signal", lambda: not re.search(pending, status.read_text()))


def is_alive(pid: int) -> bool:
    """Not so once it has ended, though nobody may ever ask for its status."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def leftovers(job: str) -> list[Path]:
    return list(Path("/dev/shm").glob(f"gnnlab-{job}-*"))


LEAVES = """
import os, time, gnnlab as dgl
from gnnlab.distributed.context import process

dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("g")
((_, client),) = process().context.opened.values()
close, go = client.transport.close, f"{__file__}.go"

def close_slowly():
    print("leaving", flush=True)
    while not os.path.exists(go):
        time.sleep(0.05)
    close()

client.transport.close = close_slowly
"""


def test_ctrl_c_at_the_end_leaves_nothing(config: Path, tmp_path: Path) -> None:
    """The servers have left before, so it is the trainers who remove the shared memory."""
    script = tmp_path / "script.py"
    script.write_text(LEAVES)
    job = Running(script, config, tmp_path, machines=2, servers=1, trainers=1)
    try:
        for i in range(2):
            job.wait_for(f"trainer{i}", "leaving")
        for server in job.servers:
            server.terminate()
        assert [server.wait(60) for server in job.servers] == [0, 0]
        assert leftovers(job.job)
        for trainer in job.trainers:
            trainer.send_signal(signal.SIGINT)
            await_arrival(trainer.pid)
        Path(f"{script}.go").touch()
        assert [trainer.wait(60) for trainer in job.trainers] == [0, 0]
    finally:
        job.end()
    assert not leftovers(job.job)


def test_samplers_end_with_a_killed_trainer(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(LOOP)
    job = Running(script, cut(tmp_path, 1), tmp_path, machines=1, trainers=1, samplers=1)
    try:
        words = job.wait_for("trainer0", "sampler").split()
        sampler = int(words[words.index("sampler") + 1])
        job.trainers[0].kill()
        job.trainers[0].wait()
        wait_until("the end of the sampler", lambda: not is_alive(sampler), 30)
    finally:
        job.end()
    assert not leftovers(job.job)


def test_forked_children_ask_by_themselves(config: Path) -> None:
    """Children of torch's loader inherit sockets that they must not use, and locks that stay."""
    script = """
    import threading, torch, gnnlab as dgl

    dgl.distributed.initialize("unused.txt")
    g = dgl.distributed.DistGraph("g")
    x = g.ndata["x"]
    h = dgl.distributed.DistTensor((200, 1), torch.float32, "h")
    everything = x[:]

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 200
        def __getitem__(self, i):
            return x[i][0]

    remote, held, done = g.client.transport, threading.Event(), threading.Event()

    def hold():  # as a thread that makes mini-batches may, at the moment of the fork
        with remote.memory.lock, remote.store._refreshing, remote.traffic._lock:
            held.set()
            done.wait()

    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    remote.memory._version = 0  # children have to look what there is
    loader = torch.utils.data.DataLoader(Rows(), batch_size=50, num_workers=2, timeout=30)
    print(torch.equal(torch.cat(list(loader)), everything))
    done.set()
    """
    assert [text.split() for text in run_job(script, config, machines=2)] == [["True"]] * 2
