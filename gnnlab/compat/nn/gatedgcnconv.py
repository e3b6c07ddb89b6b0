"""Graph convolution with gates on the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.utils import Activation, aggregate, expand_as_pair

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["GatedGCNConv"]


class GatedGCNConv(nn.Module):
    r"""Graph convolution whose gates are learned edge features.

    :math:`e_{uv}' = D h_u + E h_v + C e_{uv}`, :math:`h_v' = A h_v + \sum_u \sigma(e_{uv}')
    \odot B h_u / (\sum_u \sigma(e_{uv}') + 10^{-6})`; then, for both, batch normalization,
    activation, residual and dropout.
    From Dwivedi et al.: Benchmarking Graph Neural Networks, JMLR 2023.

    Parameters
    ----------
    input_feats, edge_feats, output_feats : int
        Sizes of the node rows, of the edge rows, and of both outputs.
    dropout : float, default 0
    batch_norm : bool, default True
    residual : bool, default True
        Add the inputs to the outputs, when all sizes are equal.
    activation : callable or None, default relu

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> nodes, edges = dgl.nn.GatedGCNConv(5, 4, 2)(graph, torch.ones(3, 5), torch.ones(2, 4))
    >>> nodes.shape, edges.shape
    (torch.Size([3, 2]), torch.Size([2, 2]))
    """

    def __init__(
        self,
        input_feats: int,
        edge_feats: int,
        output_feats: int,
        dropout: float = 0,
        batch_norm: bool = True,
        residual: bool = True,
        activation: Activation | None = F.relu,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.batch_norm = batch_norm
        self.residual = residual and input_feats == edge_feats == output_feats
        self.activation = activation
        self.A = nn.Linear(input_feats, output_feats)
        self.B = nn.Linear(input_feats, output_feats)
        self.C = nn.Linear(edge_feats, output_feats)
        self.D = nn.Linear(input_feats, output_feats)
        self.E = nn.Linear(input_feats, output_feats)
        self.bn_node = nn.BatchNorm1d(output_feats)
        self.bn_edge = nn.BatchNorm1d(output_feats)

    def forward(self, graph: Graph, feat: Tensor, edge_feat: Tensor) -> tuple[Tensor, Tensor]:
        """Return new rows of the nodes and of the edges, (N, output_feats), (E, output_feats)."""
        size = self.A.in_features
        src, dst = expand_as_pair(feat, graph, (size, size), self.A.weight.dtype)
        check_edge_rows(graph, edge_feat, self.C.in_features, self.C.weight)
        edges = ops.sddmm(graph.relation(), "add", self.D(src), self.E(dst)) + self.C(edge_feat)
        gates = edges.sigmoid()
        received = aggregate(graph, "sum", self.B(src), gates)
        opened = ops.spmm(graph.relation(), "copy_rhs", "sum", None, gates)
        nodes = self.A(dst) + received / (opened + 1e-6)
        return (
            self._finish(nodes, self.bn_node, dst),
            self._finish(edges, self.bn_edge, edge_feat),
        )

    def _finish(self, out: Tensor, norm: nn.BatchNorm1d, before: Tensor) -> Tensor:
        if self.batch_norm:
            out = norm(out)
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(before + out if self.residual else out)
