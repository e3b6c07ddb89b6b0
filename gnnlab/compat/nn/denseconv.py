"""Convolutions on an adjacency matrix, for small graphs: row = destination, column = source.

With the same parameters they give what GraphConv, SAGEConv ("gcn") and ChebConv give on the graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.nn.utils import (
    Activation,
    Features,
    check_dtype,
    check_size,
    map_features,
    pair_of_sizes,
)
from gnnlab.ops.checks import check_choice


def _matrix(adj: Tensor, src: Tensor, weight: Tensor) -> Tensor:
    """Return the matrix on the rows' device, in their dtype, which is that of the weights."""
    if src.dim() != 2:
        raise InvalidInput(f"feat has rows of shape (N, D); found {tuple(src.shape)}")
    check_size(src, weight.shape[-2], "source")
    check_dtype(src, weight.dtype, "source")
    if adj.dim() != 2 or adj.shape[1] != len(src):
        raise InvalidInput(
            f"found an adjacency matrix of shape {tuple(adj.shape)} for {len(src)} source rows; "
            "expected (destinations, sources)"
        )
    return adj.to(src)


class DenseGraphConv(nn.Module):
    """Graph convolution on an adjacency matrix; see :class:`gnnlab.nn.GraphConv`.

    ``norm`` is "both", "right" or "none".

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.DenseGraphConv(5, 2)(torch.eye(3), torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    bias: Tensor | None

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        norm: str = "both",
        bias: bool = True,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        check_choice(norm, ("both", "right", "none"), "norm")
        self.norm = norm
        self.activation = activation
        self.weight = nn.Parameter(torch.empty(in_feats, out_feats))
        self.bias = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight (Glorot uniform), and the bias to zero."""
        nn.init.xavier_uniform_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, adj: Tensor, feat: Tensor) -> Tensor:
        """Return (num_dst, out_feats) for ``adj`` of shape (num_dst, num_src)."""
        adj = _matrix(adj, feat, self.weight)
        inner, outer = adj.sum(1, keepdim=True).clamp(min=1), adj.sum(0).clamp(min=1)
        if self.norm == "both":
            adj = adj / inner.sqrt() / outer.sqrt()
        elif self.norm == "right":
            adj = adj / inner
        out = adj @ (feat @ self.weight)
        if self.bias is not None:
            out = out + self.bias
        return out if self.activation is None else self.activation(out)


class DenseSAGEConv(nn.Module):
    """GraphSAGE with the "gcn" aggregator on an adjacency matrix; see :class:`gnnlab.nn.SAGEConv`.

    ``norm`` is a function of the output, applied after the activation.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.DenseSAGEConv(5, 2)(torch.eye(3), torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        in_feats: int | tuple[int, int],
        out_feats: int,
        feat_drop: float = 0.0,
        bias: bool = True,
        norm: Activation | None = None,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        src_feats, dst_feats = pair_of_sizes(in_feats)
        if src_feats != dst_feats:
            raise InvalidInput(f"found sizes {src_feats} and {dst_feats}: they are averaged")
        self.norm = norm
        self.activation = activation
        self.feat_drop = nn.Dropout(feat_drop)
        self.fc = nn.Linear(src_feats, out_feats, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weight: Glorot uniform, for ReLU."""
        nn.init.xavier_uniform_(self.fc.weight, nn.init.calculate_gain("relu"))

    def forward(self, adj: Tensor, feat: Features) -> Tensor:
        """Return (num_dst, out_feats); ``feat`` is a tensor or a pair."""
        feat = map_features(self.feat_drop, feat)
        src, dst = feat if isinstance(feat, tuple) else (feat, feat)
        adj = _matrix(adj, src, self.fc.weight.T)
        out = self.fc((adj @ src + dst) / (adj.sum(1, keepdim=True) + 1))
        if self.activation is not None:
            out = self.activation(out)
        return out if self.norm is None else self.norm(out)


class DenseChebConv(nn.Module):
    """Chebyshev convolution on an adjacency matrix; see :class:`gnnlab.compat.nn.ChebConv`.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> path = torch.tensor([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> dgl.nn.DenseChebConv(5, 2, k=3)(path, torch.ones(3, 5)).shape
    torch.Size([3, 2])
    """

    bias: Tensor | None

    def __init__(self, in_feats: int, out_feats: int, k: int, bias: bool = True) -> None:
        super().__init__()
        self.k = k
        self.W = nn.Parameter(torch.empty(k, in_feats, out_feats))
        self.bias = nn.Parameter(torch.empty(out_feats)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights (Glorot normal, for ReLU), and the bias to zero."""
        if self.bias is not None:
            nn.init.zeros_(self.bias)
        for weight in self.W.unbind():
            nn.init.xavier_normal_(weight.data, nn.init.calculate_gain("relu"))

    def forward(self, adj: Tensor, feat: Tensor, lambda_max: Any = None) -> Tensor:
        """Return (N, out_feats); without ``lambda_max`` compute the largest eigenvalue."""
        adj = _matrix(adj, feat, self.W)
        factor = adj.sum(1).clamp(min=1).rsqrt()
        identity = torch.eye(len(adj), dtype=feat.dtype, device=feat.device)
        laplacian = identity - factor[:, None] * adj * factor
        if lambda_max is None:
            lambda_max = torch.linalg.eigvals(laplacian).real.max()
        scaled = 2 * laplacian / lambda_max - identity
        terms = [feat, scaled @ feat]
        while len(terms) < self.k:
            terms.append(2 * scaled @ terms[-1] - terms[-2])
        out = torch.einsum("kni,kio->no", torch.stack(terms[: self.k]), self.W)
        return out if self.bias is None else out + self.bias
