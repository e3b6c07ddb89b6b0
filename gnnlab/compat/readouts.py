"""Softmax and the largest rows within each graph of a batch."""

from __future__ import annotations

import torch

from gnnlab import ops
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType

__all__ = ["softmax_edges", "softmax_nodes", "topk_edges", "topk_nodes"]


def softmax_nodes(graph: Graph, feat: str, *, ntype: str | None = None) -> torch.Tensor:
    """Return the softmax of a node feature over the nodes of each graph, shape (N, …).

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> both = dgl.batch([dgl.graph([(0, 1)]), dgl.graph([(0, 0)])])
    >>> both.ndata["h"] = torch.tensor([1.0, 1.0, 5.0])
    >>> dgl.softmax_nodes(both, "h")
    tensor([0.5000, 0.5000, 1.0000])
    """
    return _softmax(graph.batch_num_nodes(ntype), graph.nodes[ntype].data[feat])


def softmax_edges(graph: Graph, feat: str, *, etype: str | EdgeType | None = None) -> torch.Tensor:
    """Return the softmax of an edge feature over the edges of each graph, shape (E, …)."""
    name = graph.to_canonical_etype(etype)
    return _softmax(graph.batch_num_edges(name), graph._edge_frames[name][feat])


def _softmax(counts: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    def of_rows(rows: torch.Tensor) -> torch.Tensor:
        return rows.repeat_interleave(counts.to(rows.device), 0)

    # Subtracting the largest value leaves the result, and its gradient, as they are.
    shifted = torch.exp(value - of_rows(ops.segment_reduce(counts, value.detach(), "max")))
    return shifted / of_rows(ops.segment_reduce(counts, shifted, "sum"))


def topk_nodes(
    graph: Graph,
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
    graph : Graph
    feat : str
        Feature of shape (N, D).
    k : int
    descending : bool
        Largest first; otherwise the smallest, smallest first.
    sortby : int, optional
        Column by which whole rows are ordered; by default each column is ordered on its own.
    ntype : str, optional

    Returns
    -------
    torch.Tensor
        Shape (batch size, k, D); 0 where a graph has fewer than k nodes.
    torch.Tensor
        IDs within the graph, shape (batch size, k), without ``sortby`` (batch size, k, D).

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph([(0, 1), (1, 2)])
    >>> g.ndata["h"] = torch.tensor([[1.0, 9.0], [3.0, 8.0], [2.0, 7.0]])
    >>> values, nodes = dgl.topk_nodes(g, "h", 2, sortby=0)
    >>> values, nodes
    (tensor([[[3., 8.],
              [2., 7.]]]), tensor([[1, 2]]))
    """
    value = graph.nodes[ntype].data[feat]
    return _topk(graph.batch_num_nodes(ntype), value, k, descending, sortby)


def topk_edges(
    graph: Graph,
    feat: str,
    k: int,
    *,
    descending: bool = True,
    sortby: int | None = None,
    etype: str | EdgeType | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the k largest rows of an edge feature in each graph; see :func:`topk_nodes`."""
    name = graph.to_canonical_etype(etype)
    value = graph._edge_frames[name][feat]
    return _topk(graph.batch_num_edges(name), value, k, descending, sortby)


def _topk(
    counts: torch.Tensor, value: torch.Tensor, k: int, descending: bool, sortby: int | None
) -> tuple[torch.Tensor, torch.Tensor]:
    if value.ndim != 2:
        raise InvalidInput(f"expected a feature of shape (N, D); found {tuple(value.shape)}")
    width = max(k, int(counts.max()) if len(counts) else 0)
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
