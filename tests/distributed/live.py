"""Servers in threads of the test's own process, and one in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil

from gnnlab.distributed.job import JobSettings, Keys
from gnnlab.distributed.remote import Remote
from gnnlab.distributed.server import Server
from tests.distributed.cluster import make_keys
from tests.helpers import ROOT, free_port


def make_job(
    part_config: Path, machines: int = 2, servers: int = 1, ranks: int = 1, curve: bool = False
) -> JobSettings:
    """A job as its first trainer sees it."""
    return JobSettings(
        id=uuid4().hex[:12],
        role="trainer",
        machine=0,
        num_machines=machines,
        server=-1,
        num_servers=servers,
        rank=0,
        num_ranks=ranks,
        local_rank=0,
        num_samplers=0,
        addresses=tuple(("127.0.0.1", free_port()) for _ in range(machines * servers)),
        part_config=str(part_config),
        keys=Keys(**make_keys(machines)) if curve else None,
        timeout=60.0,  # a server may have to compile before its first answer
    )


@contextmanager
def serving(job: JobSettings) -> Iterator[list[Server]]:
    """Run all servers of a job."""
    with ExitStack() as stack:
        servers = []
        for number in range(len(job.addresses)):
            of = replace(job, role="server", server=number, machine=number // job.num_servers)
            server = Server(of)
            stack.callback(server.close)
            server.start()
            servers.append(server)
        yield servers


@contextmanager
def connected(job: JobSettings, **changes: Any) -> Iterator[Remote]:
    """A trainer of the job."""
    remote = Remote(replace(job, **changes))
    try:
        yield remote
    finally:
        remote.close()


@contextmanager
def launched(
    job: JobSettings, max_files: tuple[int, int] | None = None
) -> Iterator[psutil.Process]:
    """Run the only server of a job as a process of its own, with a limit of open files."""
    addresses = [list(address) for address in job.addresses]
    env = {
        "OMP_NUM_THREADS": "1",
        "DGL_ROLE": "server",
        "DGL_DIST_MODE": "distributed",
        "DGL_SERVER_ID": "0",
        "DGL_NUM_SERVER": str(job.num_servers),
        "DGL_CONF_PATH": job.part_config,
        "GNNLAB_SERVERS": json.dumps(addresses),
        "GNNLAB_JOB": job.id,
        "GNNLAB_SECURITY": "curve" if job.keys else "none",
    }
    if job.keys:
        env["GNNLAB_KEYS"] = json.dumps(asdict(job.keys))
    limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, {max_files})\n" if max_files else ""
    source = f"import resource\n{limit}import gnnlab\ngnnlab.distributed.initialize()"
    near, far = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", source],
        env={**os.environ, **env, "GNNLAB_READY_FD": str(far)},
        pass_fds=[far],
        cwd=ROOT,
    )
    os.close(far)
    try:
        with os.fdopen(near) as line:
            assert line.read() == "ready\n"
        yield psutil.Process(process.pid)
        assert process.poll() is None, "the server has ended"
    finally:
        process.terminate()
        process.wait(20)
