"""Orders in which to visit a graph, and message passing that follows one.

A *frontier* is a tensor of nodes, or of edges, that are visited together. Traversals return a list
of frontiers; ``prop_nodes`` and ``prop_edges`` pass messages frontier by frontier, as models of
trees do, from the leaves to the root. Graphs have one node type and one edge type; ``reverse``
follows edges against their direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.derive import refuse_block
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.queries import incident_slots
from gnnlab.graph.relation import Adjacency

__all__ = [
    "bfs_nodes_generator",
    "prop_edges",
    "prop_nodes",
    "prop_nodes_topo",
    "topological_nodes_generator",
]


def _adjacency(graph: Graph, reverse: bool) -> Adjacency:
    refuse_block(graph, "a traversal")
    if not graph.is_homogeneous:
        raise InvalidInput("a traversal needs one node type and one edge type; use to_homogeneous")
    relation = graph.relation()
    return relation.csc() if reverse else relation.csr()


def first_of_each(ids: torch.Tensor) -> torch.Tensor:
    """Return the distinct IDs in the order in which they first appear."""
    values, place = torch.unique(ids, return_inverse=True)
    first = torch.full((len(values),), len(ids), device=ids.device)
    first.scatter_reduce_(0, place, torch.arange(len(ids), device=ids.device), "amin")
    return ids[first.sort().values]


def bfs_nodes_generator(graph: Graph, source: Any, reverse: bool = False) -> list[torch.Tensor]:
    """Return the distinct nodes of each distance from the sources, in the order of discovery.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> dgl.bfs_nodes_generator(g, 0)
    [tensor([0]), tensor([1]), tensor([2, 3]), tensor([4, 5])]
    """
    adjacency, count = _adjacency(graph, reverse), graph.num_nodes()
    here = read_ids(source, count, "node", graph.device).long()
    seen = torch.zeros(count, dtype=torch.bool, device=graph.device)
    seen[here] = True
    frontiers = []
    while len(here):
        frontiers.append(graph._ids(here))
        there = adjacency.indices[incident_slots(adjacency, here)[1]].long()
        here = first_of_each(there[~seen[there]])
        seen[here] = True
    return frontiers


def topological_nodes_generator(graph: Graph, reverse: bool = False) -> list[torch.Tensor]:
    """Return nodes, each after all nodes with an edge to it; a cycle raises InvalidInput.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> dgl.topological_nodes_generator(g)
    [tensor([0]), tensor([1]), tensor([2]), tensor([3, 4]), tensor([5])]
    """
    adjacency = _adjacency(graph, reverse)
    relation, count = graph.relation(), graph.num_nodes()
    missing = (relation.out_degrees() if reverse else relation.in_degrees()).clone()
    here, frontiers, done = (missing == 0).nonzero().flatten(), [], 0
    while len(here):
        frontiers.append(graph._ids(here))
        done += len(here)
        there = adjacency.indices[incident_slots(adjacency, here)[1]].long()
        missing -= torch.bincount(there, minlength=count)
        here = torch.unique(there)
        here = here[missing[here] == 0]
    if done < count:
        raise InvalidInput(
            f"the graph has a cycle: {count - done} of {count} nodes have no topological order. "
            "Remove self-loops (dgl.remove_self_loop), or the edges of one direction"
        )
    return frontiers


def prop_nodes(
    graph: Graph,
    nodes_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """Call ``graph.pull`` for each frontier of nodes in turn."""
    for nodes in nodes_generator:
        graph.pull(nodes, message_func, reduce_func, apply_node_func)


def prop_edges(
    graph: Graph,
    edges_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """Call ``graph.send_and_recv`` for each frontier of edges in turn."""
    for edges in edges_generator:
        graph.send_and_recv(edges, message_func, reduce_func, apply_node_func)


def prop_nodes_topo(
    graph: Graph,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    apply_node_func: Any = None,
) -> None:
    """Call :func:`prop_nodes` with the frontiers of :func:`topological_nodes_generator`."""
    frontiers = topological_nodes_generator(graph, reverse)
    prop_nodes(graph, frontiers, message_func, reduce_func, apply_node_func)
