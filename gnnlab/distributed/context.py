"""The role of this process in a job, and the graphs that it has opened.

:mod:`gnnlab.distributed.startup` sets the context when the process joins the job; others read it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch

from gnnlab.distributed.client import Client
from gnnlab.distributed.ondisk import OnDisk
from gnnlab.distributed.part_store import Store
from gnnlab.distributed.transport import InProcess
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.partition.book import GraphPartitionBook
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part

_Stamp = tuple[int, int, int]


@dataclass
class Context:
    """State of this process in its job; servers have none."""

    role: str = "trainer"  # or "sampler", which makes batches for a trainer
    mode: str = "standalone"  # or "distributed"
    remote: Any = None  # RemoteTransport: the servers of the job
    samplers: Any = None  # Samplers: the sampler processes of this trainer
    #: Path of the JSON file → its modification time, size and inode, and the client.
    opened: dict[str, tuple[_Stamp, Client]] = field(default_factory=dict)
    latest: Client | None = None


@dataclass
class ProcessState:
    """The state of a process, or of a thread that simulates one."""

    context: Context | None = None  # None before joining a job and after leaving it
    join: Callable[[], Context] | None = None  # joins the job of a simulated process


_process = ProcessState()
_played = threading.local()
_clients: WeakValueDictionary[int, Client] = WeakValueDictionary()  # by id of the partition book


def process() -> ProcessState:
    """Return the state of this process, or of the one that this thread simulates."""
    return getattr(_played, "process", _process)


@contextmanager
def playing(part: ProcessState) -> Iterator[None]:
    """Let this thread simulate a process."""
    before = process()
    _played.process = part
    try:
        yield
    finally:
        _played.process = before


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


def open_client(
    graph_name: str, part_config: Any, verify: bool = True, on_disk: bool = False
) -> Client:
    """Return the client of a partitioned graph; reopen it if the files have changed.

    In a job it is the client of the graph that the servers serve.
    """
    context = current()
    remote, stamp = context.remote, (0, 0, 0)
    if remote:
        if graph_name != remote.graph_name:
            raise InvalidInput(
                f"this job serves the graph {remote.graph_name!r}; found {graph_name!r}. The "
                "launcher's --part_config says which graph it is"
            )
        if on_disk:
            raise InvalidInput(
                "memory= is for one process that reads a partition from its disk; in a job, "
                "machines hold the parts: give cache_bytes="
            )
        path = str(Path(remote.job.part_config).resolve())
    else:
        config = read_config(part_config, graph_name)
        path = str(config.path.resolve())
        stat = os.stat(path)
        stamp = stat.st_mtime_ns, stat.st_size, stat.st_ino
    key = f"{path} on disk" if on_disk else path
    if key not in context.opened or context.opened[key][0] != stamp:
        transport = remote
        if not remote:
            verify = verify and not on_disk  # which reads all
            parts = [open_part(config, part, verify=verify) for part in range(config.num_parts)]
            transport = (OnDisk if on_disk else InProcess)([Store(part) for part in parts])
        client = Client(transport.part().book, transport, (graph_name, path))
        _clients[id(client.book)] = client
        context.opened[key] = stamp, client
    context.latest = context.opened[key][1]
    return context.latest


def reopen_client(graph_name: str, part_config: str, on_disk: bool = False) -> Client:
    """Return the client of an unpickled graph, also before ``initialize``."""
    me = process()
    if me.context is None:
        me.context = Context()
    before = me.context.latest
    client = open_client(graph_name, part_config, verify=False, on_disk=on_disk)
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
