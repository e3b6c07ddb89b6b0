"""Set transformer: attention among the nodes of each graph, without their order or edges.

The nodes of a batch of graphs are laid out as one padded matrix per graph, so the cost is
quadratic in the size of the largest graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.ops.checks import check_choice

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph

__all__ = ["SetTransformerDecoder", "SetTransformerEncoder"]


def _network(d_model: int, d_ff: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(d_model, d_ff), nn.ReLU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model)
    )


class _Attention(nn.Module):
    """Multi-head attention of padded sets, each followed by a network; both with residuals."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_head: int,
        d_ff: int,
        dropouth: float,
        dropouta: float,
    ) -> None:
        super().__init__()
        self.heads = (num_heads, d_head)
        self.proj_q = nn.Linear(d_model, num_heads * d_head, bias=False)
        self.proj_k = nn.Linear(d_model, num_heads * d_head, bias=False)
        self.proj_v = nn.Linear(d_model, num_heads * d_head, bias=False)
        self.proj_o = nn.Linear(num_heads * d_head, d_model, bias=False)
        self.ffn = _network(d_model, d_ff, dropouth)
        self.droph = nn.Dropout(dropouth)
        self.dropa = nn.Dropout(dropouta)
        self.norm_in = nn.LayerNorm(d_model)
        self.norm_inter = nn.LayerNorm(d_model)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)

    def forward(self, x: Tensor, memory: Tensor, present: Tensor | None) -> Tensor:
        """Let ``x`` (B, n, d_model) read ``memory`` (B, m, d_model) where ``present`` (B, m)."""
        query, key, value = (
            project(rows).unflatten(-1, self.heads)
            for project, rows in (
                (self.proj_q, x),
                (self.proj_k, memory),
                (self.proj_v, memory),
            )
        )
        scores = torch.einsum("bxhd,byhd->bhxy", query, key) / self.heads[1] ** 0.5
        if present is not None:
            scores = scores.masked_fill(~present[:, None, None], -torch.inf)
        weights = self.dropa(scores.softmax(-1).nan_to_num())  # a graph without nodes: nan
        read = self.proj_o(torch.einsum("bhxy,byhd->bxhd", weights, value).flatten(2))
        x = x + self.norm_in(self.droph(read))
        return x + self.norm_inter(self.droph(self.ffn(x)))


class _SetBlock(nn.Module):
    """The nodes of a set read each other (SAB)."""

    def __init__(self, *sizes: float) -> None:
        super().__init__()
        self.mha = _Attention(*sizes)  # type: ignore[arg-type]

    def forward(self, x: Tensor, present: Tensor | None) -> Tensor:
        return self.mha(x, x, present)


class _InducedSetBlock(nn.Module):
    """The nodes read ``m`` learned points that have read the nodes: linear in their number."""

    def __init__(self, m: int, d_model: int, *sizes: float) -> None:
        super().__init__()
        self.inducing_points = nn.Parameter(torch.empty(m, d_model))
        self.mha = nn.ModuleList(
            [_Attention(d_model, *sizes) for _ in range(2)]  # type: ignore[arg-type]
        )
        nn.init.xavier_uniform_(self.inducing_points)

    def forward(self, x: Tensor, present: Tensor | None) -> Tensor:
        points = self.inducing_points.expand(len(x), -1, -1)
        return self.mha[1](x, self.mha[0](points, x, present), None)


class _AttentionPooling(nn.Module):
    """``k`` learned seeds read the nodes of each set (PMA)."""

    def __init__(
        self,
        k: int,
        d_model: int,
        num_heads: int,
        d_head: int,
        d_ff: int,
        dropouth: float,
        dropouta: float,
    ) -> None:
        super().__init__()
        self.seed_vectors = nn.Parameter(torch.empty(k, d_model))
        self.ffn = _network(d_model, d_ff, dropouth)
        self.mha = _Attention(d_model, num_heads, d_head, d_ff, dropouth, dropouta)
        nn.init.xavier_uniform_(self.seed_vectors)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        return self.mha(self.seed_vectors.expand(len(x), -1, -1), self.ffn(x), present)


