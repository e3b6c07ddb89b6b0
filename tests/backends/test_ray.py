"""Jobs on a Ray cluster of three hosts: same results as elsewhere, same promises at every fault.

One cluster, which takes a minute to come up, serves all tests; the last one destroys it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput
from gnnlab.launch import launch
from gnnlab.launch.backends import HostRequest, choose, open_backend
from tests.backends.hosts import killed
from tests.backends.ray import PORT, RayHosts, ray_cluster, ray_obstacle
from tests.helpers import ROOT, wait_until
from tests.launch.test_launch import write_workspace

needs_ray = pytest.mark.skipif(bool(ray_obstacle()), reason=ray_obstacle())

START = 240  # seconds within which a job must run, on a busy computer
END = 40  # seconds within which everything is gone; ten where nobody else computes
EPOCHS = 8


class Job:
    """One call of `gnnlab launch` on a host, by default on that of the head.

    Parameters
    ----------
    hosts : RayHosts
    folder : Path
        Workspace; the job's temporary files are in its subfolder ``tmp``.
    words : str
        Options of launch and the command.
    """

    def __init__(self, hosts: RayHosts, folder: Path, *words: str, host: int = 0) -> None:
        self.hosts, self.folder, self.out = hosts, folder, folder / "job.out"
        (folder / "tmp").mkdir()
        env = hosts.shell(
            PYTHONPATH=str(ROOT), TMPDIR=f"{folder}/tmp", RAY_ADDRESS=f"{hosts.addresses[0]}:{PORT}"
        )
        envs = [f"TEST_FOLDER={folder}", f"TMPDIR={folder}/tmp", "GNNLAB_TEST_TOKEN=ray"]
        argv = [*env, "python", "-m", "gnnlab", "launch", *words[:-1]]
        argv += ["--extra_envs", *envs, "--", words[-1]]
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                hosts.argv(host, argv, folder), stdout=out, stderr=out, start_new_session=True
            )

    @property
    def said(self) -> str:
        """All that launch has printed."""
        return self.out.read_text()

    def wait_for(self, *files: str) -> None:
        """Wait until the job has written files."""

        def are_there() -> bool:
            names = [name for name in files if not (self.folder / name).exists()]
            assert not names or self.process.poll() is None, self.said
            return not names

        wait_until(f"{files}", are_there, START)

    def signal(self, number: int) -> None:
        """Send a signal to launch alone."""
        found = self.hosts.find(0, "gnnlab launch", "job.py")  # nsenter too
        names = {pid: Path(f"/proc/{pid}/comm").read_text() for pid in found}
        (launcher,) = [pid for pid, name in names.items() if name.startswith("python")]
        os.kill(launcher, number)

    def check_over(self, lost: tuple[int, ...] = ()) -> float:
        """Wait until the job is over and nothing of it is left; return how long that took."""
        start = time.monotonic()

        def left() -> dict[str, object]:
            found: dict[str, object] = {"launch": self.process.poll() is None}
            for i in set(range(len(self.hosts.names))) - set(lost):
                named = [self.hosts.find(i, word) for word in ("job.py", "ray_hub", "find_spec(")]
                found[f"processes {i}"] = [pid for pids in named for pid in pids]
                names = self.hosts.run(i, "ls", "/dev/shm").split()
                found[f"memory {i}"] = [name for name in names if "gnnlab" in name]
            places = (self.folder / "tmp", self.hosts.folder / "tmp")  # of launch, of agents
            found["files"] = [p.name for place in places for p in place.glob("*gnnlab*")]
            return {name: what for name, what in found.items() if what}

        try:
            wait_until("the end of the job", lambda: not left(), END)
        except TimeoutError:
            pytest.fail(f"left after {END} s: {left()}\n{self.said}")
        took = time.monotonic() - start
        print(f"over after {took:.1f} s: {self.failure()}")
        return took

    def failure(self) -> str:
        """The first line of the error."""
        lines = [line for line in self.said.splitlines() if line.startswith("gnnlab launch: ")]
        return lines[-1] if lines else ""


@pytest.fixture(scope="module")
def hosts() -> Iterator[RayHosts]:
    with ray_cluster("gnr") as cluster:
        yield cluster


def test_ray_is_chosen_where_its_address_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert choose(HostRequest())[0] == "ray"


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnnlab.launch.backends.ray.find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'gnnlab\[ray\]'"):
        open_backend("ray", HostRequest(num_hosts=2))


@needs_ray
def test_an_address_for_jobs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8265")
    with pytest.raises(InvalidInput, match=r"set RAY_ADDRESS to HOST:6379 \(not to http"):
        open_backend("ray", HostRequest(num_hosts=2))


CONNECTED = """
import sys
import ray
from gnnlab.launch import launch

