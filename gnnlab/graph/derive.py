"""Helpers of functions that derive a graph from another: frames, sorting of edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput, no_graph
from gnnlab.graph.core import GraphCore, GraphT
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EID, EdgeType
from gnnlab.graph.relation import Relation

REDUCERS = {"sum": "sum", "mean": "mean", "max": "amax", "min": "amin"}


def refuse_block(g: GraphCore, what: str) -> None:
    """Raise InvalidInput if a function for graphs was called with a block, or with no graph."""
    if not isinstance(g, GraphCore):
        no_graph(g, what)
    if g.is_block:
        raise InvalidInput(
            f"{what} needs a graph, found a block, whose source and destination nodes are numbered "
            "apart; change the graph before it is cut into blocks"
        )


def loop_etype(g: GraphCore, etype: str | EdgeType | None, what: str) -> EdgeType:
    """Return the triple of an edge type that can have self-loops."""
    refuse_block(g, what)
    name = g.to_canonical_etype(etype)
    if name[0] != name[2]:
        raise InvalidInput(
            f"{what}: an edge of {name} leads from one node type to another and is never a loop; "
            "choose an edge type with the same type at both ends"
        )
    return name


def node_frames(g: GraphCore, copy: bool = True) -> dict[str, Frame] | None:
    """The node features for a result with the same nodes."""
    return {name: frame.copy() for name, frame in g.node_frames().items()} if copy else None


def edge_frame(g: GraphCore, relation: Relation, columns: dict[str, Any]) -> Frame:
    """A frame for the edges of a relation."""
    return Frame(relation.num_edges, columns, g.device, "edge")


def replace_edges(
    g: GraphT, relations: dict[EdgeType, Relation], frames: dict[EdgeType, Frame]
) -> GraphT:
    """Return the graph with some edge types replaced; everything else is shared."""
    kept = {name: frame.copy() for name, frame in g.edge_frames.items() if name not in frames}
    return g.derive(
        {**g.relations, **relations}, node_frames=node_frames(g), edge_frames={**kept, **frames}
    )


def keep_edges(g: GraphT, eids: dict[EdgeType, torch.Tensor], store_ids: bool = False) -> GraphT:
    """Return the graph with only the given edges of some types, in the given order."""
    relations, frames = {}, {}
    for name, index in eids.items():
        old = g.relations[name]
        src, dst = old.coo()
        relations[name] = Relation(old.num_src, old.num_dst, (src[index], dst[index]))
        columns = g.edge_frames[name].rows(index)
        if store_ids:
            columns[EID] = g.as_ids(index)
        frames[name] = edge_frame(g, relations[name], columns)
    return replace_edges(g, relations, frames)


def aggregate(value: torch.Tensor, group: torch.Tensor, size: int, reducer: str) -> torch.Tensor:
    """Reduce rows by group; shape (size, ...), 0 for a group without rows."""
    if reducer not in REDUCERS:
        raise InvalidInput(f"unknown reducer {reducer!r}; choose from {', '.join(REDUCERS)}")
    if value.dtype is torch.bool or (reducer == "mean" and not value.is_floating_point()):
        raise InvalidInput(f"{reducer} is not defined for features of {value.dtype}; cast them")
    index = group.long().view(-1, *[1] * (value.ndim - 1)).expand_as(value)
    out = value.new_zeros((size, *value.shape[1:]))
    return out.scatter_reduce(0, index, value, REDUCERS[reducer], include_self=False)


def order_by_source(relation: Relation) -> torch.Tensor:
    """Edge IDs ordered by source, then destination, then ID; shape (E,)."""
    if relation.device.type != "cpu":
        src, dst = relation.coo()
        return torch.argsort(src.long() * max(relation.num_dst, 1) + dst, stable=True)
    # Stable grouping by destination, then by source, sorts by (source, destination).
    csc = relation.csc()
    by_source = kernels.csc.group_by(csc.indices.numpy(), csc.eids.numpy(), relation.num_src)
    return torch.from_numpy(by_source[1])


def distinct_edges(
    relation: Relation,
) -> tuple[Relation, torch.Tensor, torch.Tensor, Callable[[], torch.Tensor]]:
    """Distinct edges by source and destination.

    Returns
    -------
    relation : Relation
        With E' edges, ordered by source and then destination.
    first : torch.Tensor
        Shape (E',): the smallest old ID of each.
    counts : torch.Tensor
        Shape (E',): number of old edges merged into each.
    mapping : callable
        Returns the new ID of each old edge, shape (E,).
    """
    order = order_by_source(relation)
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
