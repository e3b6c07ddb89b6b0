"""Continuous-filter convolution: a network gives each edge the weights of its message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.utils import Features, aggregate, expand_as_pair

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["CFConv"]


class ShiftedSoftplus(nn.Module):
    """softplus(x) − log 2, which is 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x).sub_(math.log(2))


class CFConv(nn.Module):
    r"""Continuous-filter convolution (SchNet): :math:`f(\sum_{u \to v} W h_u \odot g(e_{uv}))`.

    A thin composition of :meth:`~gnnlab.Graph.update_all`'s ``u_mul_e`` and ``sum`` with linear
    layers and shifted softplus.
    From Schütt et al.: SchNet: A continuous-filter convolutional neural network for modeling
    quantum interactions, NeurIPS 2017.

    Parameters
    ----------
    node_in_feats, edge_in_feats : int
        Sizes of the node rows and of the edge rows.
    hidden_feats, out_feats : int
        Sizes of the messages and of the output rows.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> dgl.nn.CFConv(5, 4, 3, 2)(graph, torch.ones(3, 5), torch.ones(2, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, node_in_feats: int, edge_in_feats: int, hidden_feats: int, out_feats: int
    ) -> None:
        super().__init__()
        self.node_in_feats = node_in_feats
        self.project_edge = nn.Sequential(
            nn.Linear(edge_in_feats, hidden_feats),
            ShiftedSoftplus(),
            nn.Linear(hidden_feats, hidden_feats),
            ShiftedSoftplus(),
        )
        self.project_node = nn.Linear(node_in_feats, hidden_feats)
        self.project_out = nn.Sequential(nn.Linear(hidden_feats, out_feats), ShiftedSoftplus())

    def forward(self, g: Graph, node_feats: Features, edge_feats: Tensor) -> Tensor:
        """Return (num_dst, out_feats); of a pair of ``node_feats``, the first is used."""
        linear = self.project_node
        sizes = (linear.in_features, linear.in_features)
        src, _ = expand_as_pair(node_feats, g, sizes, linear.weight.dtype)
        check_edge_rows(g, edge_feats, weight=linear.weight)
        rows = self.project_node(src)
        return self.project_out(aggregate(g, "sum", rows, self.project_edge(edge_feats)))
