"""The role of this process in a job, and the graphs that it has opened.

A script that is started by hand, or in a notebook, runs in *standalone mode*: this process is the
only trainer, and it holds all parts of a graph itself. The same script, started by a launcher on
many machines, sends requests to servers instead. ``initialize`` detects the mode.

References
----------
DGL user guide, chapter 7.2, "Distributed APIs"; 7.4, "Launching".
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from gnnlab import trace
from gnnlab.distributed.client import Client
from gnnlab.distributed.job import Job, is_distributed
from gnnlab.distributed.store import Store
from gnnlab.distributed.transport import InProcess
from gnnlab.ending import await_torch_at_exit
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.parallel import rendezvous
from gnnlab.partition.book import GraphPartitionBook
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

__all__ = [
    "Context",
    "Process",
    "current",
    "exit_client",
    "initialize",
    "num_trainers",
    "playing",
    "rank",
]

_Stamp = tuple[int, int, int]


@dataclass
class Context:
    """State of this process in its job.

    Attributes
    ----------
    role : str
        "trainer", or "sampler", which makes batches for a trainer; servers have no context.
    mode : str
        "standalone", or "distributed".
    remote : Remote or None
        The servers of the job.
    samplers : Samplers or None
        The sampler processes of this trainer.
    """

    role: str = "trainer"
    mode: str = "standalone"
    remote: Any = None
    samplers: Any = None
    #: Path of the JSON file → its modification time, size and inode, and the client.
    opened: dict[str, tuple[_Stamp, Client]] = field(default_factory=dict)
    latest: Client | None = None


@dataclass
class Process:
    """A process, or a thread that simulates one.

    Attributes
    ----------
    context : Context or None
        None before joining a job and after leaving it.
    join : callable, optional
        Joins the job of a simulated process.
    """

    context: Context | None = None
    join: Callable[[], Context] | None = None


_process = Process()
_played = threading.local()
_clients: WeakValueDictionary[int, Client] = WeakValueDictionary()  # by id of the partition book


def process() -> Process:
    """Return this process, or the one that this thread simulates."""
    return getattr(_played, "process", _process)


@contextmanager
def playing(part: Process) -> Iterator[None]:
    """Let this thread simulate a process."""
    before = process()
    _played.process = part
    try:
        yield
    finally:
        _played.process = before


def initialize(
    ip_config: Any = None,
    num_servers: int = 1,
    num_workers: Any = 0,
    max_queue_size: Any = 100 * 1024**3,
    net_type: Any = None,
    num_worker_threads: int = 1,
    use_graphbolt: bool = False,
    **kwargs: Any,
) -> None:
    """Join the job; call it once, before ``torch.distributed.init_process_group``.

    In a job that a launcher has started, roles diverge here: on a server this call does not
    return, and the process ends with the job; a trainer starts its samplers, waits until all
    servers answer, and returns.

    Standalone mode ignores all arguments, and ``ip_config`` need not exist. The process can then
    call ``init_process_group("gloo")``, which creates a group of size 1. A second call, for
    instance when a notebook cell is rerun, starts over: graphs opened afterwards have the features
    of their files and no other tensors, and the process group is destroyed, so that it can be
    created again.

    Parameters
    ----------
    ip_config : path, optional
        The machines of the job, one IP address a line. Environment variables of the launcher take
        precedence over this and the other arguments.
    num_servers : int
        Server processes per machine.
    num_workers : int
        Sampler processes per trainer.
    max_queue_size, net_type, num_worker_threads, use_graphbolt, **kwargs
        Accepted for scripts of DGL, in the order of its older and its newer versions.

    Raises
    ------
    GNNLabError
        The environment variables are inconsistent, or the servers do not answer.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.distributed.initialize("ip_config.txt")
    >>> dgl.distributed.initialize("ip_config.txt", 1, num_workers=4)

    References
    ----------
    DGL user guide, chapter 7.2.
    """
    me = process()
    if me.join is not None:
        me.context = me.context or me.join()
        return
    if is_distributed():
        if me.context is None or me.context.remote is None:
            workers = num_workers if isinstance(num_workers, int) else 0
            join(Job.read(ip_config, num_servers, workers))
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
    me.context = Context(latest=me.context.latest if me.context else None)
    trace.start_if_asked(0)


def join(job: Job) -> None:
    """Join a job in its role; on a server this call does not return."""
    await_torch_at_exit()
    number = job.server if job.role == "server" else job.rank
    lane = f"process {os.getpid()}" if job.role == "sampler" else ""
    trace.start_if_asked(number, job.role, job.machine, lane)
    if job.role == "server":
        from gnnlab.distributed.server import serve

        serve(job)
    from gnnlab.distributed.remote import Remote
    from gnnlab.distributed.samplers import Samplers

    samplers = Samplers(job) if job.role == "trainer" and job.num_samplers else None
    try:
        remote = Remote(job)
    except BaseException:
        if samplers:
            samplers.close()
        raise
    atexit.register(_exit_undisturbed)
    process().context = Context(role=job.role, mode="distributed", remote=remote, samplers=samplers)
    if job.role == "trainer":
        rendezvous.tell_agent("ready")
        rendezvous.watch()


def exit_client() -> None:
    """Leave the job: graphs are closed, and the tensors on them are lost.

    A process that exits does this automatically.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.distributed.initialize()
    >>> dgl.distributed.exit_client()
    """
    me = process()
    context, me.context = me.context, None
    if context is not None:
        if context.samplers:
            context.samplers.close()
        for _, client in context.opened.values():
            client.transport.close()
        if context.remote:
            context.remote.close()


def _exit_undisturbed() -> None:
    """Leave the job at exit, ignoring Ctrl-C, which would leave files in shared memory."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # not restored: exit takes seconds at most
    exit_client()


