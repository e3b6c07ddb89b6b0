"""Convolutions of atoms and points, whose edges have distances or directions."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.utils import Features, aggregate, expand_as_pair


class RadialPooling(nn.Module):
    r"""Radial filters :math:`e^{-\gamma_k (r - \mu_k)^2} \cdot (\cos(\pi r / c_k) + 1) / 2`."""

    def __init__(self, cutoffs: Tensor, means: Tensor, scaling: Tensor) -> None:
        super().__init__()
        self.interaction_cutoffs = nn.Parameter(cutoffs.reshape(-1, 1, 1))
        self.rbf_kernel_means = nn.Parameter(means.reshape(-1, 1, 1))
        self.rbf_kernel_scaling = nn.Parameter(scaling.reshape(-1, 1, 1))

    def forward(self, distances: Tensor) -> Tensor:
        """Return the filters of distances (E, 1), shape (K, E, 1); 0 from the cutoff on."""
        cutoffs = self.interaction_cutoffs
        gaussian = (-self.rbf_kernel_scaling * (distances - self.rbf_kernel_means).square()).exp()
        window = (torch.cos(torch.pi * distances / cutoffs) + 1) / 2
        return gaussian * torch.where(distances < cutoffs, window, 0)


class AtomicConv(nn.Module):
    r"""Sums of ``K`` radial filters of the distances to in-neighbors, by type of neighbor.

    ``interaction_cutoffs`` :math:`c_k`, ``rbf_kernel_means`` :math:`\mu_k` and
    ``rbf_kernel_scaling`` :math:`\gamma_k` have shape (K,) and are learned; see
    :class:`RadialPooling`. ``features_to_use``, shape (T,), lists the types, such as atomic
    numbers. Without it, the node rows multiply the filters.
    From Gomes et al.: Atomic Convolutional Networks for Predicting Protein-Ligand Binding
    Affinity, arXiv:1703.10603, 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> layer = dgl.nn.AtomicConv(
    ...     torch.tensor([4.0]), torch.tensor([0.0]), torch.tensor([0.0]), torch.tensor([6.0, 8.0])
    ... )
    >>> atoms = torch.tensor([[6.0], [8.0], [1.0]])
    >>> layer(graph, atoms, torch.tensor([[2.0], [4.0]]))[2]
    tensor([0.5000, 0.0000], grad_fn=<SelectBackward0>)
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
        given = [as_tensor(x) for x in (interaction_cutoffs, rbf_kernel_means, rbf_kernel_scaling)]
        if len({x.numel() for x in given}) > 1 or not all(x.is_floating_point() for x in given):
            shapes = ", ".join(f"{tuple(x.shape)} {x.dtype}" for x in given)
            raise InvalidInput(
                "interaction_cutoffs, rbf_kernel_means and rbf_kernel_scaling have one float per "
                f"filter each; found {shapes}"
            )
        self.radial_pooling = RadialPooling(*given)
        self.features_to_use = None
        if features_to_use is not None:
            types = as_tensor(features_to_use, "features_to_use").flatten()
            self.features_to_use = nn.Parameter(types, requires_grad=False)

    def forward(self, graph: Graph, feat: Tensor, distances: Tensor) -> Tensor:
        """Return (num_dst, T · K), the K sums of a type side by side.

        ``feat`` has shape (num_src, 1), or (num_src, T) without types; ``distances`` (E, 1).
        """
        rows = expand_as_pair(feat, graph)[0]
        check_edge_rows(graph, distances, 1, self.radial_pooling.interaction_cutoffs)
        filters = self.radial_pooling(distances).permute(1, 2, 0)  # (E, 1, K)
        if self.features_to_use is not None:
            rows = (rows == self.features_to_use).to(filters.dtype)
        return aggregate(graph, "sum", rows.unsqueeze(-1), filters).flatten(1)


