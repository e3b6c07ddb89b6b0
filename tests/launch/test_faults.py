"""Real jobs that break: all ends within ten seconds, says what came first, and leaves nothing.

Two machines that this computer plays, with a server and a trainer each, and a sampler where it is
the one to break, in the middle of training. Tests print seconds and what was looked for.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

import gnnlab as dgl
from tests.helpers import _TOKEN, _descendants, _end, wait_until
from tests.launch.started import END, START, Started
from tests.launch.test_launch import write_workspace

SCRIPT = """
import os, time, torch, gnnlab as dgl

dgl.distributed.initialize("ip_config.txt")
torch.distributed.init_process_group("gloo")
g = dgl.distributed.DistGraph("toy")
ids = dgl.distributed.node_split(torch.ones(200, dtype=torch.bool), g.get_partition_book())
table = dgl.distributed.DistTensor((200,), torch.float32, "table")

def collate(ids):
    return g.ndata["x"][dgl.distributed.sample_neighbors(g, ids, 5).edges()[0]], os.getpid()

while True:
    for x, sampler in dgl.distributed.DistDataLoader(ids, batch_size=8, collate_fn=collate):
        total = x.sum()
        torch.distributed.all_reduce(total)
        table[ids[:4]] = total.expand(4)
        print(f"pids {g.rank()}", os.getpid(), sampler, flush=True)
        time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script, and a graph of 200 nodes in two parts."""
    folder = tmp_path_factory.mktemp("workspace")
    (folder / "job.py").write_text(SCRIPT)
    g = dgl.rand_graph(200, 1500)
    g.ndata["x"] = torch.rand(200, 8)
    dgl.distributed.partition_graph(g, "toy", 2, str(folder / "data"), part_method="random")
    return folder


@pytest.fixture
def begin(workspace: Path, tmp_path: Path) -> Iterator[Callable[..., Started]]:
    begun: list[Started] = []

    def start(
        folder: Path = workspace, script: str = "job.py", options: Sequence[str] = ()
    ) -> Started:
        words = ["--workspace", str(folder), "--part_config", "data/toy.json", "--local"]
        words += [*options, f"python {script}"]
        begun.append(Started(tmp_path / "run", words, {"OMP_NUM_THREADS": "1"}))
        return begun[-1]

    yield start
    for each in begun:
        _end(_descendants(each.token))


def processes(job: Started) -> dict[str, psutil.Process]:
    """Wait until all trainers train; return "server 0", "trainer 1", "sampler 1" and so on.

    Without samplers a trainer stands in for its own.
    """
    found = {}
    for rank in "01":
        pids = job.wait_for_text(rf"pids {rank} (\d+) (\d+)\n")
        for role, pid in zip(("trainer", "sampler"), pids.groups(), strict=True):
            found[f"{role} {rank}"] = psutil.Process(int(pid))
    for process in _descendants(job.token):
        with suppress(psutil.NoSuchProcess):  # some come and go
            env = process.environ()
            if env.get("DGL_ROLE") == "server":
                found[f"server {env['DGL_SERVER_ID']}"] = process
    for guard in psutil.Process(job.process.pid).children():
        own = [guard, *guard.children(recursive=True)]
        own = [each for each in own if "GNNLAB_SAMPLER" not in each.environ()]
        # Guard, worker and runner of the agent, the server, the trainer.
        assert len([each for each in own if "resource_tracker" not in str(each.cmdline())]) == 5
    job.note_ports()
    # Every port of the job, torch's among them, is bound to the address of its machine.
    hosts = {host.removeprefix("::ffff:") for host, _ in job.listening}
    assert all(host.startswith("127.0.0.") for host in hosts), hosts
    return found


SAMPLERS = ("--num_samplers", "1")
STOPPED = pytest.mark.thorough("a trainer is stopped in test_launch")
MACHINE_1 = "127.0.0.3 (machine 1)"


@pytest.mark.parametrize(
    ("victim", "blow", "status", "said"),
    [
        ("sampler 1", signal.SIGKILL, 1, f"trainer 1 on {MACHINE_1} ended with status 1"),
        # The trainers lose it at about the same time: it is the stopped server that is named.
        pytest.param(
            *("server 1", signal.SIGSTOP, 147, f"server 1 on {MACHINE_1} was stopped for"),
            marks=STOPPED,
        ),
        pytest.param(
            *("sampler 1", signal.SIGSTOP, 147, f"trainer 1 on {MACHINE_1} was stopped for"),
            marks=STOPPED,
        ),
    ],
)
def test_a_process_goes(
    begin: Callable[..., Started], victim: str, blow: signal.Signals, status: int, said: str
) -> None:
    job = begin(options=SAMPLERS if victim == "sampler 1" else ())
    running = processes(job)
    hit = running[victim]
    if victim == "sampler 1":
        check_keys_stay_in_memory(job, running["server 0"], running["trainer 0"])
    hit.send_signal(blow)
    found, errors = job.end(2 * END)
    assert found == status and said in errors.split("All that was printed")[0]
    if victim == "sampler 1":
        ended = f"sampler 0 of rank 1 (machine 1, process {hit.pid}) ended (SIGKILL"
        stopped = f"(sampler 0, process {hit.pid}: "
        assert (ended if blow == signal.SIGKILL else stopped) in errors
    # The first error comes first, with the last lines.
    assert errors.startswith(
        f"gnnlab launch: {victim.replace('sampler', 'trainer')} on {MACHINE_1}"
    )


def check_keys_stay_in_memory(
    job: Started, server: psutil.Process, trainer: psutil.Process
) -> None:
    """They are on no command line, in no file and in nothing that is printed."""
    name = server.environ()["GNNLAB_JOB"]
    keys = json.loads(server.environ()["GNNLAB_KEYS"])
    theirs = json.loads(trainer.environ()["GNNLAB_KEYS"])
    assert keys["authority"] == theirs["authority"] and keys["secret"] != theirs["secret"]
    secrets = []
    for each in (keys, theirs):
        begin, *lines, public, end = each["secret"].encode().splitlines()
        assert (begin[:11], len(lines), end[:9]) == (b"-----BEGIN ", 2, b"-----END ")
        assert len(public) < 64  # the third line holds the public key alone
        secrets += lines
    everybody = _descendants(job.token)
    memory = list(Path("/dev/shm").glob(f"gnnlab-{name}-*"))
    texts = {}
    for process in everybody:
        with suppress(psutil.NoSuchProcess):
            texts[f"command of {process.pid}"] = " ".join(process.cmdline()).encode()
    workspace = Path(trainer.cwd())
    for place in [*job.folder.rglob("*"), *workspace.rglob("*"), *memory]:
        with suppress(FileNotFoundError):
            if place.is_file():
                texts[str(place)] = place.read_bytes()
    assert len(everybody) > 10 and memory and any("logs" in place for place in texts)
    assert f"{workspace}/job.py" in texts
    assert not [place for place, text in texts.items() if any(key in text for key in secrets)]


def test_the_notebook_is_interrupted_and_its_kernel_restarted(tmp_path: Path) -> None:
    from jupyter_client.manager import start_new_kernel

    workspace = write_workspace(tmp_path / "workspace")
    token = f"notebook-{os.getpid()}"
    cell = f"""
