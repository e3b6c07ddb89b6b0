"""Convolutions by features or types of the edges, by both ends of an edge, on a matrix."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.nn.base import ZeroInDegree, check_edge_rows, glorot
from gnnlab.nn.linear import check_types
from gnnlab.nn.utils import Activation, Features, aggregate, expand_as_pair, pair_of_sizes
from gnnlab.ops.checks import check_choice

_REDUCERS = ("sum", "mean", "max")


def _residual(residual: bool, size: int, out_feats: int) -> nn.Module | None:
    if not residual:
        return None
    return nn.Identity() if size == out_feats else nn.Linear(size, out_feats, bias=False)


class NNConv(nn.Module):
    r"""A network gives each edge a matrix: the mean of :math:`h_u \Theta(e_{uv})`, plus a bias.

    ``edge_func`` is Θ: edge rows to rows of in_feats · out_feats numbers. Aggregators: "sum",
    "mean", and "max" before the sum over the source's columns.
    From Gilmer et al.: Neural Message Passing for Quantum Chemistry, ICML 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.NNConv(5, 2, edge_func=torch.nn.Linear(4, 5 * 2))
    >>> layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5), torch.ones(2, 4)).shape
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
        self.out_feats, self.edge_func = out_feats, edge_func
        self.aggregator_type = aggregator_type
        self.res_fc = _residual(residual, self.in_feats[1], out_feats)
        self.bias = nn.Parameter(torch.zeros(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the residual's weight (Glorot normal, for ReLU), and the bias to zero."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)

    def forward(self, graph: Graph, feat: Features, efeat: Tensor) -> Tensor:
        """Return (num_dst, out_feats)."""
        src, dst = expand_as_pair(feat, graph, self.in_feats)
        check_edge_rows(graph, efeat)
        matrices = self.edge_func(efeat).view(-1, self.in_feats[0], self.out_feats)
        out = aggregate(graph, self.aggregator_type, src.unsqueeze(-1), matrices).sum(1)
        if self.res_fc is not None:
            out = out + self.res_fc(dst)
        return out if self.bias is None else out + self.bias


class EdgeConv(ZeroInDegree):
    r"""Edge convolution of point clouds: :math:`\max_{u \to v} \Theta(h_v - h_u) + \Phi(h_v)`.

    The paper and DGL's text have :math:`h_u - h_v`; the sign here is that of DGL's code, so that
    weights trained there give the same results. ``batch_norm`` normalizes the messages.
    From Wang et al.: Dynamic Graph CNN for Learning on Point Clouds, ACM TOG 2019.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.EdgeConv(5, 2)(dgl.graph(([0, 1, 2], [1, 2, 0])), torch.ones(3, 5)).shape
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
        self.in_feat, self.batch_norm = in_feat, batch_norm
        self.theta = nn.Linear(in_feat, out_feat)
        self.phi = nn.Linear(in_feat, out_feat)
        if batch_norm:
            self.bn = nn.BatchNorm1d(out_feat)

    def forward(self, g: Graph, feat: Features) -> Tensor:
        """Return (num_dst, out_feat)."""
        self.check(g, feat)
        src, dst = expand_as_pair(feat, g, (self.in_feat, self.in_feat), self.phi.weight.dtype)
        # Θ(v - u) = Θv - Θu: multiply rows of nodes, which are fewer than edges.
        of_dst, of_src = self.theta(dst) + self.phi(dst), F.linear(src, self.theta.weight)
        messages = ops.sddmm(g.relation(), "sub", of_dst, of_src, "v", "u")
        if self.batch_norm:
            messages = self.bn(messages)
        return ops.spmm(g.relation(), "copy_rhs", "max", None, messages)


class GMMConv(ZeroInDegree):
    r"""Gaussian mixture convolution: kernels are Gaussians of the edges' ``dim`` coordinates.

    The output is :math:`\operatorname{aggregate}_{u \to v} \sum_k w_k(p_{uv})\, h_u \Theta_k + b`
    with :math:`w_k(p) = \exp(-\tfrac{1}{2} \sum_d (p_d - \mu_{kd})^2 \sigma_{kd}^{-2})`. It
    aggregates by "sum", "mean", or "max" for each kernel. From Monti et al.: MoNet, CVPR 2017.

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
        """Initialize the weights (Glorot normal), μ (normal, 0.1), 1/σ to one, the bias to zero."""
        glorot(self.fc)
        if isinstance(self.res_fc, nn.Linear):
            glorot(self.res_fc)
        nn.init.normal_(self.mu, 0, 0.1)
        nn.init.ones_(self.inv_sigma)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, graph: Graph, feat: Features, pseudo: Tensor) -> Tensor:
        """Return (num_dst, out_feats); the coordinates ``pseudo`` have shape (E, dim)."""
        self.check(graph, feat)
        src, dst = expand_as_pair(feat, graph, self.in_feats, self.mu.dtype)
        check_edge_rows(graph, pseudo, self.mu.shape[1], self.mu)
        distance = ((pseudo.unsqueeze(1) - self.mu) * self.inv_sigma).square()
        weights = torch.exp(-0.5 * distance.sum(-1, keepdim=True))  # (E, n_kernels, 1)
        heads = self.fc(src).unflatten(-1, self.kernels)
        out = aggregate(graph, self.aggregator_type, heads, weights).sum(1)
        if self.res_fc is not None:
            out = out + self.res_fc(dst)
        return out if self.bias is None else out + self.bias


class GatedGraphConv(nn.Module):
    r"""``n_steps`` times :math:`h_v \leftarrow GRU(\sum_{u \to v} W_{t(u, v)} h_u + b_t, h_v)`.

    Input rows are padded with zeros to ``out_feats``. From Li et al.: Gated Graph Sequence Neural
    Networks, ICLR 2016.

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
        self.in_feats, self.out_feats, self.n_steps = in_feats, out_feats, n_steps
        self.n_etypes = n_etypes
        self.linears = nn.ModuleList(nn.Linear(out_feats, out_feats) for _ in range(n_etypes))
        self.gru = nn.GRUCell(out_feats, out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the GRU as torch does, the weights (Glorot normal), the biases to zero."""
        self.gru.reset_parameters()
        glorot(*(linear for linear in self.linears if isinstance(linear, nn.Linear)))

    def forward(self, graph: Graph, feat: Tensor, etypes: Tensor | None = None) -> Tensor:
        """Return (N, out_feats); edge types (E,), from 0, may be left out where there is one."""
        check_whole(graph, feat, self.in_feats, self.gru.weight_ih)
        if etypes is not None:
            check_types(etypes, graph.relation().num_edges, self.n_etypes, "etypes")
            sizes = torch.bincount(etypes, minlength=self.n_etypes).tolist()
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
    \odot B h_u / (\sum_u \sigma(e_{uv}') + 10^{-6})`; then, for both, batch normalization,
    activation, residual (when all sizes are equal) and dropout.
    From Dwivedi et al.: Benchmarking Graph Neural Networks, JMLR 2023.

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
        check_edge_rows(graph, edge_feat, self.C.in_features, self.C.weight)
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