class ShiftedSoftplus(nn.Module):
    """softplus(x) − log 2, which is 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """Return numbers of the shape of ``x``."""
        return F.softplus(x).sub_(math.log(2))


class CFConv(nn.Module):
    r"""Continuous-filter convolution (SchNet): :math:`f(\sum_{u \to v} W h_u \odot g(e_{uv}))`.

    f and g are linear layers with shifted softplus; messages have size ``hidden_feats``.
    From Schütt et al.: SchNet: A continuous-filter convolutional neural network for modeling
    quantum interactions, NeurIPS 2017.

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
            ShiftedSoftplus(),
            nn.Linear(hidden_feats, hidden_feats),
            ShiftedSoftplus(),
        )
        self.project_node = nn.Linear(node_in_feats, hidden_feats)
        self.project_out = nn.Sequential(nn.Linear(hidden_feats, out_feats), ShiftedSoftplus())

    def forward(self, g: Graph, node_feats: Features, edge_feats: Tensor) -> Tensor:
        """Return (num_dst, out_feats); of a pair of ``node_feats``, the first is used."""
        linear = self.project_node
        sizes = (linear.in_features, linear.in_features)
        src, _ = expand_as_pair(node_feats, g, sizes, linear.weight.dtype)
        check_edge_rows(g, edge_feats, weight=linear.weight)
        rows = self.project_node(src)
        return self.project_out(aggregate(g, "sum", rows, self.project_edge(edge_feats)))


class EGNNConv(nn.Module):
    r"""E(n)-equivariant convolution of rows h and coordinates x.

    With :math:`m_{uv} = \phi_e(h_u, h_v, \lVert x_u - x_v \rVert^2, e_{uv})`, the new rows are
    :math:`\phi_h(h_v, \sum_u m_{uv})`, and the new coordinates :math:`x_v` plus the mean of
    :math:`\phi_x(m_{uv}) (x_u - x_v) / \lVert x_u - x_v \rVert`.
    Messages have size ``hidden_size``. From Satorras, Hoogeboom, Welling: E(n) Equivariant Graph
    Neural Networks, ICML 2021.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.EGNNConv(5, 8, 2)
    >>> h, x = layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5), torch.eye(3))
    >>> h.shape, x.shape
    (torch.Size([3, 2]), torch.Size([3, 3]))
    """

    def __init__(
        self, in_size: int, hidden_size: int, out_size: int, edge_feat_size: int = 0
    ) -> None:
        super().__init__()
        self.in_size = in_size
        self.edge_feat_size = edge_feat_size
        self.edge_mlp = nn.Sequential(
            nn.Linear(2 * in_size + edge_feat_size + 1, hidden_size),
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
            nn.Linear(hidden_size, hidden_size), nn.SiLU(), nn.Linear(hidden_size, 1, bias=False)
        )

    def forward(
        self, graph: Graph, node_feat: Tensor, coord_feat: Tensor, edge_feat: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return new rows (N, out_size) and coordinates (N, D).

        ``node_feat`` has shape (N, in_size), ``coord_feat`` (N, D), ``edge_feat``
        (E, edge_feat_size).
        """
        weight = next(self.node_mlp.parameters())
        check_whole(graph, node_feat, self.in_size, weight)
        check_whole(graph, coord_feat, weight=weight)
        if (edge_feat is None) != (self.edge_feat_size == 0):
            raise InvalidInput(f"expected edge_feat of {self.edge_feat_size} columns")
        if edge_feat is not None:
            check_edge_rows(graph, edge_feat, self.edge_feat_size, weight)
        relation = graph.relation()
        away = ops.sddmm(relation, "sub", coord_feat, coord_feat)
        squared = away.square().sum(1, keepdim=True)
        parts = [
            ops.sddmm(relation, "copy_lhs", node_feat, None),
            ops.sddmm(relation, "copy_rhs", None, node_feat),
            squared,
        ]
        if self.edge_feat_size and edge_feat is not None:
            parts.append(edge_feat)
        messages = self.edge_mlp(torch.cat(parts, 1))
        # Points at the same place have no direction, and the root has no gradient at 0.
        length = torch.where(squared > 0, squared, 1).sqrt()
        moves = self.coord_mlp(messages) * (away / length)
        received = ops.spmm(relation, "copy_rhs", "sum", None, messages)
        moved = ops.spmm(relation, "copy_rhs", "mean", None, moves)
        return self.node_mlp(torch.cat([node_feat, received], 1)), coord_feat + moved