from gnnlab.launch import launch
launch.run(
    "python job.py wait", part_config="graph.json", workspace={str(workspace)!r}, num_machines=2,
    extra_envs={{"TEST_FOLDER": {str(tmp_path)!r}}}, log_dir={str(tmp_path / "logs")!r},
)
"""
    manager, client = start_new_kernel(env={**os.environ, _TOKEN: token}, kernel_name="python3")
    try:
        for how in ("interrupt", "restart"):
            request = client.execute(cell)
            _wait_for_trainers(tmp_path)
            start = time.monotonic()
            if how == "interrupt":
                manager.interrupt_kernel()
                reply: dict[str, Any] = {"parent_header": {"msg_id": ""}}
                while reply["parent_header"]["msg_id"] != request:  # answers to greetings come too
                    reply = client.get_shell_msg(timeout=END)
                assert time.monotonic() < start + END
                assert reply["content"]["ename"] == "KeyboardInterrupt"
            else:
                manager.restart_kernel(now=True)
            kernel = int(manager.provisioner.pid)
            wait_until(
                how, lambda kernel=kernel: all(p.pid == kernel for p in _descendants(token)), END
            )
            assert not list(Path("/dev/shm").glob(f"*{token}*"))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _wait_for_trainers(folder: Path) -> None:
    for rank in range(2):
        path = folder / f"trainer-{rank}.pid"
        wait_until(path.name, path.exists, START)
        path.unlink()
