"""A graph in two parts, served by real processes: how fast a trainer samples and reads.

``python -m benchmarks distributed`` cuts graph S in two, starts a server for each part on
127.0.0.1 and 127.0.0.2, and measures one trainer beside the first. A peer folder with
``bench_NAME_dist.py`` is measured in turn: called with the number of parts, it does the same with
the other library's servers, on its own parts in ``part_S_2``, and prints JSON lines of the same
tasks.

To measure a slow network, limit the loopback device of a network namespace (as root)::

    ip netns add slow && ip -n slow link set lo up
    tc -n slow qdisc add dev lo root tbf rate 1gbit burst 256kb latency 50ms
    ip netns exec slow python -m benchmarks distributed --peer DIR
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from benchmarks.drive import ROOT, limits
from benchmarks.table import OURS

FANOUTS = {"4,4,4": [4, 4, 4], "10,25": [10, 25], "15,10,5": [15, 10, 5]}
TITLES = {
    **{f"sample+pull {name}": f"sample [{name}] and read features" for name in FANOUTS},
    **{
        f"disttensor_read30k {where}": f"read 30,000 rows of 100 float32, {where}"
        for where in ("all", "local", "remote")
    },
    **{
        f"sample_neighbors_1024x10 {where}": f"sample_neighbors, 1024 seeds × 10, {where}"
        for where in ("all", "local", "remote")
    },
    "epoch": "epoch of DistNodeDataLoader, [4,4,4], features read, no model",
}
_BATCH, _TIMEOUT = 1024, 300  # seconds


def cut(data: Path, folder: Path, parts: int = 2) -> Path:
    """Write a graph in parts, as METIS cuts it; return the JSON file."""
    import torch

    import gnnlab as dgl

    arrays = {name: np.load(data / f"{name}.npy") for name in ("src", "dst", "feat", "train")}
    g = dgl.graph((arrays["src"], arrays["dst"]), num_nodes=len(arrays["feat"]))
    g.ndata["feat"] = torch.from_numpy(arrays["feat"])
    g.ndata["train_mask"] = torch.zeros(g.num_nodes(), dtype=torch.bool)
    g.ndata["train_mask"][torch.from_numpy(arrays["train"])] = True
    dgl.distributed.partition_graph(g, "g", parts, folder, balance_edges=True)
    return folder / "g.json"


def measure(
    data: Path, rounds: int, peer: Path | None, systems: Iterable[str], security: str
) -> list[dict]:
    """Run gnnlab's servers and the peers' in turn; return all results."""
    results: list[dict] = []
    systems = list(systems)
    for system in systems:
        if peer:
            check_peer(peer, system)
    with tempfile.TemporaryDirectory() as name:
        part_config = cut(data, Path(name))
        for round_ in range(rounds):
            found = [(OURS, ours(part_config, security))]
            found += [(system, theirs(peer, system)) for system in systems if peer]
            for system, answers in found:
                for answer in answers:
                    results.append({**answer, "sys": system, "round": round_})
                    print(f"  {answer['task']:34s} {system:8s}", file=sys.stderr, flush=True)
    return results


def ours(part_config: Path, security: str = "none", machines: int = 2) -> list[dict]:
    """Start servers and a trainer on this machine; return what the trainer measured."""
    from gnnlab.launch.certificates import Authority

    hosts = [f"127.0.0.{1 + machine}" for machine in range(machines)]
    env = {
        **os.environ,
        **limits(1),
        "DGL_DIST_MODE": "distributed",
        "DGL_CONF_PATH": str(part_config),
        "GNNLAB_SERVERS": json.dumps([(host, _free_port(host)) for host in hosts]),
        "GNNLAB_JOB": uuid.uuid4().hex[:12],
        "GNNLAB_SECURITY": security,
        "GNNLAB_TIMEOUT": "60",
        "WORLD_SIZE": "1",
        "RANK": "0",
    }
    authority = Authority()

    def role_of(role: str, machine: int, **more: str) -> dict[str, str]:
        own = {"DGL_ROLE": role, "GNNLAB_MACHINE": str(machine), **more}
        if security == "tls":
            own["GNNLAB_KEYS"] = authority.issue(role, machine).to_json()
        return env | own

    command = [sys.executable, "-c", "from benchmarks.distributed import trainer; trainer()"]
    processes = [
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=role_of("server", server, DGL_SERVER_ID=str(server)),
        )
        for server in range(machines)
    ]
    try:
        run = subprocess.run(
            command,
            cwd=ROOT,
            env=role_of("client", 0),
            stdout=subprocess.PIPE,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        )
        for process in processes:
            process.wait(10)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return _read(run.stdout)


def check_peer(folder: Path, system: str, parts: int = 2) -> None:
    """Stop with a message where a peer lacks a file: its servers would be waited for in vain."""
    python, script = folder / system / "bin" / "python", folder / f"bench_{system}_dist.py"
    for path in (python, script):
        if not path.exists():
            raise SystemExit(f"{path} is missing; --systems names the peers that --peer holds")
    place = folder / f"part_S_{parts}"
    if next(place.glob("*.json"), None) is None:
        raise SystemExit(
            f"{place} holds no graph in parts, which {script.name} reads. Make it: cd {folder} && "
            f"BENCH_DIR=$PWD {system}/bin/python bench_{system}.py S 1 part:{parts}"
        )


def theirs(folder: Path, system: str, parts: int = 2) -> list[dict]:
    """Run a peer's script; return what it measured, in our names of the tasks."""
    try:
        run = subprocess.run(
            [folder / system / "bin" / "python", folder / f"bench_{system}_dist.py", str(parts)],
            cwd=folder,
            env={**os.environ, **limits(1), "BENCH_DIR": str(folder)},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired as late:
        said = (late.stderr or b"").decode("utf8", "replace")
        raise SystemExit(f"{system} did not end within {_TIMEOUT} s:\n{said[-2000:]}") from None
    answers = _read(run.stdout)
    if not answers:
        raise SystemExit(
            f"{system} measured nothing (status {run.returncode}):\n"
            f"{run.stdout[-2000:]}{run.stderr[-2000:]}"
        )
    return answers


def _read(text: str) -> list[dict]:
    found = []
    for line in text.splitlines():
        answer = json.loads(line) if line.startswith("{") else {}
        if "task" in answer:
            which = answer.get("f", answer.get("where"))
            is_epoch = "epoch" in answer["task"]
            found.append({**answer, "task": "epoch" if is_epoch else f"{answer['task']} {which}"})
    return found


def _free_port(host: str) -> int:
    with socket.socket() as listener:
        listener.bind((host, 0))
        return listener.getsockname()[1]


# ------------------------------------------------------------------ in the trainer's process


def trainer() -> None:
    """Do the work and print what it took; in a server, the first call does not return."""
    import torch

    import gnnlab as dgl
    from gnnlab.dataloading import NeighborSampler

    torch.set_num_threads(1)
    dgl.distributed.initialize()
    g = dgl.distributed.DistGraph("g", part_config=os.environ["DGL_CONF_PATH"])
    book = g.get_partition_book()
    local = book.partid2nids(0)
    train = local[g.ndata["train_mask"][local]]
    rng = np.random.default_rng(0)
    for name, fanout in FANOUTS.items():
        sampler = NeighborSampler(fanout)

        def batch(i: int, sampler: NeighborSampler = sampler) -> None:
            seeds = torch.from_numpy(rng.choice(train.numpy(), _BATCH, replace=False))
            input_nodes, _, _ = sampler.sample_blocks(g, seeds)
            assert len(g.ndata["feat"][input_nodes]) == len(input_nodes)

        _report("sample+pull", batch, 40, f=name)
    owner = book.nid2partid(torch.arange(g.num_nodes()))
    pools = {"all": owner >= 0, "local": owner == 0, "remote": owner != 0}
    for where, mask in pools.items():
        pool = mask.nonzero().flatten()
        ids = [pool[torch.randint(len(pool), (30_000,))] for _ in range(25)]

        def read(i: int, ids: list[torch.Tensor] = ids) -> torch.Tensor:
            return g.ndata["feat"][ids[i]]

        def sample(i: int, ids: list[torch.Tensor] = ids) -> dgl.DGLGraph:
            return dgl.distributed.sample_neighbors(g, ids[i][:_BATCH], 10)

        _report("disttensor_read30k", read, 20, where=where)
        _report("sample_neighbors_1024x10", sample, 20, where=where)
    sampler = NeighborSampler([4, 4, 4])
    loader = dgl.distributed.DistNodeDataLoader(g, train, sampler, batch_size=_BATCH, shuffle=True)
    began = time.perf_counter()
    rows = sum(len(g.ndata["feat"][input_nodes]) for input_nodes, _, _ in loader)
    seconds = time.perf_counter() - began
    print(json.dumps({"task": "epoch", "s": seconds, "rows": rows}), flush=True)


def _report(
    task: str, work: Callable[[int], object], repeats: int, warm_up: int = 5, **about: str
) -> None:
    times = []
    for i in range(warm_up + repeats):
        began = time.perf_counter()
        work(i)
        times.append(time.perf_counter() - began)
    milliseconds = statistics.median(times[warm_up:]) * 1e3
    print(json.dumps({"task": task, **about, "ms": milliseconds}), flush=True)
