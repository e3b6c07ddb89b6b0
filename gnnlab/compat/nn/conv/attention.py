"""Attention over in-edges: each node weighs its in-neighbors by a softmax of learned scores.

The layers differ in how an edge is scored. New rows have shape (num_dst, num_heads, out_feats);
``get_attention`` also returns the attention, (E, num_heads, 1), in edge-ID order.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.graph.graph import Graph
from gnnlab.nn.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.nn.gatconv import GATConv
from gnnlab.nn.utils import (
    Activation,
    Features,
    aggregate,
    check_dtype,
    expand_as_pair,
    map_features,
    pair_of_sizes,
    per_row,
)

_GAIN = nn.init.calculate_gain("relu")


class GATv2Conv(ZeroInDegree):
    r"""Attention of :math:`a \cdot \operatorname{LeakyReLU}(W_{src} h_u + W_{dst} h_v)`.

    In GATConv the nonlinearity comes after the product with :math:`a`, so all nodes rank their
    neighbors alike. ``share_weights`` uses one matrix for both sides, where they have one size.
    From Brody, Alon, Yahav: How Attentive are Graph Attention Networks?, ICLR 2022.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> dgl.nn.GATv2Conv(5, 2, num_heads=3)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 3, 2])
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
        """Initialize the weights (Glorot normal, for ReLU), and the biases to zero."""
        glorot(self.fc_src, *(() if self.share_weights else (self.fc_dst,)))
        nn.init.xavier_normal_(self.attn, _GAIN)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)

    def forward(
        self, graph: Graph, feat: Features, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return new rows of the destination nodes."""
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


class EdgeGATConv(GATConv):
    r"""GATConv with edge rows in the scores, :math:`a_e \cdot W_e e_{uv}`, and in the messages.

    ``edge_feats`` is the size of the edge rows; the residual has no bias.
    From Monninger et al.: SCENE, Reasoning about Traffic Scenes …, RA-L 2023.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = dgl.nn.EdgeGATConv(in_feats=5, edge_feats=4, out_feats=2, num_heads=3)
    >>> layer(graph, torch.ones(3, 5), torch.ones(3, 4)).shape
    torch.Size([3, 3, 2])
    """

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
        drop, allow = (feat_drop, attn_drop), allow_zero_in_degree
        super().__init__(
            in_feats, out_feats, num_heads, *drop, negative_slope, False, activation, allow, bias
        )
        dst_feats, width = pair_of_sizes(in_feats)[1], num_heads * out_feats
        if residual:  # unlike GATConv's, it has no bias
            same = dst_feats == width
            self.res_fc = nn.Identity() if same else nn.Linear(dst_feats, width, bias=False)
        self.fc_edge = nn.Linear(edge_feats, width, bias=False)
        self.attn_edge = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights (Glorot normal, for ReLU), and the bias to zero."""
        super().reset_parameters()
        if hasattr(self, "attn_edge"):  # GATConv calls this before
            glorot(self.fc_edge)
            nn.init.xavier_normal_(self.attn_edge, _GAIN)

    def forward(  # type: ignore[override]
        self, graph: Graph, feat: Features, edge_feat: Tensor, get_attention: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return new rows of the destination nodes; ``edge_feat`` has shape (E, edge_feats)."""
        self.check(graph, feat)
        check_edge_rows(graph, edge_feat, self.fc_edge.in_features, self.fc_edge.weight)
        heads_src, heads_dst, dst = self.project(graph, feat)
        heads_edge = self.fc_edge(edge_feat).unflatten(-1, (self.num_heads, self.out_feats))
        score_edge = (heads_edge * self.attn_edge).sum(-1, keepdim=True)
        scores = self.scores(graph, heads_src, heads_dst) + score_edge
        attention = self.attn_drop(ops.edge_softmax(graph, self.leaky_relu(scores)))
        relation = graph.relation()
        messages = ops.sddmm(relation, "add", heads_src, heads_edge, "u", "e") * attention
        out = self.finish(ops.spmm(relation, "copy_rhs", "sum", None, messages), dst)
        return (out, attention) if get_attention else out


class DotGatConv(ZeroInDegree):
    r"""Attention of scaled dot products, :math:`(W h_u \cdot W h_v) / \sqrt{D}` per head of size D.

    From Vaswani et al.: Attention Is All You Need, NeurIPS 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> dgl.nn.DotGatConv(5, 2, num_heads=3)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 3, 2])
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
        """Return new rows of the destination nodes."""
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

    From Thekumparampil et al.: Attention-based Graph Neural Network for Semi-supervised Learning,
    2018.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> dgl.nn.AGNNConv(allow_zero_in_degree=True)(graph, torch.eye(3)).detach()[2]
    tensor([0.5000, 0.5000, 0.0000])
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
        """Return (num_dst, D) for ``feat`` of shape (num_src, D), or a pair."""
        self.check(graph, feat)
        src, dst = expand_as_pair(feat, graph)
        if not src.is_floating_point():
            check_dtype(src, self.beta.dtype, "source")
        cosine = ops.sddmm(
            graph.relation(), "dot", F.normalize(src, dim=-1), F.normalize(dst, dim=-1)
        )
        return aggregate(graph, "sum", src, ops.edge_softmax(graph, self.beta * cosine))


class EGATConv(nn.Module):
    r"""Graph attention that also computes new edge features.

    :math:`f_{uv}' = \operatorname{LeakyReLU}(W_i h_u + W_f f_{uv} + W_j h_v + b)`; an edge's score
    is :math:`a \cdot f_{uv}'`; the output is :math:`\sum_u \alpha_{uv} W h_u`.
    From Kamiński et al.: Rossmann-toolbox: a deep learning-based protocol for the prediction and
    design of cofactor specificity in Rossmann fold proteins, Briefings in Bioinformatics 2022.

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
        """Return new rows of nodes, (num_dst, num_heads, out_node_feats), and edges, (E, …).

        ``edge_weight`` multiplies the attention, after the softmax.
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
