"""Other systems, emulated (tests/emulate.py): lessons run, the rest says what it needs.

All lessons but 09, which needs jobs; "lax" compares no outputs, for some cells only say that they
need WSL: python -m tests.emulate windows -- python -m pytest -n 0 --nbval-lax notebooks/en
--ignore notebooks/en/09_launching.ipynb
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.emulate import environment
from tests.helpers import ROOT, run_script

WINDOWS = """
import os
import signal
import tempfile

import torch

import gnnlab as dgl
import gnnlab.distributed.sampler_processes
import gnnlab.distributed.server
import gnnlab.simulate
from gnnlab.launch import agent, copy_files, doctor, launch
from gnnlab.tools import export, lessons

assert not hasattr(os, "fork") and not hasattr(signal, "SIGKILL")  # else nothing is emulated
try:
    import fcntl
    raise SystemExit("fcntl is there")
except ModuleNotFoundError:
    pass


def add(rank, world_size, x, shared):
    torch.distributed.init_process_group("gloo")
    share = x[rank::world_size].sum()
    torch.distributed.all_reduce(share)
    shared[rank] = rank + 1
    g = dgl.rand_graph(50, 200)
    assert dgl.sample_neighbors(g, [1, 2], 3).num_nodes() == 50
    x += 1  # concerns nobody else
    return share.item(), hasattr(os, "fork")


def refused(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except (dgl.GNNLabError, RuntimeError) as error:
        return str(error)


launch_processes = dgl.parallel.launch_processes
x, shared = torch.arange(100_000), torch.zeros(2).share_memory_()
assert launch_processes(add, 2, x, shared) == [(4999950000, False)] * 2
assert shared.tolist() == [1, 2] and x[0] == 0
assert "ZeroDivisionError" in refused(launch_processes, lambda rank, size: 1 / (1 - rank), 2)
assert "still ran after 3 s" in refused(
    launch_processes, lambda rank, size: __import__("time").sleep(100), 1, timeout=3
)
assert "no fork (Windows)" in refused(launch_processes, add, 2, start_method="fork")
assert "wsl --install" in refused(launch.run, "python x.py", part_config="x", num_machines=2)
assert "On Windows use WSL" in refused(gnnlab.distributed.memory.Memory, "job", 0)
found = doctor.probe.examine(
    {"workspace": ".", "part_config": None, "part": None, "address": "", "peers": [], "ports": []}
)
assert found["limits"] == {} and found["versions"]["torch"]
with dgl.multiprocessing.shared_file(10) as (_, name):
    assert name.startswith(tempfile.gettempdir())
assert not os.path.exists(name)
with tempfile.TemporaryDirectory() as folder:
    dgl.distributed.partition_graph(dgl.rand_graph(50, 200), "g", 2, folder, part_method="random")
    assert dgl.distributed.load_partition(f"{folder}/g.json", 1)
    dgl.parallel.save_checkpoint(f"{folder}/state", step=1)
    left = [each for each in os.listdir(folder) if each.endswith((".tmp", ".draft"))]
    assert not left and os.path.exists(f"{folder}/state"), os.listdir(folder)
print("all is well")
"""


@pytest.mark.thorough("emulates another system at length")
def test_windows(tmp_path: Path) -> None:
    assert "all is well" in run_script(WINDOWS, env=environment("windows", tmp_path), timeout=200)


def test_the_command_on_windows(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "gnnlab", "--help"]
    env = environment("windows", tmp_path)
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: gnnlab")


@pytest.mark.thorough("nearly all of it is what the lesson does on this system")
@pytest.mark.parametrize(
    ("system", "lesson", "but"),
    [
        # Cells that fork say that they cannot. 15, 16 and 20 start ranks as 7 and 12 do; 17 draws.
        ("windows", "04_multi_gpu", (15, 16, 17, 20)),
        ("linux-arm", "05_partitioning", ()),  # LDG in place of METIS
    ],
)
def test_lessons_elsewhere(system: str, lesson: str, but: tuple[int, ...], tmp_path: Path) -> None:
    page = nbformat.read(ROOT / "notebooks" / "en" / f"{lesson}.ipynb", as_version=4)
    cells = [cell for cell in page.cells if cell.cell_type == "code"]
    page.cells = [cell for number, cell in enumerate(cells) if number not in but]
    client = NotebookClient(page, timeout=200, resources={"metadata": {"path": str(tmp_path)}})
    (folder := tmp_path / "switch").mkdir()
    env = environment(system, folder)
    with tempfile.TemporaryDirectory() as place:  # no longer than paths of sockets may be
        paths = os.pathsep.join([env["PYTHONPATH"], str(ROOT)])
        client.execute(env=env | {"TMPDIR": place, "PYTHONPATH": paths})


@pytest.mark.thorough("the job is that of tests/tools, here without /proc")
def test_a_job_of_two_machines_on_macos(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--basetemp", str(tmp_path / "base")]
    command += ["tests/tools/test_trace.py::test_a_job_leaves_its_events"]
    # A nursery, from which processes are forked, does not exist on this system.
    env = environment("macos", tmp_path) | {"PYTEST_ADDOPTS": "", "GNNLAB_TEST_ALL": "1"}
    with tempfile.TemporaryDirectory() as place:
        how: dict[str, Any] = {"env": env | {"TMPDIR": place}, "capture_output": True, "text": True}
        done = subprocess.run(command, cwd=ROOT, timeout=290, **how)
    assert done.returncode == 0, done.stdout[-6000:]
