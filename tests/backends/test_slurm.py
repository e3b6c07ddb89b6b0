"""Jobs on a Slurm cluster of three hosts: same results as elsewhere, same promises at every fault.

Hosts find their own names at 127.0.1.1, so a server that trusted its host's name would listen where
no other host can reach it. Each test has a cluster of its own, which is up within some seconds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.launch import launch
from tests.backends.hosts import Hosts, killed
from tests.backends.slurm import slurm_cluster, slurm_obstacle
from tests.helpers import ROOT, wait_until
from tests.launch.test_launch import write_workspace

pytestmark = pytest.mark.skipif(bool(slurm_obstacle()), reason=slurm_obstacle())

START = 240  # seconds within which a job must run, on a busy computer
END = 30  # seconds within which everything is gone; ten where nobody else computes
GOING = ("PENDING", "CONFIGURING", "RUNNING", "SIGNALING", "COMPLETING")
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


@pytest.mark.timeout(1200)
def test_a_preempted_job_goes_on_as_if_it_had_not_ended(hosts: Hosts, tmp_path: Path) -> None:
    """Three hosts, of which another job takes one in the middle, against a local run."""
    here, there = tmp_path / "here", tmp_path / "there"
    g = dgl.data.load("digits").graph
    dgl.distributed.partition_graph(g, "digits", 3, here / "data")
    shutil.copy(ROOT / "examples" / "train_dist.py", here)
    shutil.copytree(here, there)
    options = "--part_config data/digits.json --num_omp_threads 1 --num_samplers 1"
    words = f"{options} '{train(EPOCHS)}'"
    options = ("--exclusive", "--requeue", "--signal=B:USR1@600", "--open-mode=append")
    job = Job(hosts, there, words, *options)
    job.wait_for("trainers: 1 ready")
    other = ("--partition=urgent", "--nodes=1", "--exclusive", "--output=/dev/null", "--wrap=true")
    hosts.run(0, *SHELL, "sbatch", *other)
    job.wait_for(f"job {job.id} is queued again")
    wait_until("the second start", lambda: job.about("JobState") == "PENDING")
    wait_until("the end of the other job", lambda: not hosts.run(0, "squeue", "-h", "-t", "R"))
    # Slurm waits two minutes for that; sooner, the end of the first run may count for the second.
    for i in range(len(hosts.names)):
        wait_until("the end of the first run", lambda i=i: not hosts.find(i, "slurmstepd"))
    wait_until("idle nodes", lambda: hosts.run(0, "sinfo", "-h", "-t", "idle", "-o", "%D") == "3\n")
    assert job.about("Restarts") == "1"
    before = job.said
    # Slurm waits two minutes; at once, slurmd may still be removing files of the first run.
    hosts.run(0, "scontrol", "update", f"JobId={job.id}", "StartTime=now+20")
    job.wait_for("finished")
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
    assert job.said.startswith(before)
    first, second = losses(before), losses(job.said[len(before) :])
    whole = losses(result.logs["trainer-0"])
    assert len(whole) == EPOCHS + 1 and 1 <= len(first) < EPOCHS
    assert first == whole[: len(first)]
    assert second == whole[len(first) :]  # no epoch of the first run once more
    mine, theirs = (torch.load(folder / "model.pt") for folder in (here, there))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


def test_the_doctor_checks_an_allocation(hosts: Hosts, tmp_path: Path) -> None:
    g = dgl.rand_graph(50, 200)
    dgl.distributed.partition_graph(g, "toy", 3, tmp_path / "data", part_method="random")
    where = [f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}", f"PYTHONPATH={ROOT}"]
    words = ["-m", "gnnlab", "doctor", "--part_config", "data/toy.json", "--json"]

    def ask(number: int, *more: str) -> dict[str, dict[str, str]]:
        """Return what was found on each node, as state by code or check."""
        argv = [*SHELL, *where, "salloc", "--quiet", f"--nodes={number}", "--", "python", *words]
        argv += [*more, "--timeout", "100"]
        done = subprocess.run(hosts.argv(0, argv, tmp_path), capture_output=True, text=True)
        assert "the machines are those of Slurm job" in done.stderr, done.stderr
        found: dict[str, dict[str, str]] = {name: {} for name in hosts.names}
        for row in json.loads(done.stdout)["findings"]:
            found[row["host"]][row["code"] or row["check"]] = row["state"]
        assert done.returncode == any("failed" in each.values() for each in found.values())
        return found

    sound = ask(3)
    for name in hosts.names:
        states = {check: state for check, state in sound[name].items() if check != "cpu_busy"}
        assert set(states.values()) == {"ok"}, sound
        assert {"start", "versions", "address", "memory", "disk", "partition"} <= set(sound[name])
    (tmp_path / "alone").mkdir()
    hosts.run(1, "mount", "-t", "tmpfs", "own", str(tmp_path / "alone"))  # not a shared disk
    apart = ask(3, "--workspace", str(tmp_path / "alone"))
    assert [apart[name].get("not_shared") for name in hosts.names] == [None, "warning", None]
    fewer = ask(2, "--lang", "ko")
    assert fewer[hosts.names[0]]["partition_count"] == "failed" and not fewer[hosts.names[2]]
    no_python = ask(3, "--python", "/nowhere/python3")
    assert {"no_python"} == set().union(*no_python.values())


def told(*words: str) -> Callable[[Job], object]:
    """Run a command of Slurm; in it, ``{id}`` is the job's."""
    return lambda job: job.hosts.run(0, *(word.format(id=job.id) for word in words))


