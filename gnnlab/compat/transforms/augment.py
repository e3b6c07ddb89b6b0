"""Transforms that change a graph at random, for training on more graphs than there are.

All draw from :func:`gnnlab.seed`'s random numbers and leave the graph that they are given as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gnnlab import random
from gnnlab.compat.transforms.checks import frames_having
from gnnlab.errors import InvalidInput
from gnnlab.graph import edit
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.transform import feature_names
from gnnlab.transforms.base import BaseTransform


def _chosen(count: int, p: float, device: torch.device) -> torch.Tensor:
    """Return the numbers below ``count`` that are drawn, each with probability ``p``."""
    drawn = torch.rand(count, generator=random.generator()) < p
    return drawn.nonzero().flatten().to(device)


class _WithProbability(BaseTransform):
    def __init__(self, p: float = 0.5) -> None:
        if not hasattr(p, "__float__") or not 0 <= p <= 1:
            raise InvalidInput(f"p is a probability, from 0 to 1; found {p!r}")
        self.p: float = p

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p={self.p})"


class NodeShuffle(BaseTransform):
    """Permute the rows of the node features, all features of a type alike; edges stay.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 2]))
    >>> g.ndata["h"] = torch.arange(3)
    >>> dgl.NodeShuffle()(g).ndata["h"].sort().values
    tensor([0, 1, 2])
    """

    def __call__(self, g: Graph) -> Graph:
        """Return a graph with permuted rows."""
        g = g.clone()
        for frame in g.node_frames().values():
            order = torch.randperm(frame.num_rows, generator=random.generator()).to(g.device)
            for name, value in list(frame.items()):
                frame[name] = value[order]
        return g


class DropNode(_WithProbability):
    """Remove each node with probability ``p``, and its edges.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.DropNode(p=1.0)(dgl.graph(([0, 1], [1, 2]))).num_nodes()
    0
    """

    def __call__(self, g: Graph) -> Graph:
        """Return the graph of the other nodes."""
        for ntype in g.ntypes:
            nodes = _chosen(g.num_nodes(ntype), self.p, g.device)
            g = edit.remove_nodes(g, nodes, ntype, store_ids=False)
        return g


class DropEdge(_WithProbability):
    """Remove each edge with probability ``p``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.DropEdge(p=0.0)(dgl.graph(([0, 1], [1, 2]))).num_edges()
    2
    """

    def __call__(self, g: Graph) -> Graph:
        """Return the graph of the other edges."""
        for etype in g.canonical_etypes:
            edges = _chosen(g.num_edges(etype), self.p, g.device)
            g = edit.remove_edges(g, edges, etype, store_ids=False)
        return g


class AddEdge(BaseTransform):
    """Add random edges to each edge type: ``ratio`` times as many as it has, rounded down.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.AddEdge(ratio=0.5)(dgl.graph(([0, 1], [1, 2]))).num_edges()
    3
    """

    def __init__(self, ratio: float = 0.2) -> None:
        if ratio < 0:
            raise InvalidInput(f"ratio is 0 or more; found {ratio}")
        self.ratio = ratio

    def __call__(self, g: Graph) -> Graph:
        """Return the graph with further edges, whose features are 0."""
        for etype in g.canonical_etypes:
            count = int(g.num_edges(etype) * self.ratio)
            if count:
                sizes, draws = [g.num_nodes(ntype) for ntype in etype[::2]], random.generator()
                src, dst = (torch.randint(size, (count,), generator=draws) for size in sizes)
                g = edit.add_edges(g, src.to(g.device), dst.to(g.device), None, etype)
        return g


class FeatMask(_WithProbability):
    """Set columns of features to 0, each column with probability ``p``.

    Features of the given names are masked in all types that have them.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph(([0], [1]))
    >>> g.ndata["h"] = torch.ones(2, 3)
    >>> dgl.FeatMask(p=1.0, node_feat_names=["h"])(g).ndata["h"].sum()
    tensor(0.)
    """

    def __init__(
        self,
        p: float = 0.5,
        node_feat_names: Sequence[str] | None = None,
        edge_feat_names: Sequence[str] | None = None,
    ) -> None:
        super().__init__(p)
        self.node_feat_names = feature_names(node_feat_names or ())
        self.edge_feat_names = feature_names(edge_feat_names or ())

    def __call__(self, g: Graph) -> Graph:
        """Return a graph with masked features."""
        g = g.clone()
        self._mask(list(g.node_frames().values()), self.node_feat_names, "node")
        self._mask(list(g.edge_frames.values()), self.edge_feat_names, "edge")
        return g

    def _mask(self, frames: list[Frame], names: list[str], what: str) -> None:
        for name in names:
            for frame in frames_having(frames, name, what, "FeatMask"):
                value = frame[name]
                columns = _chosen(value.shape[-1], self.p, value.device)
                frame[name] = value.index_fill(-1, columns, 0)
