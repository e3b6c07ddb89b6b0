"""A lesson's kernel that is forked has what a fresh one has, and is interrupted and ended alike."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from tests.helpers import FRESH
from tests.lesson_kernels import forked
from tests.nursery import IS_POSSIBLE

pytestmark = pytest.mark.skipif(FRESH or not IS_POSSIBLE, reason="kernels start afresh")
LOOK = """
import json, os, random, sys, torch, numpy
first = set(sys.modules)
import matplotlib.pyplot as plt, multiprocessing
print(json.dumps({
    "gnnlab": any(name.split(".")[0] == "gnnlab" for name in first),
    "folder": os.getcwd(), "group": [os.getpid(), os.getpgrp(), os.getsid(0)],
    "paths": [path for path in sys.path if path != os.environ.get("PYTHONPATH")],
    "variables": [os.environ.get(name) for name in ("OF_A_KERNEL", "GNNLAB_TEST_TOKEN")],
    "name": __name__, "backend": plt.get_backend(), "threads": torch.get_num_threads(),
    "draws": [random.random(), numpy.random.rand(), torch.initial_seed()],
    "children": len(multiprocessing.active_children()),
}))
"""


def run(client: Any, code: str) -> str:
    said = []
    client.execute_interactive(
        code, timeout=60, output_hook=lambda m: said.append(m["content"].get("text", ""))
    )
    return "".join(said)


@pytest.mark.thorough("the lessons run in such kernels")
def test_forked_as_fresh(tmp_path: Path) -> None:
    env = {**os.environ, "OF_A_KERNEL": "yes", "OMP_NUM_THREADS": "1"}
    seen, draws = [], set()
    for how in ("forked", "forked", "fresh"):
        options = {"kernel_name": "python3", "env": env, "cwd": str(tmp_path)}
        if how == "forked":
            with forked():
                manager, client = start_new_kernel(**options)
        else:
            manager, client = start_new_kernel(**options)
        pid = manager.provisioner.pid
        try:
            assert ("nursery.py" in " ".join(psutil.Process(pid).cmdline())) == (how == "forked")
            found = json.loads(run(client, LOOK))
            assert found.pop("group") == [pid] * 3
            draws |= set(found.pop("draws"))
            request = client.execute("import time\nprint('sleeps', flush=True)\ntime.sleep(100)")
            while client.get_iopub_msg(timeout=60)["content"].get("text") != "sleeps\n":
                pass
            manager.interrupt_kernel()
            while (reply := client.get_shell_msg(timeout=60))["parent_header"]["msg_id"] != request:
                pass
            assert reply["content"]["ename"] == "KeyboardInterrupt"
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
        deadline = time.monotonic() + 60
        while psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not psutil.pid_exists(pid)
        seen.append(found)
    assert len(draws) == 9  # of as many generators
    assert not seen[0]["gnnlab"] and seen[0] == seen[1] == seen[2]


RANKS = """
import os, sys, torch
from gnnlab.parallel import RankError, launch_processes


def look(rank, world_size, mine, shared):
    torch.distributed.init_process_group("gloo")
    shared[rank] = rank + 1
    mine += 1
    status = open("/proc/self/cmdline").read(), os.getpid() == os.getpgrp()
    return status, (sys.path, sys.argv, __name__, os.readlink("/proc/self/fd/0"))


def fail(rank, world_size):
    if rank:
        os._exit(7)
    __import__("time").sleep(100)


mine, shared = torch.zeros(100_000), torch.zeros(2).share_memory_()
forked = launch_processes(look, 2, mine, shared)
assert shared.tolist() == [1, 2] and not mine.any()
try:
    launch_processes(fail, 2)
except RankError as error:
    print(str(error).splitlines()[0])
os.environ["NUMBA_OPT"] = "3"  # read when numba is imported
fresh = launch_processes(look, 1, mine, shared)
print(["nursery.py" in command and leads for (command, leads), _ in forked + fresh])
assert forked[0][1] == forked[1][1] == fresh[0][1]
"""


@pytest.mark.thorough("ranks of the lessons are such")
def test_ranks_are_forked(tmp_path: Path) -> None:
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    with forked():
        manager, client = start_new_kernel(kernel_name="python3", env=env, cwd=str(tmp_path))
    try:
        first, second = run(client, RANKS).splitlines()
        assert first.startswith("rank 1 of 2") and "status 7" in first
        assert second == "[True, True, False]"
    finally:
        client.stop_channels()
        manager.shutdown_kernel()
