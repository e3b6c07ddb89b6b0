"""Convolutions whose messages depend on features of the edges, or on both ends of an edge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.conv.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.nn.utils import Activation, Features, aggregate, expand_as_pair, pair_of_sizes
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["CFConv", "EdgeConv", "GMMConv", "NNConv"]

_REDUCERS = ("sum", "mean", "max")


def _residual(residual: bool, size: int, out_feats: int) -> nn.Module | None:
    if not residual:
        return None
    return nn.Identity() if size == out_feats else nn.Linear(size, out_feats, bias=False)


class NNConv(nn.Module):
    r"""Continuous convolution: a network gives each edge a matrix, which multiplies the source row.

    The output is :math:`\operatorname{aggregate}_{u \to v}\, h_u \Theta(e_{uv}) + b`.
    From Gilmer et al.: Neural Message Passing for Quantum Chemistry, ICML 2017.

    Parameters
    ----------
    in_feats : int or (int, int)
    out_feats : int
    edge_func : callable
        The network Θ: edge rows, shape (E, …), to matrices, shape (E, in_feats · out_feats).
    aggregator_type : {"sum", "mean", "max"}, default "mean"
        ``"max"`` takes the maximum before the sum over the source's columns.
    residual : bool, default False
    bias : bool, default True

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> layer = dgl.nn.NNConv(5, 2, edge_func=torch.nn.Linear(4, 5 * 2))
    >>> layer(graph, torch.ones(3, 5), torch.ones(2, 4)).shape
    torch.Size([3, 2])
    """

    bias: Tensor | None

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        edge_func: Activation,
        aggregator_type: str = "mean",
        residual: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_choice(aggregator_type, _REDUCERS, "aggregator")
        self.in_feats = pair_of_sizes(in_feats)
        self.out_feats = out_feats
        self.edge_func = edge_func
        self.aggregator_type = aggregator_type
        self.res_fc = _residual(residual, self.in_feats[1], out_feats)
        self.bias = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the residual's weight (Glorot normal, for ReLU), and the bias to zero."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)

    def forward(self, graph: Graph, feat: Features, efeat: Tensor) -> Tensor:
        """Return (num_dst, out_feats) for ``feat`` (num_src, in_feats) or a pair."""
        src, dst = expand_as_pair(feat, graph, self.in_feats)
        check_edge_rows(graph, efeat)
        matrices = self.edge_func(efeat).view(-1, self.in_feats[0], self.out_feats)
        out = aggregate(graph, self.aggregator_type, src.unsqueeze(-1), matrices).sum(1)
        if self.res_fc is not None:
            out = out + self.res_fc(dst)
        return out if self.bias is None else out + self.bias


class EdgeConv(ZeroInDegree):
    r"""Edge convolution on point clouds: :math:`\max_{u \to v} \Theta(h_v - h_u) + \Phi(h_v)`.

    The paper and DGL's text have :math:`h_u - h_v`; the sign here is that of DGL's code, so that
    weights trained there give the same results.
    From Wang et al.: Dynamic Graph CNN for Learning on Point Clouds, ACM TOG 2019.

    Parameters
    ----------
    in_feat, out_feat : int
        Sizes of the input and output rows.
    batch_norm : bool, default False
        Normalise the messages.
    allow_zero_in_degree : bool, default False

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> dgl.nn.EdgeConv(5, 2)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_feat: int,
        out_feat: int,
        batch_norm: bool = False,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        self.in_feat = in_feat
        self.batch_norm = batch_norm
        self.theta = nn.Linear(in_feat, out_feat)
        self.phi = nn.Linear(in_feat, out_feat)
        if batch_norm:
            self.bn = nn.BatchNorm1d(out_feat)

    def forward(self, g: Graph, feat: Features) -> Tensor:
        """Return (num_dst, out_feat) for ``feat`` of shape (num_src, in_feat), or a pair."""
        self.check(g, feat)
        src, dst = expand_as_pair(feat, g, (self.in_feat, self.in_feat), self.phi.weight.dtype)
        # Θ(v - u) = Θv - Θu: multiply rows of nodes, which are fewer than edges.
        of_dst, of_src = self.theta(dst) + self.phi(dst), F.linear(src, self.theta.weight)
        messages = ops.sddmm(g.relation(), "sub", of_dst, of_src, "v", "u")
        if self.batch_norm:
            messages = self.bn(messages)
        return ops.spmm(g.relation(), "copy_rhs", "max", None, messages)


