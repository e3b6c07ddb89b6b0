"""Readout layers: reduce node rows to one row per graph, for graph-level tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gnnlab import ops

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class _Pooling(nn.Module):
    _reducer: str

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Reduce ``feat``, shape (num_nodes, …), to shape (number of graphs, …)."""
        return ops.segment_reduce(graph.batch_num_nodes(), feat, self._reducer)


class SumPooling(_Pooling):
    """Sum the rows of each graph's nodes.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import SumPooling
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> SumPooling()(graph, torch.tensor([[1.0], [2.0], [6.0]]))
    tensor([[9.]])
    """

    _reducer = "sum"


class AvgPooling(_Pooling):
    """Average the rows of each graph's nodes; as :class:`SumPooling`."""

    _reducer = "mean"
