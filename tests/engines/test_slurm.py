"""Jobs on a Slurm cluster of three hosts: same results as elsewhere, same promises at every fault.

Hosts find their own names at 127.0.1.1, so a server that trusted its host's name would listen where
no other host can reach it. Each test has a cluster of its own, which is up within some seconds.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.tools import launch
from tests.engines.hosts import Hosts, wait_until
from tests.engines.slurm import slurm_cluster, slurm_obstacle
from tests.helpers import ROOT
from tests.tools.test_launch import write_workspace

pytestmark = pytest.mark.skipif(bool(slurm_obstacle()), reason=slurm_obstacle())

START = 120  # seconds within which a job must run, on a busy computer
END = 30  # seconds within which everything is gone; ten where nobody else computes
GOING = ("PENDING", "RUNNING", "COMPLETING")
EPOCHS = 8
SHELL = ("env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", "LANG=C.UTF-8")


class Job:
    """A batch job whose script is one call of `gnnlab launch`.

    Parameters
    ----------
    hosts : Hosts
    folder : Path
        Workspace; the job's temporary files are in its subfolder ``tmp``.
    words : str
        Options of launch and the command.
    """

    def __init__(self, hosts: Hosts, folder: Path, words: str, *options: str) -> None:
        self.hosts, self.folder, self.out = hosts, folder, folder / "job.out"
        (folder / "tmp").mkdir()
        script = folder / "job.sh"
        script.write_text(
            f"#!/bin/bash\ncd '{folder}'\n"
            f"export PYTHONPATH='{ROOT}' TMPDIR='{folder}/tmp' TEST_FOLDER='{folder}'\n"
            f"export GNNLAB_TEST_TOKEN=slurm PATH='{Path(sys.executable).parent}':\"$PATH\"\n"
            f"exec python -m gnnlab launch {words}\n"
        )
        argv = ["sbatch", "--parsable", "--nodes=3", f"--output={self.out}", *options, str(script)]
        self.id = hosts.run(0, *SHELL, *argv).strip()

    @property
    def said(self) -> str:
        """All that launch has printed."""
        return self.out.read_text() if self.out.exists() else ""

    def about(self, what: str) -> str:
        """One of the facts that Slurm knows about the job."""
        facts = self.hosts.run(0, "scontrol", "--oneliner", "show", "job", self.id)
        found = re.search(rf"\b{what}=(\S+)", facts)
        assert found, facts
        return found[1]

    def wait_for(self, text: str, *files: str) -> None:
        """Wait until launch has printed a text, and the job has written files."""
        names = [name for name in files if not (self.folder / name).exists()]

        def is_there() -> bool:
            nonlocal names
            state = self.about("JobState")
            names = [name for name in names if not (self.folder / name).exists()]
            is_over = text in self.said and not names
            assert is_over or state in GOING, f"{state}\n{self.said}"
            return is_over

        try:
            wait_until(f"{text!r} {names}", is_there, START)
        except TimeoutError as error:
            pytest.fail(f"{error}\n{self.said}")

    def check_over(self, seconds: float = END, lost: tuple[int, ...] = ()) -> float:
        """Wait until the job is over and nothing of it is left; return how long that took."""
        start = time.monotonic()
        hosts = [i for i in range(len(self.hosts.names)) if i not in lost]

        def left() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for i in hosts:
                found[f"processes {i}"] = self.hosts.find(i, "python")
                found[f"memory {i}"] = self.hosts.run(i, "ls", "/dev/shm").split()
            names = [path.name for path in (self.folder / "tmp").glob("gnnlab*")]
            found["files"] = [] if lost else names
            return {name: what for name, what in found.items() if what}

        try:
            wait_until("the end of the job", lambda: not left(), seconds)
        except TimeoutError:
            pytest.fail(f"left after {seconds} s: {left()}\n{self.said}")
        took = time.monotonic() - start
        print(f"over after {took:.1f} s: {self.failure()}")
        return took

    def failure(self) -> str:
        """The first line of the error."""
        lines = [line for line in self.said.splitlines() if line.startswith("gnnlab launch: ")]
        return lines[-1] if lines else ""


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with slurm_cluster("gns", loopback=True) as cluster:
        yield cluster


def train(num_epochs: int) -> str:
    """The command that trains, with names of files relative to the workspace."""
    return (
        "python3 train_dist.py --graph_name digits --batch_size 60 --num_hidden 16 "
        f"--num_epochs {num_epochs} --save model.pt --checkpoint saved"
    )


def losses(text: str) -> list[str]:
    """Loss of each epoch, as it is printed, and the accuracies."""
    return re.findall(r"epoch +\d+  loss [\d.]+|validation accuracy .*", text)


def test_a_job_that_is_queued_again_goes_on_as_if_it_had_not_ended(
    hosts: Hosts, tmp_path: Path
) -> None:
    """Three hosts, stopped by a signal in the middle, against one uninterrupted local run."""
    here, there = tmp_path / "here", tmp_path / "there"
    g = dgl.data.load("digits").graph
    dgl.distributed.partition_graph(g, "digits", 3, here / "data")
    shutil.copy(ROOT / "examples" / "train_dist.py", here)
    shutil.copytree(here, there)
    options = "--part_config data/digits.json --num_omp_threads 1 --num_samplers 1"
    words = f"{options} '{train(EPOCHS)}'"
    job = Job(hosts, there, words, "--requeue", "--open-mode=append")
    job.wait_for("trainers: 1 ready")
    hosts.run(0, "scancel", "--signal=USR1", "--batch", job.id)
    job.wait_for(f"job {job.id} is queued again")
    wait_until("the second start", lambda: job.about("JobState") == "PENDING")
    # Slurm waits two minutes for that; sooner, the end of the first run may count for the second.
    wait_until("the end of the first", lambda: not hosts.find(0, "slurmstepd"))
    assert job.about("Restarts") == "1"
    first = losses(job.said)
    assert 1 <= len(first) < EPOCHS
    hosts.run(0, "scontrol", "update", f"JobId={job.id}", "StartTime=now")  # not in two minutes
    job.wait_for("ended well")
    job.check_over()

    result = launch.run(
        train(EPOCHS),
        part_config="data/digits.json",
        workspace=here,
        num_machines=3,
        num_omp_threads=1,
        log_dir=here / "logs",
    )
    assert result is not None
    said = losses(job.said)
    assert len(said) == EPOCHS + 1 and said[: len(first)] == first
    assert said == losses(result.logs["trainer-0"])
    mine, theirs = (torch.load(folder / "model.pt") for folder in (here, there))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def killed(role: str) -> Callable[[Job], None]:
    """Kill the process of host 1 that has this role."""

    def fault(job: Job) -> None:
        pid = (job.folder / f"{role}-1.pid").read_text()  # as the host counts
        job.hosts.run(1, "kill", "-KILL", pid)

    return fault


def without_agent(job: Job) -> None:
    pids = job.hosts.find(1, "find_spec('gnnlab')")
    assert len(pids) >= 2
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def cancelled(job: Job) -> None:
    job.hosts.run(0, "scancel", job.id)


def interrupted(job: Job) -> None:
    job.hosts.run(0, "scancel", "--signal=INT", "--batch", job.id)


HOST = r"gns1 \(machine 1\)"
FAULTS: dict[str, tuple[Callable[[Job], None], str]] = {
    "trainer": (killed("trainer"), rf"trainer 1 on {HOST} was ended by SIGKILL"),
    "server": (killed("server"), rf"server 1 on {HOST} was ended by SIGKILL"),
    "agent": (without_agent, rf"{HOST}: the agent ended"),
    "cable": (lambda job: job.hosts.cut(1), rf"{HOST}: no sign of life for 4.5 s"),
    "host": (lambda job: job.hosts.lose(1), rf"{HOST}: (no sign of life|the agent ended)"),
    "scancel": (cancelled, "SIGTERM came; everything has been ended"),
    "Ctrl-C": (interrupted, "interrupted; everything has been ended"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_everything_ends(fault: str, hosts: Hosts, tmp_path: Path) -> None:
    folder = write_workspace(tmp_path / "workspace", (0, 1, 2), 3)
    job = Job(hosts, folder, "--part_config graph.json 'python3 job.py hold'")
    job.wait_for("", *(f"{role}-{i}.pid" for role in ("server", "trainer") for i in range(3)))
    act, said = FAULTS[fault]
    act(job)
    lost = {"host": (1,), "cable": (1,)}.get(fault, ())
    job.check_over(lost=lost)
    assert re.match(f"gnnlab launch: .*{said}", job.failure()), job.said
    if fault == "cable":  # its processes know by themselves that the launcher is gone
        wait_until("the end on the lost host", lambda: not hosts.find(1, "python"), END)
        assert hosts.run(1, "ls", "/dev/shm") == ""
