"""Servers in threads of the test's own process, for tests that need no second one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from gnnlab.distributed.job import Job, Keys
from gnnlab.distributed.remote import Remote
from gnnlab.distributed.server import Server
from tests.distributed.cluster import make_keys
from tests.helpers import free_port


def make_job(
    part_config: Path, machines: int = 2, servers: int = 1, ranks: int = 1, curve: bool = False
) -> Job:
    """A job as its first trainer sees it."""
    return Job(
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
        keys=Keys(**make_keys()) if curve else None,
        timeout=60.0,  # a server may have to compile before its first answer
    )


@contextmanager
def serving(job: Job) -> Iterator[list[Server]]:
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
def connected(job: Job, **changes: Any) -> Iterator[Remote]:
    """A trainer of the job."""
    remote = Remote(replace(job, **changes))
    try:
        yield remote
    finally:
        remote.close()
