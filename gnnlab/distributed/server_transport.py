"""Transports to servers: which server gets which message, and what its replies mean.

Destinations are those of :mod:`gnnlab.distributed.protocol`. Reads of rows of the own machine are
answered from shared memory; all other messages go to servers: through sockets, or in a simulation
to objects of this process (:mod:`gnnlab.simulate.simulated_transport`).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from gnnlab import kernels, trace
from gnnlab.distributed import messages as m
from gnnlab.distributed.connections import Pool, bad_reply
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.memory import Memory, SharedStore
from gnnlab.distributed.protocol import EXCHANGES, BadReply, To, check_reply, kind_of, num_rows
from gnnlab.distributed.traffic import Count, Traffic
from gnnlab.distributed.transport import nothing
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.helpers.fork import Lock
from gnnlab.multiprocessing import raise_file_limit
from gnnlab.partition.book import PartitionPolicy
from gnnlab.partition.files import read_config
from gnnlab.partition.part import Part, open_part

_LEAVING = 2.0  # seconds to tell the servers that this trainer leaves


class ServerTransport:
    """A transport to the servers of a job; real and simulated ones derive from it.

    ``store`` has the rows of this machine. ``send`` sends messages to servers, see
    :meth:`Pool.carry`; None where a subclass has its own :meth:`request`.
    """

    def __init__(
        self, job: JobSettings, store: SharedStore, send: Callable[..., Any] | None = None
    ) -> None:
        self.job, self.store, self._send = job, store, send
        self.num_parts, self.local_part = job.num_machines, job.machine
        self._turn = itertools.count(job.rank)
        self._num_meetings = 0
        self._shared: set[tuple[int, str]] = set()
        # Server and kind → requests, rows, bytes out, bytes in. A prefetch thread counts as well.
        self._counts: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        self._lock = Lock()  # reentrant: freeing a tensor within the lock sends a message

    # ------------------------------------------------------------------- servers
    def request(
        self,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None] = nothing,
        timeout: float | None = None,
    ) -> list[Any]:
        """Send messages to servers, all at once, and return the replies in the same order.

        ``meanwhile`` is called once while the messages are in flight; ``timeout`` in seconds is by
        default that of the job. A server that refuses a message raises its error here.
        """
        timeout = self.job.timeout if timeout is None else timeout
        assert self._send is not None
        answers = self._send(targets, meanwhile, timeout)
        for (server, message), (reply, bytes_out, bytes_in) in zip(targets, answers, strict=True):
            if not isinstance(reply, Exception):
                self._check(server, message, reply)
            kind = kind_of(message, self.store.is_gdata)
            self.count(server, kind, num_rows(message), bytes_out, bytes_in)
        for reply, *_ in answers:
            if isinstance(reply, Exception):
                raise reply
        return [reply for reply, *_ in answers]

    def count(self, server: int, kind: str, rows: int, bytes_out: int, bytes_in: int) -> None:
        """Count a message to a server, and its reply."""
        with self._lock:
            counts = self._counts[server, kind]
            for i, value in enumerate((1, rows, bytes_out, bytes_in)):
                counts[i] += value

    def _check(self, server: int, message: Any, reply: Any) -> None:
        if getattr(message, "name", None) not in self.store.tensors:
            self.store.refresh()
        try:
            try:
                check_reply(self.store, message, reply)
            except BadReply:
                self.store.refresh()  # the tensor may have been deleted and created again
                check_reply(self.store, message, reply)
        except BadReply as error:
            what = type(message).__name__
            raise BadReply(bad_reply(self.job, server, what, error)) from None

    @property
    def traffic(self) -> Traffic:
        """Requests of this process to each machine, and their replies."""
        found = Traffic(self.num_parts)
        with self._lock:
            counts = {key: Count(*values) for key, values in self._counts.items()}
        for (server, kind), count in counts.items():
            found.add(self.job.machine, server // self.job.num_servers, kind, count)
        return found

    # ----------------------------------------------------------------- transport
    def exchange(
        self, requests: Sequence[tuple[int, m.Message]], meanwhile: Callable[[], None] = nothing
    ) -> list[Any]:
        """Send each message to its part, all at once; see :meth:`Transport.exchange`."""
        if self.job.role != "trainer":  # samplers own no tensors
            requests = [(p, m.Describe() if isinstance(x, m.Delete) else x) for p, x in requests]
        routes = [self._route(part, message) for part, message in requests]
        far = [target for route in routes for target in route]
        here = [i for i, route in enumerate(routes) if not route]
        replies: list[Any] = [None] * len(requests)

        def answer_here() -> None:
            for i in here:
                replies[i] = self.store.answer(requests[i][1])
            meanwhile()

        if not far:
            answer_here()
            return replies
        came = iter(self.request(far, answer_here))
        for i, route in enumerate(routes):
            for _ in route:
                replies[i] = next(came)
        return replies

    def _route(self, part: int, message: m.Message) -> list[tuple[int, Any]]:
        """Return the servers for a message to a part; none if it is answered locally."""
        first, servers = part * self.job.num_servers, self.job.num_servers
        to = EXCHANGES[type(message)].to
        if to is To.ANY:
            if part == self.local_part:
                return []
            return [(first + next(self._turn) % servers, message)]
        if to in (To.OWNERS, To.ALL_OWNERS):
            self._share(part, message)
            return self._to_owners(part, message)
        if isinstance(message, m.Delete):
            self._shared.discard((part, message.name))
            return [(first, m.Release(message.name, self.job.rank, self.job.num_ranks))]
        return [(first, message)]

    def _share(self, part: int, message: Any) -> None:
        """Copy a feature of the partition to shared memory before the first write to it."""
        names = (message.name, *getattr(message, "states", ()))
        new = [name for name in names if (part, name) not in self._shared]
        if new:
            self.request([(part * self.job.num_servers, m.Share(name)) for name in new])
            self._shared.update((part, name) for name in new)

    def _to_owners(self, part: int, message: Any) -> list[tuple[int, Any]]:
        """Split a write by the servers that own its rows; see :class:`To`."""
        servers, first = self.job.num_servers, part * self.job.num_servers
        if servers == 1:
            return [(first, message)]
        field = "values" if isinstance(message, m.Push) else "grads"
        values = getattr(message, field)
        offsets = self._offsets(part, message.name)
        shards = {
            shard.part: (shard.rows + offsets[shard.part], values[shard.positions])
            for shard in kernels.owners.split(message.rows, offsets)
        }
        if EXCHANGES[type(message)].to is To.ALL_OWNERS:
            nothing = message.rows[:0], values[:0]
            shards = {owner: shards.get(owner, nothing) for owner in range(servers)}
        return [
            (first + owner, dataclasses.replace(message, rows=rows, **{field: some}))
            for owner, (rows, some) in shards.items()
        ]

    def _offsets(self, part: int, name: str) -> Any:
        policy = PartitionPolicy(name.rpartition("~")[0], self.store.part.book)
        return owned_rows(int(policy.ranges[part + 1] - policy.ranges[part]), self.job.num_servers)

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of a tensor in place; None for parts of other machines."""
        if part != self.local_part:
            return None
        self.store.refresh()
        return self.store.tensors.get(name)

    def part(self) -> Part:
        """Return the part of this machine."""
        return self.store.part

    def create(self, message: m.Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Create a tensor on all machines; all trainers must call this with equal arguments.

        The first trainer of each machine writes the initial values to shared memory.
        """
        what = f"{message.name} {tuple(message.row_shape)} {message.dtype}"
        wanted = self.meet(f"making of {message.name}", what)
        if len(set(wanted)) > 1:
            raise InvalidInput(
                "all trainers must create a distributed tensor with equal arguments; found "
                + ", ".join(f"{each} by rank {rank}" for rank, each in enumerate(wanted))
            )
        mine: Exception | None = None
        is_new, server = False, self.local_part * self.job.num_servers
        if self.job.local_rank == 0:
            try:
                (is_new,) = self.request([(server, message)])
                if is_new and first is not None:
                    values = first(self.local_part)
                    table = self.readable(self.local_part, message.name)
                    assert table is not None
                    table.copy_(values)
            except Exception as error:
                mine = error
        texts = self.meet(f"first values of {message.name}", "" if mine is None else repr(mine))
        if any(texts):
            if is_new:
                self.request([(server, m.Release(message.name, 0, 1))])
            rank, text = next((rank, text) for rank, text in enumerate(texts) if text)
            raise mine or GNNLabError(f"rank {rank} could not make {message.name}: {text}")
        self._shared.update((part, message.name) for part in range(self.num_parts))

    def freeze(self, name: str) -> list[int]:
        """Ask the owners to make a feature of the partition read-only; return those that did."""
        parts, servers = range(self.num_parts), self.job.num_servers
        replies = self.request([(part * servers, m.Freeze(name)) for part in parts])
        return [part for part, will in zip(parts, replies, strict=True) if will]

    def barrier(self) -> None:
        """Wait until all trainers have called this."""
        self.meet("barrier")

    def meet(self, place: str, text: str = "") -> tuple[str, ...]:
        """Wait for all trainers, and return the text of each."""
        if self.job.role != "trainer":
            raise GNNLabError(f"{place}: only trainers wait for each other, not samplers")
        self._num_meetings += 1
        message = m.Meet(
            f"{place} (meeting {self._num_meetings})", self.job.rank, self.job.num_ranks, text
        )
        with trace.span("wait", place=place):
            (found,) = self.request([(0, message)], timeout=self.job.timeout + 10.0)
        return found

    def statistics(self) -> list[dict[str, m.MessageStats]]:
        """Return the traffic of each server: kind of message → :class:`MessageStats`."""
        return self.request([(s, m.Statistics()) for s in range(len(self.job.addresses))])


class RemoteTransport(ServerTransport):
    """Connections of one trainer or sampler to the servers of a job."""

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


def owned_rows(num_rows: int, num_servers: int) -> Any:
    """Borders of the rows of a part that each of its servers owns; shape (servers + 1,)."""
    return np.arange(num_servers + 1) * num_rows // num_servers
