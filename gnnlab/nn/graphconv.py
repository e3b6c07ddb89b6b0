r"""Graph convolution (GCN): a node's new row is a weighted sum of its in-neighbors' rows.

.. math::

    h_v' = b + \sum_{u \to v} c_{uv}\, h_u W

The factor :math:`c_{uv}` keeps nodes with many edges from dominating the others; by default it is
:math:`1 / \sqrt{d_{out}(u)\, d_{in}(v)}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput, NotFound, whole_number
from gnnlab.nn.base import ZeroInDegree
from gnnlab.nn.utils import (
    Activation,
    Features,
    aggregate,
    check_activation,
    check_dtype,
    check_rows,
    check_size,
    from_sources,
    per_row,
)
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class GraphConv(ZeroInDegree):
    """Graph convolution layer.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the input and output rows.
    norm : {"both", "right", "left", "none"}, default "both"
        Divide each message by the square roots of the source's out-degree and the destination's
        in-degree; by the destination's in-degree (a mean); by the source's out-degree (a random
        walk); or by nothing (a sum). On a block, the degrees are those in the block.
    weight : bool, default True
        Have a weight matrix. Otherwise ``forward`` takes one, or the rows keep their size.
    bias : bool, default True
        Add a learned vector to the output.
    activation : callable, optional
        Applied to the output.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges; they get the bias only.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import GraphConv
    >>> graph = dgl.add_self_loop(dgl.graph(([0, 1], [1, 2])))
    >>> GraphConv(5, 2)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 2])
    >>> mean = GraphConv(1, 1, norm="right", weight=False, bias=False)
    >>> mean(graph, torch.tensor([[0.0], [2.0], [4.0]]))
    tensor([[0.],
            [1.],
            [3.]])

    References
    ----------
    Kipf, Welling: Semi-Supervised Classification with Graph Convolutional Networks, ICLR 2017.
    """

    weight: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        norm: str = "both",
        weight: bool = True,
        bias: bool = True,
        activation: Activation | None = None,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        check_choice(norm, ("both", "right", "left", "none"), "norm", NotFound)
        for name, size in (("in_feats", in_feats), ("out_feats", out_feats)):
            whole_number(size, name)
        self.in_feats = in_feats
        self.out_feats = out_feats
        self.norm = norm
        self.activation = check_activation(activation)
        self.weight = nn.Parameter(torch.empty(in_feats, out_feats)) if weight else None
        self.bias = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight (Glorot uniform), and the bias to zero."""
        if self.weight is not None:
            nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        graph: Graph,
        feat: Features,
        weight: Tensor | None = None,
        edge_weight: Tensor | None = None,
    ) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, …, in_feats), or a pair whose first is used
        weight : Tensor of shape (in_feats, out_feats), optional
            Weight to use; only for layers made with ``weight=False``.
        edge_weight : Tensor of shape (E,) or (E, 1), optional
            Multiplies the message of each edge; the degrees do not change.

        Returns
        -------
        Tensor of shape (num_dst, …, out_feats)
        """
        self.check(graph, feat)
        weight = self._choose_weight(weight)
        out = feat[0] if isinstance(feat, tuple) else feat
        check_rows(out, graph, "source")
        if weight is not None:
            check_size(out, weight.shape[0], "source")
            check_dtype(out, weight.dtype, "source")
            if weight.shape[0] > weight.shape[1]:  # aggregate the smaller rows
                rows, factor, weight = out, weight, None
                out = from_sources(graph, rows, factor, lambda: rows @ factor)
        if self.norm == "left":
            out = out / _degree_factor(graph.relation().out_degrees(), out)
        elif self.norm == "both":
            out = out / _degree_factor(graph.relation().out_degrees(), out).sqrt()
        out = aggregate(graph, "mean" if self.norm == "right" else "sum", out, edge_weight)
        if self.norm == "both":
            out = out / _degree_factor(graph.relation().in_degrees(), out).sqrt()
        if weight is not None:
            out = out @ weight
        if self.bias is not None:
            out = out + self.bias
        return out if self.activation is None else self.activation(out)

    def _choose_weight(self, given: Tensor | None) -> Tensor | None:
        if given is not None and self.weight is not None:
            raise InvalidInput(
                "GraphConv was given a weight but has one of its own: build it with weight=False"
            )
        return self.weight if given is None else given

    def extra_repr(self) -> str:
        """Show the sizes, the norm and the activation."""
        return (
            f"in={self.in_feats}, out={self.out_feats}, normalization={self.norm}, "
            f"activation={self.activation}"
        )


def _degree_factor(degrees: Tensor, rows: Tensor) -> Tensor:
    """Return degrees, at least 1, as a column of the rows' dtype."""
    return per_row(degrees.clamp(min=1).to(rows.dtype), rows)
