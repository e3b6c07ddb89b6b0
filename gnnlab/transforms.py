"""Changes of a graph as objects, to be passed to data sets and chained.

Examples
--------
>>> import gnnlab as dgl
>>> prepare = dgl.Compose([dgl.AddReverse(), dgl.ToSimple(), dgl.AddSelfLoop()])
>>> prepare(dgl.graph(([0, 0], [1, 1]))).num_edges()
4
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from gnnlab.graph import edit, transform
from gnnlab.graph.derive import node_frames
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation

__all__ = ["AddReverse", "AddSelfLoop", "BaseTransform", "Compose", "RemoveSelfLoop", "ToSimple"]


class BaseTransform(ABC):
    """A callable that takes a graph and returns another; subclass it and define ``__call__``."""

    @abstractmethod
    def __call__(self, g: Graph) -> Graph:
        """Return the changed graph."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AddSelfLoop(BaseTransform):
    """Add self-loops to every edge type that leads from a node type to itself.

    Parameters
    ----------
    allow_duplicate : bool
        Keep self-loops that exist, instead of having exactly one per node.
    new_etypes : bool
        In a graph with several types also add an edge type "self" to every node type.
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
        self.allow_duplicate = allow_duplicate
        self.new_etypes = new_etypes
        self.edge_feat_names = edge_feat_names
        self.fill_data = fill_data

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
        return _with_etypes(g, loops, {})


class RemoveSelfLoop(BaseTransform):
    """Remove the self-loops of every edge type that can have some."""

    def __call__(self, g: Graph) -> Graph:
        """Return the graph without self-loops."""
        for etype in _loop_etypes(g):
            g = transform.remove_self_loop(g, etype)
        return g


class AddReverse(BaseTransform):
    """Add the reverse of every edge.

    An edge type that leads from a node type to itself gets more edges; for any other type
    (source, relation, destination) a type (destination, "rev_" + relation, source) is added.

    Parameters
    ----------
    copy_edata : bool
        Give reverse edges the features of the original; they are 0 otherwise, and absent from new
        edge types.
    sym_new_etype : bool
        Add a new edge type in every case.
    """

    def __init__(self, copy_edata: bool = False, sym_new_etype: bool = False) -> None:
        self.copy_edata = copy_edata
        self.sym_new_etype = sym_new_etype

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with reverse edges."""
        relations, frames = {}, {}
        for etype in g.canonical_etypes:
            relation, frame = g._relations[etype], g._edge_frames[etype]
            if etype[0] == etype[2] and not self.sym_new_etype:
                src, dst = relation.coo()
                g = edit.add_edges(g, dst, src, frame if self.copy_edata else None, etype)
            else:
                back = (etype[2], f"rev_{etype[1]}", etype[0])
                relations[back] = relation.reverse()
                if self.copy_edata:
                    frames[back] = frame.copy()
        return _with_etypes(g, relations, frames) if relations else g


class ToSimple(BaseTransform):
    """Merge edges with the same ends; parameters as in :func:`gnnlab.to_simple`, features kept."""

    def __init__(self, return_counts: str | None = "count", aggregator: str = "arbitrary") -> None:
        self.return_counts = return_counts
        self.aggregator = aggregator

    def __call__(self, g: Graph) -> Graph:
        """Return the simple graph."""
        return transform.to_simple(  # type: ignore[no-any-return]
            g, self.return_counts, copy_edata=True, aggregator=self.aggregator
        )


class Compose(BaseTransform):
    """Apply transforms one after the other.

    Parameters
    ----------
    transforms : list of callable
    """

    def __init__(self, transforms: Sequence[Callable[[Graph], Graph]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, g: Graph) -> Graph:
        """Return the graph after all transforms."""
        for change in self.transforms:
            g = change(g)
        return g

    def __repr__(self) -> str:
        inner = ",\n".join(f"  {change!r}" for change in self.transforms)
        return f"Compose([\n{inner}\n])"


def _loop_etypes(g: Graph) -> list[EdgeType]:
    return [etype for etype in g.canonical_etypes if etype[0] == etype[2]]


def _with_etypes(
    g: Graph, relations: dict[EdgeType, Relation], frames: dict[EdgeType, Frame]
) -> Graph:
    """Return the graph with further edge types, all ordered by name."""
    every: dict[EdgeType, Any] = {**g._relations, **relations}
    return g.derive(
        {etype: every[etype] for etype in sorted(every)},
        node_frames=node_frames(g),
        edge_frames={**{name: f.copy() for name, f in g._edge_frames.items()}, **frames},
    )
