"""From global to local IDs.

A block numbers its nodes from 0: first the seeds, then each neighbor in order of first appearance.
The usual way to know whether a node is new is a hash table; here it is one array, indexed by global
ID, that holds the local ID or −1. The array has one entry per node of the graph, so it is taken
from a pool, and only the entries that were written are cleared when it is returned.

One list grows through all layers: the sources of a layer are the destinations of the one before.
"""

from __future__ import annotations

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.kernels.dtypes import ids_dtype
from gnnlab.kernels.jit import njit, prefetch, unsigned

_POOL: dict[int, list[np.ndarray]] = {}
_POOL_SIZE = 4  # arrays of one size: batches made concurrently
_AHEAD = 32  # how many entries ahead positions are prefetched
_MOST_SIZES = 16  # a typed graph uses one array per node type


class NodeList:
    """A growing list of distinct nodes, IDs below ``num_nodes``, with the position of each.

    Close it after use.
    """

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes = num_nodes
        self.count = 0
        self._ids = np.empty(0, ids_dtype(num_nodes))
        try:
            self._position = _POOL.setdefault(num_nodes, []).pop()
        except IndexError:
            self._position = np.full(num_nodes, -1, np.int32)

    def close(self) -> None:
        """Clear the array of positions and return it to the pool."""
        _clear(self._position, unsigned(self._ids), self.count)
        if len(_POOL) > _MOST_SIZES:
            _POOL.clear()
        pool = _POOL.setdefault(self.num_nodes, [])
        if len(pool) < _POOL_SIZE:
            pool.append(self._position)

    def __enter__(self) -> NodeList:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def ids(self) -> torch.Tensor:
        """Global IDs in order of entry, shape (count,), int32 where they fit."""
        return torch.from_numpy(self._ids[: self.count])

    def _reserve(self, extra: int) -> None:
        # The relabeling loop writes one entry past the end, hence the + 1.
        need = min(self.count + extra, self.num_nodes) + 1
        if need > len(self._ids):
            grown = np.empty(need, self._ids.dtype)
            grown[: self.count] = self._ids[: self.count]
            self._ids = grown

    def start(self, seeds: torch.Tensor) -> None:
        """Add the seeds, shape (S,); raise an error unless they are distinct and exist."""
        self._reserve(len(seeds))
        self.count = int(_enter(seeds.numpy(), self.num_nodes, self._ids, self._position))
        if self.count < len(seeds):
            node = int(seeds[self.count])
            if 0 <= node < self.num_nodes:
                if len(seeds) > 2 and int(seeds.min()) >= 0 and int(seeds.max()) <= 1:
                    raise InvalidInput(
                        "the seeds are all 0 or 1, which looks like part of a mask; the IDs of a "
                        "mask are mask.nonzero().squeeze(1)"
                    )
                raise InvalidInput(
                    f"node {node} stands twice among the seeds (dst_nodes, src_nodes of a block), "
                    "which must be distinct; pass torch.unique(seeds)"
                )
            raise OutOfRange(
                f"node {node} does not exist: the graph has nodes 0 to {self.num_nodes - 1}"
            )

    def add(self, ids: torch.Tensor, overwrite: bool = False) -> torch.Tensor:
        """Add the nodes that are not in the list yet; return the local IDs of all, (E,), int32.

        IDs are not checked. ``overwrite`` puts the result into ``ids`` if int32: half the traffic.
        """
        nodes = ids.numpy()
        self._reserve(len(nodes))
        local = nodes if overwrite and nodes.dtype == np.int32 else np.empty(len(nodes), np.int32)
        self.count = int(
            _relabel(unsigned(nodes), unsigned(self._ids), self.count, self._position, local)
        )
        return torch.from_numpy(local)

    def find(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the local ID of each node, shape (E,), int32; −1 where it is not in the list."""
        return torch.from_numpy(self._position[ids.numpy()])


@njit(nogil=True, cache=True)
def _enter(seeds, num_nodes, ids, position):  # type: ignore[no-untyped-def]
    for i in range(len(seeds)):
        v = seeds[i]
        if v < 0 or v >= num_nodes or position[v] >= 0:
            return i
        position[v] = i
        ids[i] = v
    return len(seeds)


@njit(nogil=True, cache=True)
def _relabel(nodes, ids, count, position, local):  # type: ignore[no-untyped-def]
    # No branch: every step writes, and the counter moves only for a new node.
    count, last = np.uint64(count), len(nodes) - 1
    for e in range(len(nodes)):
        prefetch(position, nodes[min(e + _AHEAD, last)])
        v = nodes[e]
        p = position[v]
        new = p < 0
        ids[count] = v
        p = np.int32(count) if new else p
        position[v] = p
        local[e] = p
        count += np.uint64(new)
    return count


@njit(nogil=True, cache=True)
def _clear(position, ids, count):  # type: ignore[no-untyped-def]
    for i in range(count):
        position[ids[i]] = -1
