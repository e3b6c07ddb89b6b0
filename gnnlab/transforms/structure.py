"""Transforms that change which edges, nodes and types there are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from gnnlab.graph import edit, transform
from gnnlab.graph.construct import heterograph
from gnnlab.graph.derive import node_frames
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation
from gnnlab.transforms.base import BaseTransform
from gnnlab.transforms.functional import khop_graph, line_graph, metapath_reachable_graph

__all__ = [
    "AddMetaPaths",
    "AddReverse",
    "AddSelfLoop",
    "KHopGraph",
    "LineGraph",
    "RemoveSelfLoop",
    "ToLevi",
    "ToSimple",
]


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
        self.copy_edata = copy_edata
        self.sym_new_etype = sym_new_etype

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
        return _with_etypes(g, relations, frames) if relations else g


class ToSimple(BaseTransform):
    """Merge parallel edges; parameters as in :func:`gnnlab.to_simple`, features are kept."""

    def __init__(self, return_counts: str | None = "count", aggregator: str = "arbitrary") -> None:
        self.return_counts = return_counts
        self.aggregator = aggregator

    def __call__(self, g: Graph) -> Graph:
        """Return the simple graph."""
        return transform.to_simple(  # type: ignore[no-any-return]
            g, self.return_counts, copy_edata=True, aggregator=self.aggregator
        )


class LineGraph(BaseTransform):
    """Replace a graph by its line graph, whose nodes have the features of the edges.

    Parameters
    ----------
    backtracking : bool
        As in :func:`gnnlab.transforms.line_graph`.
    """

    def __init__(self, backtracking: bool = True) -> None:
        self.backtracking = backtracking

    def __call__(self, g: Graph) -> Graph:
        """Return the line graph."""
        return line_graph(g, self.backtracking, shared=True)


class KHopGraph(BaseTransform):
    """Replace a graph by that of its walks of ``k`` edges: :func:`gnnlab.transforms.khop_graph`."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, g: Graph) -> Graph:
        """Return the graph of walks, with the node features."""
        return khop_graph(g, self.k)


class AddMetaPaths(BaseTransform):
    """Add an edge type for each metapath, with an edge for each pair that it joins.

    Parameters
    ----------
    metapaths : dict of str to list
        Name of a new edge type → edge types of the path.
    keep_orig_edges : bool
        Whether the edges of the graph are kept.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import transforms
    >>> g = dgl.heterograph({
    ...     ("person", "wrote", "paper"): ([0, 1], [0, 0]),
    ...     ("paper", "cites", "paper"): ([0], [1]),
    ... })
    >>> both = [("person", "wrote", "paper"), ("paper", "cites", "paper")]
    >>> transforms.AddMetaPaths({"knows of": both})(g).edges(etype="knows of")
    (tensor([0, 1]), tensor([1, 1]))
    """

    def __init__(
        self, metapaths: Mapping[str, Sequence[str | EdgeType]], keep_orig_edges: bool = True
    ) -> None:
        self.metapaths = dict(metapaths)
        self.keep_orig_edges = keep_orig_edges

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with the new edge types."""
        relations: dict[EdgeType, Any] = {}
        for name, metapath in self.metapaths.items():
            reached = metapath_reachable_graph(g, metapath)
            (start, _, end) = reached.canonical_etypes[0]
            relations[start, name, end] = reached.relation()
        if self.keep_orig_edges:
            return _with_etypes(g, relations, {})
        kept = {etype: relations[etype] for etype in sorted(relations)}
        return g.derive(kept, node_frames=node_frames(g))


class ToLevi(BaseTransform):
    """Make the edges nodes: node → edge → node, as a graph of two node types.

    The types are ``("node", "n2e", "edge")`` and ``("edge", "e2n", "node")``; node features go to
    the nodes of type "node", edge features to those of type "edge".

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import transforms
    >>> levi = transforms.ToLevi()(dgl.graph(([0, 2], [1, 1])))
    >>> levi.edges(etype="n2e"), levi.edges(etype="e2n")
    ((tensor([0, 2]), tensor([0, 1])), (tensor([0, 1]), tensor([1, 1])))
    """

    def __call__(self, g: Graph) -> Graph:
        """Return the Levi graph of a graph with one node type and one edge type."""
        src, dst, eids = g.all_edges(form="all", order="eid")
        made = heterograph(
            {("node", "n2e", "edge"): (src, eids), ("edge", "e2n", "node"): (eids, dst)},
            {"node": g.num_nodes(), "edge": g.num_edges()},
            idtype=g.idtype,
            device=g.device,
        )
        made.nodes["node"].data.update(g.ndata)
        made.nodes["edge"].data.update(g.edata)
        return made


def _loop_etypes(g: Graph) -> list[EdgeType]:
    return [etype for etype in g.canonical_etypes if etype[0] == etype[2]]


def _with_etypes(
    g: Graph, relations: dict[EdgeType, Relation], frames: dict[EdgeType, Frame]
) -> Graph:
    """Return the graph with further edge types, all sorted by name."""
    merged: dict[EdgeType, Any] = {**g.relations, **relations}
    return g.derive(
        {etype: merged[etype] for etype in sorted(merged)},
        node_frames=node_frames(g),
        edge_frames={**{name: f.copy() for name, f in g.edge_frames.items()}, **frames},
    )
