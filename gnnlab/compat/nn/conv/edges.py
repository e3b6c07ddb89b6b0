"""Convolutions whose messages depend on features of the edges, or on both ends of an edge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.conv.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.errors import InvalidInput
from gnnlab.nn.utils import Activation, Features, aggregate, expand_as_pair, pair_of_sizes
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["AtomicConv", "CFConv", "EGNNConv", "EdgeConv", "GMMConv", "NNConv"]

_REDUCERS = ("sum", "mean", "max")


def _residual(residual: bool, size: int, out_feats: int) -> nn.Module | None:
    if not residual:
        return None
    return nn.Identity() if size == out_feats else nn.Linear(size, out_feats, bias=False)


class NNConv(nn.Module):
    r"""Continuous convolution: a network gives each edge a matrix, which multiplies the source row.

    The output is :math:`\operatorname{aggregate}_{u \to v}\, h_u \Theta(e_{uv}) + b`.

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    out_feats : int
        Size of the output rows.
    edge_func : callable
        The network Θ: edge rows, shape (E, …), to matrices, shape (E, in_feats · out_feats).
    aggregator_type : {"sum", "mean", "max"}, default "mean"
        ``"max"`` takes the maximum before the sum over the source's columns.
    residual : bool, default False
        Add the node's own row to the output, through a linear layer where the sizes differ.
    bias : bool, default True
        Add a learned vector to the output.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import NNConv
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> layer = NNConv(5, 2, edge_func=torch.nn.Linear(4, 5 * 2))
    >>> layer(graph, torch.ones(3, 5), torch.ones(2, 4)).shape
    torch.Size([3, 2])

    References
    ----------
    Gilmer et al.: Neural Message Passing for Quantum Chemistry, ICML 2017.
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
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feats), or a pair (source rows, destination rows)
        efeat : Tensor of shape (E, …)
            Input of ``edge_func``.

        Returns
        -------
        Tensor of shape (num_dst, out_feats)
        """
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

    Parameters
    ----------
    in_feat, out_feat : int
        Sizes of the input and output rows.
    batch_norm : bool, default False
        Normalise the messages.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges; they get zeros.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import EdgeConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> EdgeConv(5, 2)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 2])

    References
    ----------
    Wang et al.: Dynamic Graph CNN for Learning on Point Clouds, ACM TOG 2019.
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
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        g : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feat), or a pair (source rows, destination rows)

        Returns
        -------
        Tensor of shape (num_dst, out_feat)
        """
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

    Parameters
    ----------
    in_feats : int or (int, int)
        Size of the input rows; a pair when source and destination nodes differ.
    out_feats : int
        Size of the output rows.
    dim : int
        Number of coordinates of an edge.
    n_kernels : int
        Number of Gaussians.
    aggregator_type : {"sum", "mean", "max"}, default "sum"
        ``"max"`` takes the maximum for each kernel, before the sum over them.
    residual : bool, default False
        Add the node's own row to the output, through a linear layer where the sizes differ.
    bias : bool, default True
        Add a learned vector to the output.
    allow_zero_in_degree : bool, default False
        Accept nodes without in-edges, which receive no message.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import GMMConv
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> GMMConv(5, 2, dim=3, n_kernels=2)(graph, torch.ones(3, 5), torch.ones(3, 3)).shape
    torch.Size([3, 2])

    References
    ----------
    Monti et al.: Geometric Deep Learning on Graphs and Manifolds Using Mixture Model CNNs,
    CVPR 2017.
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
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        graph : Graph
            A graph or a block with one edge type.
        feat : Tensor of shape (num_src, in_feats), or a pair (source rows, destination rows)
        pseudo : Tensor of shape (E, dim)
            Coordinates of the edges.

        Returns
        -------
        Tensor of shape (num_dst, out_feats)
        """
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

    Parameters
    ----------
    node_in_feats, edge_in_feats : int
        Sizes of the node rows and of the edge rows.
    hidden_feats, out_feats : int
        Sizes of the messages and of the output rows.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import CFConv
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> CFConv(5, 4, 3, 2)(graph, torch.ones(3, 5), torch.ones(2, 4)).shape
    torch.Size([3, 2])

    References
    ----------
    Schütt et al.: SchNet: A continuous-filter convolutional neural network for modeling quantum
    interactions, NeurIPS 2017.
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
        """Compute the rows of the destination nodes.

        Parameters
        ----------
        g : Graph
            A graph or a block with one edge type.
        node_feats : Tensor of shape (num_src, node_in_feats), or a pair whose first is used
        edge_feats : Tensor of shape (E, edge_in_feats)

        Returns
        -------
        Tensor of shape (num_dst, out_feats)
        """
        src, _ = expand_as_pair(node_feats, g)
        rows = self.project_node(src)
        return self.project_out(aggregate(g, "sum", rows, self.project_edge(edge_feats)))


class _RadialPooling(nn.Module):
    """Values of K radial filters at each distance; the filters are zero beyond their cutoffs."""

    def __init__(self, cutoffs: Tensor, means: Tensor, scaling: Tensor) -> None:
        super().__init__()
        self.interaction_cutoffs = nn.Parameter(cutoffs.reshape(-1, 1, 1))
        self.rbf_kernel_means = nn.Parameter(means.reshape(-1, 1, 1))
        self.rbf_kernel_scaling = nn.Parameter(scaling.reshape(-1, 1, 1))

    def forward(self, distances: Tensor) -> Tensor:
        """Return shape (K, E, 1) for distances of shape (E, 1)."""
        rbf = torch.exp(-self.rbf_kernel_scaling * (distances - self.rbf_kernel_means) ** 2)
        cosine = 0.5 * (torch.cos(math.pi * distances / self.interaction_cutoffs) + 1)
        return rbf * torch.where(distances <= self.interaction_cutoffs, cosine, 0)


class AtomicConv(nn.Module):
    """Atomic convolution: sums over an atom's neighbors, by radial filter and kind of atom.

    Parameters
    ----------
    interaction_cutoffs, rbf_kernel_means, rbf_kernel_scaling : Tensor of shape (K,)
        Cutoff distance, center and scaling of each of the K radial filters; learned.
    features_to_use : Tensor of shape (T,), optional
        Atomic numbers that are told apart. Otherwise the features are used as they are (T = 1).

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import AtomicConv
    >>> layer = AtomicConv(*torch.ones(3, 2), features_to_use=torch.tensor([6.0, 8.0]))
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> layer(graph, torch.tensor([[6.0], [8.0], [6.0]]), torch.ones(2, 1)).shape
    torch.Size([3, 4])

    References
    ----------
    Gomes et al.: Atomic Convolutional Networks for Predicting Protein-Ligand Binding Affinity,
    2017.
    """

    features_to_use: Tensor | None

    def __init__(
        self,
        interaction_cutoffs: Tensor,
        rbf_kernel_means: Tensor,
        rbf_kernel_scaling: Tensor,
        features_to_use: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.radial_pooling = _RadialPooling(
            interaction_cutoffs, rbf_kernel_means, rbf_kernel_scaling
        )
        self.features_to_use = None
        if features_to_use is not None:
            self.features_to_use = nn.Parameter(features_to_use, requires_grad=False)

    def forward(self, graph: Graph, feat: Tensor, distances: Tensor) -> Tensor:
        """Compute the rows of the nodes.

        Parameters
        ----------
        graph : Graph
        feat : Tensor of shape (num_src, 1)
            Atomic numbers.
        distances : Tensor of shape (E, 1)
            Lengths of the edges.

        Returns
        -------
        Tensor of shape (num_dst, K · T)
        """
        src, _ = expand_as_pair(feat, graph, (1, 1))
        if self.features_to_use is not None:
            src = (src == self.features_to_use).to(src.dtype)
        values = self.radial_pooling(distances).transpose(0, 1).to(src.dtype)  # (E, K, 1)
        return aggregate(graph, "sum", src.unsqueeze(1), values).flatten(1)


class EGNNConv(nn.Module):
    """Convolution of rows and coordinates that rotates and moves with the coordinates.

    Messages depend on both ends' rows and their squared distance; each gives a number, by which the
    edge's direction moves the destination.

    Parameters
    ----------
    in_size, hidden_size, out_size : int
        Sizes of the input rows, the messages and the output rows.
    edge_feat_size : int, default 0
        Size of the edge rows.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import EGNNConv
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> rows, coordinates = EGNNConv(5, 4, 2)(graph, torch.ones(3, 5), torch.eye(3))
    >>> rows.shape, coordinates.shape
    (torch.Size([3, 2]), torch.Size([3, 3]))

    References
    ----------
    Satorras, Hoogeboom, Welling: E(n) Equivariant Graph Neural Networks, ICML 2021.
    """

    def __init__(
        self, in_size: int, hidden_size: int, out_size: int, edge_feat_size: int = 0
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.edge_feat_size = edge_feat_size
        self.edge_mlp = nn.Sequential(
            nn.Linear(in_size * 2 + edge_feat_size + 1, hidden_size),
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
        """Compute new rows and coordinates of the nodes.

        Parameters
        ----------
        graph : Graph
        node_feat : Tensor of shape (N, in_size)
        coord_feat : Tensor of shape (N, D)
        edge_feat : Tensor of shape (E, edge_feat_size), optional

        Returns
        -------
        Tensor of shape (N, out_size)
        Tensor of shape (N, D)
        """
        src, dst = expand_as_pair(node_feat, graph, (self.in_size, self.in_size))
        x_src, x_dst = expand_as_pair(coord_feat, graph)
        relation = graph.relation()
        difference = ops.sddmm(relation, "sub", x_src, x_dst)
        radial = difference.square().sum(-1, keepdim=True)
        # The distance of a node to itself is 0, where the root's gradient would be infinite.
        distance = radial.where(radial > 0, 1).sqrt()
        parts = [
            ops.sddmm(relation, "copy_lhs", src, None),
            ops.sddmm(relation, "copy_rhs", None, dst),
            radial,
        ]
        if self.edge_feat_size:
            if edge_feat is None:
                raise InvalidInput(f"expected edge_feat of {self.edge_feat_size} columns")
            check_edge_rows(graph, edge_feat, self.edge_feat_size)
            parts.append(edge_feat)
        messages = self.edge_mlp(torch.cat(parts, dim=-1))
        moves = self.coord_mlp(messages) * difference / distance
        neighbors = ops.spmm(relation, "copy_rhs", "sum", None, messages)
        rows = self.node_mlp(torch.cat([dst, neighbors], dim=-1))
        return rows, x_dst + ops.spmm(relation, "copy_rhs", "mean", None, moves)
