"""Jobs that a Ray cluster takes over its dashboard, and the loss of the host of its head.

One cluster serves all tests; the test that destroys it is the last one.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends.ray import RayHosts, ray_cluster, ray_obstacle
from tests.backends.test_ray import END, START, Job
from tests.helpers import ROOT, wait_until
from tests.launch.test_launch import write_workspace

pytestmark = [
    pytest.mark.skipif(bool(ray_obstacle(True)), reason=ray_obstacle(True)),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def hosts() -> Iterator[RayHosts]:
    with ray_cluster("gnj", dashboard=True) as cluster:
        yield cluster


class Submitted(Job):
    """A job by `ray job submit` on host 1; its entry point runs on the head."""

    def __init__(self, hosts: RayHosts, folder: Path, command: str) -> None:
        self.hosts, self.folder, self.out = hosts, folder, folder / "job.out"
        (folder / "tmp").mkdir()
        address = f"http://{hosts.addresses[0]}:8265"
        shell = hosts.shell(RAY_ADDRESS=address, PYTHONUNBUFFERED="1")
        self.ray = [*shell, "ray", "job"]
        launch = ["env", f"PYTHONPATH={ROOT}", f"TMPDIR={folder}/tmp", "python", "-m", "gnnlab"]
        launch += ["launch", "--workspace", str(folder), "--part_config", "graph.json"]
        launch += ["--log_dir", str(folder / "logs"), "--extra_envs", f"TEST_FOLDER={folder}"]
        launch += [f"TMPDIR={folder}/tmp", "GNNLAB_TEST_TOKEN=ray", "--", command]
        argv = [*self.ray, "submit", "--submission-id", "digits", "--", *launch]
        with open(self.out, "wb") as out:
            self.process = subprocess.Popen(
                hosts.argv(1, argv, folder), stdout=out, stderr=out, start_new_session=True
            )


def test_a_submitted_job_runs_and_is_stopped(hosts: RayHosts, tmp_path: Path) -> None:
    folder = write_workspace(tmp_path / "workspace", (0, 1, 2), 3)
    job = Submitted(hosts, folder, "python3 job.py hold")
    job.wait_for(*(f"{role}-{i}.pid" for role in ("server", "trainer") for i in range(3)))
    chosen = "the machines are those of the Ray cluster at 10.79.0.10:6379: gnj0, gnj1, gnj2"
    wait_until("the log", lambda: chosen in job.said, START)
    hosts.run(1, *job.ray, "stop", "digits", timeout=START)
    job.check_over()
    assert "Job 'digits' was stopped" in job.said
    hosts.run(1, *job.ray, "delete", "digits", timeout=START)
    for path in folder.glob("*.pid"):
        path.unlink()
    (folder / "tmp").rmdir()

    job = Submitted(hosts, folder, "python3 job.py reduce")
    assert job.process.wait(START) == 0, job.said
    assert "total 3.0 of 3" in job.said and "Job 'digits' succeeded" in job.said
    job.check_over()


def test_the_loss_of_the_head_with_its_host_ends_the_job(hosts: RayHosts, tmp_path: Path) -> None:
    """The launcher is on another host; this test destroys the cluster."""
    folder = write_workspace(tmp_path / "workspace", (0, 1, 2), 3)
    job = Job(hosts, folder, "--part_config", "graph.json", "python3 job.py hold", host=1)
    job.wait_for(*(f"{role}-{i}.pid" for role in ("server", "trainer") for i in range(3)))
    hosts.lose(0)
    assert job.process.wait(END)
    # The launcher looks for either once a second.
    said = r"gnj0 \(machine 0\): no sign of life|gnj. .*: the agent ended; Ray's head is lost"
    assert re.match(f"gnnlab launch: ({said})", job.failure()), job.said
    ours = ("job.py", "ray_hub", "find_spec(")
    for i in (1, 2):
        wait_until("the end", lambda i=i: not any(hosts.find(i, word) for word in ours), END)
        assert "gnnlab" not in hosts.run(i, "ls", "/dev/shm")
