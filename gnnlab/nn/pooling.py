"""Readout layers: reduce node rows to one row per graph, for graph-level tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


def _pool(graph: Graph, feat: Tensor, reducer: str) -> Tensor:
    """Reduce the rows of each graph of a batch; any other graph counts as a batch of one."""
    batch_num_nodes = getattr(graph, "batch_num_nodes", None)
    sizes = torch.tensor([len(feat)]) if batch_num_nodes is None else batch_num_nodes()
    return ops.segment_reduce(sizes.to(feat.device), feat, reducer)


class SumPooling(nn.Module):
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

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Sum ``feat``, shape (num_nodes, …), into shape (number of graphs, …)."""
        return _pool(graph, feat, "sum")


class AvgPooling(nn.Module):
    """Average the rows of each graph's nodes.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import AvgPooling
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> AvgPooling()(graph, torch.tensor([[1.0], [2.0], [6.0]]))
    tensor([[3.]])
    """

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Average ``feat``, shape (num_nodes, …), into shape (number of graphs, …)."""
        return _pool(graph, feat, "mean")