def current() -> Context:
    """Return the job of this process; raises GNNLabError before ``initialize``."""
    context = process().context
    if context is None:
        raise GNNLabError(
            "call gnnlab.distributed.initialize() first; standalone mode needs no argument"
        )
    return context


def rank() -> int:
    """Return the position of this trainer among all trainers."""
    context = process().context
    if context is not None and context.remote:
        return context.remote.job.rank
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def num_trainers() -> int:
    """Return the number of trainers of the job."""
    context = process().context
    if context is not None and context.remote:
        return context.remote.job.num_ranks
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def samplers() -> Any:
    """Return the sampler processes of this trainer, or None."""
    context = process().context
    return None if context is None else context.samplers


def open_client(graph_name: str, part_config: Any, verify: bool = True) -> Client:
    """Return the client of a partitioned graph; its stores are opened on first use.

    They are reopened after another call of ``initialize``, or when the files have changed.
    """
    context = current()
    if context.remote:
        return _client_of_job(context, graph_name)
    config = read_config(part_config, graph_name)
    path = str(config.path.resolve())
    stat = os.stat(path)
    stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
    if path not in context.opened or context.opened[path][0] != stamp:
        parts = [open_part(config, part, verify=verify) for part in range(config.num_parts)]
        transport = InProcess([Store(part) for part in parts])
        client = Client(parts[0].book, transport, (graph_name, path))
        _clients[id(client.book)] = client
        context.opened[path] = stamp, client
    context.latest = context.opened[path][1]
    return context.latest


def _client_of_job(context: Context, graph_name: str) -> Client:
    """Return the client of the graph that the job's servers serve."""
    remote = context.remote
    if graph_name != remote.graph_name:
        raise InvalidInput(
            f"this job serves the graph {remote.graph_name!r}; found {graph_name!r}. The "
            "launcher's --part_config says which graph it is"
        )
    path = str(Path(remote.job.part_config).resolve())
    if path not in context.opened:
        client = Client(remote.part().book, remote, (graph_name, path))
        _clients[id(client.book)] = client
        context.opened[path] = (0, 0, 0), client
    context.latest = context.opened[path][1]
    return context.latest


def reopen_client(graph_name: str, part_config: str) -> Client:
    """Return the client of an unpickled graph, also before ``initialize``."""
    me = process()
    if me.context is None:
        me.context = Context()
    before = me.context.latest
    client = open_client(graph_name, part_config, verify=False)
    me.context.latest = before or client
    return client


def client_of(book: GraphPartitionBook | None = None) -> Client:
    """Return the client of the graph with a partition book, or of the graph opened last."""
    latest = current().latest
    found = latest if book is None else _clients.get(id(book))
    if found is None and latest is not None and _same_ranges(book, latest.book):
        found = latest
    if found is None:
        raise GNNLabError(
            "there is no distributed graph with this partition book; open the graph first with "
            "gnnlab.distributed.DistGraph(name, part_config=…)"
        )
    return found


def _same_ranges(one: Any, other: GraphPartitionBook) -> bool:
    pairs = ((one.node_ranges, other.node_ranges), (one.edge_ranges, other.edge_ranges))
    return all(
        a.keys() == b.keys() and all(np.array_equal(a[kind], b[kind]) for kind in a)
        for a, b in pairs
    )
