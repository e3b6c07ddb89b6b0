"""Attention over in-edges: each node weighs its in-neighbors by a softmax of learned scores.

The layers differ in how an edge is scored. Attention always has shape (E, num_heads, 1), in
edge-ID order, and sums to 1 over the in-edges of each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.conv.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.nn.utils import (
    Activation,
    Features,
    aggregate,
    expand_as_pair,
    map_features,
    pair_of_sizes,
    per_row,
)

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["AGNNConv", "DotGatConv", "EGATConv", "EdgeGATConv", "GATv2Conv"]

_GAIN = nn.init.calculate_gain("relu")


class GATv2Conv(ZeroInDegree):
    r"""Graph attention whose ranking of the neighbors depends on the node that asks.

    :math:`\alpha_{uv} = \operatorname{softmax}_{u \to v}\ a \cdot
    \operatorname{LeakyReLU}(W_{src} h_u + W_{dst} h_v)`; the output is
    :math:`\sum_u \alpha_{uv} W_{src} h_u`. In GATConv the nonlinearity comes after the product with
    :math:`a`, so all nodes rank their neighbors alike.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    out_feats : int
        Size of the output rows of one head.
    num_heads : int
    feat_drop, attn_drop : float, default 0
        Dropout on the input rows and on the attention.
    negative_slope : float, default 0.2
        Slope of LeakyReLU below zero.
    residual : bool, default False
        Add the node's own row to the output, through a linear layer where the sizes differ.
    activation : callable, optional
        Applied to the output.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges, which receive no message.
    bias : bool, default True
        Give the linear layers a bias.
    share_weights : bool, default False
        Use one matrix for both sides; only with one input size.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import GATv2Conv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> GATv2Conv(5, 2, num_heads=3)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 3, 2])

    References
    ----------
    Brody, Alon, Yahav: How Attentive are Graph Attention Networks?, ICLR 2022.
    """

    res_fc: nn.Module | None

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = False,
        activation: Activation | None = None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
        share_weights: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        src_feats, dst_feats = pair_of_sizes(in_feats)
        width = num_heads * out_feats
        self.in_feats = in_feats
        self.heads = (num_heads, out_feats)
        self.share_weights = share_weights and not isinstance(in_feats, tuple)
        self.activation = activation
        self.fc_src = nn.Linear(src_feats, width, bias=bias)
        self.fc_dst = self.fc_src if self.share_weights else nn.Linear(dst_feats, width, bias=bias)
        self.attn = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.feat_drop = nn.Dropout(feat_drop)
        self.attn_drop = nn.Dropout(attn_drop)
        self.leaky_relu = nn.LeakyReLU(negative_slope)
        self.res_fc = None
        if residual:
            same = dst_feats == width
            self.res_fc = nn.Identity() if same else nn.Linear(dst_feats, width, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights (Glorot normal, for ReLU), and the biases to zero."""
        glorot(self.fc_src, *(() if self.share_weights else (self.fc_dst,)))
        nn.init.xavier_normal_(self.attn, _GAIN)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)

    def forward(
        self, graph: Graph, feat: Features, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feats), or a pair (source rows, destination rows)
        get_attention : bool, default False
            Also return the attention.

        Returns
        -------
        Tensor of shape (num_dst, num_heads, out_feats)
        Tensor of shape (E, num_heads, 1)
            The attention; only with ``get_attention``.
        """
        self.check(graph, feat)
        feat = map_features(self.feat_drop, feat)
        src, dst = expand_as_pair(feat, graph, pair_of_sizes(self.in_feats), self.attn.dtype)
        heads_src = self.fc_src(src).unflatten(-1, self.heads)
        heads_dst = self.fc_dst(dst).unflatten(-1, self.heads)
        hidden = self.leaky_relu(ops.sddmm(graph.relation(), "add", heads_src, heads_dst))
        logits = (hidden * self.attn).sum(-1, keepdim=True)
        attention = self.attn_drop(ops.edge_softmax(graph, logits))
        out = aggregate(graph, "sum", heads_src, attention)
        if self.res_fc is not None:
            out = out + self.res_fc(dst).view_as(out)
        if self.activation is not None:
            out = self.activation(out)
        return (out, attention) if get_attention else out


class EdgeGATConv(ZeroInDegree):
    r"""Graph attention with edge features, in the scores and in the messages.

    :math:`\alpha_{uv} = \operatorname{softmax}_{u \to v} \operatorname{LeakyReLU}(a_l \cdot W h_u +
    a_r \cdot W h_v + a_e \cdot W_e e_{uv})`; the output is
    :math:`\sum_u \alpha_{uv} (W h_u + W_e e_{uv})`, and with ``residual`` a linear map of
    :math:`h_v`.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    edge_feats : int
        Size of the edge rows.
    out_feats : int
        Size of the output rows of one head.
    num_heads : int
    feat_drop, attn_drop : float, default 0
        Dropout on the input rows and on the attention.
    negative_slope : float, default 0.2
        Slope of LeakyReLU below zero.
    residual : bool, default True
        Add the node's own row to the output, through a linear layer where the sizes differ.
    activation : callable, optional
        Applied to the output.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges, which receive no message.
    bias : bool, default True
        Add a learned vector to the output.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import EdgeGATConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = EdgeGATConv(in_feats=5, edge_feats=4, out_feats=2, num_heads=3)
    >>> layer(graph, torch.ones(3, 5), torch.ones(3, 4)).shape
    torch.Size([3, 3, 2])

    References
    ----------
    Monninger et al.: SCENE: Reasoning about Traffic Scenes using Heterogeneous Graph Neural
    Networks, RA-L 2023.
    """

    bias: Tensor | None
    res_fc: nn.Module | None

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        edge_feats: int,
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = True,
        activation: Activation | None = None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        src_feats, dst_feats = pair_of_sizes(in_feats)
        width = num_heads * out_feats
        self.in_feats = in_feats
        self.edge_feats = edge_feats
        self.heads = (num_heads, out_feats)
        self.activation = activation
        if isinstance(in_feats, tuple):
            self.fc_src = nn.Linear(src_feats, width, bias=False)
            self.fc_dst = nn.Linear(dst_feats, width, bias=False)
        else:
            self.fc = nn.Linear(src_feats, width, bias=False)
        self.attn_l = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.attn_r = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.feat_drop = nn.Dropout(feat_drop)
        self.attn_drop = nn.Dropout(attn_drop)
        self.leaky_relu = nn.LeakyReLU(negative_slope)
        self.bias = nn.Parameter(torch.empty(width)) if bias else None
        self.res_fc = None
        if residual:
            same = dst_feats == width
            self.res_fc = nn.Identity() if same else nn.Linear(dst_feats, width, bias=False)
        self.fc_edge = nn.Linear(edge_feats, width, bias=False)
        self.attn_edge = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights (Glorot normal, for ReLU), and the bias to zero."""
        glorot(*(layer for layer in self.modules() if isinstance(layer, nn.Linear)))
        for attn in (self.attn_l, self.attn_r, self.attn_edge):
            nn.init.xavier_normal_(attn, _GAIN)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, graph: Graph, feat: Features, edge_feat: Tensor, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feats), or a pair (source rows, destination rows)
        edge_feat : Tensor of shape (E, edge_feats)
        get_attention : bool, default False
            Also return the attention.

        Returns
        -------
        Tensor of shape (num_dst, num_heads, out_feats)
        Tensor of shape (E, num_heads, 1)
            The attention; only with ``get_attention``.
        """
        self.check(graph, feat)
        check_edge_rows(graph, edge_feat, self.edge_feats)
        feat = map_features(self.feat_drop, feat)
        src, dst = expand_as_pair(feat, graph, pair_of_sizes(self.in_feats), self.attn_l.dtype)
        pair = isinstance(self.in_feats, tuple)
        heads_src = (self.fc_src if pair else self.fc)(src).unflatten(-1, self.heads)
        heads_dst = (self.fc_dst if pair else self.fc)(dst).unflatten(-1, self.heads)
        heads_edge = self.fc_edge(edge_feat).unflatten(-1, self.heads)
        score_src, score_dst, score_edge = (
            (rows * attn).sum(-1, keepdim=True)
            for rows, attn in (
                (heads_src, self.attn_l),
                (heads_dst, self.attn_r),
                (heads_edge, self.attn_edge),
            )
        )
        relation = graph.relation()
        logits = self.leaky_relu(ops.sddmm(relation, "add", score_src, score_dst) + score_edge)
        attention = self.attn_drop(ops.edge_softmax(graph, logits))
        messages = ops.sddmm(relation, "add", heads_src, heads_edge, "u", "e") * attention
        out = ops.spmm(relation, "copy_rhs", "sum", None, messages)
        if self.res_fc is not None:
            out = out + self.res_fc(dst).view_as(out)
        if self.bias is not None:
            out = out + self.bias.view(self.heads)
        if self.activation is not None:
            out = self.activation(out)
        return (out, attention) if get_attention else out


class DotGatConv(ZeroInDegree):
    r"""Graph attention by scaled dot products: :math:`(W h_u \cdot W h_v) / \sqrt{D}` per head.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair gives each side a matrix of its own.
    out_feats : int
        Size D of the output rows of one head.
    num_heads : int
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges; they get zeros.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import DotGatConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> DotGatConv(5, 2, num_heads=3)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 3, 2])

    References
    ----------
    Vaswani et al.: Attention Is All You Need, NeurIPS 2017.
    """

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        num_heads: int,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        src_feats, dst_feats = pair_of_sizes(in_feats)
        self.in_feats = in_feats
        self.heads = (num_heads, out_feats)
        if isinstance(in_feats, tuple):
            self.fc_src = nn.Linear(src_feats, num_heads * out_feats, bias=False)
            self.fc_dst = nn.Linear(dst_feats, num_heads * out_feats, bias=False)
        else:
            self.fc = nn.Linear(src_feats, num_heads * out_feats, bias=False)

    def forward(
        self, graph: Graph, feat: Features, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute the rows of the destination nodes; shapes as in :class:`GATv2Conv`."""
        self.check(graph, feat)
        pair = isinstance(self.in_feats, tuple)
        fc_src, fc_dst = (self.fc_src, self.fc_dst) if pair else (self.fc, self.fc)
        src, dst = expand_as_pair(feat, graph, pair_of_sizes(self.in_feats), fc_src.weight.dtype)
        heads_src = fc_src(src).unflatten(-1, self.heads)
        heads_dst = fc_dst(dst).unflatten(-1, self.heads)
        scores = ops.sddmm(graph.relation(), "dot", heads_src, heads_dst)
        attention = ops.edge_softmax(graph, scores / self.heads[1] ** 0.5)
        out = aggregate(graph, "sum", heads_src, attention)
        return (out, attention) if get_attention else out