def without_agent(job: Job) -> None:
    # Its guard and its worker, not the runner.
    assert job.hosts.kill(1, "gnnlab.launch.agent") == 2


def out_of_time(job: Job) -> None:
    """End the time of the job now; Slurm looks every half minute."""
    job.hosts.run(0, "scontrol", "update", f"JobId={job.id}", "EndTime=now")
    wait_until("the end of the time", lambda: job.about("JobState") != "RUNNING")


HOST = r"gns1 \(machine 1\)"
ENDED = "SIGTERM came; everything has been ended"
DOWN = ("scontrol", "update", "NodeName=gns1", "State=DOWN", "Reason=test")
CTRL_C = told("scancel", "--signal=INT", "--batch", "{id}")
FAULTS: dict[str, tuple[Callable[[Job], object], str]] = {
    "trainer": (killed("trainer"), rf"trainer 1 on {HOST} was killed by SIGKILL"),
    "server": (killed("server"), rf"server 1 on {HOST} was killed by SIGKILL"),
    "agent": (without_agent, rf"{HOST}: the agent ended"),
    "cable": (lambda job: job.hosts.cut(1), rf"{HOST}: no sign of life for 4.5 s"),
    "host": (lambda job: job.hosts.lose(1), rf"{HOST}: (no sign of life|the agent ended)"),
    "time limit": (out_of_time, ENDED),
    "scancel": (told("scancel", "{id}"), ENDED),
    "node down": (told(*DOWN), ENDED),
    "requeue": (told("scontrol", "requeue", "{id}"), ENDED),
    "Ctrl-C": (CTRL_C, "interrupted; everything has been ended"),
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
    if fault in ("node down", "requeue"):  # it starts anew as soon as it can
        wait_until("the queue", lambda: job.about("JobState") == "PENDING")
        assert job.about("Restarts") == "1"
    if fault == "cable":  # its processes know by themselves that the launcher is gone
        wait_until("the end on the lost host", lambda: not hosts.find(1, "python"), END)
        assert hosts.run(1, "ls", "/dev/shm") == ""


def test_a_job_ends_well_on_a_drained_node(hosts: Hosts, tmp_path: Path) -> None:
    folder = write_workspace(tmp_path / "workspace", (0, 1, 2), 3)
    job = Job(hosts, folder, "--part_config graph.json 'python3 job.py reduce'")
    job.wait_for("server 1 listens")
    hosts.run(0, "scontrol", "update", "NodeName=gns1", "State=DRAIN", "Reason=test")
    assert hosts.run(0, "sinfo", "-h", "-n", "gns1", "-o", "%T").strip() == "draining"
    job.wait_for("finished")
    assert "total 3.0 of 3" in job.said
    job.check_over()
