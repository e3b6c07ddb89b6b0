r"""Graph attention (GAT): a weighted sum over in-neighbors, with a learned weight for each edge.

.. math::

    h_v' = \sum_{u \to v} \alpha_{uv} W h_u, \qquad
    \alpha_{uv} = \operatorname{softmax}_{u \to v}
        \operatorname{LeakyReLU}(a_l \cdot W h_u + a_r \cdot W h_v)

Several heads compute this, each with its own weights; the caller concatenates or averages them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.errors import whole_number
from gnnlab.nn.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.nn.utils import (
    Activation,
    Features,
    aggregate,
    check_activation,
    expand_as_pair,
    from_sources,
    map_features,
    pair_of_sizes,
    per_row,
)

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class GATConv(ZeroInDegree):
    """Graph attention layer.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    out_feats : int
        Size of the output rows of one head.
    num_heads : int
        Number of heads.
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
        Add a learned vector to the output.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import GATConv
    >>> graph = dgl.graph(([0, 1, 2, 1], [1, 2, 0, 0]))
    >>> out, attention = GATConv(5, 2, num_heads=3)(graph, torch.ones(3, 5), get_attention=True)
    >>> out.shape
    torch.Size([3, 3, 2])
    >>> attention[:, 0, 0]  # head 0, edges in ID order: the last two share their destination
    tensor([1.0000, 1.0000, 0.5000, 0.5000], grad_fn=<SelectBackward0>)

    References
    ----------
    Veličković et al.: Graph Attention Networks, ICLR 2018.
    """

    bias: Tensor | None
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
    ) -> None:
        super().__init__(allow_zero_in_degree)
        src_feats, dst_feats = pair_of_sizes(in_feats)
        width = whole_number(num_heads, "num_heads", 1) * out_feats
        self.in_feats = in_feats
        self.out_feats = out_feats
        self.num_heads = num_heads
        self.activation = check_activation(activation)
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
        # A linear residual has the bias itself.
        linear_residual = residual and dst_feats != width
        if linear_residual:
            self.res_fc = nn.Linear(dst_feats, width, bias=bias)
        else:
            self.res_fc = nn.Identity() if residual else None
        self.bias = nn.Parameter(torch.empty(width)) if bias and not linear_residual else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights (Glorot normal, for ReLU), and the biases to zero."""
        glorot(*self._linear_layers())
        for attn in (self.attn_l, self.attn_r):
            nn.init.xavier_normal_(attn, nn.init.calculate_gain("relu"))
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)

    def _linear_layers(self) -> tuple[nn.Linear, ...]:
        if isinstance(self.in_feats, tuple):
            return self.fc_src, self.fc_dst
        return (self.fc,)

    def forward(
        self,
        graph: Graph,
        feat: Features,
        edge_weight: Tensor | None = None,
        get_attention: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, …, in_feats), or a pair (source rows, destination rows)
            On a block, the destinations are the first rows of a single tensor.
        edge_weight : Tensor of shape (E,), optional
            Multiplies the attention of each edge, after the softmax.
        get_attention : bool, default False
            Also return the attention.

        Returns
        -------
        Tensor of shape (num_dst, …, num_heads, out_feats)
        Tensor of shape (E, …, num_heads, 1)
            The attention, in edge-ID order; only with ``get_attention``.
        """
        self.check(graph, feat)
        heads_src, heads_dst, dst = self.project(graph, feat)
        scores = self.scores(graph, heads_src, heads_dst)
        attention = self.attn_drop(ops.edge_softmax(graph, self.leaky_relu(scores)))
        if edge_weight is not None:
            check_edge_rows(graph, edge_weight, name="edge_weight")
            attention = attention * per_row(edge_weight, attention)
        out = self.finish(aggregate(graph, "sum", heads_src, attention), dst)
        return (out, attention) if get_attention else out

    def project(self, graph: Graph, feat: Features) -> tuple[Tensor, Tensor, Tensor]:
        """Project both sides, shape (N, …, num_heads, out_feats); also the destination rows."""
        feat = map_features(self.feat_drop, feat)
        sizes, shape = pair_of_sizes(self.in_feats), (self.num_heads, self.out_feats)
        src, dst = expand_as_pair(feat, graph, sizes, self.attn_l.dtype)
        linear = self._linear_layers()
        heads_src = from_sources(
            graph, src, linear[0].weight, lambda: linear[0](src).unflatten(-1, shape)
        )
        if isinstance(feat, Tensor) and len(linear) == 1:
            return heads_src, heads_src[: len(dst)], dst
        return heads_src, linear[-1](dst).unflatten(-1, shape), dst

    def scores(self, graph: Graph, heads_src: Tensor, heads_dst: Tensor) -> Tensor:
        """Return the score of each edge, shape (E, …, num_heads, 1)."""
        score_src = from_sources(
            graph, heads_src, self.attn_l, lambda: (heads_src * self.attn_l).sum(-1, keepdim=True)
        )
        score_dst = (heads_dst * self.attn_r).sum(-1, keepdim=True)
        return ops.sddmm(graph.relation(), "add", score_src, score_dst)

    def finish(self, out: Tensor, dst: Tensor) -> Tensor:
        """Add residual and bias, and apply the activation."""
        if self.res_fc is not None:
            out = out + self.res_fc(dst).view_as(out)
        if self.bias is not None:
            out = out + self.bias.view(self.num_heads, self.out_feats)
        return out if self.activation is None else self.activation(out)

    def extra_repr(self) -> str:
        """Show the sizes."""
        return f"in={self.in_feats}, out={self.out_feats}, heads={self.num_heads}"
