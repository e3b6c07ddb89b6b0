"""Routing of messages to servers.

A part has one or more servers. Reads of the own machine's rows are answered from shared memory;
those of other machines' rows go to the owner's servers, round-robin. A write goes to the server
that owns its rows, other messages to the first server. Subclasses of :class:`Routes` deliver the
messages: over sockets, or within a simulation.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import kernels, trace
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.job import Job
from gnnlab.distributed.memory import SharedStore
from gnnlab.distributed.traffic import Count, Traffic, kind_of, num_rows
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.partition.book import PartitionPolicy
from gnnlab.partition.part import Part

__all__ = ["Routes", "owned_rows"]


def _nothing() -> None:
    pass


class Routes(abc.ABC):
    """A transport to numbered servers.

    Parameters
    ----------
    job : Job
    store : SharedStore
        The rows of this machine.

    Attributes
    ----------
    traffic : Traffic
        Requests of this process.
    """

    def __init__(self, job: Job, store: SharedStore) -> None:
        self.job, self.store = job, store
        self.num_parts, self.local_part = job.num_machines, job.machine
        self.traffic = Traffic(job.num_machines)
        self._turn = itertools.count(job.rank)
        self._num_meetings = 0
        self._shared: set[tuple[int, str]] = set()

    @abc.abstractmethod
    def ask(
        self,
        targets: Sequence[tuple[int, Any]],
        meanwhile: Callable[[], None] = _nothing,
        patience: float = 0.0,
        timeout: float | None = None,
    ) -> list[Any]:
        """Send messages to servers, all at once, and return the replies in the same order."""

    def count(self, server: int, message: Any, bytes_out: int, bytes_in: int) -> None:
        """Count a message to a server, and its reply."""
        kind = kind_of(message, self.store.is_gdata)
        count = Count(1, num_rows(message), bytes_out, bytes_in)
        self.traffic.add(self.job.machine, server // self.job.num_servers, kind, count)

    # ----------------------------------------------------------------- transport
    def exchange(self, requests: Sequence[tuple[int, m.Message]]) -> list[Any]:
        """Send each message to its part, all at once; return the replies in the same order."""
        if self.job.role != "trainer":  # samplers own no tensors
            requests = [(p, m.Describe() if isinstance(x, m.Delete) else x) for p, x in requests]
        routes = [self._route(part, message) for part, message in requests]
        far = [target for route in routes for target in route]
        here = [i for i, route in enumerate(routes) if not route]
        replies: list[Any] = [None] * len(requests)

        def meanwhile() -> None:
            for i in here:
                replies[i] = self.store.answer(requests[i][1])

        if not far:
            meanwhile()
            return replies
        came = iter(self.ask(far, meanwhile))
        for i, route in enumerate(routes):
            for _ in route:
                replies[i] = next(came)
        return replies

    def _route(self, part: int, message: m.Message) -> list[tuple[int, Any]]:
        """Return the servers for a message to a part; none if it is answered locally."""
        first, servers = part * self.job.num_servers, self.job.num_servers
        if isinstance(message, wire.READS):
            if part == self.local_part:
                return []
            return [(first + next(self._turn) % servers, message)]
        if isinstance(message, m.Push | m.Update):
            self._share(part, message)
            return self._to_owners(part, message)
        if isinstance(message, m.Delete):
            self._shared.discard((part, message.name))
            return [(first, wire.Release(message.name, self.job.rank, self.job.num_ranks))]
        return [(first, message)]

    def _share(self, part: int, message: Any) -> None:
        """Copy a feature of the partition to shared memory before the first write to it."""
        names = (message.name, *getattr(message, "states", ()))
        new = [name for name in names if (part, name) not in self._shared]
        if new:
            self.ask([(part * self.job.num_servers, wire.Share(name)) for name in new])
            self._shared.update((part, name) for name in new)

    def _to_owners(self, part: int, message: Any) -> list[tuple[int, Any]]:
        """Split a write by the servers that own its rows; an update goes to all of them."""
        servers, first = self.job.num_servers, part * self.job.num_servers
        if servers == 1:
            return [(first, message)]
        field = "values" if isinstance(message, m.Push) else "grads"
        values = getattr(message, field)
        borders = self._borders(part, message.name)
        pieces = {
            piece.part: (piece.rows + borders[piece.part], values[piece.places])
            for piece in kernels.route.split(message.rows, borders)
        }
        if isinstance(message, m.Update):
            nothing = message.rows[:0], values[:0]
            pieces = {owner: pieces.get(owner, nothing) for owner in range(servers)}
        return [
            (first + owner, dataclasses.replace(message, rows=rows, **{field: some}))
            for owner, (rows, some) in pieces.items()
        ]

    def _borders(self, part: int, name: str) -> Any:
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
        asked = self.meet(f"making of {message.name}", what)
        if len(set(asked)) > 1:
            raise InvalidInput(
                "all trainers must make a distributed tensor alike; asked for were "
                + ", ".join(f"{words} by rank {rank}" for rank, words in enumerate(asked))
            )
        mine: Exception | None = None
        is_new, server = False, self.local_part * self.job.num_servers
        if self.job.local_rank == 0:
            try:
                (is_new,) = self.ask([(server, message)])
                if is_new and first is not None:
                    values, table = (
                        first(self.local_part),
                        self.readable(self.local_part, message.name),
                    )
                    assert table is not None
                    table.copy_(values)
            except Exception as error:
                mine = error
        words = self.meet(f"first values of {message.name}", "" if mine is None else repr(mine))
        if any(words):
            if is_new:
                self.ask([(server, wire.Release(message.name, 0, 1))])
            rank, text = next((rank, text) for rank, text in enumerate(words) if text)
            raise mine or GNNLabError(f"rank {rank} could not make {message.name}: {text}")
        self._shared.update((part, message.name) for part in range(self.num_parts))

    def freeze(self, name: str) -> list[int]:
        """Ask the owners to make a feature of the partition read-only; return those that did."""
        parts, servers = range(self.num_parts), self.job.num_servers
        replies = self.ask([(part * servers, wire.Freeze(name)) for part in parts])
        return [part for part, will in zip(parts, replies, strict=True) if will]

    def barrier(self) -> None:
        """Wait until all trainers have called this."""
        self.meet("barrier")

    def meet(self, place: str, words: str = "") -> tuple[str, ...]:
        """Wait for all trainers, and return the text of each."""
        if self.job.role != "trainer":
            raise GNNLabError(f"{place}: only trainers wait for each other, not samplers")
        self._num_meetings += 1
        message = wire.Meet(
            f"{place} (meeting {self._num_meetings})", self.job.rank, self.job.num_ranks, words
        )
        with trace.span("wait", place=place):
            (found,) = self.ask([(0, message)], patience=10.0)
        return found

    def statistics(self) -> list[dict[str, wire.Traffic]]:
        """Return the traffic of each server: kind of message → :class:`Traffic`."""
        return self.ask([(s, wire.Statistics()) for s in range(len(self.job.addresses))])


def owned_rows(num_rows: int, num_servers: int) -> Any:
    """Borders of the rows of a part that each of its servers owns; shape (servers + 1,)."""
    return np.arange(num_servers + 1) * num_rows // num_servers