def _pad(graph: Graph, feat: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows as (graphs, largest graph, D), and where there is a node."""
    sizes = graph.batch_num_nodes().to(feat.device)
    longest = int(sizes.max()) if len(sizes) else 0
    present = torch.arange(longest, device=feat.device) < sizes.unsqueeze(1)
    padded = feat.new_zeros(len(sizes), longest, feat.shape[-1])
    return padded.masked_scatter(present.unsqueeze(-1), feat), present


class SetTransformerEncoder(nn.Module):
    """Compute new node rows by attention among the nodes of each graph.

    Parameters
    ----------
    d_model : int
        Size of the rows.
    n_heads, d_head : int
        Number of heads and size of one head.
    d_ff : int
        Hidden size of the network after the attention.
    n_layers : int, default 1
    block_type : {"sab", "isab"}, default "sab"
        Attention of all nodes to all nodes, or by way of ``m`` learned points.
    m : int, optional
        Number of points, for ``"isab"``.
    dropouth, dropouta : float, default 0
        Dropout after each sublayer, and on the attention.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import SetTransformerEncoder
    >>> layer = SetTransformerEncoder(6, 4, 2, 8, n_layers=2, block_type="isab", m=3)
    >>> layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 6)).shape
    torch.Size([3, 6])

    References
    ----------
    Lee et al.: Set Transformer, ICML 2019.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_head: int,
        d_ff: int,
        n_layers: int = 1,
        block_type: str = "sab",
        m: int | None = None,
        dropouth: float = 0.0,
        dropouta: float = 0.0,
    ) -> None:
        super().__init__()
        check_choice(block_type, ("sab", "isab"), "block type")
        if block_type == "isab" and m is None:
            raise InvalidInput("block_type='isab' needs the number of points: pass m")
        sizes = (d_model, n_heads, d_head, d_ff, dropouth, dropouta)
        self.layers = nn.ModuleList(
            _SetBlock(*sizes) if block_type == "sab" else _InducedSetBlock(m or 0, *sizes)
            for _ in range(n_layers)
        )

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Compute new rows from ``feat``; both of shape (N, d_model)."""
        padded, present = _pad(graph, feat)
        for layer in self.layers:
            padded = layer(padded, present)
        return padded[present]


class SetTransformerDecoder(nn.Module):
    """Read each graph's nodes by ``k`` learned seeds, which then attend to each other.

    Parameters
    ----------
    d_model : int
        Size of the rows.
    num_heads, d_head : int
        Number of heads and size of one head.
    d_ff : int
        Hidden size of the network after the attention.
    n_layers : int
        Number of layers after the pooling.
    k : int
        Number of seeds.
    dropouth, dropouta : float, default 0
        Dropout after each sublayer, and on the attention.

    Examples
    --------
    >>> import torch
    >>> import gnnlab as dgl
    >>> from gnnlab.compat.nn import SetTransformerDecoder
    >>> layer = SetTransformerDecoder(6, 4, 2, 8, n_layers=1, k=3)
    >>> layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 6)).shape
    torch.Size([1, 18])

    References
    ----------
    Lee et al.: Set Transformer, ICML 2019.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_head: int,
        d_ff: int,
        n_layers: int,
        k: int,
        dropouth: float = 0.0,
        dropouta: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = (d_model, num_heads, d_head, d_ff, dropouth, dropouta)
        self.pma = _AttentionPooling(k, *sizes)
        self.layers = nn.ModuleList(_SetBlock(*sizes) for _ in range(n_layers))

    def forward(self, graph: Graph, feat: Tensor) -> Tensor:
        """Reduce ``feat``, shape (N, d_model), to shape (number of graphs, k · d_model)."""
        out = self.pma(*_pad(graph, feat))
        for layer in self.layers:
            out = layer(out, None)
        return out.flatten(1)
