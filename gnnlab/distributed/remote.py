"""A trainer or sampler of a job on many machines: its shared memory and its connections."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from gnnlab.distributed import messages as m
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.router import Router
from gnnlab.distributed.sockets import Pool
from gnnlab.errors import GNNLabError
from gnnlab.multiprocessing import raise_file_limit
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

_LEAVING = 2.0  # seconds to tell the servers that this trainer leaves


class Remote(Router):
    """Connections of one trainer or sampler to the servers of a job.

    Parameters
    ----------
    job : JobSettings

    Raises
    ------
    GNNLabError
        A server did not answer in time, or serves another job or graph.
    """

    def __init__(self, job: JobSettings) -> None:
        raise_file_limit()
        config = read_config(job.part_config, num_parts=job.num_machines)
        part = open_part(config, job.machine, verify=False)
        self.graph_name = config.graph_name
        self.memory, self.pool = Memory(job.id, job.machine, job.timeout), Pool(job)
        super().__init__(job, SharedStore(part, self.memory), self.pool.carry)
        try:
            self._greet()
        except BaseException:
            self.pool.close()
            self.memory.close()
            raise

    def _greet(self) -> None:
        """Wait for all servers, and check that they serve this job and this graph."""
        servers = range(len(self.job.addresses))
        found = self.request([(server, m.Hello()) for server in servers])
        mine = self.job.id, self.graph_name, self.job.digest()
        for server, welcome in zip(servers, found, strict=True):
            theirs = welcome.job, welcome.graph_name, welcome.digest
            if theirs != mine or welcome.server != server:
                raise GNNLabError(
                    f"{self.job.name_of(server)} serves {theirs[1][:80]!r} in job "
                    f"{theirs[0][:80]} as server {welcome.server}; expected {mine[1]!r} in job "
                    f"{mine[0]}, from the same JSON file (found "
                    f"{theirs[2][:8]}…, expected {mine[2][:8]}…). Stop old servers, "
                    "and copy the partition to all machines again"
                )

    def close(self) -> None:
        """Leave the job: notify the servers, and close all connections."""
        if self.pool.is_closed or self.pool.pid != os.getpid():
            return
        if self.job.role == "trainer":
            bye = m.Bye(self.job.rank, self.job.num_ranks)
            deadline = time.monotonic() + _LEAVING
            for server in set(range(len(self.job.addresses))) - self.pool.lost:
                with suppress(GNNLabError):  # some may have ended already
                    self.request([(server, bye)], timeout=deadline - time.monotonic())
        self.pool.close()
        self.memory.close()
