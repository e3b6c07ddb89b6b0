"""Joining a job as a server, trainer or sampler.

A script that is started by hand, or in a notebook, runs in *standalone mode*: this process is the
only trainer, and it holds all parts of a graph itself. The same script, started by a launcher on
many machines, sends requests to servers instead. ``initialize`` detects the mode.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
from typing import Any

import torch

from gnnlab import trace
from gnnlab.distributed import context
from gnnlab.distributed.job import JobSettings, is_distributed
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch import environment as e
from gnnlab.parallel import rendezvous
from gnnlab.system.ending import await_torch_at_exit


def initialize(ip_config: Any = None, num_servers: int = 1, num_workers: int = 0) -> None:
    """Join the job; call it once, before ``torch.distributed.init_process_group``.

    In a job that a launcher has started, roles diverge here: on a server this call does not return,
    and the process ends with the job; a trainer starts its samplers and waits for all servers.

    Standalone mode ignores all arguments, and ``ip_config`` need not exist. The process can then
    call ``init_process_group("gloo")``, which creates a group of size 1. A second call, for
    instance when a notebook cell is rerun, starts over: graphs opened afterwards have the features
    of their files and no other tensors, and the process group is destroyed.

    Parameters
    ----------
    ip_config : path, optional
        The machines, one IP address a line. The launcher's environment variables take precedence
        over this and the other arguments.
    num_servers : int
        Server processes per machine.
    num_workers : int
        Sampler processes per trainer.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.distributed.initialize("ip_config.txt")
    >>> dgl.distributed.initialize("ip_config.txt", 1, num_workers=4)
    """
    me = context.process()
    if me.join is not None:
        me.context = me.context or me.join()
        return
    if is_distributed():
        if me.context is None or me.context.remote is None:
            join(JobSettings.read(ip_config, num_servers, num_workers))
        return
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks != 1:
        raise GNNLabError(
            f"standalone mode is one process, but WORLD_SIZE is {ranks}: ranks would each write to "
            "a copy of the data. Start one process, or train on one machine with gnnlab.parallel"
        )
    if me.context is not None and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()
    # Port 0: the system picks a free port; no other process needs to know it.
    alone = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0", "RANK": "0", "WORLD_SIZE": "1"}
    for name, value in alone.items():
        os.environ.setdefault(name, value)
    await_torch_at_exit()
    me.context = context.Context(latest=me.context.latest if me.context else None)
    trace.start_if_asked(0)


class DistGraphServer:
    """Make this process a server of a job, instead of ``gnnlab launch`` and ``initialize``.

    Trainers and samplers find it by the same ``ip_config`` and number of servers.

    Parameters
    ----------
    server_id : int
        Counted over all machines: server s is on machine ``s // num_servers``.
    ip_config : str
        File with a line ``address [port]`` for each machine.
    num_servers : int
        Servers of each machine.
    part_config : str
        The JSON file of the partitioned graph.

    Examples
    --------
    >>> server = DistGraphServer(0, "ip_config.txt", 1, "data/graph.json")  # doctest: +SKIP
    >>> server.start()                                                      # doctest: +SKIP
    """

    def __init__(self, server_id: int, ip_config: str, num_servers: int, part_config: str) -> None:
        said: dict[str, Any] = {
            e.ROLE: "server",
            e.SERVER_ID: 0,
            e.NUM_SERVERS: num_servers,
            e.IP_CONFIG: ip_config,
            e.PART_CONFIG: part_config,
        }
        os.environ.update({name: str(value) for name, value in said.items()})
        num_all = len(JobSettings.read().addresses)
        if server_id not in range(num_all):
            raise InvalidInput(
                f"server_id must be from 0 to {num_all - 1}, for {num_servers} servers on each "
                f"machine of {ip_config}; found {server_id!r}"
            )
        os.environ[e.SERVER_ID] = str(server_id)
        self.job = JobSettings.read()

    def start(self) -> None:
        """Serve until all trainers have left the job, then exit with status 0."""
        from gnnlab.distributed.server import serve  # only servers need this module

        serve(self.job)


def join(job: JobSettings) -> None:
    """Join a job in its role; on a server this call does not return."""
    await_torch_at_exit()
    gc.freeze()  # at exit, Python would traverse torch's objects repeatedly, for seconds
    number = job.server if job.role == "server" else job.rank
    lane = f"process {os.getpid()}" if job.role == "sampler" else ""
    trace.start_if_asked(number, job.role, job.machine, lane)
    if job.role == "server":
        from gnnlab.distributed.server import serve  # only servers need this module

        serve(job)
    from gnnlab.distributed.sampler_processes import Samplers
    from gnnlab.distributed.server_transport import RemoteTransport

    samplers = Samplers(job) if job.role == "trainer" and job.num_samplers else None
    try:
        remote = RemoteTransport(job)
    except BaseException:
        if samplers:
            samplers.close()
        raise
    if job.role == "trainer":
        atexit.register(_tell_failure)
    atexit.register(_exit_undisturbed)  # runs before it
    context.process().context = context.Context(
        role=job.role, mode="distributed", remote=remote, samplers=samplers
    )
    if job.role == "trainer":
        rendezvous.notify_agent("ready")
        rendezvous.watch()


def _exit_undisturbed() -> None:
    """Leave the job at exit, ignoring Ctrl-C, which would leave files in shared memory."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # not restored: exit takes seconds at most
    context.exit_client()


def _tell_failure() -> None:
    """Report an uncaught exception before the interpreter ends, which may take some seconds."""
    origin = getattr(sys, "last_traceback", None)
    if not origin or origin.tb_frame.f_back or not isinstance(sys.last_value, Exception):
        return  # without one, or with one in a callback, which a C++ library has printed
    sys.stdout.flush()
    sys.stderr.flush()
    rendezvous.notify_agent("failing")