class AGNNConv(ZeroInDegree):
    r"""Attention by cosine similarity: scores :math:`\beta \cos(h_u, h_v)`, no other weights.

    Parameters
    ----------
    init_beta : float, default 1
        Initial β.
    learn_beta : bool, default True
        Learn β.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges; they get zeros.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import AGNNConv
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> AGNNConv(allow_zero_in_degree=True)(graph, torch.eye(3)).detach()[2]
    tensor([0.5000, 0.5000, 0.0000])

    References
    ----------
    Thekumparampil et al.: Attention-based Graph Neural Network for Semi-supervised Learning, 2018.
    """

    beta: Tensor

    def __init__(
        self, init_beta: float = 1.0, learn_beta: bool = True, allow_zero_in_degree: bool = False
    ) -> None:
        super().__init__(allow_zero_in_degree)
        beta = torch.tensor([float(init_beta)])
        if learn_beta:
            self.beta = nn.Parameter(beta)
        else:
            self.register_buffer("beta", beta)

    def forward(self, graph: Graph, feat: Features) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, D), or a pair (source rows, destination rows)

        Returns
        -------
        Tensor of shape (num_dst, D)
        """
        self.check(graph, feat)
        src, dst = expand_as_pair(feat, graph)
        cosine = ops.sddmm(
            graph.relation(), "dot", F.normalize(src, dim=-1), F.normalize(dst, dim=-1)
        )
        return aggregate(graph, "sum", src, ops.edge_softmax(graph, self.beta * cosine))


class EGATConv(nn.Module):
    r"""Graph attention that also computes new edge features.

    :math:`f_{uv}' = \operatorname{LeakyReLU}(W_i h_u + W_f f_{uv} + W_j h_v + b)`; an edge's score
    is :math:`a \cdot f_{uv}'`; the output is :math:`\sum_u \alpha_{uv} W h_u`.

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
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import EGATConv
    >>> graph = dgl.graph(([0, 1, 2, 0], [1, 2, 0, 2]))
    >>> nodes, edges = EGATConv(5, 4, 3, 2, num_heads=6)(graph, torch.ones(3, 5), torch.ones(4, 4))
    >>> nodes.shape, edges.shape
    (torch.Size([3, 6, 3]), torch.Size([4, 6, 2]))

    References
    ----------
    Kamiński et al.: Rossmann-toolbox: a deep learning-based protocol for the prediction and design
    of cofactor specificity in Rossmann fold proteins, Briefings in Bioinformatics 2022.
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
        """Initialise the weights (Glorot normal, for ReLU), and the bias to zero."""
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
        """Compute the rows of the destination nodes and of the edges.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        nfeats : Tensor of shape (num_src, in_node_feats), or a pair (source, destination rows)
        efeats : Tensor of shape (E, in_edge_feats)
        edge_weight : Tensor of shape (E,), optional
            Multiplies the attention, after the softmax.
        get_attention : bool, default False
            Also return the attention.

        Returns
        -------
        Tensor of shape (num_dst, num_heads, out_node_feats)
        Tensor of shape (E, num_heads, out_edge_feats)
        Tensor of shape (E, num_heads, 1)
            The attention; only with ``get_attention``.
        """
        src, dst = expand_as_pair(nfeats, graph, self.in_node_feats, self.attn.dtype)
        check_edge_rows(graph, efeats, self.in_edge_feats)
        ends = ops.sddmm(graph.relation(), "add", self.fc_ni(src), self.fc_nj(dst))
        edges = ends + self.fc_fij(efeats)
        if self.bias is not None:
            edges = edges + self.bias
        edges = F.leaky_relu(edges).unflatten(-1, self.edge_heads)
        logits = (edges * self.attn).sum(-1, keepdim=True)
        attention = ops.edge_softmax(graph, logits)
        if edge_weight is not None:
            attention = attention * per_row(edge_weight, attention)
        heads = self.fc_node_src(src).unflatten(-1, self.node_heads)
        out = aggregate(graph, "sum", heads, attention)
        return (out, edges, attention) if get_attention else (out, edges)
