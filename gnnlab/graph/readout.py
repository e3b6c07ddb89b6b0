"""Readout: reducing the features of a batch to one row per graph.

References
----------
DGL user guide, chapter 5.4, "Graph Classification".
"""

from __future__ import annotations

import torch

from gnnlab import ops
from gnnlab.graph.batch import batch_num_edges, batch_num_nodes
from gnnlab.graph.core import GraphCore
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EdgeType

__all__ = [
    "max_edges",
    "max_nodes",
    "mean_edges",
    "mean_nodes",
    "readout_edges",
    "readout_nodes",
    "sum_edges",
    "sum_nodes",
]


def readout_nodes(
    graph: GraphCore,
    feat: str,
    weight: str | None = None,
    *,
    op: str = "sum",
    ntype: str | None = None,
) -> torch.Tensor:
    """Reduce a node feature to one row per graph of the batch.

    Parameters
    ----------
    graph : Graph
    feat : str
        Name of a node feature, shape (N, ...).
    weight : str, optional
        Name of a node feature of shape (N,) or (N, 1) to multiply with.
    op : {"sum", "mean", "max", "min"}
    ntype : str, optional

    Returns
    -------
    torch.Tensor
        Shape (batch size, ...); 0 for a graph without nodes.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0], [0]))])
    >>> both.ndata["h"] = torch.tensor([1.0, 2.0, 5.0])
    >>> dgl.readout_nodes(both, "h", op="mean")
    tensor([1.5000, 5.0000])
    """
    frame = graph._node_frames()[graph._ntype(ntype)]
    return _reduce(frame, feat, weight, batch_num_nodes(graph, ntype), op)


def readout_edges(
    graph: GraphCore,
    feat: str,
    weight: str | None = None,
    *,
    op: str = "sum",
    etype: str | EdgeType | None = None,
) -> torch.Tensor:
    """Reduce an edge feature to one row per graph of the batch; as :func:`readout_nodes`."""
    frame = graph._edge_frames[graph.to_canonical_etype(etype)]
    return _reduce(frame, feat, weight, batch_num_edges(graph, etype), op)


def sum_nodes(
    graph: GraphCore, feat: str, weight: str | None = None, *, ntype: str | None = None
) -> torch.Tensor:
    """Sum of a node feature over each graph of the batch."""
    return readout_nodes(graph, feat, weight, op="sum", ntype=ntype)


def mean_nodes(
    graph: GraphCore, feat: str, weight: str | None = None, *, ntype: str | None = None
) -> torch.Tensor:
    """Mean of a node feature over each graph of the batch."""
    return readout_nodes(graph, feat, weight, op="mean", ntype=ntype)


def max_nodes(
    graph: GraphCore, feat: str, weight: str | None = None, *, ntype: str | None = None
) -> torch.Tensor:
    """Maximum of a node feature over each graph of the batch."""
    return readout_nodes(graph, feat, weight, op="max", ntype=ntype)


def sum_edges(
    graph: GraphCore, feat: str, weight: str | None = None, *, etype: str | EdgeType | None = None
) -> torch.Tensor:
    """Sum of an edge feature over each graph of the batch."""
    return readout_edges(graph, feat, weight, op="sum", etype=etype)


def mean_edges(
    graph: GraphCore, feat: str, weight: str | None = None, *, etype: str | EdgeType | None = None
) -> torch.Tensor:
    """Mean of an edge feature over each graph of the batch."""
    return readout_edges(graph, feat, weight, op="mean", etype=etype)


def max_edges(
    graph: GraphCore, feat: str, weight: str | None = None, *, etype: str | EdgeType | None = None
) -> torch.Tensor:
    """Maximum of an edge feature over each graph of the batch."""
    return readout_edges(graph, feat, weight, op="max", etype=etype)


def _reduce(
    frame: Frame, feat: str, weight: str | None, counts: torch.Tensor, op: str
) -> torch.Tensor:
    value = frame[feat]
    if weight is not None:
        value = value * frame[weight].reshape(-1, *[1] * (value.ndim - 1))
    return ops.segment_reduce(counts, value, op)
