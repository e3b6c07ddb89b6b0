"""Biased random walks (node2vec), and walks of all lengths in one array."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.neighbor import read_weights
from gnnlab.graph.queries import has_edges, incident_slots
from gnnlab.random import next_key


def pack_traces(
    traces: torch.Tensor, types: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Write walks one after the other, without the −1 that fill up shorter ones.

    Of walks (W, L) and the node type of each column (L,), return all nodes and their types, (K,),
    and the length of each walk and where it begins, (W,).

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> traces = torch.tensor([[0, 1, -1], [2, 3, 4]])
    >>> dgl.sampling.pack_traces(traces, torch.tensor([0, 1, 0]))
    (tensor([0, 1, 2, 3, 4]), tensor([0, 1, 0, 1, 0]), tensor([2, 3]), tensor([0, 2]))
    """
    traces, types = as_tensor(traces), as_tensor(types)
    if traces.ndim != 2 or types.shape != traces.shape[1:]:
        raise InvalidInput(
            "traces have shape (W, L) and types (L,); found shapes "
            f"{tuple(traces.shape)} and {tuple(types.shape)}"
        )
    there = traces >= 0
    lengths = there.sum(1)
    return (
        traces[there],
        types.expand_as(traces)[there],
        lengths.to(traces.dtype),
        (lengths.cumsum(0) - lengths).to(traces.dtype),
    )


def node2vec_random_walk(
    g: Graph,
    nodes: Any,
    p: float,
    q: float,
    walk_length: int,
    prob: str | None = None,
    return_eids: bool = False,
) -> Any:
    """Walk from each node; a step depends on the node before: it may go back, stay near, or leave.

    From v, reached from t, an edge to x has the weight 1 / ``p`` if x is t, 1 if there is an edge
    from t to x, and 1 / ``q`` otherwise, times the edge feature ``prob``. Returns nodes,
    (W, walk_length + 1), −1 after a node without out-edges; with ``return_eids`` also edges.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 3]))
    >>> dgl.sampling.node2vec_random_walk(g, [0, 2], 1, 1, walk_length=2)
    tensor([[ 0,  1,  2],
            [ 2,  3, -1]])

    References
    ----------
    Grover and Leskovec, "node2vec: Scalable Feature Learning for Networks", KDD 2016.
    """
    if not g.is_homogeneous or g.is_block:
        raise InvalidInput("node2vec_random_walk needs one node type and one edge type")
    if not all(hasattr(each, "__float__") and each > 0 for each in (p, q)):
        raise InvalidInput(f"p and q must be numbers above 0; found {p!r} and {q!r}")
    walk_length = whole_number(walk_length, "walk_length")
    relation = g.relation()
    adjacency = relation.csr()
    here = read_ids(nodes, g.num_nodes(), "node", g.device).long()
    weights = read_weights(g, prob).get(g.canonical_etypes[0])
    rng = kernels.rng_torch
    streams = rng.streams(next_key(), torch.arange(len(here), device=g.device))
    before = torch.full_like(here, -1)
    traces, taken = [here], []
    for step in range(walk_length):
        walks = (here >= 0).nonzero().flatten()
        row, slots = incident_slots(adjacency, here[walks])
        there, eids = adjacency.indices[slots].long(), adjacency.eids_at(slots).long()
        weight = torch.ones(len(slots), dtype=torch.float64, device=g.device)
        if step:
            last = before[walks][row]
            near = has_edges(relation, last.contiguous(), there.contiguous())
            weight = torch.where(near, weight, 1 / q)
            weight = torch.where(there == last, 1 / p, weight)
        if weights is not None:
            weight = weight * weights[eids].double()
        total = torch.nn.functional.pad(weight.cumsum(0), (1, 0))
        ends = torch.bincount(row, minlength=len(walks)).cumsum(0)
        low, high = torch.nn.functional.pad(total[ends], (1, 0))[:-1], total[ends]
        mark = low + rng.uniform(rng.draw(streams[walks], step)) * (high - low)
        mark = torch.minimum(mark, torch.nextafter(high, low))  # stay in the row despite rounding
        can = high > low
        chosen = (torch.searchsorted(total, mark, right=True) - 1)[can]
        before, here = here, torch.full_like(here, -1)
        here[walks[can]] = there[chosen]
        edges = torch.full_like(here, -1)
        edges[walks[can]] = eids[chosen]
        traces.append(here)
        taken.append(edges)
    found = g.as_ids(torch.stack(traces, 1))
    if not return_eids:
        return found
    none = torch.empty((len(here), 0), dtype=torch.int64, device=g.device)
    return found, g.as_ids(torch.stack(taken, 1) if taken else none)
