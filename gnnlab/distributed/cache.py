"""Cache of feature rows that other machines own.

Mini-batches read the features of the same high-degree nodes repeatedly. A process with spare memory
caches the rows that it has fetched. Cached values equal the owners': only features of the partition
that were never written to are cached, and their owners then refuse writes
(:class:`gnnlab.distributed.messages.Freeze`).

Rows of other machines are cached on fetch, never prefetched. Which of them stay is decided by a
policy (:mod:`gnnlab.distributed.policies`). Rows of a file on this machine fill the cache first: in
their order, the disk reads ten times as many in a second.

References
----------
Lin et al., "PaGraph: Scaling GNN Training on Large Graphs via Computation-aware Caching", SoCC
2020: by degree. Yang et al., "GNNLab: A Factored System for Sample-based GNN Training over GPUs",
EuroSys 2022 (it shares the name of this package, nothing else): by counted requests.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.dataloading.transfer import CacheInfo
from gnnlab.distributed import messages as m
from gnnlab.distributed.inclusion import edges_into
from gnnlab.distributed.ondisk import OnDisk, edges_from
from gnnlab.distributed.policies import (
    POLICIES,
    Chosen,
    EpochReads,
    Placement,
    Planned,
    Scored,
    ranked,
)
from gnnlab.distributed.transport import Transport
from gnnlab.errors import InvalidInput
from gnnlab.helpers.fork import Lock
from gnnlab.kernels import gather
from gnnlab.kernels.dtypes import read_dtype
from gnnlab.kernels.owners import Shard
from gnnlab.launch import environment
from gnnlab.partition.book import PartitionPolicy

_AT_ONCE = 16 << 20  # bytes of a file that are read beforehand by one message


def check_policy(policy: Any) -> str:
    """Return the name of a policy; raise InvalidInput if there is no such one."""
    if policy not in POLICIES:
        raise InvalidInput(f"cache_policy is one of {', '.join(POLICIES)}; found {policy!r}")
    return policy


class Cache:
    """Cached rows of one graph in one process. A forked child starts with an empty cache.

    ``num_bytes`` limits the memory, which features share in proportion to their sizes; by default
    ``GNNLAB_CACHE_BYTES``, or 0. ``policy`` is a name in :mod:`gnnlab.distributed.policies`; by
    default ``GNNLAB_CACHE_POLICY``, or "access".
    """

    def __init__(
        self, transport: Transport, num_bytes: int | None = None, policy: str | None = None
    ) -> None:
        if num_bytes is None:
            num_bytes = environment.number(environment.CACHE_BYTES, 0)
        if policy is None:
            policy = os.environ.get(environment.CACHE_POLICY) or "access"
        if isinstance(num_bytes, bool) or not isinstance(num_bytes, int) or num_bytes < 0:
            raise InvalidInput(f"cache_bytes is a number of bytes, or 0; found {num_bytes!r}")
        self.transport, self.num_bytes, self.policy = transport, num_bytes, check_policy(policy)
        # For "vip": node type → numbers of the remote rows by probability, the highest first.
        self.best: dict[str, np.ndarray] = {}
        # For "belady": node type → the remote rows that this epoch needs.
        self.plans: dict[str, EpochReads] = {}
        # Full name of a tensor → its table, or None if its rows cannot be cached.
        self.tables: dict[str, Table | None] = {}
        self._pid, self._lock = os.getpid(), Lock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock; in a forked child, empty the tables first."""
        if self._pid != os.getpid():  # forked, perhaps while a thread changed the tables
            self._pid = os.getpid()
            for table in self._used():
                table.restart()
        with self._lock:
            yield

    def _used(self) -> list[Table]:
        return [table for table in self.tables.values() if table is not None]

    def add(
        self, policy: PartitionPolicy, name: str, there: m.Description, parts: Collection[int]
    ) -> None:
        """Add a table for a feature that some parts have frozen; other tables are emptied."""
        with self.alone():
            if name in self.tables:
                return
            self.tables[name] = table = Table(self, policy, there, parts) if parts else None
            if table is None:
                return
            full = sum(each.full_size for each in self._used())
            for each in self._used():
                each.resize(self.num_bytes * each.full_size // full)
            if not table.num_slots:
                warnings.warn(
                    f"cache_bytes={self.num_bytes} leaves no room for rows of {name}, which have "
                    f"{table.row_bytes} bytes",
                    stacklevel=2,
                )

    def prepare(self, best: dict[str, np.ndarray]) -> None:
        """Set the rows worth keeping, for "vip"; those of an earlier call stay."""
        with self.alone():
            if not self.best:
                self.best = best
                self.tables.clear()

    def follow(self, plans: dict[str, EpochReads]) -> None:
        """Set the plan of an epoch, for "belady"."""
        with self.alone():
            self.plans = plans
            for table in self._used():
                table.follow(plans)

    def info(self) -> CacheInfo:
        """Return the statistics."""
        with self.alone():
            found = {name: table.info() for name, table in self.tables.items() if table is not None}
        return CacheInfo.of(found)


class Table:
    """Cached rows of one feature, of those parts that allow it.

    Rows of other parts are numbered consecutively, without those of the own part.
    """

    def __init__(
        self, cache: Cache, policy: PartitionPolicy, there: m.Description, parts: Collection[int]
    ) -> None:
        self._cache, self._there, self._parts = cache, there, frozenset(parts)
        self._type = str(policy.type_name) if policy.is_node else None
        self._local_part = cache.transport.local_part
        self._borders = policy.ranges.tolist()
        low, high = own_range(cache.transport, policy.ranges)
        self._own, self._num_rows = (low, high), policy.get_size() - (high - low)
        self._placement = self._make_placement(policy)
        self.follow(cache.plans)
        self.row_bytes = math.prod(there.row_shape) * read_dtype(there.dtype).itemsize
        numbers = np.dtype(np.int32 if self._num_rows < 1 << 31 else np.int64)
        self.full_size = max(1, self._num_rows * (self.row_bytes + numbers.itemsize))
        self.hits = self.misses = self._reads = 0

    def _make_placement(self, policy: PartitionPolicy) -> Placement:
        cache, rows = self._cache, self._num_rows
        if cache.policy == "belady":
            return Planned(rows)
        if cache.policy == "vip":
            return Chosen(cache.best.get(self._type or "", np.zeros(0, np.int64)), rows)
        if not isinstance(cache.transport, OnDisk):
            edges = edges_into(cache.transport.part(), policy)
        elif cache.policy == "degree":
            edges = edges_from(cache.transport.stores or (), policy)
        else:
            edges = np.broadcast_to(np.float32(0), rows)  # nothing is read before it is needed
        if cache.policy == "halo":
            return Chosen(ranked((edges > 0).astype(np.float32)), rows)
        return Scored(edges, counts=cache.policy == "access")

    @property
    def num_slots(self) -> int:
        """Number of rows for which there is memory."""
        return self._placement.num_slots

    def resize(self, num_bytes: int) -> None:
        """Allocate memory, and start empty."""
        if isinstance(self._cache.transport, OnDisk) and isinstance(self._placement, Planned):
            num_bytes = max(0, num_bytes - 12 * self._num_rows)  # which the plan takes
        dtype, shape = read_dtype(self._there.dtype), self._there.row_shape
        self._values = gather.empty((0, *shape), dtype)  # the old ones are freed first
        self._placement.resize(num_bytes, self.row_bytes)
        self._values = gather.empty((self.num_slots, *shape), dtype)
        self._reads = 0

    def restart(self) -> None:
        """Drop all rows and counts."""
        self._placement.clear()
        self.hits = self.misses = self._reads = 0

    def beforehand(self) -> Iterator[Shard]:
        """Yield rows of files to be kept, at the second read: adding a table empties the others."""
        with self._cache.alone():
            self._reads += 1
            if self._reads != 2 or not isinstance(self._cache.transport, OnDisk):
                return
        for rows in self._placement.wanted(max(1, _AT_ONCE // (self.row_bytes + 64))):
            for shard in kernels.owners.split(torch.from_numpy(rows), np.array(self._borders)):
                yield Shard(shard.part, shard.rows, slice(0, len(shard.rows)))

    def follow(self, plans: dict[str, EpochReads]) -> None:
        """Follow the plan of the node type, if it has one."""
        if isinstance(self._placement, Planned) and self._type in plans:
            self._placement.follow(plans[self._type])

    def expect(self, ids: torch.Tensor) -> None:
        """Tell which rows are read next, by their IDs in the whole graph."""
        if isinstance(self._placement, Planned):
            with self._cache.alone():
                self._placement.expect(remote_numbers(ids, self._own))

    def _shift(self, part: int) -> int:
        """Return the offset from rows of a part to row numbers."""
        low, high = self._own
        return self._borders[part] - (high - low if part > self._local_part else 0)

    def take(self, shard: Shard, out: torch.Tensor) -> Shard:
        """Copy cached rows to their positions in ``out``; return the rows that are missing."""
        with self._cache.alone():
            if not self.num_slots or shard.part not in self._parts:
                self.misses += len(shard.rows)
                return shard
            slots = self._placement.look_up(shard.rows.numpy(), self._shift(shard.part))
            here, missing = (torch.from_numpy(np.flatnonzero(x)) for x in (slots >= 0, slots < 0))
            self.hits += len(here)
            self.misses += len(missing)
            if not len(here):
                return shard
            from_slots, to = torch.from_numpy(slots)[here], _some(shard.positions, here)
            kernels.owners.copy_rows(self._values, from_slots, out, to)
        return Shard(shard.part, shard.rows[missing], _some(shard.positions, missing))

    def keep(self, shard: Shard, values: torch.Tensor) -> None:
        """Cache those of the fetched rows whose scores are high enough."""
        with self._cache.alone():
            if not self.num_slots or shard.part not in self._parts:
                return
            shift = self._shift(shard.part)
            slots = torch.from_numpy(self._placement.admit(shard.rows.numpy(), shift))
            chosen = (slots >= 0).nonzero().flatten()
            kernels.owners.copy_rows(values, chosen, self._values, slots[chosen])

    def info(self) -> CacheInfo:
        """Return the statistics."""
        size = self._placement.num_bytes() + self.num_slots * self.row_bytes
        return CacheInfo(self.hits, self.misses, self._placement.num_held(), size)


def _some(positions: torch.Tensor | slice, index: torch.Tensor) -> torch.Tensor:
    return index + positions.start if isinstance(positions, slice) else positions[index]


def own_range(transport: Transport, ranges: np.ndarray) -> tuple[int, int]:
    """Return the first ID of the rows in memory, and the one after their last; (0, 0) for none."""
    if isinstance(transport, OnDisk):
        return 0, 0
    low, high = ranges[transport.local_part : transport.local_part + 2].tolist()
    return low, high


def remote_numbers(ids: torch.Tensor, own: tuple[int, int]) -> np.ndarray:
    """Return the row numbers of those IDs that are not in the own range, in their order."""
    low, high = own
    found = ids.numpy().astype(np.int64)
    found = found[(found < low) | (found >= high)]
    return np.where(found >= high, found - (high - low), found)
