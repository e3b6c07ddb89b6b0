"""Shared by the layers of this package: nodes without in-edges, edge features, initial weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from gnnlab.errors import InvalidInput
from gnnlab.nn.utils import check_arguments, check_dtype, check_in_edges, check_size, check_values

if TYPE_CHECKING:
    from gnnlab.graph.graph import Graph
    from gnnlab.nn.utils import Features


class ZeroInDegree(nn.Module):
    """Base of layers that refuse nodes without in-edges unless told otherwise."""

    def __init__(self, allow_zero_in_degree: bool) -> None:
        super().__init__()
        self.allow_zero_in_degree = allow_zero_in_degree

    def set_allow_zero_in_degree(self, set_value: bool) -> None:
        """Set whether nodes without in-edges are accepted."""
        self.allow_zero_in_degree = set_value

    def check(self, graph: Graph, feat: Features) -> None:
        """Raise InvalidInput for arguments of wrong kinds, or nodes without in-edges."""
        check_arguments(graph, feat)
        if not self.allow_zero_in_degree:
            check_in_edges(graph, self)


def check_count(rows: Tensor, count: int, name: str, weight: Tensor | None = None) -> None:
    """Raise InvalidInput unless there are ``count`` rows, of the dtype of the layer's weights."""
    if not isinstance(rows, Tensor) or rows.dim() == 0 or len(rows) != count:
        found = f"shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
        raise InvalidInput(f"{name} must be a tensor of {count} rows; found {found}")
    if weight is not None:
        check_dtype(rows, weight.dtype, name)


def check_edge_rows(
    graph: Graph,
    rows: Tensor,
    size: int | None = None,
    weight: Tensor | None = None,
    name: str = "edge features",
) -> None:
    """Raise InvalidInput unless there is one row per edge that fits the layer's weights."""
    check_count(rows, graph.relation().num_edges, f"{name}, in edge-ID order,", weight)
    if size is not None:
        check_size(rows, size, "edge")
    check_values(rows, graph, "edge features")


def glorot(*linears: nn.Linear) -> None:
    """Initialize weights (Glorot normal, for ReLU), and the biases, if any, to zero."""
    for linear in linears:
        nn.init.xavier_normal_(linear.weight, nn.init.calculate_gain("relu"))
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
