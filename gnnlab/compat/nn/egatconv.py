"""Graph attention that computes new edge features as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.nn.base import check_edge_rows, glorot
from gnnlab.nn.utils import Features, aggregate, expand_as_pair, pair_of_sizes, per_row

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["EGATConv"]

_GAIN = nn.init.calculate_gain("relu")


class EGATConv(nn.Module):
    r"""Graph attention that also computes new edge features.

    :math:`f_{uv}' = \operatorname{LeakyReLU}(W_i h_u + W_f f_{uv} + W_j h_v + b)`; an edge's score
    is :math:`a \cdot f_{uv}'`; the output is :math:`\sum_u \alpha_{uv} W h_u`.
    From Kamiński et al.: Rossmann-toolbox: a deep learning-based protocol for the prediction and
    design of cofactor specificity in Rossmann fold proteins, Briefings in Bioinformatics 2022.

    Parameters
    ----------
    in_node_feats : int or (int, int)
        Size of the node rows; a pair when source and destination nodes differ.
    in_edge_feats : int
        Size of the edge rows.
    out_node_feats, out_edge_feats : int
        Sizes of the new rows of one head.
    num_heads : int
    bias : bool, default True
        Add a learned vector to the new edge rows, before LeakyReLU.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2, 0], [1, 2, 0, 2]))
    >>> layer = dgl.nn.EGATConv(5, 4, 3, 2, num_heads=6)
    >>> nodes, edges = layer(graph, torch.ones(3, 5), torch.ones(4, 4))
    >>> nodes.shape, edges.shape
    (torch.Size([3, 6, 3]), torch.Size([4, 6, 2]))
    """

    bias: Tensor | None

    def __init__(
        self,
        in_node_feats: int | tuple[int, int],
        in_edge_feats: int,
        out_node_feats: int,
        out_edge_feats: int,
        num_heads: int,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_node_feats = pair_of_sizes(in_node_feats)
        self.in_edge_feats = in_edge_feats
        self.node_heads = (num_heads, out_node_feats)
        self.edge_heads = (num_heads, out_edge_feats)
        src_feats, dst_feats = self.in_node_feats
        self.fc_node_src = nn.Linear(src_feats, out_node_feats * num_heads, bias=False)
        self.fc_ni = nn.Linear(src_feats, out_edge_feats * num_heads, bias=False)
        self.fc_nj = nn.Linear(dst_feats, out_edge_feats * num_heads, bias=False)
        self.fc_fij = nn.Linear(in_edge_feats, out_edge_feats * num_heads, bias=False)
        self.attn = nn.Parameter(torch.empty(1, num_heads, out_edge_feats))
        self.bias = nn.Parameter(torch.empty(num_heads * out_edge_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights (Glorot normal, for ReLU), and the bias to zero."""
        glorot(self.fc_node_src, self.fc_ni, self.fc_fij, self.fc_nj)
        nn.init.xavier_normal_(self.attn, _GAIN)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        graph: Graph,
        nfeats: Features,
        efeats: Tensor,
        edge_weight: Tensor | None = None,
        get_attention: bool = False,
    ) -> tuple[Tensor, ...]:
        """Return new rows of the destination nodes and of the edges.

        Parameters
        ----------
        graph : Graph
        nfeats : Tensor of shape (num_src, in_node_feats), or a pair
        efeats : Tensor of shape (E, in_edge_feats)
        edge_weight : Tensor of shape (E,), optional
            Multiplies the attention, after the softmax.
        get_attention : bool, default False

        Returns
        -------
        Tensor of shape (num_dst, num_heads, out_node_feats)
        Tensor of shape (E, num_heads, out_edge_feats)
        Tensor of shape (E, num_heads, 1)
            The attention; only with ``get_attention``.
        """
        src, dst = expand_as_pair(nfeats, graph, self.in_node_feats, self.attn.dtype)
        check_edge_rows(graph, efeats, self.in_edge_feats, self.attn)
        ends = ops.sddmm(graph.relation(), "add", self.fc_ni(src), self.fc_nj(dst))
        edges = ends + self.fc_fij(efeats)
        if self.bias is not None:
            edges = edges + self.bias
        edges = F.leaky_relu(edges).unflatten(-1, self.edge_heads)
        logits = (edges * self.attn).sum(-1, keepdim=True)
        attention = ops.edge_softmax(graph, logits)
        if edge_weight is not None:
            check_edge_rows(graph, edge_weight, name="edge_weight")
            attention = attention * per_row(edge_weight, attention)
        heads = self.fc_node_src(src).unflatten(-1, self.node_heads)
        out = aggregate(graph, "sum", heads, attention)
        return (out, edges, attention) if get_attention else (out, edges)
