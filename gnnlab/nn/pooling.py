"""Readout layers: reduce node rows to one row per graph, for graph-level tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.nn.base import check_whole

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["AvgPooling", "SumPooling", "WeightAndSum"]


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


class WeightAndSum(nn.Module):
    """Sum the rows of each graph's nodes with learned weights between 0 and 1.

    Parameters
    ----------
    in_feats : int
        Size of the rows.

    Examples
    --------
    >>> import torch, gnnlab as dgl
    >>> dgl.nn.WeightAndSum(5)(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5)).shape
    torch.Size([1, 5])
    """

    def __init__(self, in_feats: int) -> None:
        super().__init__()
        self.in_feats = in_feats
        self.atom_weighting = nn.Sequential(nn.Linear(in_feats, 1), nn.Sigmoid())

    def forward(self, g: Graph, feats: Tensor) -> Tensor:
        """Reduce ``feats``, shape (N, in_feats), to shape (number of graphs, in_feats)."""
        check_whole(g, feats, self.in_feats, next(self.parameters()))
        weighted = feats * self.atom_weighting(feats)
        return ops.segment_reduce(g.batch_num_nodes().to(feats.device), weighted)
