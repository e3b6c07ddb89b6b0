"""Convolution of atoms by distance: radial filters, summed over neighbors of each type."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.nn.base import check_edge_rows
from gnnlab.nn.utils import aggregate, expand_as_pair

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["AtomicConv"]


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
