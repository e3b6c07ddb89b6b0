"""Traffic counters by source, target and kind.

Requests from one machine to another, and their replies, are counted in bytes by kind. Real and
simulated servers are counted by the same rules, so their counts can be compared.

- "structure": edges, degrees, endpoints of edges.
- "features": rows of graph data.
- "embeddings": rows of other distributed tensors.
- "gradients": optimizer steps.
- "control": all else, such as barriers and the creation of tensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.helpers.fork import Lock

KINDS = ("structure", "features", "embeddings", "gradients", "control")


@dataclass
class Count:
    """Requests in one direction, and their replies, in bytes without framing, TLS, TCP and IP.

    ``rows`` are the rows, or seeds, that the requests name.
    """

    requests: int = 0
    rows: int = 0
    bytes_out: int = 0
    bytes_in: int = 0

    def add(self, other: Count) -> None:
        """Add another count to this one."""
        self.requests += other.requests
        self.rows += other.rows
        self.bytes_out += other.bytes_out
        self.bytes_in += other.bytes_in


class Traffic:
    """Messages between machines, counted by source, target and kind."""

    def __init__(self, num_machines: int) -> None:
        self.num_machines = num_machines
        self._counts: dict[tuple[int, int, str], Count] = {}
        # Two threads count. Reentrant: freeing a tensor while this thread counts sends a message.
        self._lock = Lock()

    def add(self, source: int, target: int, kind: str, count: Count) -> None:
        """Count messages from one machine to another, or to its own servers."""
        _check_kind(kind)
        if not (0 <= source < self.num_machines and 0 <= target < self.num_machines):
            raise InvalidInput(
                f"expected machines from 0 to {self.num_machines - 1}; found {source} and {target}"
            )
        with self._lock:
            self._counts.setdefault((source, target, kind), Count()).add(count)

    def update(self, other: Traffic) -> None:
        """Add the counts of another object, for instance of another process."""
        for key, count in other._counts.items():
            self.add(*key, count)

    def items(self, local: bool = False) -> Iterator[tuple[int, int, str, Count]]:
        """Yield source, target, kind and count, sorted; ``local`` adds those to the own machine."""
        for (source, target, kind), count in sorted(
            self._counts.items(), key=lambda item: (*item[0][:2], KINDS.index(item[0][2]))
        ):
            if local or source != target:
                yield source, target, kind, count

    def total(self, kind: str | None = None) -> Count:
        """Return the sum over all pairs of different machines, of one kind or of all."""
        _check_kind(kind)
        found = Count()
        for _, _, each, count in self.items():
            if kind in (None, each):
                found.add(count)
        return found

    def matrix(self, kind: str | None = None) -> torch.Tensor:
        """Return the bytes that each machine received from each other one, of one kind or of all.

        Shape (K, K), int64: row i received from column j, in requests and replies.
        """
        _check_kind(kind)
        found = torch.zeros(self.num_machines, self.num_machines, dtype=torch.int64)
        for source, target, each, count in self.items():
            if kind in (None, each):
                found[source, target] += count.bytes_in
                found[target, source] += count.bytes_out
        return found

    def to_list(self) -> list[list[Any]]:
        """Return plain values, for a file; :meth:`from_list` reads them."""
        return [[*pair, *astuple(count)] for *pair, count in self.items(local=True)]

    @classmethod
    def from_list(cls, num_machines: int, values: list[list[Any]]) -> Traffic:
        """Return the counts that :meth:`to_list` wrote."""
        traffic = cls(num_machines)
        for source, target, kind, *counts in values:
            traffic.add(source, target, kind, Count(*counts))
        return traffic

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        head = ["matrix()", *map(str, range(self.num_machines))]
        rows = ([str(i), *row] for i, row in enumerate(self.matrix().tolist()))
        totals = {kind: self.total(kind) for kind in KINDS}
        sizes = {kind: float(one.bytes_out + one.bytes_in) for kind, one in totals.items()}
        drawing = cells.bars({"bytes": sizes})
        return cells.page(type(self).__name__, {}, cells.table(head, rows), drawing)

    def __repr__(self) -> str:
        """Return the bytes of each kind between different machines."""
        totals = ((kind, self.total(kind)) for kind in KINDS)
        parts = (f"{kind} {count.bytes_out + count.bytes_in:,} bytes" for kind, count in totals)
        return f"Traffic(machines={self.num_machines}, {', '.join(parts)})"


def _check_kind(kind: str | None) -> None:
    if kind is not None and kind not in KINDS:
        raise InvalidInput(f"no kind of traffic {kind!r}; there are {', '.join(KINDS)}")