class GMMConv(ZeroInDegree):
    r"""Gaussian mixture convolution (MoNet): kernels are Gaussians of coordinates of the edges.

    The output is :math:`\operatorname{aggregate}_{u \to v} \sum_k w_k(p_{uv})\, h_u \Theta_k + b`
    with :math:`w_k(p) = \exp(-\tfrac{1}{2} \sum_d (p_d - \mu_{kd})^2 \sigma_{kd}^{-2})`.
    From Monti et al.: Geometric Deep Learning on Graphs and Manifolds Using Mixture Model CNNs,
    CVPR 2017.

    Parameters
    ----------
    in_feats : int or (int, int)
    out_feats : int
    dim : int
        Number of coordinates of an edge.
    n_kernels : int
        Number of Gaussians.
    aggregator_type : {"sum", "mean", "max"}, default "sum"
        ``"max"`` takes the maximum for each kernel, before the sum over them.
    residual : bool, default False
    bias : bool, default True
    allow_zero_in_degree : bool, default False

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> dgl.nn.GMMConv(5, 2, dim=3, n_kernels=2)(graph, torch.ones(3, 5), torch.ones(3, 3)).shape
    torch.Size([3, 2])
    """

    bias: Tensor | None

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        dim: int,
        n_kernels: int,
        aggregator_type: str = "sum",
        residual: bool = False,
        bias: bool = True,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        check_choice(aggregator_type, _REDUCERS, "aggregator")
        self.in_feats = pair_of_sizes(in_feats)
        self.kernels = (n_kernels, out_feats)
        self.aggregator_type = aggregator_type
        self.mu = nn.Parameter(torch.empty(n_kernels, dim))
        self.inv_sigma = nn.Parameter(torch.empty(n_kernels, dim))
        self.fc = nn.Linear(self.in_feats[0], n_kernels * out_feats, bias=False)
        self.res_fc = _residual(residual, self.in_feats[1], out_feats)
        self.bias = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights (Glorot normal), μ (normal, 0.1), 1/σ to one, the bias to zero."""
        glorot(self.fc)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)
        nn.init.normal_(self.mu, 0, 0.1)
        nn.init.ones_(self.inv_sigma)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, graph: Graph, feat: Features, pseudo: Tensor) -> Tensor:
        """Return (num_dst, out_feats) for ``feat`` (num_src, in_feats) and ``pseudo`` (E, dim)."""
        self.check(graph, feat)
        src, dst = expand_as_pair(feat, graph, self.in_feats, self.mu.dtype)
        check_edge_rows(graph, pseudo, self.mu.shape[1])
        distance = ((pseudo.unsqueeze(1) - self.mu) * self.inv_sigma).square()
        weights = torch.exp(-0.5 * distance.sum(-1, keepdim=True))  # (E, n_kernels, 1)
        heads = self.fc(src).unflatten(-1, self.kernels)
        out = aggregate(graph, self.aggregator_type, heads, weights).sum(1)
        if self.res_fc is not None:
            out = out + self.res_fc(dst)
        return out if self.bias is None else out + self.bias


class _ShiftedSoftplus(nn.Module):
    """softplus(x) − log 2, which is 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x) - math.log(2)


class CFConv(nn.Module):
    r"""Continuous-filter convolution (SchNet): :math:`f(\sum_{u \to v} W h_u \odot g(e_{uv}))`.

    A thin composition of :meth:`~gnnlab.Graph.update_all`'s ``u_mul_e`` and ``sum`` with linear
    layers and shifted softplus.
    From Schütt et al.: SchNet: A continuous-filter convolutional neural network for modeling
    quantum interactions, NeurIPS 2017.

    Parameters
    ----------
    node_in_feats, edge_in_feats : int
        Sizes of the node rows and of the edge rows.
    hidden_feats, out_feats : int
        Sizes of the messages and of the output rows.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> dgl.nn.CFConv(5, 4, 3, 2)(graph, torch.ones(3, 5), torch.ones(2, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self, node_in_feats: int, edge_in_feats: int, hidden_feats: int, out_feats: int
    ) -> None:
        super().__init__()
        self.node_in_feats = node_in_feats
        self.project_edge = nn.Sequential(
            nn.Linear(edge_in_feats, hidden_feats),
            _ShiftedSoftplus(),
            nn.Linear(hidden_feats, hidden_feats),
            _ShiftedSoftplus(),
        )
        self.project_node = nn.Linear(node_in_feats, hidden_feats)
        self.project_out = nn.Sequential(nn.Linear(hidden_feats, out_feats), _ShiftedSoftplus())

    def forward(self, g: Graph, node_feats: Features, edge_feats: Tensor) -> Tensor:
        """Return (num_dst, out_feats); of a pair of ``node_feats``, the first is used."""
        src, _ = expand_as_pair(node_feats, g)
        rows = self.project_node(src)
        return self.project_out(aggregate(g, "sum", rows, self.project_edge(edge_feats)))
