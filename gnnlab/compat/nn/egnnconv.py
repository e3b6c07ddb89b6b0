"""Graph convolution that moves points, whichever way they are turned or shifted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole
from gnnlab.errors import InvalidInput
from gnnlab.nn.base import check_edge_rows

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["EGNNConv"]


class EGNNConv(nn.Module):
    r"""E(n)-equivariant convolution of rows h and coordinates x.

    With :math:`m_{uv} = \phi_e(h_u, h_v, \lVert x_u - x_v \rVert^2, e_{uv})`, the new rows are
    :math:`\phi_h(h_v, \sum_u m_{uv})`, and the new coordinates :math:`x_v` plus the mean of
    :math:`\phi_x(m_{uv}) (x_u - x_v) / \lVert x_u - x_v \rVert`.
    From Satorras, Hoogeboom, Welling: E(n) Equivariant Graph Neural Networks, ICML 2021.

    Parameters
    ----------
    in_size, hidden_size, out_size : int
        Sizes of the input rows, of the messages and of the output rows.
    edge_feat_size : int, default 0

    Examples
    --------
    >>> import torch
    >>> import gnnlab.compat as dgl
    >>> layer = dgl.nn.EGNNConv(5, 8, 2)
    >>> h, x = layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5), torch.eye(3))
    >>> h.shape, x.shape
    (torch.Size([3, 2]), torch.Size([3, 3]))
    """

    def __init__(
        self, in_size: int, hidden_size: int, out_size: int, edge_feat_size: int = 0
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.edge_feat_size = edge_feat_size
        self.edge_mlp = nn.Sequential(
            nn.Linear(2 * in_size + edge_feat_size + 1, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, hidden_size),
            nn.SiLU(),
        )
        self.node_mlp = nn.Sequential(
            nn.Linear(in_size + hidden_size, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, out_size),
        )
        self.coord_mlp = nn.Sequential(
            nn.Linear(hidden_size, hidden_size),
            nn.SiLU(),
            nn.Linear(hidden_size, 1, bias=False),
        )

    def forward(
        self, graph: Graph, node_feat: Tensor, coord_feat: Tensor, edge_feat: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return new rows (N, out_size) and coordinates (N, D).

        ``node_feat`` has shape (N, in_size), ``coord_feat`` (N, D), ``edge_feat``
        (E, edge_feat_size).
        """
        weight = next(self.node_mlp.parameters())
        check_whole(graph, node_feat, self.in_size, weight)
        check_whole(graph, coord_feat, weight=weight)
        if (edge_feat is None) != (self.edge_feat_size == 0):
            raise InvalidInput(f"expected edge_feat of {self.edge_feat_size} columns")
        if edge_feat is not None:
            check_edge_rows(graph, edge_feat, self.edge_feat_size, weight)
        relation = graph.relation()
        away = ops.sddmm(relation, "sub", coord_feat, coord_feat)
        squared = away.square().sum(1, keepdim=True)
        parts = [
            ops.sddmm(relation, "copy_lhs", node_feat, None),
            ops.sddmm(relation, "copy_rhs", None, node_feat),
            squared,
        ]
        if self.edge_feat_size and edge_feat is not None:
            parts.append(edge_feat)
        messages = self.edge_mlp(torch.cat(parts, 1))
        # Points at the same place have no direction, and the root has no gradient at 0.
        length = torch.where(squared > 0, squared, 1).sqrt()
        moves = self.coord_mlp(messages) * (away / length)
        received = ops.spmm(relation, "copy_rhs", "sum", None, messages)
        moved = ops.spmm(relation, "copy_rhs", "mean", None, moves)
        return self.node_mlp(torch.cat([node_feat, received], 1)), coord_feat + moved
