"""From global to local IDs with torch operators, for GPUs.

Sorting replaces the one pass over the edges: a node's local ID is the rank of its first appearance,
so the result equals that of ``relabel`` bit for bit.
"""

from __future__ import annotations

import torch

from gnnlab.errors import InvalidInput

__all__ = ["NodeList"]


class NodeList:
    """As :class:`gnnlab.kernels.relabel.NodeList`, on any device."""

    def __init__(self, num_nodes: int) -> None:
        self.num_nodes = num_nodes
        self.ids = torch.empty(0, dtype=torch.int64)

    @property
    def count(self) -> int:
        """Number of nodes in the list."""
        return len(self.ids)

    def start(self, seeds: torch.Tensor) -> None:
        """Add the seeds, distinct and in range (range not checked)."""
        self.ids = seeds.long()
        if len(torch.unique(seeds)) < len(seeds):
            raise InvalidInput(
                "a node stands twice among the seed (destination) nodes, which must be distinct; "
                "pass torch.unique(seeds)"
            )

    def add(self, ids: torch.Tensor, overwrite: bool = False) -> torch.Tensor:
        """Add the nodes that are not in the list yet; return the local IDs of all, int32."""
        both = torch.cat([self.ids.to(ids.device), ids.long()])
        distinct, inverse = torch.unique(both, return_inverse=True)
        place = torch.arange(len(both), device=ids.device)
        first = torch.full_like(distinct, len(both)).scatter_reduce_(0, inverse, place, "amin")
        self.ids = both[torch.sort(first).values]
        return self.find(ids)

    def find(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the local ID of each node, int32; −1 where it is not in the list."""
        position = torch.full((self.num_nodes,), -1, dtype=torch.int32, device=ids.device)
        position[self.ids] = torch.arange(self.count, dtype=torch.int32, device=ids.device)
        return position[ids.long()]

    def close(self) -> None:
        """Do nothing: this list holds no pooled array."""

    def __enter__(self) -> NodeList:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
