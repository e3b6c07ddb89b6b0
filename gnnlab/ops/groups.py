"""Edges grouped by one of their ends: the input of every reduction.

A reduction needs the groups in one of two forms, computed on first use. A kernel for the CPU
iterates over groups (``indptr``, ``order``); torch operators scatter edges to groups (``index``).
"""

from __future__ import annotations

from functools import cached_property

import torch

from gnnlab import kernels
from gnnlab.graph.relation import Adjacency, Relation, group_on_device
from gnnlab.kernels.dtypes import torch_ids_dtype


class Groups:
    """``size`` rows, each of which belongs to one of ``count`` groups.

    Pass either the group of each row or, for rows sorted by group, where each group begins.
    """

    def __init__(
        self,
        count: int,
        size: int,
        index: torch.Tensor | None = None,
        indptr: torch.Tensor | None = None,
    ) -> None:
        self.count, self.size = count, size
        self._index, self._indptr = index, indptr

    @cached_property
    def index(self) -> torch.Tensor:
        """The group of each row, shape (size,), int32 or int64."""
        if self._index is not None:
            return self._index
        assert self._indptr is not None
        groups = torch.arange(self.count, device=self._indptr.device)
        return torch.repeat_interleave(groups, torch.diff(self._indptr), output_size=self.size)

    @property
    def indptr(self) -> torch.Tensor:
        """Slots of group v: ``indptr[v]:indptr[v + 1]``; shape (count + 1,), int64."""
        return self._slots[0]

    @property
    def order(self) -> torch.Tensor:
        """The row in each slot, shape (size,), int32 or int64."""
        return self._slots[1]

    @property
    def rows(self) -> torch.Tensor | None:
        """The same as ``order``, or None if slot k holds row k."""
        return None if self._indptr is not None else self.order

    @cached_property
    def _slots(self) -> tuple[torch.Tensor, torch.Tensor]:
        if self._indptr is not None:
            return self._indptr, torch.arange(self.size, dtype=torch_ids_dtype(self.size))
        assert self._index is not None
        if self._index.device.type != "cpu":
            return group_on_device(self._index, self.count)
        grouped = kernels.csc.group_by(self._index.numpy(), None, self.count)
        return torch.from_numpy(grouped[0]), torch.from_numpy(grouped[1])

    def _on_gpu(self) -> bool:
        known = self._index if self._indptr is None else self._indptr
        return known is not None and known.device.type != "cpu"

    def _is_sorted(self) -> bool:
        """Whether ``indptr`` exists already."""
        return self._indptr is not None

    @property
    def _sizes(self) -> torch.Tensor:
        return torch.diff(self.indptr)

    def inverse_sizes(self, dtype: torch.dtype) -> torch.Tensor:
        """Return 1 / size of each group (1 for an empty one), shape (count, 1)."""
        if self._on_gpu() and not self._is_sorted():
            # torch.bincount would synchronize with the device.
            sizes = torch.zeros(self.count, dtype=torch.int64, device=self.index.device)
            sizes.index_add_(0, self.index, sizes.new_ones(1).expand(self.size))
        else:
            sizes = self._sizes
        return torch.ones((), dtype=dtype) / sizes.clamp(min=1).unsqueeze(1)


class NodeGroups(Groups):
    """The edges of a relation, grouped by their source ("u") or their destination ("v").

    ``order`` holds edge IDs here, and ``index`` is in edge-ID order.
    """

    def __init__(self, relation: Relation, end: str) -> None:
        self.relation, self.end = relation, end
        self.count = relation.num_src if end == "u" else relation.num_dst
        self.size = relation.num_edges
        self._indptr = None

    def flipped(self) -> NodeGroups:
        """Return the same edges, grouped by their other end."""
        return NodeGroups(self.relation, "v" if self.end == "u" else "u")

    @property
    def index(self) -> torch.Tensor:  # type: ignore[override]
        """The node at this end of each edge."""
        return self.relation.coo()[0 if self.end == "u" else 1]

    def _on_gpu(self) -> bool:
        return self.relation.device.type != "cpu"

    def _is_sorted(self) -> bool:
        return ("csr" if self.end == "u" else "csc") in self.relation.created()

    def inverse_sizes(self, dtype: torch.dtype) -> torch.Tensor:
        """Return 1 / size of each group; the relation keeps it for the next layer or pass."""
        scales = self.relation.scales
        if (self.end, dtype) not in scales:
            scales[self.end, dtype] = super().inverse_sizes(dtype)
        return scales[self.end, dtype]

    @property
    def _sizes(self) -> torch.Tensor:
        return self._adjacency.sizes

    @property
    def _adjacency(self) -> Adjacency:
        return self.relation.csr() if self.end == "u" else self.relation.csc()

    @property
    def indptr(self) -> torch.Tensor:
        """Slots of node v: ``indptr[v]:indptr[v + 1]``; shape (count + 1,), int64."""
        return self._adjacency.indptr

    @property
    def order(self) -> torch.Tensor:
        """The edge in each slot."""
        return self._adjacency.eids

    @property
    def rows(self) -> torch.Tensor | None:
        """The same as ``order``, or None if slot k holds edge k."""
        return None if self._adjacency.ordered else self.order

    @property
    def neighbors(self) -> torch.Tensor:
        """The node at the other end of the edge in each slot."""
        return self._adjacency.indices
