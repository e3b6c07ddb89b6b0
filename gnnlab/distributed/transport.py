"""Transports, which deliver messages to the stores.

A transport is a client's only interface to the machines: the number of parts, and a way to query
them. In standalone mode every store is in this process, and a query is a function call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from gnnlab.distributed.messages import Create, Message
from gnnlab.distributed.part_store import Store
from gnnlab.errors import GNNLabError
from gnnlab.partition.part import Part


def nothing() -> None:
    """Do nothing meanwhile."""


class Transport(Protocol):
    """Interface of a client to the machines; ``local_part`` is the part on this one."""

    num_parts: int
    local_part: int

    def exchange(
        self, requests: Sequence[tuple[int, Message]], meanwhile: Callable[[], None] = nothing
    ) -> list[Any]:
        """Send each message to its part, all at once; return the replies in the same order.

        ``meanwhile`` is called once, while they are in flight. Errors of a store are raised here.
        """

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of a tensor in place; None if this process cannot access them."""

    def part(self) -> Part:
        """Return the part on this machine."""

    def create(self, message: Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Create a tensor in all parts; all trainers must call this with equal arguments.

        ``first(part)`` returns the initial values of a part; zeros without it. An existing tensor
        keeps its values.
        """

    def freeze(self, name: str) -> list[int]:
        """Ask the owners to make a feature of the partition read-only; return those that did."""

    def barrier(self) -> None:
        """Wait until all trainers have called this."""

    def close(self) -> None:
        """Release the stores."""


class InProcess:
    """All stores in this process, in the order of the parts: standalone mode."""

    def __init__(self, stores: Sequence[Store]) -> None:
        self.num_parts = len(stores)
        self.local_part = 0
        self.stores: Sequence[Store] | None = stores

    def _open(self) -> Sequence[Store]:
        if self.stores is None:
            raise GNNLabError(
                "this graph was closed by exit_client(); open it again with "
                "gnnlab.distributed.DistGraph(…)"
            )
        return self.stores

    def exchange(
        self, requests: Sequence[tuple[int, Message]], meanwhile: Callable[[], None] = nothing
    ) -> list[Any]:
        """Query one store after the other."""
        meanwhile()
        stores = self._open()
        return [stores[part].answer(message) for part, message in requests]

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of any part."""
        return self._open()[part].tensors.get(name)

    def part(self) -> Part:
        """Return the first part."""
        return self._open()[self.local_part].part

    def create(self, message: Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Create a tensor in all parts, or in none if ``first`` fails."""
        parts = range(self.num_parts)
        is_new = self.readable(0, message.name) is None
        values = {part: first(part) if first and is_new else None for part in parts}
        self.exchange([(part, replace(message, values=values[part])) for part in parts])

    def freeze(self, name: str) -> list[int]:
        """Freeze nothing: every row is read in place."""
        return []

    def barrier(self) -> None:
        """Return at once: there is one trainer."""

    def close(self) -> None:
        """Release the stores; later queries raise GNNLabError."""
        self.stores = None
