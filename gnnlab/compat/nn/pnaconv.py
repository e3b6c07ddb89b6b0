"""Principal neighborhood aggregation: several reductions of the messages, scaled by degree."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gnnlab import ops
from gnnlab.compat.nn.checks import check_whole
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.relation import Relation
from gnnlab.nn.base import check_edge_rows
from gnnlab.ops.checks import check_choice

_AGGREGATORS = ("mean", "max", "min", "sum", "std", "var", "moment3", "moment4", "moment5")
_SCALERS = ("identity", "amplification", "attenuation")


def _aggregate(relation: Relation, name: str, messages: Tensor) -> Tensor:
    """Reduce messages of shape (E, D) by a name of ``_AGGREGATORS``."""
    if name in ("mean", "max", "min", "sum"):
        return ops.spmm(relation, "copy_rhs", name, None, messages)
    average = ops.spmm(relation, "copy_rhs", "mean", None, messages)
    if name in ("var", "std"):
        squares = ops.spmm(relation, "copy_rhs", "mean", None, messages.square())
        variance = (squares - average.square()).relu()
        return variance if name == "var" else (variance + 1e-30).sqrt()
    order = int(name[-1])
    centered = ops.sddmm(relation, "sub", messages, average, "e", "v")
    moment = ops.spmm(relation, "copy_rhs", "mean", None, centered**order)
    return moment.sign() * (moment.abs() + 1e-30) ** (1 / order)


class _Tower(nn.Module):
    """One of the parallel convolutions, on a slice of the columns."""

    def __init__(
        self,
        in_size: int,
        out_size: int,
        aggregators: Sequence[str],
        scalers: Sequence[str],
        delta: float,
        dropout: float,
        edge_feat_size: int,
    ) -> None:
        super().__init__()
        self.aggregators = tuple(aggregators)
        self.scalers = tuple(scalers)
        self.delta = delta
        self.M = nn.Linear(2 * in_size + edge_feat_size, in_size)
        self.U = nn.Linear((len(aggregators) * len(scalers) + 1) * in_size, out_size)
        self.dropout = nn.Dropout(dropout)
        self.batchnorm = nn.BatchNorm1d(out_size)

    def forward(self, graph: Graph, feat: Tensor, edge_feat: Tensor | None) -> Tensor:
        """Compute rows of shape (N, out_size) from ``feat`` of shape (N, in_size)."""
        relation = graph.relation()
        parts = [
            ops.sddmm(relation, "copy_lhs", feat, None),
            ops.sddmm(relation, "copy_rhs", None, feat),
        ]
        messages = self.M(torch.cat(parts if edge_feat is None else [*parts, edge_feat], dim=1))
        reduced = torch.cat([_aggregate(relation, a, messages) for a in self.aggregators], dim=1)
        degrees = relation.in_degrees().to(feat.dtype).unsqueeze(1)
        log_degrees = (degrees + 1).log() / self.delta
        # Nodes without in-edges have zeros, whatever the factor.
        factors = {
            "identity": torch.ones_like(log_degrees),
            "amplification": log_degrees,
            "attenuation": 1 / log_degrees.where(degrees > 0, 1),
        }
        scaled = torch.cat([reduced * factors[name] for name in self.scalers], dim=1)
        sizes = graph.batch_num_nodes().to(feat.device)
        share = sizes.to(feat.dtype).rsqrt().repeat_interleave(sizes).unsqueeze(1)
        out = self.U(torch.cat([feat, scaled], dim=1)) * share
        return self.dropout(self.batchnorm(out))


class PNAConv(nn.Module):
    r"""Principal neighborhood aggregation.

    The messages :math:`M(h_u, h_v, e_{uv})` of a node are reduced by several aggregators, each
    result is multiplied by several factors of the node's degree d, and all are mapped together with
    its own row. Towers do so in parallel on slices of the columns.
    From Corso et al.: Principal Neighbourhood Aggregation for Graph Nets, NeurIPS 2020.

    Aggregators: mean, max, min, sum, std, var, moment3, moment4, moment5. Scalers: identity,
    amplification (log(d + 1) / δ) and attenuation (δ / log(d + 1)), where δ = ``delta`` is the
    average of log(d + 1) over the training graphs. Sizes are multiples of ``num_towers``.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> layer = dgl.nn.PNAConv(4, 6, ["mean", "std"], ["identity"], delta=1.5, num_towers=2)
    >>> layer(dgl.graph(([0, 1], [1, 2])), torch.ones(3, 4)).shape
    torch.Size([3, 6])
    """

    def __init__(
        self,
        in_size: int,
        out_size: int,
        aggregators: Sequence[str],
        scalers: Sequence[str],
        delta: float,
        dropout: float = 0.0,
        num_towers: int = 1,
        edge_feat_size: int = 0,
        residual: bool = True,
    ) -> None:
        super().__init__()
        for name in aggregators:
            check_choice(name, _AGGREGATORS, "aggregator")
        for name in scalers:
            check_choice(name, _SCALERS, "scaler")
        if in_size % num_towers or out_size % num_towers:
            raise InvalidInput(
                f"sizes {in_size} and {out_size} are not multiples of num_towers={num_towers}"
            )
        self.in_size = in_size
        self.edge_feat_size = edge_feat_size
        self.residual = residual and in_size == out_size
        self.towers = nn.ModuleList(
            _Tower(
                in_size // num_towers,
                out_size // num_towers,
                aggregators,
                scalers,
                delta,
                dropout,
                edge_feat_size,
            )
            for _ in range(num_towers)
        )
        self.mixing_layer = nn.Sequential(nn.Linear(out_size, out_size), nn.LeakyReLU())

    def forward(self, graph: Graph, node_feat: Tensor, edge_feat: Tensor | None = None) -> Tensor:
        """Return (N, out_size) for rows (N, in_size) and edge rows (E, edge_feat_size)."""
        weight = next(self.mixing_layer.parameters())
        check_whole(graph, node_feat, self.in_size, weight)
        if (edge_feat is None) != (self.edge_feat_size == 0):
            raise InvalidInput(f"expected edge_feat of {self.edge_feat_size} columns")
        if edge_feat is not None:
            check_edge_rows(graph, edge_feat, self.edge_feat_size, weight)
        slices = node_feat.chunk(len(self.towers), dim=1)
        parts = [
            tower(graph, part, edge_feat) for tower, part in zip(self.towers, slices, strict=True)
        ]
        out = self.mixing_layer(torch.cat(parts, dim=1))
        return out + node_feat if self.residual else out
