"""Distributed embeddings: one learnable row per node, trained by the batches that read it.

Nodes without features get a learnable vector. With millions of nodes this is by far the largest
parameter of a model, so each part stores the rows of its nodes, a batch fetches those that it
needs, and a sparse optimizer (:mod:`gnnlab.distributed.optim`) sends gradients to the owners.

References
----------
DGL user guide, chapter 7.2, "Distributed Embeddings".
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch

from gnnlab.distributed.tensor import DistTensor, original_ids
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.ids import read_ids
from gnnlab.parallel.checkpoint import restoring
from gnnlab.partition.book import PartitionPolicy


class TracedRows:
    """Base class of embeddings: keeps the gradients of the rows that batches looked up."""

    def __init__(self) -> None:
        self._looked_up = 0
        self._trace: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def traced(self, ids: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Return rows just looked up; if gradients are enabled, theirs will be kept."""
        if torch.is_grad_enabled():
            rows.requires_grad_()
            rows.register_post_accumulate_grad_hook(
                partial(_keep, self._trace, self._looked_up, ids)
            )
            self._looked_up += 1
        return rows

    def reset_trace(self) -> None:
        """Discard the gradients since the last step."""
        for _, rows in self._trace.values():
            rows.grad = None
        self._trace.clear()

    def gradients(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Return the gradients since the last step, or None where there are none.

        IDs and gradients have shapes (K,) and (K, D), in the order of lookups; IDs may repeat.
        """
        traced = [self._trace[number] for number in sorted(self._trace)]
        found = [(ids, rows.grad.cpu()) for ids, rows in traced if rows.grad is not None]
        if not found:
            return None
        ids, grads = zip(*found, strict=True)
        return torch.cat(ids), torch.cat(grads)


class DistEmbedding(TracedRows):
    """A learnable vector for each node, or edge, of one type.

    Not a ``torch.nn.Module``: its rows are not among the parameters that data parallel training
    averages. Pass it to :class:`SparseAdagrad` or :class:`SparseAdam`.

    Parameters
    ----------
    num_embeddings : int
        Number of nodes or edges, N.
    embedding_dim : int
        Length of a vector, D.
    name : str, optional
        Embeddings of the same name, shape and type share their rows.
    init_func : callable, optional
        ``init_func(shape, dtype)`` returns the initial rows of a part; zeros by default.
    part_policy : PartitionPolicy, optional
        Policy of its type; required if several types have N nodes or edges.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> path = dgl.graph(([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> dgl.distributed.partition_graph(path, "path", 2, folder, part_method="random")
    path: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("path", part_config=f"{folder}/path.json")
    >>> emb = dgl.distributed.DistEmbedding(
    ...     g.num_nodes(), 2, init_func=lambda shape, dtype: torch.ones(shape, dtype=dtype)
    ... )
    >>> optimizer = dgl.distributed.SparseAdagrad([emb], lr=0.5)
    >>> emb([5, 0]).sum().backward()
    >>> optimizer.step()
    >>> emb.weight[0:6][:, 0]
    tensor([0.5000, 1.0000, 1.0000, 1.0000, 1.0000, 0.5000])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        name: str | None = None,
        init_func: Any = None,
        part_policy: PartitionPolicy | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = int(num_embeddings), int(embedding_dim)
        self._tensor = DistTensor(
            (self.num_embeddings, self.embedding_dim),
            torch.get_default_dtype(),
            name,
            init_func,
            part_policy,
            is_gdata=False,
        )
        self._optm_state: tuple[DistTensor, ...] = ()

    def __call__(self, idx: Any, device: Any = "cpu") -> torch.Tensor:
        """Look up rows.

        Parameters
        ----------
        idx : int, list, numpy array or tensor
            Type-wise IDs, shape (K,) or any other.
        device : torch.device
            Device of the result.

        Returns
        -------
        torch.Tensor
            Shape (K, D), or that of ``idx`` followed by D. If gradients are enabled, those of the
            rows are kept for the optimizer.
        """
        ids = as_tensor(idx, "row IDs", integers=True)
        flat = read_ids(ids.reshape(-1), self.num_embeddings, "row", torch.device("cpu"))
        rows = self._tensor[flat].to(device)
        rows = self.traced(flat, rows)
        return rows.view(*ids.shape, self.embedding_dim) if ids.ndim > 1 else rows

    # -------------------------------------------------------------- attributes
    @property
    def weight(self) -> DistTensor:
        """All rows, shape (N, D), a DistTensor."""
        return self._tensor

    @property
    def name(self) -> str:
        """Name of the tensor that holds the rows."""
        return self._tensor.name

    @property
    def part_policy(self) -> PartitionPolicy:
        """Which part owns which row."""
        return self._tensor.part_policy

    @property
    def optm_state(self) -> tuple[DistTensor, ...]:
        """State of the newest optimizer for each row; empty without one."""
        return self._optm_state

    def __repr__(self) -> str:
        """Return name, size and type."""
        return (
            f"DistEmbedding({self.num_embeddings}, {self.embedding_dim}, name={self.name!r}, "
            f"part_policy={self.part_policy.policy_str!r})"
        )

    # ------------------------------------------------------------------- state
    def state_dict(self) -> dict[str, Any]:
        """Return all rows by original IDs, for :func:`gnnlab.parallel.save_checkpoint`."""
        return {"weight": rows_by_original(self._tensor)}

    @restoring("a DistEmbedding")
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load all rows, also of another partition of the graph."""
        write_by_original(self._tensor, state["weight"])


def _keep(
    trace: dict[int, tuple[torch.Tensor, torch.Tensor]],
    number: int,
    ids: torch.Tensor,
    rows: torch.Tensor,
) -> None:
    # Called when a backward pass reaches the rows; those that no loss depends on are freed.
    trace[number] = ids, rows


def rows_by_original(tensor: DistTensor) -> torch.Tensor:
    """Return all rows in the order of IDs before the graph was partitioned."""
    rows = torch.empty(tensor.shape, dtype=tensor.dtype)
    rows[original_ids(tensor)[:]] = tensor[:]
    return rows


def write_by_original(tensor: DistTensor, values: torch.Tensor) -> None:
    """Fill a DistTensor with values of its shape in the order of :func:`rows_by_original`."""
    if tuple(values.shape) != tuple(tensor.shape) or values.dtype != tensor.dtype:
        raise InvalidInput(
            f"{tensor.name} has shape {tuple(tensor.shape)} and {tensor.dtype}; the state has "
            f"{tuple(values.shape)} and {values.dtype}"
        )
    tensor[:] = values[original_ids(tensor)[:]]
