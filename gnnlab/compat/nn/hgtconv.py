"""Heterogeneous graph transformer: attention with parameters per node type and edge type."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.graph.graph import Graph
from gnnlab.nn.linear import TypedLinear, check_types
from gnnlab.nn.utils import expand_as_pair


class HGTConv(nn.Module):
    r"""Heterogeneous graph transformer layer, on a graph from ``dgl.to_homogeneous``.

    Keys, queries and values have a matrix per node type; an edge of type r scores
    :math:`K(u) W_r Q(v)\, \mu_r / \sqrt{D}` per head and sends :math:`V(u) M_r`. The output is
    mixed with the node's own row by a learned share per node type; ``dropout`` is before that,
    ``use_norm`` adds layer normalization. D is ``head_size``.
    From Hu et al.: Heterogeneous Graph Transformer, WWW 2020.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = dgl.nn.HGTConv(5, 3, num_heads=2, num_ntypes=2, num_etypes=4)
    >>> types = torch.tensor([0, 1, 1])
    >>> layer(graph, torch.ones(3, 5), ntype=types, etype=torch.tensor([3, 0, 3])).shape
    torch.Size([3, 6])
    """

    def __init__(
        self,
        in_size: int,
        head_size: int,
        num_heads: int,
        num_ntypes: int,
        num_etypes: int,
        dropout: float = 0.2,
        use_norm: bool = False,
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.heads = (num_heads, head_size)
        width = num_heads * head_size
        self.linear_k = TypedLinear(in_size, width, num_ntypes)
        self.linear_q = TypedLinear(in_size, width, num_ntypes)
        self.linear_v = TypedLinear(in_size, width, num_ntypes)
        self.linear_a = TypedLinear(width, width, num_ntypes)
        self.relation_pri = nn.ParameterList(
            [nn.Parameter(torch.ones(num_etypes)) for _ in range(num_heads)]
        )
        self.relation_att = nn.ModuleList(
            [TypedLinear(head_size, head_size, num_etypes) for _ in range(num_heads)]
        )
        self.relation_msg = nn.ModuleList(
            [TypedLinear(head_size, head_size, num_etypes) for _ in range(num_heads)]
        )
        self.skip = nn.Parameter(torch.ones(num_ntypes))
        self.drop = nn.Dropout(dropout)
        self.use_norm = use_norm
        if use_norm:
            self.norm = nn.LayerNorm(width)
        if in_size != width:
            self.residual_w = nn.Parameter(torch.empty(in_size, width))
            nn.init.xavier_uniform_(self.residual_w)

    def forward(
        self, g: Graph, x: Tensor, ntype: Tensor, etype: Tensor, *, presorted: bool = False
    ) -> Tensor:
        """Return (num_dst, num_heads · head_size) for ``x`` of shape (num_src, in_size).

        ``ntype`` (num_src,) and ``etype`` (E,) are types from 0; ``presorted`` says that nodes and
        edges are sorted by them.
        """
        src, dst = expand_as_pair(x, g, (self.in_size, self.in_size), self.skip.dtype)
        check_types(ntype, len(src), self.linear_k.num_types, "ntype")
        relation, dst_type = g.relation(), ntype[: len(dst)]
        keys, values = (
            ops.sddmm(relation, "copy_lhs", linear(src, ntype, presorted), None)
            for linear in (self.linear_k, self.linear_v)
        )
        queries = self.linear_q(dst, dst_type, presorted).unflatten(-1, self.heads)
        # Each edge has a row of its own: (E, D) for each head.
        changed = [
            torch.stack(
                [
                    layer(rows, etype, presorted)
                    for layer, rows in zip(layers, edges.chunk(self.heads[0], 1), strict=True)
                ],
                dim=1,
            )
            for layers, edges in ((self.relation_att, keys), (self.relation_msg, values))
        ]
        scores = ops.sddmm(relation, "dot", changed[0], queries, "e", "v")
        priority = torch.stack(list(self.relation_pri), dim=1)[etype.long()].unsqueeze(-1)
        attention = ops.edge_softmax(g, scores * priority / self.heads[1] ** 0.5)
        received = ops.spmm(relation, "copy_rhs", "sum", None, changed[1] * attention)
        out = self.drop(self.linear_a(received.flatten(1), dst_type, presorted))
        share = self.skip[dst_type].sigmoid().unsqueeze(-1)
        own = dst if self.in_size == out.shape[1] else dst @ self.residual_w
        out = out * share + own * (1 - share)
        return self.norm(out) if self.use_norm else out
