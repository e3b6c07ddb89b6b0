"""What layers of compat have in common: whole graphs, and factors of normalization."""

from __future__ import annotations

import torch
from torch import Tensor

from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.nn.utils import check_arguments, check_dtype, check_rows, check_size, per_row


def check_whole(
    graph: Graph, feat: Tensor, size: int | None = None, weight: Tensor | None = None
) -> None:
    """Raise InvalidInput unless rows fit the nodes of a whole graph and the layer's weights."""
    relation = check_arguments(graph, feat)
    if isinstance(feat, tuple):
        raise InvalidInput("this layer has one tensor of features, of all nodes; found a pair")
    if graph.is_block or relation.num_src != relation.num_dst:
        raise InvalidInput(
            f"found a graph of {relation.num_src} source and {relation.num_dst} destination nodes; "
            "this layer propagates several steps and needs a whole graph, of one node type"
        )
    check_rows(feat, graph, "source")
    if size is not None:
        check_size(feat, size, "source")
    if weight is not None:
        check_dtype(feat, weight.dtype, "source")


def inverse_sqrt_degrees(degrees: Tensor, rows: Tensor) -> Tensor:
    """Return 1/√degree (degree at least 1) as a factor of ``rows``."""
    return per_row(torch.rsqrt(degrees.clamp(min=1).to(rows.dtype)), rows)
