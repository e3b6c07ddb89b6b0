"""How messages reach the stores.

A transport is all that a client knows of the machines: how many parts there are, and how to ask
them. In standalone mode every store is in this process, and asking is a function call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import torch

from gnnlab.distributed.messages import Create, Message
from gnnlab.distributed.store import Store
from gnnlab.errors import GNNLabError
from gnnlab.partition.part import Part

__all__ = ["InProcess", "Transport"]


class Transport(Protocol):
    """What a client needs of the machines.

    Attributes
    ----------
    num_parts : int
    local_part : int
        The part on this machine.
    """

    num_parts: int
    local_part: int

    def exchange(self, requests: Sequence[tuple[int, Message]]) -> list[Any]:
        """Send each message to its part, all at once; return the replies in the same order.

        What a store refuses is raised here.
        """

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of a tensor where they lie, when this process can see that memory."""

    def part(self) -> Part:
        """Return the part on this machine."""

    def create(self, message: Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Make a tensor in all parts; all trainers call this alike.

        ``first(part)`` returns the first values of a part, where they are not zeros. A tensor that
        is there already keeps its own.
        """

    def freeze(self, name: str) -> list[int]:
        """Ask the owners to leave a feature of the partition as it is.

        Returns the parts that will, and refuse writes from now on.
        """

    def barrier(self) -> None:
        """Wait until all trainers have come here."""

    def close(self) -> None:
        """Let go of the stores."""


class InProcess:
    """All stores in this process: standalone mode.

    Parameters
    ----------
    stores : sequence of Store
        In the order of the parts.
    """

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

    def exchange(self, requests: Sequence[tuple[int, Message]]) -> list[Any]:
        """Ask one store after the other."""
        stores = self._open()
        return [stores[part].answer(message) for part, message in requests]

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of any part."""
        return self._open()[part].tensors.get(name)

    def part(self) -> Part:
        """Return the first part."""
        return self._open()[self.local_part].part

    def create(self, message: Create, first: Callable[[int], torch.Tensor] | None) -> None:
        """Make a tensor in all parts, or, when first values fail, in none."""
        parts = range(self.num_parts)
        is_new = self.readable(0, message.name) is None
        values = {part: first(part) if first and is_new else None for part in parts}
        self.exchange([(part, replace(message, values=values[part])) for part in parts])

    def freeze(self, name: str) -> list[int]:
        """Freeze nothing: every row is read where it lies."""
        return []

    def barrier(self) -> None:
        """Return at once: there is one trainer."""

    def close(self) -> None:
        """Let go of the stores; whoever asks afterwards is told so."""
        self.stores = None
