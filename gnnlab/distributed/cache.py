"""Cache of feature rows that other machines own.

Mini-batches read the features of the same high-degree nodes repeatedly. A process with spare memory
caches the rows that it has fetched. Cached values equal the owners': only features of the partition
that were never written to are cached, and their owners then refuse writes
(:class:`gnnlab.distributed.messages.Freeze`).

Rows are cached on fetch, never prefetched. A score decides which rows stay: initially the number
of a node's edges into this machine's part, which is known locally. With the policy "access",
counted requests gradually outweigh it.

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
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gnnlab import environment, kernels
from gnnlab.distributed import messages as m
from gnnlab.distributed.transport import Transport
from gnnlab.errors import InvalidInput
from gnnlab.helpers.fork import Lock
from gnnlab.kernels import gather
from gnnlab.kernels.route import Piece
from gnnlab.partition.book import PartitionPolicy

__all__ = ["POLICIES", "Cache", "CacheInfo", "Table", "bytes_asked"]

POLICIES = ("access", "degree")
_WAYS = 8  # slots per set; their row numbers fit in a line of the CPU cache
_REQUEST = 16  # added to a row's score by a request
_HEAD_START = 4.0  # initial score of a node of mean degree, in requests
_FOR_SCORES = 4  # scores use at most 1 / this of the memory


@dataclass(frozen=True)
class CacheInfo:
    """Statistics of a cache since its creation; it holds rows of other machines.

    Attributes
    ----------
    hits, misses : int
        Requested rows that were in the cache, and that had to be fetched.
    rows : int
        Rows in the cache.
    bytes : int
        Memory allocated for rows and their scores.
    features : dict
        Full name of a feature → its CacheInfo.
    """

    hits: int = 0
    misses: int = 0
    rows: int = 0
    bytes: int = 0
    features: dict[str, CacheInfo] = field(default_factory=dict)

    @property
    def hit_rate(self) -> float:
        """Share of the requested rows that were in the cache; 0 before any request."""
        return self.hits / max(1, self.hits + self.misses)


def bytes_asked() -> int:
    """Return the number of bytes in the environment variable ``GNNLAB_CACHE_BYTES``, or 0."""
    return environment.number(environment.CACHE_BYTES, 0)


class Cache:
    """Cached rows of one graph in one process. A forked child starts with an empty cache.

    Parameters
    ----------
    transport : Transport
    num_bytes : int
        Memory limit; features share it in proportion to their sizes.
    policy : "access" or "degree"
        Keep the rows requested most often, or those of the nodes with most edges into this part.

    Attributes
    ----------
    tables : dict
        Full name of a tensor → its :class:`Table`, or None if its rows cannot be cached.
    """

    def __init__(self, transport: Transport, num_bytes: int, policy: str = "access") -> None:
        if isinstance(num_bytes, bool) or not isinstance(num_bytes, int) or num_bytes < 0:
            raise InvalidInput(f"cache_bytes is a number of bytes, or 0; found {num_bytes!r}")
        if policy not in POLICIES:
            raise InvalidInput(f"cache_policy is {' or '.join(POLICIES)}; found {policy!r}")
        self.transport, self.num_bytes, self.policy = transport, num_bytes, policy
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
        """Add a table for a feature; existing tables shrink and are emptied.

        Parameters
        ----------
        policy : PartitionPolicy
        name : str
            Full name of the feature.
        there : Description
        parts : collection of int
            Parts that have frozen the feature.
        """
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

    def info(self) -> CacheInfo:
        """Return the statistics."""
        with self.alone():
            found = {name: table.info() for name, table in self.tables.items() if table is not None}
        sums = {
            what: sum(getattr(each, what) for each in found.values())
            for what in ("hits", "misses", "rows", "bytes")
        }
        return CacheInfo(**sums, features=found)


class Table:
    """Cached rows of one feature.

    Rows of other parts are numbered consecutively, without those of the own part.

    Parameters
    ----------
    cache : Cache
    policy : PartitionPolicy
    there : Description
    parts : collection of int
        The parts whose rows may be cached.
    """

    def __init__(
        self, cache: Cache, policy: PartitionPolicy, there: m.Description, parts: Collection[int]
    ) -> None:
        self._cache, self._there, self._parts = cache, there, frozenset(parts)
        self._gain = _REQUEST if cache.policy == "access" else 0
        self._local_part = cache.transport.local_part
        self._borders = policy.ranges.tolist()
        self._scores, self._bits = _first_scores(cache.transport, policy), 0
        self._num_rows = len(self._scores)
        self._numbers = np.dtype(np.int32 if self._num_rows < 1 << 31 else np.int64)
        self.row_bytes = math.prod(there.row_shape) * m.read_dtype(there.dtype).itemsize
        self._slot_bytes = self.row_bytes + self._numbers.itemsize
        self.full_size = max(1, self._num_rows * self._slot_bytes)
        self.hits = self.misses = self.num_slots = 0

    def resize(self, num_bytes: int) -> None:
        """Allocate memory, and start empty."""
        while len(self._scores) > 1 and self._scores.nbytes * _FOR_SCORES > num_bytes:
            self._scores = np.maximum.reduceat(self._scores, np.arange(0, len(self._scores), 2))
            self._bits += 1
        slots = max(0, num_bytes - self._scores.nbytes) // self._slot_bytes
        if not len(self._scores):
            slots = 0  # an earlier resize dropped the scores: the table stays empty
        if slots == 0:
            self._scores = self._scores[:0].copy()
        self._ways = min(_WAYS, slots)
        sets = min(slots // _WAYS or 1, -(-self._num_rows // _WAYS))
        self.num_slots = sets * self._ways
        self._held = np.full(self.num_slots, -1, self._numbers)
        dtype = m.read_dtype(self._there.dtype)
        self._values = gather.empty((self.num_slots, *self._there.row_shape), dtype)

    def restart(self) -> None:
        """Drop all rows and counts; keep the scores."""
        self._held[:] = -1
        self.hits = self.misses = 0

    def _where(self, piece: Piece) -> tuple[Any, ...]:
        """Return arguments of the kernels, first the offset from rows of a part to row numbers."""
        low, high = self._borders[self._local_part : self._local_part + 2]
        shift = self._borders[piece.part] - (high - low if piece.part > self._local_part else 0)
        return shift, self._held, self._ways, self._scores, self._bits

    def take(self, piece: Piece, out: torch.Tensor) -> Piece:
        """Copy cached rows to their places in ``out``; return the rows that are missing."""
        with self._cache.alone():
            if not self.num_slots or piece.part not in self._parts:
                self.misses += len(piece.rows)
                return piece
            slots = kernels.cache.look_up(piece.rows.numpy(), *self._where(piece), self._gain)
            here, missing = (torch.from_numpy(np.flatnonzero(x)) for x in (slots >= 0, slots < 0))
            self.hits += len(here)
            self.misses += len(missing)
            if not len(here):
                return piece
            copy_rows = kernels.route.copy_rows
            copy_rows(self._values, torch.from_numpy(slots)[here], out, _some(piece.places, here))
        return Piece(piece.part, piece.rows[missing], _some(piece.places, missing))

    def keep(self, piece: Piece, values: torch.Tensor) -> None:
        """Cache those of the fetched rows whose scores are high enough."""
        with self._cache.alone():
            if not self.num_slots or piece.part not in self._parts:
                return
            slots = torch.from_numpy(kernels.cache.admit(piece.rows.numpy(), *self._where(piece)))
            chosen = (slots >= 0).nonzero().flatten()
            kernels.route.copy_rows(values, chosen, self._values, slots[chosen])

    def info(self) -> CacheInfo:
        """Return the statistics."""
        size = self._held.nbytes + self._scores.nbytes + self.num_slots * self.row_bytes
        return CacheInfo(self.hits, self.misses, int((self._held >= 0).sum()), size)


def _some(places: torch.Tensor | slice, index: torch.Tensor) -> torch.Tensor:
    return index + places.start if isinstance(places, slice) else places[index]


def _first_scores(transport: Transport, policy: PartitionPolicy) -> np.ndarray:
    """Return initial scores: the edges from each node of another part into this one.

    Returns
    -------
    ndarray
        Shape (rows of other parts,), uint16; the mean equals ``_HEAD_START`` requests. Zeros for
        edges.
    """
    low, high = policy.ranges[transport.local_part : transport.local_part + 2].tolist()
    scores = np.zeros(policy.get_size() - (high - low), np.float32)
    if policy.is_node:
        part = transport.part()
        nodes = part.nodes[str(policy.type_name)]
        numbers = nodes.halo.numpy() - np.where(nodes.halo.numpy() < low, 0, high - low)
        for etype, edges in part.edges.items():
            if etype[0] == policy.type_name:
                sources = edges.indices[: edges.num_inner]
                counts = torch.bincount(sources, minlength=nodes.num_inner + len(numbers))
                scores[numbers] += counts[nodes.num_inner :].numpy()
        scores *= _REQUEST * _HEAD_START / max(float(scores.mean(dtype=np.float64)), 1e-9)
    return scores.clip(0, np.iinfo(np.uint16).max).astype(np.uint16)
