"""Client of a partitioned graph: splits queries by owner and merges the replies.

A client turns a query about IDs of the whole graph into one message per owner, sends all of them at
once, and merges the replies. ``DistGraph`` and ``DistTensor`` access data only through it.
"""

from __future__ import annotations

import contextlib
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import torch

from gnnlab import kernels, trace
from gnnlab.distributed import messages as m
from gnnlab.distributed.cache import Cache, Table
from gnnlab.distributed.transport import Transport
from gnnlab.errors import GNNLabError, InvalidInput, NotFound
from gnnlab.graph.names import EdgeType, describe
from gnnlab.kernels import gather
from gnnlab.kernels.dtypes import DTYPES, check_stored, dtype_name
from gnnlab.kernels.owners import Shard
from gnnlab.partition.book import GraphPartitionBook, PartitionPolicy

Initializer = Callable[[tuple[int, ...], torch.dtype], torch.Tensor] | torch.Tensor
_AT_ONCE = m.MAX_REPLY  # bytes of rows, or of their IDs, that are read or written at once


class TensorReference:
    """A shared reference; its tensor is deleted with the last holder. See :meth:`Client.refer`."""

    __slots__ = ("__weakref__",)


class Client:
    """One trainer's access to a partitioned graph.

    ``source``, its name and the path of its JSON file, opens it again in another process.
    """

    def __init__(
        self, book: GraphPartitionBook, transport: Transport, source: tuple[str, str]
    ) -> None:
        self.book = book
        self.transport = transport
        self.source = source
        self.etype_ids: dict[EdgeType, int] = {t: i for i, t in enumerate(book.canonical_etypes)}
        self._tensors: dict[str, m.Description] = {}
        self._references: WeakValueDictionary[str, TensorReference] = WeakValueDictionary()
        self._kept: set[str] = set()
        self._num_anonymous = 0
        self.cache = Cache(transport)
        self.refresh()
        self._kept.update(self._tensors)

    def ask(self, messages: Mapping[int, m.Message]) -> list[Any]:
        """Send one message to each part named; return the replies in the order given."""
        return self.transport.exchange(list(messages.items()))

    def barrier(self) -> None:
        """Wait until all trainers have called this."""
        self.transport.barrier()

    # --------------------------------------------------------- which tensors
    def refresh(self) -> None:
        """Fetch the list of tensors."""
        (self._tensors,) = self.ask({self.transport.local_part: m.Describe()})

    def names(self, policy_str: str) -> list[str]:
        """Return the names of the features with this policy."""
        start = f"{policy_str}~"
        return [
            name.removeprefix(start)
            for name, description in list(self._tensors.items())  # other threads may add tensors
            if description.is_gdata and name.startswith(start)
        ]

    def description(self, name: str) -> m.Description:
        """Return row shape and dtype of a tensor, by its full name."""
        if name.endswith(m.ORIGINAL_IDS):
            return m.Description((), dtype_name(torch.int64), False)
        if name not in self._tensors:
            raise NotFound(
                f"there is no distributed tensor {name!r}; there are {describe(self._tensors)}"
            )
        return self._tensors[name]

    def policy_for(self, num_rows: int) -> PartitionPolicy:
        """Find the type whose number of nodes or edges is ``num_rows``."""
        names = [f"node~{t}" for t in self.book.ntypes]
        names += [f"edge~{':'.join(t)}" for t in self.book.canonical_etypes]
        policies = [PartitionPolicy(name, self.book) for name in names]
        found = [policy for policy in policies if policy.get_size() == num_rows]
        if len(found) == 1:
            return found[0]
        if found:
            raise InvalidInput(
                f"{num_rows} rows may belong to {describe(p.policy_str for p in found)}; say which "
                "by part_policy=g.get_node_partition_policy(type) or get_edge_partition_policy(…)"
            )
        sizes = ", ".join(f"{p.policy_str} has {p.get_size()}" for p in policies)
        raise InvalidInput(
            f"no type has {num_rows} nodes or edges, so no machine would own the rows: {sizes}"
        )

    def create(
        self,
        policy: PartitionPolicy,
        name: str | None,
        row_shape: tuple[int, ...],
        dtype: torch.dtype,
        init: Initializer | None = None,
        is_gdata: bool = True,
    ) -> str:
        """Create a tensor, or reuse an equal one of that name; return its full name.

        Nothing is created unless ``init`` succeeds for every part.
        """
        if name is None:
            name = f"anonymous-{self._num_anonymous}"
            self._num_anonymous += 1
        full, kind = policy.get_data_name(name), dtype_name(dtype)
        check_stored(dtype, full)
        first = None
        if init is not None:
            first = partial(_first_values, init, row_shape, dtype, policy.ranges)
        self.transport.create(m.Create(full, row_shape, kind, is_gdata), first)
        self.refresh()
        return full

    def delete(self, name: str) -> None:
        """Delete a tensor in all parts; in a job, once all ranks have deleted it."""
        self.ask(dict.fromkeys(range(self.transport.num_parts), m.Delete(name)))
        self._tensors.pop(name, None)
        self._kept.discard(name)

    def refer(self, name: str, persistent: bool = False) -> TensorReference:
        """Return the reference to a tensor, which is deleted when nothing holds the reference.

        A persistent tensor is kept.
        """
        if persistent:
            self._kept.add(name)
        reference = self._references.get(name)
        if reference is None:
            reference = self._references[name] = TensorReference()
            weakref.finalize(reference, self._expire, name).atexit = False
        return reference

    def _expire(self, name: str) -> None:
        if name in self._tensors and name not in self._kept and name not in self._references:
            with contextlib.suppress(GNNLabError):  # the graph may be closed by now
                self.delete(name)

    # ------------------------------------------------------------------- rows
    def pull(self, policy: PartitionPolicy, name: str, ids: torch.Tensor) -> torch.Tensor:
        """Read rows of the tensor of a full name: shape (K, …), for type-wise IDs of shape (K,)."""
        return self.pull_many([(policy, name, ids)])[0]

    def pull_many(
        self, wanted: Sequence[tuple[PartitionPolicy, str, torch.Tensor]]
    ) -> list[torch.Tensor]:
        """Read rows of several tensors, with one round trip to each machine.

        Takes the arguments of :meth:`pull` of each tensor, and returns the rows in the same order.
        """
        found: list[Any] = [None] * len(wanted)
        reads = []
        for i, (policy, name, ids) in enumerate(wanted):
            there = self.description(name)
            if len(ids) > (step := _step(there)):
                out = gather.empty((len(ids), *there.row_shape), DTYPES[there.dtype])
                for at in range(0, len(ids), step):
                    out[at : at + step] = self.pull(policy, name, ids[at : at + step])
                found[i] = out
            else:
                reads.append((i, name, *self._plan(policy, name, ids)))
        far = [(name, shard) for _, name, shards, _, _ in reads for shard in shards]
        replies = iter(self._fetch(far, [near for *_, near, _ in reads if near]))
        for i, _, shards, _, finish in reads:
            found[i] = finish([next(replies) for _ in shards])
        return found

    def _plan(
        self, policy: PartitionPolicy, name: str, ids: torch.Tensor
    ) -> tuple[
        list[Shard], Callable[[], None] | None, Callable[[list[torch.Tensor]], torch.Tensor]
    ]:
        """Return what to fetch from other machines, what to do meanwhile, and what afterwards."""
        there = self.description(name)
        shards = kernels.owners.split(ids, policy.ranges, f"{name}: row")
        tables = [self.transport.readable(shard.part, name) for shard in shards]
        far = [shard for shard, table in zip(shards, tables, strict=True) if table is None]
        kept = self._table(policy, name) if far else None
        if len(shards) == len(far) == 1 and kept is None:
            return far, None, lambda values: values[0]
        out = gather.empty((len(ids), *there.row_shape), DTYPES[there.dtype])
        if kept is not None:
            for shard in kept.beforehand():
                kept.keep(shard, *self.transport.exchange([(shard.part, m.Pull(name, shard.rows))]))
            kept.expect(ids)
            far = [shard for shard in (kept.take(p, out) for p in far) if len(shard.rows)]

        def copy_near() -> None:
            for shard, table in zip(shards, tables, strict=True):
                if table is not None:
                    kernels.owners.copy_rows(table, shard.rows, out, shard.positions)

        def finish(values: list[torch.Tensor]) -> torch.Tensor:
            for shard, rows in zip(far, values, strict=True):
                kernels.owners.copy_rows(rows, None, out, shard.positions)
                if kept is not None:
                    kept.keep(shard, rows)
            return out

        return far, copy_near, finish

    def _fetch(
        self, shards: list[tuple[str, Shard]], near: Sequence[Callable[[], None]]
    ) -> list[torch.Tensor]:
        """Fetch rows of tensors from other machines, and copy those of this one meanwhile."""

        def meanwhile() -> None:
            for copy in near:
                copy()

        if not shards:
            meanwhile()
            return []
        rows = sum(len(shard.rows) for _, shard in shards)
        names = ", ".join(dict.fromkeys(name for name, _ in shards))
        with trace.span("fetch", message="Pull", name=names, rows=rows):
            asked = [(shard.part, m.Pull(name, shard.rows)) for name, shard in shards]
            return self.transport.exchange(asked, meanwhile)

    # ------------------------------------------------------------------- cache
    def use_cache(self, num_bytes: int | None = None, policy: str | None = None) -> None:
        """Cache rows of other machines in this much memory; what is not given stays as it is."""
        before = self.cache.num_bytes, self.cache.policy
        num_bytes = before[0] if num_bytes is None else num_bytes
        policy = before[1] if policy is None else policy
        if (num_bytes, policy) != before:
            self.cache = Cache(self.transport, num_bytes, policy)

    def _table(self, policy: PartitionPolicy, name: str) -> Table | None:
        """Return the cache table of a tensor; None if its rows may change, or without cache."""
        cache = self.cache
        if not cache.num_bytes:
            return None
        if name not in cache.tables:
            there = self.description(name)
            cache.add(policy, name, there, self.transport.freeze(name) if there.is_gdata else [])
        return cache.tables[name]

    # ------------------------------------------------------------------ writes
    def push(
        self, policy: PartitionPolicy, name: str, ids: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Write ``values[i]`` to row ``ids[i]``; of repeated IDs, the last value wins."""
        step = _step(self.description(name))
        for at in range(0, len(ids), step):
            shards = kernels.owners.split(ids[at : at + step], policy.ranges, f"{name}: row")
            some = values[at : at + step]
            self._write(
                {p: m.Push(name, rows, _take(some, positions)) for p, rows, positions in shards}
            )

    def update(
        self,
        policy: PartitionPolicy,
        name: str,
        ids: torch.Tensor,
        grads: torch.Tensor,
        rule: str,
        options: Mapping[str, float],
        states: tuple[str, ...] = (),
        rank: int = 0,
        num_ranks: int = 1,
        step: int = 1,
    ) -> None:
        """Send gradients of rows to their owners: with several ranks to all, perhaps empty ones."""
        shards = kernels.owners.split(ids, policy.ranges, f"{name}: row")
        given = {p: (rows, _take(grads, positions)) for p, rows, positions in shards}
        if num_ranks > 1:
            nothing = ids[:0], grads[:0]
            given = {p: given.get(p, nothing) for p in range(self.transport.num_parts)}
        self._write(
            {
                p: m.Update(name, *rows, rule, options, states, rank, num_ranks, step)
                for p, rows in given.items()
            }
        )

    def _write(self, messages: dict[int, m.Push] | dict[int, m.Update]) -> None:
        far = [x for p, x in messages.items() if self.transport.readable(p, x.name) is None]
        if not far:
            self.ask(messages)
            return
        kind, rows = type(far[0]).__name__, sum(len(message.rows) for message in far)
        with trace.span("fetch", message=kind, name=far[0].name, rows=rows):
            self.ask(messages)

    def count_nonzero(self, name: str) -> int:
        """Count the elements of a tensor that are not zero."""
        return sum(self.ask(dict.fromkeys(range(self.transport.num_parts), m.CountNonzero(name))))


def _step(there: m.Description) -> int:
    """Return the maximum number of rows of a tensor in one message."""
    width = math.prod(there.row_shape) * DTYPES[there.dtype].itemsize
    return max(1, _AT_ONCE // max(width, torch.int64.itemsize))


def _take(values: torch.Tensor, positions: torch.Tensor | slice) -> torch.Tensor:
    return values[positions] if isinstance(positions, slice) else gather.rows(values, positions)


def _first_values(
    init: Initializer, row_shape: tuple[int, ...], dtype: torch.dtype, offsets: Any, part: int
) -> torch.Tensor:
    first, last = offsets[part : part + 2].tolist()
    shape = (last - first, *row_shape)
    if isinstance(init, torch.Tensor):
        return init[first:last].detach().cpu().clone()
    values = init(shape, dtype)
    if isinstance(values, torch.Tensor) and (values.shape, values.dtype) == (shape, dtype):
        return values
    found = type(values).__name__
    if isinstance(values, torch.Tensor):
        found = f"{values.dtype} of shape {tuple(values.shape)}"
    raise InvalidInput(
        f"init_func(shape, dtype) must return a tensor of {dtype} and shape {shape}; it returned "
        f"{found}"
    )
