"""Orders in which to visit a graph, and message passing that follows one.

A *frontier* is a tensor of nodes, or of edges, that are visited together. Traversals return a list
of frontiers; ``prop_nodes`` and ``prop_edges`` pass messages frontier by frontier, as models of
trees do, from the leaves to the root. Graphs have one node type and one edge type; ``reverse``
follows edges against their direction.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.core import refuse_block
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.queries import incident_slots
from gnnlab.graph.relation import Adjacency

_FORWARD, _REVERSE, _NONTREE = 0, 1, 2


def _adjacency(graph: Graph, reverse: bool) -> Adjacency:
    refuse_block(graph, "a traversal")
    if not graph.is_homogeneous:
        raise InvalidInput("a traversal needs one node type and one edge type; use to_homogeneous")
    relation = graph.relation()
    return relation.csc() if reverse else relation.csr()


def bfs_nodes_generator(graph: Graph, source: Any, reverse: bool = False) -> list[torch.Tensor]:
    """Return nodes by their distance from the sources: breadth-first search.

    A frontier has the distinct nodes of one distance, the first one the sources.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> dgl.bfs_nodes_generator(g, 0)
    [tensor([0]), tensor([1]), tensor([2, 3]), tensor([4, 5])]
    """
    return _breadth_first(graph, source, reverse)[0]


def bfs_edges_generator(graph: Graph, source: Any, reverse: bool = False) -> list[torch.Tensor]:
    """Return the edges by which :func:`bfs_nodes_generator` first reaches each node.

    There is a frontier for each distance from 1.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> dgl.bfs_edges_generator(g, 0)
    [tensor([0]), tensor([1, 2]), tensor([4, 5])]
    """
    return _breadth_first(graph, source, reverse)[1]


def _breadth_first(
    graph: Graph, source: Any, reverse: bool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    adjacency = _adjacency(graph, reverse)
    count = graph.num_nodes()
    here = read_ids(source, count, "node", graph.device, distinct=True).long()
    seen = torch.zeros(count, dtype=torch.bool, device=graph.device)
    seen[here] = True
    nodes, edges = [], []
    while len(here):
        nodes.append(graph.as_ids(here))
        slots = incident_slots(adjacency, here)[1]
        there = adjacency.indices[slots].long()
        slots, there = slots[~seen[there]], there[~seen[there]]
        # A node reached by several edges counts once, by the first of them.
        place = torch.arange(len(there), device=graph.device)
        first = torch.full((count,), len(there), device=graph.device)
        first.scatter_reduce_(0, there, place, "amin")
        kept = first[there] == place
        here = there[kept]
        seen[here] = True
        if len(here):
            edges.append(graph.as_ids(adjacency.eids_at(slots[kept]).long()))
    return nodes, edges


def topological_nodes_generator(graph: Graph, reverse: bool = False) -> list[torch.Tensor]:
    """Return nodes in topological order: each after all nodes with an edge to it.

    A frontier has the nodes whose predecessors are all in earlier ones, ascending; a graph with a
    cycle is an error.

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
        frontiers.append(graph.as_ids(here))
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


def dfs_edges_generator(graph: Graph, source: Any, reverse: bool = False) -> list[torch.Tensor]:
    """Return the edges of a depth-first search, one by one.

    The search runs from each source alone; frontier i has the i-th edge of each search.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> torch.cat(dgl.dfs_edges_generator(g, 0))
    tensor([0, 1, 3, 5, 4])
    """
    return _depth_first(graph, source, reverse, set())[0]


def dfs_labeled_edges_generator(
    graph: Graph,
    source: Any,
    reverse: bool = False,
    has_reverse_edge: bool = False,
    has_nontree_edge: bool = False,
    return_labels: bool = True,
) -> Any:
    """Return the edges of :func:`dfs_edges_generator`, label 0, and the frontiers of the labels.

    ``has_reverse_edge`` gives each edge again, with label 1, when the search goes back along it;
    ``has_nontree_edge`` edges to nodes that were visited already, too, with label 2.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> g = dgl.graph(([0, 1, 1, 2, 2, 3], [1, 2, 3, 3, 4, 5]))
    >>> edges, labels = dgl.dfs_labeled_edges_generator(g, 0, has_nontree_edge=True)
    >>> torch.cat(edges), torch.cat(labels)
    (tensor([0, 1, 3, 5, 4, 2]), tensor([0, 0, 0, 0, 0, 2]))
    """
    wanted = {_REVERSE} if has_reverse_edge else set()
    wanted |= {_NONTREE} if has_nontree_edge else set()
    edges, labels = _depth_first(graph, source, reverse, wanted)
    return (edges, labels) if return_labels else edges