ray.init("{address}", logging_level="ERROR")  # as a notebook that uses Ray itself
before = ray.get_runtime_context().get_job_id()
result = launch.run(sys.argv[1], on="ray", part_config="data/digits.json", num_omp_threads=1,
                    num_samplers=1, log_dir="logs")
assert ray.get_runtime_context().get_job_id() == before and ray.is_initialized()
print("finished", result.job)
"""


@needs_ray
@pytest.mark.timeout(1200)
def test_a_job_of_a_connected_driver_has_the_same_bits_as_a_local_one(
    hosts: RayHosts, tmp_path: Path
) -> None:
    """The driver is on a node that is not the head, and connected to Ray, as a notebook may be."""
    here, there = tmp_path / "here", tmp_path / "there"
    g = dgl.data.load("digits").graph
    dgl.distributed.partition_graph(g, "digits", 3, here / "data")
    shutil.copy(ROOT / "examples" / "train_dist.py", here)
    shutil.copytree(here, there)
    command = (
        "python3 train_dist.py --graph_name digits --batch_size 60 --num_hidden 16 "
        f"--num_epochs {EPOCHS} --save model.pt"
    )
    address = f"{hosts.addresses[0]}:{PORT}"
    (there / "connected.py").write_text(CONNECTED.format(address=address))
    argv = [*hosts.shell(PYTHONPATH=str(ROOT), RAY_ADDRESS=address), "python", "connected.py"]
    said = hosts.run(1, *argv, command, folder=there, timeout=2 * START)
    assert "finished" in said
    result = launch.run(
        command,
        part_config="data/digits.json",
        workspace=here,
        num_machines=3,
        num_omp_threads=1,
        num_samplers=1,
        log_dir=here / "logs",
    )
    assert result is not None
    shown = r"epoch +\d+  loss [\d.]+|validation accuracy .*"
    assert len(found := re.findall(shown, said)) == EPOCHS + 1
    assert found == re.findall(shown, result.logs["trainer-0"])
    mine, theirs = (torch.load(folder / "model.pt") for folder in (here, there))
    assert mine.keys() == theirs.keys()
    assert all(torch.equal(mine[name], theirs[name]) for name in mine)


HOST = r"gnr1 \(machine 1\)"
HEAD = "Ray's head is lost, and jobs end with it; restart Ray on all nodes"
FAULTS: dict[str, tuple[Callable[[Job], object], str]] = {
    "trainer": (killed("trainer"), rf"trainer 1 on {HOST} was killed by SIGKILL"),
    "actor": (lambda job: job.hosts.kill(1, "ray::NodeActor"), rf"{HOST}: the agent ended"),
    "server": (killed("server"), rf"server 1 on {HOST} was killed by SIGKILL"),
    "hub": (lambda job: job.hosts.kill(0, "ray_hub.py hub"), "gnr. .*: the agent ended"),
    "Ctrl-C": (lambda job: job.signal(signal.SIGINT), "interrupted; everything has been ended"),
    "SIGTERM": (lambda job: job.signal(signal.SIGTERM), "SIGTERM came"),
    "SIGKILL": (lambda job: job.signal(signal.SIGKILL), ""),
    "cable": (lambda job: job.hosts.cut(2), r"gnr2 \(machine 2\): no sign of life for 4.5 s"),
    "head": (
        lambda job: job.hosts.kill(0, "gcs_server", "--log_dir"),
        f"gnr. .*: the agent ended; {HEAD}",
    ),  # the last: it destroys the cluster
}


@needs_ray
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("fault", FAULTS)
def test_everything_ends(fault: str, hosts: RayHosts, tmp_path: Path) -> None:
    folder = write_workspace(tmp_path / "workspace", (0, 1, 2), 3)
    job = Job(hosts, folder, "--part_config", "graph.json", "python3 job.py hold")
    job.wait_for(*(f"{role}-{i}.pid" for role in ("server", "trainer") for i in range(3)))
    act, said = FAULTS[fault]
    act(job)
    lost = (2,) if fault == "cable" else ()
    job.check_over(lost)
    if lost:  # its processes know by themselves that the launcher is gone
        job.check_over()
        hosts.plug(2)  # before Ray gives the node up, after some 30 s
    if said:
        assert re.match(f"gnnlab launch: .*{said}", job.failure()), job.said
