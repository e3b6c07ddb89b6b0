"""Simple graphs: at most one edge from a node to another, ordered by source and destination."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.core import GraphCore, GraphT, copied_node_frames, refuse_block
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EID
from gnnlab.graph.relation import Relation

REDUCERS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}


def to_bidirected(g: GraphT, copy_ndata: bool = False, readonly: bool | None = None) -> GraphT:
    """Add the reverse of every edge and merge duplicates: one edge per pair and direction.

    Parameters
    ----------
    g : Graph
        Each edge type must lead from one node type to itself.
    copy_ndata : bool
        Whether the result has the node features (the tensors are shared).
    readonly : bool, optional
        Has no effect; old scripts pass it.

    Returns
    -------
    Graph
        A simple graph without edge features, its edges ordered by source and then destination.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.to_bidirected(dgl.graph(([0, 1, 1, 2], [1, 0, 2, 2]))).edges()
    (tensor([0, 1, 1, 2, 2]), tensor([1, 0, 2, 1, 2]))
    """
    refuse_block(g, "to_bidirected")
    relations = {}
    for name, relation in g.relations.items():
        if name[0] != name[2]:
            raise InvalidInput(
                f"to_bidirected: {name} leads from one node type to another; choose the edge types "
                "that can be symmetric with dgl.edge_type_subgraph, or use dgl.AddReverse"
            )
        src, dst = relation.coo()
        both = torch.cat([src, dst]), torch.cat([dst, src])
        relations[name] = _distinct_edges(Relation(relation.num_src, relation.num_dst, both))[0]
    return g.derive(relations, node_frames=copied_node_frames(g, copy_ndata))


def to_simple(
    g: GraphCore,
    return_counts: str | None = "count",
    writeback_mapping: bool = False,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    aggregator: str = "arbitrary",
) -> Any:
    """Merge edges with the same source and destination into one.

    Parameters
    ----------
    return_counts : str or None
        Edge feature for the number of merged edges, shape (E',), in the ID dtype; or None.
    writeback_mapping : bool
        Return also which new edge each old edge went to.
    copy_ndata : bool
        Whether the result has the node features (the tensors are shared).
    copy_edata : bool
        Whether the result has the edge features, merged by ``aggregator``; with "arbitrary" also
        the ID of the edge that was taken, as ``edata[dgl.EID]``.
    aggregator : {"arbitrary", "sum", "mean", "max", "min"}
        "arbitrary" takes the features of the edge with the smallest ID.

    Returns
    -------
    Graph or tuple
        The graph, its edges ordered by source and then destination; with ``writeback_mapping``
        also a tensor of shape (E,), or {edge type: tensor} where there are several types.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.to_simple(dgl.graph(([0, 2, 0], [1, 0, 1])))
    >>> g.edges(), g.edata["count"]
    ((tensor([0, 2]), tensor([1, 0])), tensor([2, 1]))
    """
    refuse_block(g, "to_simple")
    if aggregator not in ("arbitrary", *REDUCERS):
        known = ", ".join(["arbitrary", *REDUCERS])
        raise InvalidInput(f"unknown aggregator {aggregator!r}; choose from {known}")
    relations, frames, mappings = {}, {}, {}
    for name, relation in g.relations.items():
        relations[name], first, counts, mapping = _distinct_edges(relation)
        old, columns = g.edge_frames[name], {}
        if copy_edata and aggregator == "arbitrary":
            columns = {**old.rows(first), EID: g.as_ids(first)}
        elif copy_edata:
            group = mapping()
            columns = {f: aggregate(x, group, len(first), aggregator) for f, x in old.items()}
        if return_counts is not None:
            columns[return_counts] = g.as_ids(counts)
        frames[name] = Frame(len(first), columns, g.device, "edge")
        if writeback_mapping:
            mappings[name] = g.as_ids(mapping())
    simple = g.derive(relations, node_frames=copied_node_frames(g, copy_ndata), edge_frames=frames)
    if not writeback_mapping:
        return simple
    return simple, mappings if len(mappings) > 1 else next(iter(mappings.values()))


def aggregate(value: torch.Tensor, group: torch.Tensor, size: int, reducer: str) -> torch.Tensor:
    """Reduce rows by group; shape (size, ...), 0 for a group without rows."""
    if reducer not in REDUCERS:
        raise InvalidInput(f"unknown reducer {reducer!r}; choose from {', '.join(REDUCERS)}")
    if value.dtype is torch.bool or (reducer == "mean" and not value.is_floating_point()):
        raise InvalidInput(f"{reducer} is not defined for features of {value.dtype}; cast them")
    index = group.long().view(-1, *[1] * (value.ndim - 1)).expand_as(value)
    out = value.new_zeros((size, *value.shape[1:]))
    return out.scatter_reduce(0, index, value, REDUCERS[reducer], include_self=False)


def _order_by_source(relation: Relation) -> torch.Tensor:
    """Edge IDs ordered by source, then destination, then ID; shape (E,)."""
    if relation.device.type != "cpu":
        src, dst = relation.coo()
        return torch.argsort(src.long() * max(relation.num_dst, 1) + dst, stable=True)
    # Stable grouping by destination, then by source, sorts by (source, destination).
    csc = relation.csc()
    by_source = kernels.csc.group_by(csc.indices.numpy(), csc.eids.numpy(), relation.num_src)
    return torch.from_numpy(by_source[1])


def _distinct_edges(
    relation: Relation,
) -> tuple[Relation, torch.Tensor, torch.Tensor, Callable[[], torch.Tensor]]:
    """Merge edges of the same ends; the new ones are ordered by source and then destination.

    Returns also the smallest old ID of each, the number of edges merged into each, and a function
    that returns the new ID of each old edge.
    """
    order = _order_by_source(relation)
    src, dst = (kernels.gather.rows(end, order) for end in relation.coo())
    new = torch.ones(len(order), dtype=torch.bool, device=order.device)
    torch.logical_or(src[1:] != src[:-1], dst[1:] != dst[:-1], out=new[1:])
    starts = new.nonzero().flatten()
    counts = torch.diff(starts, append=starts.new_tensor([len(order)]))
    simple = Relation(relation.num_src, relation.num_dst, (src[starts], dst[starts]))

    def mapping() -> torch.Tensor:
        mapped = torch.empty(len(order), dtype=torch.int64, device=order.device)
        mapped[order.long()] = torch.cumsum(new, 0) - 1
        return mapped

    return simple, order[starts].long(), counts, mapping
