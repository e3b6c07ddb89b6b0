"""Readout: reducing the features of a batch to one row, or to the k largest rows, per graph."""

from __future__ import annotations

import torch

from gnnlab import ops
from gnnlab.errors import InvalidInput, OutOfRange, whole_number
from gnnlab.graph.batch import batch_num_edges, batch_num_nodes
from gnnlab.graph.core import GraphCore
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EdgeType


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
    feat : str
        Name of a node feature, shape (N, ...).
    weight : str, optional
        Name of a node feature of shape (N,) or (N, 1) to multiply with.
    op : {"sum", "mean", "max", "min"}

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
    frame = graph.node_frames()[graph.resolve_ntype(ntype)]
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
    frame = graph.edge_frames[graph.to_canonical_etype(etype)]
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


def softmax_nodes(graph: GraphCore, feat: str, *, ntype: str | None = None) -> torch.Tensor:
    """Return the softmax of a node feature over the nodes of each graph, shape (N, …).

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0], [0]))])
    >>> both.ndata["h"] = torch.tensor([1.0, 1.0, 5.0])
    >>> dgl.softmax_nodes(both, "h")
    tensor([0.5000, 0.5000, 1.0000])
    """
    return segment_softmax(batch_num_nodes(graph, ntype), _node_rows(graph, feat, ntype))


def softmax_edges(
    graph: GraphCore, feat: str, *, etype: str | EdgeType | None = None
) -> torch.Tensor:
    """Return the softmax of an edge feature over the edges of each graph, shape (E, …)."""
    frame = graph.edge_frames[graph.to_canonical_etype(etype)]
    return segment_softmax(batch_num_edges(graph, etype), frame[feat])


def segment_softmax(counts: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Return the softmax of rows (N, …) within runs of ``counts`` rows."""

    def of_rows(rows: torch.Tensor) -> torch.Tensor:
        return rows.repeat_interleave(counts.to(rows.device), 0)

    # Subtracting the largest value leaves the result, and its gradient, as they are.
    shifted = torch.exp(value - of_rows(ops.segment_reduce(counts, value.detach(), "max")))
    return shifted / of_rows(ops.segment_reduce(counts, shifted, "sum"))


def topk_nodes(
    graph: GraphCore,
    feat: str,
    k: int,
    *,
    descending: bool = True,
    sortby: int | None = None,
    ntype: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest rows of a node feature in each graph.

    Parameters
    ----------
    feat : str
        Feature of shape (N, D).
    descending : bool
        Largest first; otherwise the smallest, smallest first.
    sortby : int, optional
        Column by which whole rows are ordered; by default each column is ordered on its own.

    Returns
    -------
    torch.Tensor
        Shape (batch size, k, D); 0 where a graph has fewer than k nodes.
    torch.Tensor
        IDs within the graph, shape (batch size, k), without ``sortby`` (batch size, k, D).

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.ndata["h"] = torch.tensor([[1.0, 9.0], [3.0, 8.0], [2.0, 7.0]])
    >>> values, nodes = dgl.topk_nodes(g, "h", 2, sortby=0)
    >>> values, nodes
    (tensor([[[3., 8.],
              [2., 7.]]]), tensor([[1, 2]]))
    """
    value = _node_rows(graph, feat, ntype)
    return _topk(batch_num_nodes(graph, ntype), value, k, descending, sortby)


def topk_edges(
    graph: GraphCore,
    feat: str,
    k: int,
    *,
    descending: bool = True,
    sortby: int | None = None,
    etype: str | EdgeType | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest rows of an edge feature in each graph; see :func:`topk_nodes`."""
    value = graph.edge_frames[graph.to_canonical_etype(etype)][feat]
    return _topk(batch_num_edges(graph, etype), value, k, descending, sortby)


def _topk(
    counts: torch.Tensor, value: torch.Tensor, k: int, descending: bool, sortby: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if value.ndim != 2:
        raise InvalidInput(f"expected a feature of shape (N, D); found {tuple(value.shape)}")
    width = max(whole_number(k, "k"), int(counts.max()) if len(counts) else 0)
    if sortby is not None and not -value.shape[1] <= sortby < value.shape[1]:
        raise OutOfRange(f"sortby is one of {value.shape[1]} columns, from 0; found {sortby}")
    places = torch.arange(width, device=value.device)
    is_row = places < counts.to(value.device)[:, None]
    table = value.new_zeros(len(counts), width, value.shape[1])
    table[is_row] = value
    last = -torch.inf if descending else torch.inf
    keys = table.double().masked_fill(~is_row[:, :, None], last)
    if sortby is None:
        chosen = keys.topk(k, 1, largest=descending).indices
        return table.gather(1, chosen), chosen
    chosen = keys[:, :, sortby].topk(k, 1, largest=descending).indices
    return table.gather(1, chosen[:, :, None].expand(-1, -1, value.shape[1])), chosen


def _node_rows(graph: GraphCore, feat: str, ntype: str | None) -> torch.Tensor:
    return graph.node_frames()[graph.resolve_ntype(ntype)][feat]


def _reduce(
    frame: Frame, feat: str, weight: str | None, counts: torch.Tensor, op: str
) -> torch.Tensor:
    value = frame[feat]
    if weight is not None:
        value = value * frame[weight].reshape(-1, *[1] * (value.ndim - 1))
    return ops.segment_reduce(counts, value, op)
