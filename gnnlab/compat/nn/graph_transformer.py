"""Parts of graph transformers: attention between all nodes, told of the graph by biases.

Rows are padded: a batch of B graphs with at most N nodes has rows (B, N, D). Degrees, distances and
paths become biases of the attention, (B, N, N, num_heads).

References
----------
Ying et al., "Do Transformers Really Perform Badly for Graph Representation?", NeurIPS 2021.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.nn.linear import INTEGERS
from gnnlab.nn.utils import Activation, check_dtype, check_size
from gnnlab.ops.checks import check_choice


class DegreeEncoder(nn.Module):
    """A learned row for each degree, those of "in" and "out" added for ``direction="both"``.

    Degrees above ``max_degree`` count as that; degree 0, that of padding too, has a row of zeros.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.DegreeEncoder(5, 8, direction="in")
    >>> layer(torch.tensor([[1, 9, 0]])).shape
    torch.Size([1, 3, 8])
    """

    def __init__(self, max_degree: int, embedding_dim: int, direction: str = "both") -> None:
        super().__init__()
        check_choice(direction, ("in", "out", "both"), "direction")
        self.max_degree = max_degree
        self.direction = direction
        self.encoder1 = nn.Embedding(max_degree + 1, embedding_dim, padding_idx=0)
        if direction == "both":
            self.encoder2 = nn.Embedding(max_degree + 1, embedding_dim, padding_idx=0)

    def forward(self, degrees: Tensor) -> Tensor:
        """Return (B, N, embedding_dim) for degrees (B, N), or for "both" (2, B, N): in and out."""
        if degrees.dtype not in INTEGERS:
            raise InvalidInput(f"degrees have dtype {degrees.dtype}, expected integers")
        degrees = degrees.clamp(0, self.max_degree)
        if self.direction != "both":
            return self.encoder1(degrees)  # type: ignore[no-any-return]
        if degrees.dim() == 0 or len(degrees) != 2:
            raise InvalidInput(
                f"expected degrees of shape (2, B, N), in and out; found {tuple(degrees.shape)}"
            )
        return self.encoder1(degrees[0]) + self.encoder2(degrees[1])  # type: ignore[no-any-return]


class SpatialEncoder(nn.Module):
    """A learned bias for each distance of two nodes.

    Distances above ``max_dist`` count as that; distance −1, no path, has a bias of 0.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.SpatialEncoder(4, num_heads=2)(torch.tensor([[[0, 1], [-1, 0]]])).shape
    torch.Size([1, 2, 2, 2])
    """

    def __init__(self, max_dist: int, num_heads: int = 1) -> None:
        super().__init__()
        self.max_dist = max_dist
        self.embedding_table = nn.Embedding(max_dist + 2, num_heads, padding_idx=0)

    def forward(self, dist: Tensor) -> Tensor:
        """Return (B, N, N, num_heads) for distances (B, N, N), as of ``shortest_dist``."""
        return self.embedding_table(dist.clamp(-1, self.max_dist) + 1)  # type: ignore[no-any-return]


class PathEncoder(nn.Module):
    r"""The mean over a shortest path of :math:`e_l \cdot w_l`, for its l-th edge's row.

    Of a path, the first ``max_len`` edges count; their rows have size ``feat_dim``.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.PathEncoder(3, 4, num_heads=2)
    >>> layer(torch.tensor([[[0, 1], [1, 0]]]), torch.ones(1, 2, 2, 3, 4)).shape
    torch.Size([1, 2, 2, 2])
    """

    def __init__(self, max_len: int, feat_dim: int, num_heads: int = 1) -> None:
        super().__init__()
        self.max_len = max_len
        self.feat_dim = feat_dim
        self.num_heads = num_heads
        self.embedding_table = nn.Embedding(max_len * num_heads, feat_dim)

    def forward(self, dist: Tensor, path_data: Tensor) -> Tensor:
        """Return (B, N, N, num_heads).

        ``dist`` has shape (B, N, N); ``path_data`` (B, N, N, L, feat_dim), where rows after the end
        of a path are 0 and L is at most ``max_len``.
        """
        used = path_data.shape[3]
        if used > self.max_len:
            raise InvalidInput(f"paths have {used} edges, more than max_len={self.max_len}")
        weight = self.embedding_table.weight.view(self.max_len, self.num_heads, self.feat_dim)
        total = torch.einsum("bxyld,lhd->bxyh", path_data, weight[:used])
        return total / dist.clamp(1, self.max_len)[..., None]


class BiasedMHA(nn.Module):
    """Attention of each node to all nodes of its graph, with a bias for each pair.

    ``feat_size``, the size of the rows, is a multiple of ``num_heads``. The bias of a pair is added
    to its score ("add") or multiplied with it ("mul"); ``bias`` is that of the linear layers.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.BiasedMHA(8, num_heads=2)
    >>> layer(torch.ones(3, 5, 8), torch.zeros(3, 5, 5, 2)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        feat_size: int,
        num_heads: int,
        bias: bool = True,
        attn_bias_type: str = "add",
        attn_drop: float = 0.1,
    ) -> None:
        super().__init__()
        check_choice(attn_bias_type, ("add", "mul"), "attn_bias_type")
        if feat_size % num_heads:
            raise InvalidInput(f"feat_size={feat_size} is not a multiple of {num_heads} heads")
        self.feat_size = feat_size
        self.heads = (num_heads, feat_size // num_heads)
        self.attn_bias_type = attn_bias_type
        self.q_proj = nn.Linear(feat_size, feat_size, bias=bias)
        self.k_proj = nn.Linear(feat_size, feat_size, bias=bias)
        self.v_proj = nn.Linear(feat_size, feat_size, bias=bias)
        self.out_proj = nn.Linear(feat_size, feat_size, bias=bias)
        self.dropout = nn.Dropout(attn_drop)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the weights: Glorot uniform, with a gain of 1/√2 but for the output."""
        for linear in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(linear.weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj.weight)
        if self.out_proj.bias is not None:
            nn.init.zeros_(self.out_proj.bias)

    def forward(
        self, ndata: Tensor, attn_bias: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        """Return (B, N, feat_size).

        ``attn_bias`` has shape (B, N, N, num_heads); ``attn_mask`` (B, N, N), bool: where it is
        True, the node of the second dimension does not attend to that of the third. A node that
        attends to none gets the output of zeros.
        """
        if ndata.dim() != 3:
            raise InvalidInput(f"ndata are rows of shape (B, N, D); found {tuple(ndata.shape)}")
        check_size(ndata, self.feat_size, "source")
        check_dtype(ndata, self.q_proj.weight.dtype, "source")
        query, key, value = (
            linear(ndata).unflatten(-1, self.heads)
            for linear in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = torch.einsum("bxhd,byhd->bxyh", query * self.heads[1] ** -0.5, key)
        if attn_bias is not None:
            scores = scores + attn_bias if self.attn_bias_type == "add" else scores * attn_bias
        if attn_mask is None:
            weights = scores.softmax(2)
        else:
            hidden = attn_mask[..., None]
            none = hidden.all(2, keepdim=True)
            weights = scores.masked_fill(hidden & ~none, -torch.inf).softmax(2)
            weights = weights.masked_fill(none, 0)
        mixed = torch.einsum("bxyh,byhd->bxhd", self.dropout(weights), value)
        return self.out_proj(mixed.flatten(2))  # type: ignore[no-any-return]


class GraphormerLayer(nn.Module):
    """:class:`BiasedMHA`, then two linear layers, each with a residual and layer normalization.

    ``hidden_size`` is that between the linear layers; ``norm_first`` normalizes before attention
    and linear layers, not after the residual.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> dgl.nn.GraphormerLayer(8, 16, num_heads=2)(torch.ones(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        feat_size: int,
        hidden_size: int,
        num_heads: int,
        attn_bias_type: str = "add",
        norm_first: bool = False,
        dropout: float = 0.1,
        attn_dropout: float = 0.1,
        activation: Activation | None = None,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attn = BiasedMHA(
            feat_size, num_heads, attn_bias_type=attn_bias_type, attn_drop=attn_dropout
        )
        self.ffn = nn.Sequential(
            nn.Linear(feat_size, hidden_size),
            nn.ReLU() if activation is None else activation,  # type: ignore[arg-type]
            nn.Dropout(dropout),
            nn.Linear(hidden_size, feat_size),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)
        self.attn_layer_norm = nn.LayerNorm(feat_size)
        self.ffn_layer_norm = nn.LayerNorm(feat_size)

    def forward(
        self, nfeat: Tensor, attn_bias: Tensor | None = None, attn_mask: Tensor | None = None
    ) -> Tensor:
        """Return (B, N, feat_size); arguments are those of :class:`BiasedMHA`."""
        rows = self.attn_layer_norm(nfeat) if self.norm_first else nfeat
        rows = nfeat + self.dropout(self.attn(rows, attn_bias, attn_mask))
        if self.norm_first:
            return rows + self.ffn(self.ffn_layer_norm(rows))  # type: ignore[no-any-return]
        rows = self.attn_layer_norm(rows)
        return self.ffn_layer_norm(rows + self.ffn(rows))  # type: ignore[no-any-return]
