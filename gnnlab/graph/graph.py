"""The graph: nodes and edges, each of a type, with features.

A graph with one node type and one edge type (a *homogeneous* graph) is the simplest case of a typed
(*heterogeneous*) one, not another class. An edge type is named by its canonical triple (source
type, relation, destination type); the relation alone will do where it is unambiguous.

Types, counts and features are in ``core.py``, queries of the structure in ``queries.py``, message
passing in ``message_passing.py``, neighbor sampling in ``neighbor.py``, functions that derive
graphs from graphs in ``transform.py`` and ``subgraph.py``. This class has them as methods.
"""

from __future__ import annotations

from typing import Any, Self

from gnnlab.graph import (
    batch,
    compact,
    edit,
    homogeneous,
    message_passing,
    neighbor,
    placement,
    queries,
    simple,
    slices,
    subgraph,
    transform,
)
from gnnlab.graph.core import GraphCore
from gnnlab.graph.names import EdgeType
from gnnlab.graph.to_networkx import to_networkx
from gnnlab.graph.views import EdgeView


class Graph(GraphCore):
    """A directed graph with typed nodes and edges.

    :func:`gnnlab.graph` and :func:`gnnlab.heterograph` make one.

    Parameters
    ----------
    num_nodes : dict
        Node type → number of nodes.
    relations : dict
        Canonical edge type → :class:`Relation`.
    node_frames, edge_frames : dict, optional
        Features per node type and per canonical edge type.
    idtype : torch.dtype
        int64 or int32: the dtype of all IDs that the graph returns.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.graph(([0, 1, 2], [1, 2, 0]))
    Graph(num_nodes=3, num_edges=3,
          ndata_schemes={}
          edata_schemes={})
    """

    @property
    def edges(self) -> EdgeView:
        """``g.edges()`` gives sources and destinations, ``g.edges[etype].data`` the features."""
        return EdgeView(self)

    def __getitem__(self, etype: str | EdgeType | tuple[Any, ...]) -> Self:
        """Return the part of the graph with one edge type; features are shared with this graph.

        ``g[source type, relation, destination type]``, with ``:`` for any of them, joins all that
        fit: :func:`gnnlab.graph.slices.slice_of_types`.
        """
        if isinstance(etype, tuple) and any(isinstance(part, slice) for part in etype):
            return slices.slice_of_types(self, etype)
        return super().__getitem__(etype)  # type: ignore[arg-type]

    long = placement.as_int64
    astype = placement.astype
    int = placement.as_int32
    to = placement.to
    cpu = placement.cpu
    formats = placement.formats
    create_formats_ = placement.create_formats_
    share_memory = placement.share_memory
    pin_memory_ = placement.pin_memory_

    in_degrees = queries.in_degrees
    out_degrees = queries.out_degrees
    find_edges = queries.find_edges
    edge_ids = queries.edge_ids
    has_edges_between = queries.has_edges_between
    has_nodes = queries.has_nodes
    successors = queries.successors
    predecessors = queries.predecessors
    in_edges = queries.in_edges
    out_edges = queries.out_edges
    adj_tensors = queries.adj_tensors
    adj_external = queries.adj_external
    adj = queries.adj_external
    all_edges = queries.all_edges

    update_all = message_passing.update_all
    apply_edges = message_passing.apply_edges
    apply_nodes = message_passing.apply_nodes
    multi_update_all = message_passing.multi_update_all
    send_and_recv = message_passing.send_and_recv
    pull = message_passing.pull
    push = message_passing.push

    edge_subgraph = subgraph.edge_subgraph
    in_subgraph = subgraph.in_subgraph
    out_subgraph = subgraph.out_subgraph
    node_type_subgraph = subgraph.node_type_subgraph
    edge_type_subgraph = subgraph.edge_type_subgraph
    subgraph = subgraph.node_subgraph  # last: it hides the module's name

    reverse = transform.reverse
    add_self_loop = transform.add_self_loop
    remove_self_loop = transform.remove_self_loop
    to_simple = simple.to_simple
    reorder_graph = compact.reorder_graph
    khop_in_subgraph = compact.khop_in_subgraph
    khop_out_subgraph = compact.khop_out_subgraph
    sample_neighbors = neighbor.sample_neighbors

    add_nodes = edit.in_place(edit.add_nodes)
    add_edges = edit.in_place(edit.add_edges)
    remove_nodes = edit.in_place(edit.remove_nodes)
    remove_edges = edit.in_place(edit.remove_edges)

    metagraph = homogeneous.metagraph
    to_networkx = to_networkx
    batch_size = property(batch.batch_size)
    batch_num_nodes = batch.batch_num_nodes
    batch_num_edges = batch.batch_num_edges
    set_batch_num_nodes = batch.set_batch_num_nodes
    set_batch_num_edges = batch.set_batch_num_edges
