"""Transforms that make other nodes and edge types: of edges, of walks, of metapaths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gnnlab.compat.transforms.paths import khop_graph, line_graph, metapath_reachable_graph
from gnnlab.graph.construct import heterograph
from gnnlab.graph.core import copied_node_frames
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.transforms.base import BaseTransform
from gnnlab.transforms.structure import with_etypes


class LineGraph(BaseTransform):
    """Replace a graph by its ``line_graph``, whose nodes have the features of the edges."""

    def __init__(self, backtracking: bool = True) -> None:
        self.backtracking = backtracking

    def __call__(self, g: Graph) -> Graph:
        """Return the line graph."""
        return line_graph(g, self.backtracking, shared=True)


class KHopGraph(BaseTransform):
    """Replace a graph by that of its walks of ``k`` edges, as ``khop_graph`` makes it."""

    def __init__(self, k: int) -> None:
        self.k = k

    def __call__(self, g: Graph) -> Graph:
        """Return the graph of walks, with the node features."""
        return khop_graph(g, self.k)


class AddMetaPaths(BaseTransform):
    """Add an edge type for each metapath, with an edge for each pair that it joins.

    ``metapaths`` is name of a new edge type → edge types of the path.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.heterograph({
    ...     ("person", "wrote", "paper"): ([0, 1], [0, 0]),
    ...     ("paper", "cites", "paper"): ([0], [1]),
    ... })
    >>> both = [("person", "wrote", "paper"), ("paper", "cites", "paper")]
    >>> dgl.AddMetaPaths({"knows of": both})(g).edges(etype="knows of")
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
            return with_etypes(g, relations, {})
        kept = {etype: relations[etype] for etype in sorted(relations)}
        return g.derive(kept, node_frames=copied_node_frames(g))


class ToLevi(BaseTransform):
    """Make the edges nodes: node → edge → node, as a graph of two node types.

    The types are ``("node", "n2e", "edge")`` and ``("edge", "e2n", "node")``; node features go to
    the nodes of type "node", edge features to those of type "edge".

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> levi = dgl.ToLevi()(dgl.graph(([0, 2], [1, 1])))
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
