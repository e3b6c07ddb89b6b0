"""From global to local IDs with torch operators, for GPUs.

Like ``relabel``, it keeps one entry per node of the graph: the local ID of the node. A new node is
first given the position of each of its appearances, of which the smallest stays; so nodes are
numbered in the order of their first appearance, and the result equals that of ``relabel`` bit for
bit. The host waits once per call of ``add``, for the number of new nodes.
"""

from __future__ import annotations

import torch

from gnnlab.errors import InvalidInput

_NONE = torch.iinfo(torch.int64).max


class NodeList:
    """As :class:`gnnlab.kernels.relabel.NodeList`, on any device."""

    def __init__(self, num_nodes: int, device: torch.device | str = "cpu") -> None:
        self.device = torch.device(device)
        self.ids = torch.empty(0, dtype=torch.int64, device=self.device)
        self._local = torch.full((num_nodes,), _NONE, device=self.device)

    @property
    def count(self) -> int:
        """Number of nodes in the list."""
        return len(self.ids)

    def start(self, seeds: torch.Tensor) -> None:
        """Add the seeds, distinct and in range (range not checked); they may be on the CPU."""
        if len(torch.unique(seeds)) < len(seeds):
            raise InvalidInput(
                "a node stands twice among the seeds (dst_nodes, src_nodes of a block), which must "
                "be distinct; pass torch.unique(seeds)"
            )
        self.ids = seeds.long().to(self.device, non_blocking=True)
        self._local[self.ids] = torch.arange(len(self.ids), device=self.device)

    def add(self, ids: torch.Tensor, overwrite: bool = False) -> torch.Tensor:
        """Add the nodes that are not in the list yet; return the local IDs of all, int32."""
        ids, count = ids.long(), self.count
        position = torch.arange(count, count + len(ids), device=self.device)
        self._local.scatter_reduce_(0, ids, position, "amin")
        new = ids[self._local[ids] == position]
        self.ids = torch.cat([self.ids, new])
        self._local[new] = torch.arange(count, self.count, device=self.device)
        return self._local[ids].int()

    def find(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the local ID of each node, int32; −1 where it is not in the list."""
        local = self._local[ids.long()]
        return torch.where(local == _NONE, -1, local).int()

    def close(self) -> None:
        """Do nothing: this list holds no pooled array."""

    def __enter__(self) -> NodeList:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
