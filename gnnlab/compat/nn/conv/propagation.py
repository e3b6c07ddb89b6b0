r"""Propagation by the normalized adjacency matrix: powers and polynomials of it.

These layers multiply rows several times by :math:`\hat{A} = D^{-1/2} A D^{-1/2}` and mix the
results. Each node needs its row after every step, so they work on whole graphs, not on blocks.
With ``edge_weight``, the weights replace the normalization: normalize them with
:class:`~gnnlab.compat.nn.EdgeWeightNorm` before.
"""

from __future__ import annotations

import math
import warnings

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole, inverse_sqrt_degrees
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.nn.base import ZeroInDegree, check_edge_rows
from gnnlab.nn.utils import Activation, aggregate
from gnnlab.ops.checks import check_choice
from gnnlab.ops.spmm import check_number


def _step(
    graph: Graph, feat: Tensor, edge_weight: Tensor | None, in_degrees: bool = True
) -> Tensor:
    r"""Multiply rows by :math:`\hat{A}`, or by the matrix of the weights.

    The source's factor is its in-degree (as most layers here have it) or its out-degree.
    """
    if edge_weight is not None:
        return aggregate(graph, "sum", feat, edge_weight)
    relation = graph.relation()
    after = inverse_sqrt_degrees(relation.in_degrees(), feat)
    before = after if in_degrees else inverse_sqrt_degrees(relation.out_degrees(), feat)
    return aggregate(graph, "sum", feat * before) * after


class SGConv(ZeroInDegree):
    r"""Simplified graph convolution: :math:`\hat{A}^k X W + b`, a linear model.

    ``cached`` keeps :math:`\hat{A}^k X` of the first call for all later ones; ``norm`` is applied
    to it. From Wu et al.: Simplifying Graph Convolutional Networks, ICML 2019.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.add_self_loop(dgl.graph(([0, 1], [1, 2])))
    >>> dgl.nn.SGConv(5, 2, k=2)(graph, torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        k: int = 1,
        cached: bool = False,
        bias: bool = True,
        norm: Activation | None = None,
        allow_zero_in_degree: bool = False,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        self.fc = nn.Linear(in_feats, out_feats, bias=bias)
        self.k, self.cached = k, cached
        self.cached_h: Tensor | None = None
        self.norm = norm
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight (Glorot uniform), and the bias to zero."""
        nn.init.xavier_uniform_(self.fc.weight)
        if self.fc.bias is not None:
            nn.init.zeros_(self.fc.bias)

    def forward(self, graph: Graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return (N, out_feats) for ``feat`` of shape (N, in_feats)."""
        self.check(graph, feat)
        check_whole(graph, feat, self.fc.in_features, self.fc.weight)
        if self.cached_h is None:
            for _ in range(self.k):
                feat = _step(graph, feat, edge_weight)
            if self.norm is not None:
                feat = self.norm(feat)
            if self.cached:
                self.cached_h = feat
        return self.fc(feat if self.cached_h is None else self.cached_h)


class APPNPConv(nn.Module):
    r"""Personalised PageRank: ``k`` times :math:`H \leftarrow (1 - \alpha) \hat{A} H + \alpha H_0`.

    ``edge_drop`` is the dropout on the edges, drawn again in each step.
    From Klicpera, Bojchevski, Günnemann: Predict then Propagate, ICLR 2019.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [1, 0]))
    >>> dgl.nn.APPNPConv(k=1, alpha=0.25)(graph, torch.tensor([[0.0], [4.0]]))
    tensor([[3.],
            [1.]])
    """

    def __init__(self, k: int, alpha: float, edge_drop: float = 0.0) -> None:
        super().__init__()
        self.k, self.alpha = k, alpha
        self.edge_drop = nn.Dropout(edge_drop)

    def forward(self, graph: Graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return rows of the shape of ``feat``, (N, …)."""
        check_whole(graph, feat)
        start, weights = feat, edge_weight
        if edge_weight is None and self.edge_drop.p:  # Â as edge weights, of which some are dropped
            relation = graph.relation()
            before = inverse_sqrt_degrees(relation.out_degrees(), feat)
            after = inverse_sqrt_degrees(relation.in_degrees(), feat)
            weights = ops.sddmm(relation, "mul", before, after)
        for _ in range(self.k):
            dropped = None if weights is None else self.edge_drop(weights)
            feat = (1 - self.alpha) * _step(graph, feat, dropped, False) + self.alpha * start
        return feat


