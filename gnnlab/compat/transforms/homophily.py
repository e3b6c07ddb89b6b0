"""How much more often edges join nodes of one class than nodes of different classes.

``graph`` has one node type and one edge type; ``y`` has the class of each node, shape (N,). All
return a float. The last two count each pair of neighbors once in both directions.

References
----------
Platonov et al., "Characterizing Graph Datasets for Node Classification: Homophily-Heterophily
Dichotomy and Beyond", NeurIPS 2023; Lim et al., "Large Scale Learning on Non-Homophilous Graphs",
NeurIPS 2021.
"""

from __future__ import annotations

import torch

from gnnlab import ops
from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.simple import to_bidirected


def _labels(graph: Graph, y: torch.Tensor) -> torch.Tensor:
    y = as_tensor(y, "labels")
    if y.shape != (graph.num_nodes(),) or y.is_floating_point() or y.is_complex():
        raise InvalidInput(
            f"y is the class of each node, {graph.num_nodes()} integers; found {y.dtype} of shape "
            f"{tuple(y.shape)}"
        )
    return y.long()


def _is_same(graph: Graph, y: torch.Tensor) -> torch.Tensor:
    src, dst = graph.edges()
    y = _labels(graph, y)
    return (y[src.long()] == y[dst.long()]).float()


def _num_classes(y: torch.Tensor) -> int:
    count = int(y.max()) + 1 if len(y) else 0
    if count < 2:
        raise InvalidInput(f"y must have two classes or more, from 0 on; found {count}")
    return count


def node_homophily(graph: Graph, y: torch.Tensor) -> float:
    """Return the mean over nodes of the share of in-neighbors of the node's class; 0 without any.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> path = dgl.to_bidirected(dgl.graph(([0, 1], [1, 2])))
    >>> dgl.node_homophily(path, torch.tensor([0, 0, 1]))
    0.5
    """
    shares = ops.spmm(graph.relation(), "copy_rhs", "mean", None, _is_same(graph, y))
    return float(shares.mean())


def edge_homophily(graph: Graph, y: torch.Tensor) -> float:
    """Return the share of edges between nodes of one class.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> path = dgl.to_bidirected(dgl.graph(([0, 1], [1, 2])))
    >>> dgl.edge_homophily(path, torch.tensor([0, 0, 1]))
    0.5
    """
    return float(_is_same(graph, y).mean())


def linkx_homophily(graph: Graph, y: torch.Tensor) -> float:
    """Return the excess over the share of each class, averaged over the classes but one.

    For each class: the share of its nodes' in-edges that come from it, less its share of the nodes,
    0 at least.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> pairs = dgl.to_bidirected(dgl.graph(([0, 2], [1, 3])))
    >>> dgl.linkx_homophily(pairs, torch.tensor([0, 0, 1, 1]))
    1.0
    """
    y = _labels(graph, y)
    own = ops.spmm(graph.relation(), "copy_rhs", "sum", None, _is_same(graph, y))
    degrees, classes = graph.in_degrees().float(), _num_classes(y)
    total = 0.0
    for number in range(classes):
        members = y == number
        inside = own[members].sum() / degrees[members].sum().clamp(min=1)
        total += max(float(inside - members.float().mean()), 0.0)
    return total / (classes - 1)


def _shares(graph: Graph, y: torch.Tensor) -> torch.Tensor:
    """Return the share of edge ends in each class, (classes,)."""
    y = _labels(graph, y)
    ends = torch.bincount(y, graph.in_degrees().double(), _num_classes(y))
    return ends / ends.sum()


def adjusted_homophily(graph: Graph, y: torch.Tensor) -> float:
    """Return the edge homophily, less what random edges would have, scaled to at most 1.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> path = dgl.graph(([0, 1], [1, 2]))
    >>> round(dgl.adjusted_homophily(path, torch.tensor([0, 0, 1])), 4)
    -0.3333
    """
    graph = to_bidirected(graph)
    expected = float(_shares(graph, y).square().sum())
    return (edge_homophily(graph, y) - expected) / (1 - expected)


def edge_label_informativeness(graph: Graph, y: torch.Tensor) -> float:
    """Return how much an edge's one end tells of the class of the other: from 0 to 1.

    It is their mutual information divided by the entropy of a class, for a random edge.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> pairs = dgl.graph(([0, 2], [1, 3]))
    >>> dgl.edge_label_informativeness(pairs, torch.tensor([0, 1, 0, 1]))
    1.0
    """
    graph, y = to_bidirected(graph), _labels(graph, y)
    src, dst = (y[end.long()] for end in graph.edges())
    classes = _num_classes(y)
    pairs = torch.bincount(src * classes + dst, minlength=classes**2).double() / len(src)
    joint, single = (torch.special.entr(p).sum() for p in (pairs, _shares(graph, y)))
    return float(2 - joint / single)
