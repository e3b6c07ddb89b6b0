r"""Relational graph convolution (R-GCN): each relation has a weight matrix of its own.

.. math::

    h_v' = W_0\, h_v + \sum_{u \xrightarrow{r} v} c_{uv}\, W_r\, h_u + b

The relation of an edge is a number, not an edge type; for those see :class:`HeteroGraphConv`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.errors import InvalidInput
from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.linear import TypedLinear
from gnnlab.nn.utils import (
    Activation,
    Features,
    check_activation,
    expand_as_pair,
    pair_of_sizes,
    per_row,
)

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class RelGraphConv(nn.Module):
    """Relational graph convolution layer.

    Parameters
    ----------
    in_feat, out_feat : int
        Sizes of the input and output rows.
    num_rels : int
        Number of relations.
    regularizer, num_bases
        How the relations share weights, see :class:`TypedLinear`.
    bias : bool, default True
        Add a learned vector to the output.
    activation : callable, optional
        Applied to the output, before dropout.
    self_loop : bool, default True
        Add the node's own row, multiplied by a separate weight.
    dropout : float, default 0
        Dropout on the output.
    layer_norm : bool, default False
        Normalize the sum of the messages.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import RelGraphConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = RelGraphConv(5, 2, num_rels=2, regularizer="basis", num_bases=1)
    >>> layer(graph, torch.ones(3, 5), torch.tensor([0, 1, 0])).shape
    torch.Size([3, 2])

    References
    ----------
    Schlichtkrull et al.: Modeling Relational Data with Graph Convolutional Networks, ESWC 2018.
    """

    h_bias: Tensor | None
    loop_weight: Tensor | None

    def __init__(
        self,
        in_feat: int,
        out_feat: int,
        num_rels: int,
        regularizer: str | None = None,
        num_bases: int | None = None,
        bias: bool = True,
        activation: Activation | None = None,
        self_loop: bool = True,
        dropout: float = 0.0,
        layer_norm: bool = False,
    ) -> None:
        super().__init__()
        self.linear_r = TypedLinear(in_feat, out_feat, num_rels, regularizer, num_bases)
        self.activation = check_activation(activation)
        self.layer_norm_weight = nn.LayerNorm(out_feat) if layer_norm else None
        self.h_bias = nn.Parameter(torch.zeros(out_feat)) if bias else None
        self.loop_weight = nn.Parameter(torch.empty(in_feat, out_feat)) if self_loop else None
        if self.loop_weight is not None:
            nn.init.xavier_uniform_(self.loop_weight, nn.init.calculate_gain("relu"))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        g: Graph,
        feat: Features,
        etypes: Tensor | Sequence[int],
        norm: Tensor | None = None,
        *,
        presorted: bool = False,
    ) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        g : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feat), or a pair (source rows, destination rows)
            On a block, the destinations are the first rows of a single tensor.
        etypes : Tensor of shape (E,), integer; or a list of num_rels ints
            The relation of each edge, in edge-ID order; or how many edges each relation has,
            when the edges are sorted by relation.
        norm : Tensor of shape (E,) or (E, 1), optional
            Multiplies the message of each edge.
        presorted : bool, default False
            The edges are sorted by relation already, which saves two copies.

        Returns
        -------
        Tensor of shape (num_dst, out_feat)
        """
        src, dst = expand_as_pair(
            feat, g, pair_of_sizes(self.linear_r.in_size), self.linear_r.W.dtype
        )
        relation = g.relation()
        if not isinstance(etypes, Tensor):
            etypes, presorted = self._expand_counts(etypes, relation.num_edges, src.device), True
        messages = ops.sddmm(relation, "copy_lhs", src, None)  # (E, in_feat)
        messages = self.linear_r(messages, etypes, presorted)
        if norm is not None:
            check_edge_rows(g, norm, name="norm")
            messages = messages * per_row(norm, messages)
        out = ops.spmm(relation, "copy_rhs", "sum", None, messages)
        if self.layer_norm_weight is not None:
            out = self.layer_norm_weight(out)
        if self.h_bias is not None:
            out = out + self.h_bias
        if self.loop_weight is not None:
            out = out + dst @ self.loop_weight
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(out)

    def _expand_counts(self, counts: Sequence[int], num_edges: int, device: torch.device) -> Tensor:
        """Turn the number of edges of each relation into the relation of each edge."""
        if len(counts) != self.linear_r.num_types or sum(counts) != num_edges:
            raise InvalidInput(
                f"etypes lists {len(counts)} counts that add up to {sum(counts)}, expected one "
                f"per relation ({self.linear_r.num_types}) that add up to the {num_edges} edges: "
                "for the relation of each edge, pass a tensor"
            )
        return torch.arange(len(counts), device=device).repeat_interleave(
            torch.tensor(counts, device=device)
        )