class TAGConv(nn.Module):
    r"""A polynomial of degree ``k``: :math:`\sum_{i=0}^{k} \hat{A}^i X W_i + b`.

    From Du et al.: Topology Adaptive Graph Convolutional Networks, 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.TAGConv(5, 2)(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        k: int = 2,
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        self.in_feats, self.k, self.activation = in_feats, k, activation
        self.lin = nn.Linear(in_feats * (k + 1), out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight: Glorot normal, for ReLU."""
        nn.init.xavier_normal_(self.lin.weight, nn.init.calculate_gain("relu"))

    def forward(self, graph: Graph, feat: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        """Return (N, out_feats) for ``feat`` of shape (N, in_feats)."""
        check_whole(graph, feat, self.in_feats, self.lin.weight)
        powers = [feat]
        for _ in range(self.k):
            powers.append(_step(graph, powers[-1], edge_weight))
        out = self.lin(torch.cat(powers, dim=-1))
        return out if self.activation is None else self.activation(out)


class ChebConv(nn.Module):
    r"""A polynomial of ``k`` terms of the scaled Laplacian, in the Chebyshev basis.

    With :math:`\hat{L} = 2 (I - \hat{A}) / \lambda_{max} - I`, :math:`Z_0 = X`,
    :math:`Z_1 = \hat{L} X`, :math:`Z_i = 2 \hat{L} Z_{i-1} - Z_{i-2}`, the output is
    :math:`\sum_{i < k} Z_i W_i + b`. From Defferrard, Bresson, Vandergheynst: Convolutional Neural
    Networks on Graphs with Fast Localized Spectral Filtering, NeurIPS 2016.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1, 1, 2], [1, 0, 2, 1]))
    >>> dgl.nn.ChebConv(5, 2, k=3)(graph, torch.ones(3, 5), lambda_max=[2.0]).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        k: int,
        activation: Activation | None = F.relu,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_feats, self.k, self.activation = in_feats, k, activation
        self.linear = nn.Linear(k * in_feats, out_feats, bias)

    def forward(
        self, graph: Graph, feat: Tensor, lambda_max: list[float] | Tensor | None = None
    ) -> Tensor:
        """Return (N, out_feats); ``lambda_max`` has the largest eigenvalue of each graph.

        ``dgl.laplacian_lambda_max`` computes it. Its upper bound is 2, which is used, with a
        warning, when it is missing.
        """
        check_whole(graph, feat, self.in_feats, self.linear.weight)
        sizes = graph.batch_num_nodes().to(feat.device)
        if lambda_max is None:
            warnings.warn(
                "ChebConv uses 2 as the largest eigenvalue of the Laplacian: pass "
                "lambda_max=dgl.laplacian_lambda_max(graph)",
                stacklevel=2,
            )
            lambda_max = [2.0] * len(sizes)
        largest = torch.as_tensor(lambda_max, dtype=feat.dtype, device=feat.device).flatten()
        if len(largest) != len(sizes):
            raise InvalidInput(
                f"found {len(largest)} values of lambda_max for {len(sizes)} graphs: give one each"
            )
        scale = (2 / largest).repeat_interleave(sizes).unsqueeze(-1)

        def laplacian(rows: Tensor) -> Tensor:
            return (scale - 1) * rows - scale * _step(graph, rows, None)

        terms = [feat]
        if self.k > 1:
            terms.append(laplacian(feat))
        while len(terms) < self.k:
            terms.append(2 * laplacian(terms[-1]) - terms[-2])
        out = self.linear(torch.cat(terms, dim=1))
        return out if self.activation is None else self.activation(out)


class EdgeWeightNorm(nn.Module):
    """Divide positive edge weights by the square roots of the sums at both ends, as GraphConv does.

    ``norm`` "right" divides by the sum at the destination, "none" by nothing; ``eps`` is added to
    the sums. From Kipf, Welling: Semi-Supervised Classification with GCNs, ICLR 2017.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.graph(([0, 1], [2, 2]))
    >>> dgl.nn.EdgeWeightNorm(norm="right")(graph, torch.tensor([1.0, 3.0]))
    tensor([0.2500, 0.7500])
    """

    def __init__(self, norm: str = "both", eps: float = 0.0) -> None:
        super().__init__()
        check_choice(norm, ("both", "right", "none"), "norm")
        self.norm, self.eps = norm, eps

    def forward(self, graph: Graph, edge_weight: Tensor) -> Tensor:
        """Return weights of shape (E,)."""
        check_edge_rows(graph, edge_weight)
        check_number("max", edge_weight)
        if edge_weight.dim() != 1:
            raise InvalidInput(
                f"found edge weights of shape {tuple(edge_weight.shape)}; expected one number per "
                f"edge, ({len(edge_weight)},)"
            )
        if self.norm == "none":
            return edge_weight
        relation = graph.relation()
        total = ops.spmm(relation, "copy_rhs", "sum", None, edge_weight) + self.eps
        if self.norm == "right":
            return ops.sddmm(relation, "div", edge_weight, total, "e", "v")
        if not bool((edge_weight > 0).all()):
            raise InvalidInput(
                "found edge weights that are not positive, of whose sums norm='both' takes square "
                "roots: use positive weights, or norm='right'"
            )
        out_total = ops.spmm(relation.reverse(), "copy_rhs", "sum", None, edge_weight) + self.eps
        return edge_weight / ops.sddmm(relation, "mul", out_total, total).sqrt()


class GCN2Conv(ZeroInDegree):
    r"""Graph convolution for deep networks (GCNII): initial residual and identity mapping.

    With :math:`\beta = \log(\lambda / l + 1)` in layer :math:`l`, the output is
    :math:`((1 - \alpha) \hat{A} H + \alpha H_0)((1 - \beta) I + \beta W) + b`.
    From Chen et al.: Simple and Deep Graph Convolutional Networks, ICML 2020.

    ``layer``, from 1, is l; without ``project_initial_features``, the initial rows :math:`H_0` have
    a matrix of their own.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> graph = dgl.add_self_loop(dgl.graph(([0, 1], [1, 2])))
    >>> rows = torch.ones(3, 5)
    >>> dgl.nn.GCN2Conv(5, layer=1)(graph, rows, rows).shape
    torch.Size([3, 5])
    """

    weight2: Tensor | None
    bias: Tensor | None

    def __init__(
        self,
        in_feats: int,
        layer: int,
        alpha: float = 0.1,
        lambda_: float = 1,
        project_initial_features: bool = True,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__(allow_zero_in_degree)
        self.in_feats = in_feats
        self.alpha = alpha
        self.beta = math.log(lambda_ / layer + 1)
        self.activation = activation
        self.weight1 = nn.Parameter(torch.empty(in_feats, in_feats))
        one_weight = project_initial_features
        self.weight2 = None if one_weight else nn.Parameter(torch.empty(in_feats, in_feats))
        self.bias = nn.Parameter(torch.empty(in_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights (normal), and the bias to zero."""
        nn.init.normal_(self.weight1)
        if self.weight2 is not None:
            nn.init.normal_(self.weight2)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self, graph: Graph, feat: Tensor, feat_0: Tensor, edge_weight: Tensor | None = None
    ) -> Tensor:
        """Return (N, in_feats) for the rows ``feat`` and the first layer's rows ``feat_0``.

        The layer normalizes ``edge_weight`` itself; the weights are positive.
        """
        self.check(graph, feat)
        check_whole(graph, feat, self.in_feats, self.weight1)
        if edge_weight is not None:
            edge_weight = EdgeWeightNorm("both")(graph, edge_weight).to(feat.dtype)
        feat = (1 - self.alpha) * _step(graph, feat, edge_weight)
        check_whole(graph, feat_0, self.in_feats, self.weight1)
        first = self.alpha * feat_0
        if self.weight2 is None:
            out = self._map(feat + first, self.weight1)
        else:
            out = self._map(feat, self.weight1) + self._map(first, self.weight2)
        if self.bias is not None:
            out = out + self.bias
        return out if self.activation is None else self.activation(out)

    def _map(self, rows: Tensor, weight: Tensor) -> Tensor:
        return torch.addmm(rows, rows, weight, beta=1 - self.beta, alpha=self.beta)
