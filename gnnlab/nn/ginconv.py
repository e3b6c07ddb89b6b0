r"""Graph isomorphism network (GIN): a sum over in-neighbors, followed by a network.

.. math::

    h_v' = f\left((1 + \epsilon)\, h_v + \sum_{u \to v} h_u\right)

Unlike a mean or a maximum, a sum preserves how many neighbors of each kind a node has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.errors import NotFound
from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.utils import Activation, Features, aggregate, check_activation, expand_as_pair
from gnnlab.ops.checks import check_choice
from gnnlab.ops.spmm import check_number

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph


class _Epsilon(nn.Module):
    """Shared by both layers: the factor of the node's own row, and the network after the sum."""

    eps: Tensor

    def __init__(
        self, apply_func: Activation | None = None, init_eps: float = 0, learn_eps: bool = False
    ) -> None:
        super().__init__()
        self.apply_func = apply_func
        eps = torch.tensor([float(init_eps)])
        if learn_eps:
            self.eps = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

    def _update(self, own: Tensor, neighbors: Tensor) -> Tensor:
        out = (1 + self.eps) * own + neighbors
        return out if self.apply_func is None else self.apply_func(out)


class GINConv(_Epsilon):
    """Graph isomorphism layer.

    Parameters
    ----------
    apply_func : Module or callable, optional
        The network applied to the sum.
    aggregator_type : {"sum", "mean", "max"}, default "sum"
        How the in-neighbors' rows are reduced.
    init_eps : float, default 0
        Initial ε.
    learn_eps : bool, default False
        Learn ε.
    activation : callable, optional
        Applied to the output.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import GINConv
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> GINConv()(graph, torch.tensor([[1.0], [2.0], [4.0]]))
    tensor([[1.],
            [2.],
            [7.]])

    References
    ----------
    Xu, Hu, Leskovec, Jegelka: How Powerful are Graph Neural Networks?, ICLR 2019.
    """

    def __init__(
        self,
        apply_func: Activation | None = None,
        aggregator_type: str = "sum",
        init_eps: float = 0,
        learn_eps: bool = False,
        activation: Activation | None = None,
    ) -> None:
        super().__init__(apply_func, init_eps, learn_eps)
        check_choice(aggregator_type, ("sum", "mean", "max"), "aggregator", NotFound)
        self.aggregator_type = aggregator_type
        self.activation = check_activation(activation)

    def forward(self, graph: Graph, feat: Features, edge_weight: Tensor | None = None) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, …), or a pair (source rows, destination rows)
            On a block, the destinations are the first rows of a single tensor.
        edge_weight : Tensor of shape (E,) or (E, 1), optional
            Multiplies the message of each edge.

        Returns
        -------
        Tensor of shape (num_dst, …)
            As wide as the output of ``apply_func``.
        """
        src, dst = expand_as_pair(feat, graph)
        out = self._update(dst, aggregate(graph, self.aggregator_type, src, edge_weight))
        return out if self.activation is None else self.activation(out)

    def extra_repr(self) -> str:
        """Show the aggregator."""
        return f"aggregator={self.aggregator_type}"


class GINEConv(_Epsilon):
    r"""Graph isomorphism layer with edge features: the message is :math:`relu(h_u + e_{uv})`.

    Parameters
    ----------
    apply_func, init_eps, learn_eps
        As for :class:`GINConv`.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.nn import GINEConv
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> GINEConv()(graph, torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([[-3.0], [1.0]]))
    tensor([[1.],
            [2.],
            [7.]])

    References
    ----------
    Hu et al.: Strategies for Pre-training Graph Neural Networks, ICLR 2020.
    """

    def forward(self, graph: Graph, node_feat: Features, edge_feat: Tensor) -> Tensor:
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        node_feat : Tensor of shape (num_src, D), or a pair (source rows, destination rows)
        edge_feat : Tensor of shape (E, D)
            In edge-ID order.

        Returns
        -------
        Tensor of shape (num_dst, …)
            As wide as the output of ``apply_func``.
        """
        src, dst = expand_as_pair(node_feat, graph)
        check_edge_rows(graph, edge_feat)
        relation = graph.relation()
        messages = ops.sddmm(relation, "add", src, edge_feat, "u", "e")
        check_number("max", messages)
        messages = messages.relu_()  # the sum of rows made here: no copy of all edges' rows
        return self._update(dst, ops.spmm(relation, "copy_rhs", "sum", None, messages))
