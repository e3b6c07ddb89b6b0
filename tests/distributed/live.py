"""Servers in threads of the test's own process, and one in a process of its own."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import psutil

from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.server import Server
from gnnlab.distributed.server_transport import RemoteTransport
from gnnlab.launch.certificates import Authority, Keys
from tests.helpers import ROOT, free_port

AUTHORITIES: dict[str, Authority] = {}
"""The authority of each job that :func:`make_job` has made, by its certificate."""


def make_job(
    part_config: Path, machines: int = 2, servers: int = 1, ranks: int = 1, tls: bool = False
) -> JobSettings:
    """A job as its first trainer sees it."""
    authority = Authority()
    AUTHORITIES[authority.certificate] = authority
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
        keys=authority.issue("client", 0) if tls else None,
        timeout=60.0,  # a server may have to compile before its first answer
    )


def keys_of(job: JobSettings, role: str, machine: int = 0) -> Keys | None:
    """Keys of another process of a job, "server" or "client"; None for a job without keys."""
    return AUTHORITIES[job.keys.authority].issue(role, machine) if job.keys else None


@contextmanager
def serving(job: JobSettings) -> Iterator[list[Server]]:
    """Run all servers of a job."""
    with ExitStack() as stack:
        servers = []
        for number in range(len(job.addresses)):
            machine = number // job.num_servers
            keys = keys_of(job, "server", machine)
            server = Server(replace(job, role="server", server=number, machine=machine, keys=keys))
            stack.callback(server.close)
            server.start()
            servers.append(server)
        yield servers


@contextmanager
def connected(job: JobSettings, **changes: Any) -> Iterator[RemoteTransport]:
    """A trainer of the job."""
    remote = RemoteTransport(replace(job, **changes))
    try:
        yield remote
    finally:
        remote.close()


@contextmanager
def launched(
    job: JobSettings, max_files: tuple[int, int] | None = None
) -> Iterator[psutil.Process]:
    """Run the only server of a job as a process of its own, with a limit of open files."""
    addresses, keys = [list(address) for address in job.addresses], keys_of(job, "server")
    env = {
        "OMP_NUM_THREADS": "1",
        "DGL_ROLE": "server",
        "DGL_DIST_MODE": "distributed",
        "DGL_SERVER_ID": "0",
        "DGL_NUM_SERVER": str(job.num_servers),
        "DGL_CONF_PATH": job.part_config,
        "GNNLAB_SERVERS": json.dumps(addresses),
        "GNNLAB_JOB": job.id,
        "GNNLAB_SECURITY": "tls" if keys else "none",
    }
    if keys:
        env["GNNLAB_KEYS"] = keys.to_json()
    limit = f"resource.setrlimit(resource.RLIMIT_NOFILE, {max_files})\n" if max_files else ""
    source = f"import resource\n{limit}import gnnlab\ngnnlab.distributed.initialize()"
    with ExitStack() as stack:
        folder = stack.enter_context(TemporaryDirectory())  # as that of an agent
        os.mkfifo(f"{folder}/events")
        events = stack.enter_context(os.fdopen(os.open(f"{folder}/events", os.O_RDWR), "rb", 0))
        env = {**os.environ, **env, "GNNLAB_OUTPUT": folder}
        process = subprocess.Popen([sys.executable, "-c", source], env=env, cwd=ROOT)
        stack.callback(process.wait, 20)
        stack.callback(process.terminate)
        assert select.select([events], [], [], 100)[0] == [events]
        assert events.read(100) == b"server 0 ready\n"
        yield psutil.Process(process.pid)
        assert process.poll() is None, "the server has ended"