def _depth_first(
    graph: Graph, source: Any, reverse: bool, wanted: set[int]
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    adjacency = _adjacency(graph, reverse)
    starts = read_ids(source, graph.num_nodes(), "node").tolist()
    indptr, indices = adjacency.indptr.tolist(), adjacency.indices.tolist()
    eids = adjacency.eids.tolist()
    walks = [list(_depth_first_from(start, indptr, indices, eids, wanted)) for start in starts]
    steps = [[step for step in together if step is not None] for together in zip_longest(*walks)]
    ids = [torch.tensor([e for e, _ in step], device=graph.device) for step in steps]
    edges = [graph.as_ids(each) for each in ids]
    labels = [torch.tensor([label for _, label in step], device=graph.device) for step in steps]
    return edges, labels


def _depth_first_from(
    start: int, indptr: list[int], indices: list[int], eids: list[int], wanted: set[int]
) -> Iterable[tuple[int, int]]:
    seen = {start}
    path = [(start, indptr[start], -1)]  # node, next slot, edge that led there
    while path:
        node, slot, by = path.pop()
        if slot == indptr[node + 1]:
            if by >= 0 and _REVERSE in wanted:
                yield by, _REVERSE
            continue
        path.append((node, slot + 1, by))
        there = indices[slot]
        if there not in seen:
            seen.add(there)
            yield eids[slot], _FORWARD
            path.append((there, indptr[there], eids[slot]))
        elif _NONTREE in wanted:
            yield eids[slot], _NONTREE


def prop_nodes(
    graph: Graph,
    nodes_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """Let the nodes of each frontier in turn receive messages: ``graph.pull``."""
    for nodes in nodes_generator:
        graph.pull(nodes, message_func, reduce_func, apply_node_func)


def prop_edges(
    graph: Graph,
    edges_generator: Iterable[Any],
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
) -> None:
    """Send messages along the edges of each frontier in turn: ``graph.send_and_recv``."""
    for edges in edges_generator:
        graph.send_and_recv(edges, message_func, reduce_func, apply_node_func)


def prop_nodes_bfs(
    graph: Graph,
    source: Any,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    apply_node_func: Any = None,
) -> None:
    """Call :func:`prop_nodes` with the frontiers of :func:`bfs_nodes_generator`."""
    frontiers = bfs_nodes_generator(graph, source, reverse)
    prop_nodes(graph, frontiers, message_func, reduce_func, apply_node_func)


def prop_nodes_topo(
    graph: Graph,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    apply_node_func: Any = None,
) -> None:
    """Call :func:`prop_nodes` with the frontiers of :func:`topological_nodes_generator`.

    Examples
    --------
    >>> import torch, gnnlab.compat as dgl
    >>> fn = dgl.function
    >>> tree = dgl.graph(([0, 1, 2], [2, 2, 3]))  # from the leaves to the root
    >>> tree.ndata["own"], tree.ndata["h"] = torch.tensor([1.0, 2.0, 0.0, 4.0]), torch.zeros(4)
    >>> add_own = lambda nodes: {"h": nodes.data["h"] + nodes.data["own"]}
    >>> dgl.prop_nodes_topo(
    ...     tree, fn.copy_u("h", "m"), fn.sum("m", "h"), apply_node_func=add_own
    ... )
    >>> tree.ndata["h"]  # the sum of each subtree
    tensor([1., 2., 3., 7.])
    """
    frontiers = topological_nodes_generator(graph, reverse)
    prop_nodes(graph, frontiers, message_func, reduce_func, apply_node_func)


def prop_edges_dfs(
    graph: Graph,
    source: Any,
    message_func: Any,
    reduce_func: Any,
    reverse: bool = False,
    has_reverse_edge: bool = False,
    has_nontree_edge: bool = False,
    apply_node_func: Any = None,
) -> None:
    """Call :func:`prop_edges` with the frontiers of :func:`dfs_labeled_edges_generator`."""
    frontiers = dfs_labeled_edges_generator(
        graph, source, reverse, has_reverse_edge, has_nontree_edge, return_labels=False
    )
    prop_edges(graph, frontiers, message_func, reduce_func, apply_node_func)
