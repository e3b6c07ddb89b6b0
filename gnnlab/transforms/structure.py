"""Transforms that add or remove edges: reverse edges, self-loops, parallel edges."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gnnlab.graph import edit, simple, transform
from gnnlab.graph.core import copied_node_frames
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation
from gnnlab.transforms.base import BaseTransform


class AddSelfLoop(BaseTransform):
    """Add self-loops to every edge type whose source and destination types are equal.

    Parameters
    ----------
    allow_duplicate : bool
        Keep existing self-loops; by default there is exactly one per node afterwards.
    new_etypes : bool
        In a graph with several types, also add an edge type "self" for every node type.
    edge_feat_names, fill_data
        As in :func:`gnnlab.add_self_loop`.
    """

    def __init__(
        self,
        allow_duplicate: bool = False,
        new_etypes: bool = False,
        edge_feat_names: Iterable[str] | None = None,
        fill_data: float | str = 1.0,
    ) -> None:
        self.allow_duplicate, self.new_etypes = allow_duplicate, new_etypes
        self.edge_feat_names, self.fill_data = edge_feat_names, fill_data

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with self-loops."""
        for etype in _loop_etypes(g):
            if not self.allow_duplicate:
                g = transform.remove_self_loop(g, etype)
            g = transform.add_self_loop(g, self.edge_feat_names, self.fill_data, etype)
        if not self.new_etypes or g.is_homogeneous:
            return g
        loops = {}
        for ntype in g.ntypes:
            ids = torch.arange(g.num_nodes(ntype), dtype=torch.int32, device=g.device)
            loops[ntype, "self", ntype] = Relation(len(ids), len(ids), (ids, ids))
        return with_etypes(g, loops, {})


class RemoveSelfLoop(BaseTransform):
    """Remove the self-loops of every edge type whose source and destination types are equal."""

    def __call__(self, g: Graph) -> Graph:
        """Return the graph without self-loops."""
        for etype in _loop_etypes(g):
            g = transform.remove_self_loop(g, etype)
        return g


class AddReverse(BaseTransform):
    """Add the reverse of every edge.

    An edge type whose source and destination types are equal gets more edges; for any other type
    (source, relation, destination) a type ``(destination, "rev_" + relation, source)`` is added.

    Parameters
    ----------
    copy_edata : bool
        Copy the features to reverse edges; otherwise they are 0, and missing on new edge types.
    sym_new_etype : bool
        Add a new edge type in every case.
    """

    def __init__(self, copy_edata: bool = False, sym_new_etype: bool = False) -> None:
        self.copy_edata, self.sym_new_etype = copy_edata, sym_new_etype

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with reverse edges."""
        relations, frames = {}, {}
        for etype in g.canonical_etypes:
            relation, frame = g.relations[etype], g.edge_frames[etype]
            if etype[0] == etype[2] and not self.sym_new_etype:
                src, dst = relation.coo()
                g = edit.add_edges(g, dst, src, frame if self.copy_edata else None, etype)
            else:
                reverse = (etype[2], f"rev_{etype[1]}", etype[0])
                relations[reverse] = relation.reverse()
                if self.copy_edata:
                    frames[reverse] = frame.copy()
        return with_etypes(g, relations, frames) if relations else g


class ToSimple(BaseTransform):
    """Merge parallel edges; parameters as in :func:`gnnlab.to_simple`, features are kept."""

    def __init__(self, return_counts: str | None = "count", aggregator: str = "arbitrary") -> None:
        self.return_counts, self.aggregator = return_counts, aggregator

    def __call__(self, g: Graph) -> Graph:
        """Return the simple graph."""
        return simple.to_simple(  # type: ignore[no-any-return]
            g, self.return_counts, copy_edata=True, aggregator=self.aggregator
        )


def _loop_etypes(g: Graph) -> list[EdgeType]:
    return [etype for etype in g.canonical_etypes if etype[0] == etype[2]]


def with_etypes(
    g: Graph, relations: dict[EdgeType, Relation], frames: dict[EdgeType, Frame]
) -> Graph:
    """Return the graph with further edge types, all sorted by name."""
    merged: dict[EdgeType, Any] = {**g.relations, **relations}
    return g.derive(
        {etype: merged[etype] for etype in sorted(merged)},
        node_frames=copied_node_frames(g),
        edge_frames={**{name: f.copy() for name, f in g.edge_frames.items()}, **frames},
    )
