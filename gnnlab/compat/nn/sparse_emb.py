"""Embeddings of all nodes of a graph on one machine, trained by the batches that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import distributed as dist

from gnnlab.distributed.embedding import TracedRows
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.ids import read_ids
from gnnlab.parallel.checkpoint import restoring


class NodeEmbedding(TracedRows):
    """A learnable vector for each node, whose optimizer changes the rows that a batch read.

    Not a ``torch.nn.Module``: pass it to ``dgl.optim.SparseAdam`` or ``dgl.optim.SparseAdagrad``.
    Rows are kept in main memory. If ``torch.distributed`` is initialized, every rank has all rows,
    and all ranks must make the embedding, read it and step together; rank 0's first rows are used.
    ``init_func`` fills rows of zeros, (num_embeddings, embedding_dim), or returns others;
    ``device`` is that of rows that are looked up; ``partition`` has no effect.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> emb = dgl.nn.NodeEmbedding(4, 2, "user", init_func=torch.nn.init.ones_)
    >>> optimizer = dgl.optim.SparseAdagrad([emb], lr=0.5)
    >>> emb(torch.tensor([3, 0, 3])).sum().backward()
    >>> optimizer.step()
    >>> emb.weight[:, 0]
    tensor([0.5000, 1.0000, 1.0000, 0.5000])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        name: str | None = None,
        init_func: Callable[[torch.Tensor], Any] | None = None,
        device: Any = None,
        partition: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = int(num_embeddings), int(embedding_dim)
        self.name, self._device = name, torch.device("cpu" if device is None else device)
        rows = torch.zeros(self.num_embeddings, self.embedding_dim)
        if init_func is not None:
            with torch.no_grad():
                made = init_func(rows)
            rows = rows if made is None else as_tensor(made).detach().cpu()
        if rows.shape != (self.num_embeddings, self.embedding_dim):
            raise InvalidInput(
                f"init_func returns shape {(self.num_embeddings, self.embedding_dim)}; found "
                f"{tuple(rows.shape)}"
            )
        self._rows = rows.contiguous()
        if dist.is_initialized() and dist.get_world_size() > 1:
            shared = [self._rows]
            dist.broadcast_object_list(shared, 0)
            self._rows = shared[0]
        self.optm_state: tuple[torch.Tensor, ...] = ()

    def __call__(self, node_ids: Any, device: Any = None) -> torch.Tensor:
        """Return the rows of IDs (K,), shape (K, D); their gradients are kept for the optimizer."""
        ids = read_ids(node_ids, self.num_embeddings, "row", torch.device("cpu"))
        return self.traced(ids, self._rows[ids].to(self._device if device is None else device))

    @property
    def weight(self) -> torch.Tensor:
        """All rows, shape (N, D); changes of it change the embedding."""
        return self._rows

    def all_set_embedding(self, values: torch.Tensor) -> None:
        """Set all rows, on every rank."""
        if values.shape != self._rows.shape:
            raise InvalidInput(
                f"expected shape {tuple(self._rows.shape)}; found {tuple(values.shape)}"
            )
        self._rows.copy_(values.detach())

    def all_get_embedding(self) -> torch.Tensor:
        """Return a copy of all rows."""
        return self._rows.clone()

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return all rows."""
        return {"weight": self._rows}

    @restoring("a NodeEmbedding")
    def load_state_dict(self, state: Mapping[str, torch.Tensor]) -> None:
        """Set all rows."""
        self.all_set_embedding(state["weight"])

    def __repr__(self) -> str:
        """Return size and name."""
        return f"NodeEmbedding({self.num_embeddings}, {self.embedding_dim}, name={self.name!r})"
