"""A partition on one machine that is larger than its memory.

Parts that one process opens are mapped files, and what is not in memory is read when it is touched.
That is fast until memory is full; then each touch waits for the disk. Here the rows and edges that
a message needs are asked for at once (:mod:`gnnlab.kernels.disk`), and rows of features go through
the cache that elsewhere holds rows of other machines, within the memory that the user gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.distributed import messages as m
from gnnlab.distributed.part_store import Store
from gnnlab.distributed.transport import InProcess, nothing
from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.kernels import disk
from gnnlab.launch.probe import free_memory
from gnnlab.partition.book import PartitionPolicy

_AT_ONCE = 1 << 20  # numbers of a file that are read at a time
# Bytes by node that a policy takes besides: always, and before it keeps any row.
_BY_POLICY = {"degree": (0, 6), "vip": (4, 80), "belady": (4, 0)}
_BESIDE = 300_000_000  # bytes beside the budget: compiled code, batches


def read_size(memory: Any) -> int:
    """Read a number of bytes, as a number or as text with a unit."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", str(memory).upper())
    if found is None or isinstance(memory, bool):
        raise InvalidInput(f"memory is a number of bytes, or text such as '2GB'; found {memory!r}")
    unit = found[2].replace("I", "").rstrip("B")
    base = 1024 if "I" in found[2] else 1000
    return int(float(found[1]) * base ** ("KMGT".index(unit) + 1 if unit else 0))


class OnDisk(InProcess):
    """All stores in this process; their features and edges stay in files, which are not written.

    Their parts may be opened without verification: indices are checked as they are used.
    """

    def __init__(self, stores: Sequence[Store]) -> None:
        super().__init__(stores)
        for store in stores:
            for etype, edges in store.part.edges.items():
                for at in range(0, len(edges.indptr), _AT_ONCE):
                    if bool((torch.diff(edges.indptr[at : at + _AT_ONCE + 1]) < 0).any()):
                        raise PartitionError(f"edges {etype} are damaged: indptr falls")
                disk.read_at_random(edges.indices)
            store.copy_rows = disk.copy_rows
            for name, values in store.tensors.items():
                if store.is_feature(name):
                    disk.read_at_random(values)

    def room(self, memory: int, policy: str, held: int) -> int:
        """Return what a budget leaves for rows, of which ``held`` bytes are there already.

        Raises InvalidInput if it does not hold the tables by node, or exceeds what is free.
        """
        nodes = sum(int(ranges[-1]) for ranges in self.part().book.node_ranges.values())
        local = [len(n.orig_ids) for s in self._open() for n in s.part.nodes.values()]
        staying, passing = _BY_POLICY.get(policy, (0, 0))
        # The positions of a batch's nodes; of several parts, the IDs of their nodes too.
        tables = (4 + staying) * nodes + (4 * sum(local) if self.num_parts > 1 else 0)
        least, free = tables + passing * nodes, free_memory()
        need = f"tables of {nodes:,} nodes take {least:_} with cache_policy={policy!r}"
        if 0 < memory < least:
            text = f"memory={memory:_} is too little: {need}; give more, or use 'access'"
            raise InvalidInput(text, code="memory_too_small")
        most = memory if free is None else free + held + tables if held else free - _BESIDE
        if memory > most:
            raise InvalidInput(
                f"memory={memory:_} does not fit: this process may still use {free:_} bytes, some "
                f"{_BESIDE:_} of them for code and batches; {need}. Give memory={max(0, most):_} "
                "or less, or allow the process more",
                code="memory_too_large",
            )
        return max(0, memory - tables)

    def readable(self, part: int, name: str) -> torch.Tensor | None:
        """Return the rows of a tensor in memory; None for a feature, which is in a file."""
        store = self._open()[part]
        return None if store.is_feature(name) else store.tensors.get(name)

    def exchange(
        self, requests: Sequence[tuple[int, m.Message]], meanwhile: Callable[[], None] = nothing
    ) -> list[Any]:
        """Ask the disk for the edges that the messages read, then answer one after the other."""
        for part, message in requests:
            store = self._open()[part]
            if isinstance(message, m.Sample):
                _will_need_edges(store, message)
            elif isinstance(message, m.Push | m.Update) and store.is_feature(message.name):
                raise InvalidInput(
                    f"{message.name} is read from its file and cannot be written; open the graph "
                    "without memory=, or create a DistTensor"
                )
        replies = super().exchange(requests, meanwhile)
        for (part, message), reply in zip(requests, replies, strict=True):
            if isinstance(message, m.Sample):
                _check_sources(self._open()[part], reply)
        return replies

    def freeze(self, name: str) -> list[int]:
        """Return all parts: features in files are never written."""
        return [part for part, store in enumerate(self._open()) if store.is_feature(name)]


def _will_need_edges(store: Store, message: m.Sample) -> None:
    for etype, fanout in zip(store.etypes, message.fanouts, strict=False):
        seeds = message.seeds.get(etype[2])
        if seeds is None or not fanout or not len(seeds):
            continue
        indptr, indices = (getattr(store.part.edges[etype], x) for x in ("indptr", "indices"))
        rows = torch.sort(seeds.long().clamp(0, len(indptr) - 2)).values
        disk.will_need(indices, indptr[rows].numpy(), indptr[rows + 1].numpy())


def _check_sources(store: Store, reply: Sequence[tuple[torch.Tensor, ...]]) -> None:
    for etype, (_, _, sources) in zip(store.etypes, reply, strict=True):
        bound = int(store.part.book.node_ranges[etype[0]][-1])
        if len(sources) and not (int(sources.min()) >= 0 and int(sources.max()) < bound):
            raise PartitionError(
                f"edges {etype} are damaged: a source is not from 0 to {bound - 1}"
            )


def edges_from(stores: Sequence[Store], policy: PartitionPolicy) -> np.ndarray:
    """Count the edges that leave each node, in all parts: shape (rows,), float32; reads all edges.

    Rows of edges have zeros.
    """
    found = np.zeros(policy.get_size(), np.float32)
    for store in stores if policy.is_node else ():
        nodes = store.part.nodes[str(policy.type_name)]
        where = int(policy.ranges[store.part.part_id]), nodes.num_inner, nodes.halo.numpy(), found
        for etype, edges in store.part.edges.items():
            for at in range(0, edges.num_inner if etype[0] == policy.type_name else 0, _AT_ONCE):
                end = min(at + _AT_ONCE, edges.num_inner)
                disk.will_need(edges.indices, np.array([at]), np.array([end]))
                if not kernels.cache.count_sources(edges.indices[at:end].numpy(), *where):
                    raise PartitionError(f"edges {etype} are damaged: a source does not exist")
    return found
