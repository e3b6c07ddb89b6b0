"""Gated convolutions: a gate decides how much of a message, or of the old row, is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.conv.base import check_edge_rows, check_whole, glorot
from gnnlab.errors import InvalidInput
from gnnlab.nn.utils import Activation, aggregate, expand_as_pair

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["GatedGCNConv", "GatedGraphConv"]


class GatedGraphConv(nn.Module):
    r"""Gated graph network: :math:`h_v \leftarrow GRU(\sum_{u \to v} W_{t(u, v)} h_u + b_t, h_v)`.

    From Li et al.: Gated Graph Sequence Neural Networks, ICLR 2016.

    Parameters
    ----------
    in_feats, out_feats : int
        Sizes of the input and output rows, ``in_feats ≤ out_feats``: rows are padded with zeros.
    n_steps : int
        Number of steps, all with the same parameters.
    n_etypes : int
        Number of edge types.
    bias : bool, default True
        Give the GRU a bias.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> layer = dgl.nn.GatedGraphConv(5, 6, n_steps=2, n_etypes=3)
    >>> layer(graph, torch.ones(3, 5), torch.tensor([0, 2, 2])).shape
    torch.Size([3, 6])
    """

    def __init__(
        self, in_feats: int, out_feats: int, n_steps: int, n_etypes: int, bias: bool = True
    ) -> None:
        super().__init__()
        if in_feats > out_feats:
            raise InvalidInput(
                f"found in_feats={in_feats} > out_feats={out_feats}: rows are padded to the output "
                "size, never cut; choose a larger out_feats"
            )
        self.in_feats = in_feats
        self.out_feats = out_feats
        self.n_steps = n_steps
        self.n_etypes = n_etypes
        self.linears = nn.ModuleList(nn.Linear(out_feats, out_feats) for _ in range(n_etypes))
        self.gru = nn.GRUCell(out_feats, out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the GRU as torch does, the weights (Glorot normal), the biases to zero."""
        self.gru.reset_parameters()
        glorot(*(linear for linear in self.linears if isinstance(linear, nn.Linear)))

    def forward(self, graph: Graph, feat: Tensor, etypes: Tensor | None = None) -> Tensor:
        """Return (N, out_feats) for ``feat`` (N, in_feats) and edge types (E,) from 0.

        ``etypes`` may be left out with one type.
        """
        check_whole(graph, feat, self.in_feats, self.gru.weight_ih)
        if etypes is not None:
            check_edge_rows(graph, etypes)
            sizes = torch.bincount(etypes, minlength=self.n_etypes).tolist()
            if len(sizes) > self.n_etypes:
                raise InvalidInput(
                    f"found edge type {len(sizes) - 1}; expected types 0 to {self.n_etypes - 1}"
                )
            order = etypes.argsort(stable=True)
            sources = graph.edges()[0][order].split(sizes)  # of the edges of each type
        elif self.n_etypes > 1:
            raise InvalidInput(f"the layer has {self.n_etypes} edge types: give etypes, one each")
        relation = graph.relation()
        rows = F.pad(feat, (0, self.out_feats - feat.shape[-1]))
        for _ in range(self.n_steps):
            if etypes is None:
                received = aggregate(graph, "sum", self.linears[0](rows))
            else:
                products = torch.cat(
                    [linear(rows[ids]) for linear, ids in zip(self.linears, sources, strict=True)]
                )
                messages = torch.empty_like(products).index_copy(0, order, products)
                received = ops.spmm(relation, "copy_rhs", "sum", None, messages)
            rows = self.gru(received, rows)
        return rows


class GatedGCNConv(nn.Module):
    r"""Graph convolution whose gates are learned edge features.

    :math:`e_{uv}' = D h_u + E h_v + C e_{uv}`, :math:`h_v' = A h_v + \sum_u \sigma(e_{uv}')
    \odot B h_u / (\sum_u \sigma(e_{uv}') + 10^{-6})`; then, for both, batch normalisation,
    activation, residual and dropout.
    From Dwivedi et al.: Benchmarking Graph Neural Networks, JMLR 2023.

    Parameters
    ----------
    input_feats, edge_feats, output_feats : int
        Sizes of the node rows, of the edge rows, and of both outputs.
    dropout : float, default 0
    batch_norm : bool, default True
    residual : bool, default True
        Add the inputs to the outputs, when all sizes are equal.
    activation : callable or None, default relu

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 2]))
    >>> nodes, edges = dgl.nn.GatedGCNConv(5, 4, 2)(graph, torch.ones(3, 5), torch.ones(2, 4))
    >>> nodes.shape, edges.shape
    (torch.Size([3, 2]), torch.Size([2, 2]))
    """

    def __init__(
        self,
        input_feats: int,
        edge_feats: int,
        output_feats: int,
        dropout: float = 0,
        batch_norm: bool = True,
        residual: bool = True,
        activation: Activation | None = F.relu,
    ) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.batch_norm = batch_norm
        self.residual = residual and input_feats == edge_feats == output_feats
        self.activation = activation
        self.A = nn.Linear(input_feats, output_feats)
        self.B = nn.Linear(input_feats, output_feats)
        self.C = nn.Linear(edge_feats, output_feats)
        self.D = nn.Linear(input_feats, output_feats)
        self.E = nn.Linear(input_feats, output_feats)
        self.bn_node = nn.BatchNorm1d(output_feats)
        self.bn_edge = nn.BatchNorm1d(output_feats)

    def forward(self, graph: Graph, feat: Tensor, edge_feat: Tensor) -> tuple[Tensor, Tensor]:
        """Return new rows of the nodes and of the edges, (N, output_feats), (E, output_feats)."""
        size = self.A.in_features
        src, dst = expand_as_pair(feat, graph, (size, size), self.A.weight.dtype)
        check_edge_rows(graph, edge_feat, self.C.in_features)
        edges = ops.sddmm(graph.relation(), "add", self.D(src), self.E(dst)) + self.C(edge_feat)
        gates = edges.sigmoid()
        received = aggregate(graph, "sum", self.B(src), gates)
        opened = ops.spmm(graph.relation(), "copy_rhs", "sum", None, gates)
        nodes = self.A(dst) + received / (opened + 1e-6)
        return (
            self._finish(nodes, self.bn_node, dst),
            self._finish(edges, self.bn_edge, edge_feat),
        )

    def _finish(self, out: Tensor, norm: nn.BatchNorm1d, before: Tensor) -> Tensor:
        if self.batch_norm:
            out = norm(out)
        if self.activation is not None:
            out = self.activation(out)
        return self.dropout(before + out if self.residual else out)
