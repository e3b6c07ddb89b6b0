"""Graphs with other edges between the same nodes.

Message passing follows the direction of the edges, so a citation graph is usually made symmetric
first, and a layer that should use a node's own features needs self-loops. Each function returns a
new graph and does not change its argument; nodes keep their IDs; unchanged tensors are shared.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.core import GraphCore, GraphT, copied_node_frames, refuse_block
from gnnlab.graph.edit import add_edges
from gnnlab.graph.frame import Frame
from gnnlab.graph.names import EID, EdgeType
from gnnlab.graph.relation import Relation
from gnnlab.graph.simple import REDUCERS, aggregate
from gnnlab.graph.subgraph import keep_edges


def reverse(
    g: GraphT,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    *,
    share_ndata: bool | None = None,
    share_edata: bool | None = None,
) -> GraphT:
    """Reverse every edge; edge i of the result is edge i of the graph, reversed.

    Parameters
    ----------
    copy_ndata, copy_edata : bool
        Whether the result has the node and edge features (the tensors are shared).
    share_ndata, share_edata : bool, optional
        Old names of the two.

    Returns
    -------
    Graph
        The type (source, relation, destination) becomes (destination, relation, source).

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.reverse(dgl.graph(([0, 1], [1, 2]))).edges()
    (tensor([1, 2]), tensor([0, 1]))
    """
    refuse_block(g, "reverse")
    copy_ndata = copy_ndata if share_ndata is None else share_ndata
    copy_edata = copy_edata if share_edata is None else share_edata
    turned = {etype: (etype[2], etype[1], etype[0]) for etype in g.canonical_etypes}
    result = g.derive(
        {turned[etype]: relation.reverse() for etype, relation in g.relations.items()},
        node_frames=copied_node_frames(g, copy_ndata),
        edge_frames={turned[e]: frame.copy() for e, frame in g.edge_frames.items()}
        if copy_edata
        else None,
    )
    if g._batch is not None:
        nodes, edges = g._batch
        result._batch = nodes, {turned[etype]: counts for etype, counts in edges.items()}
    return result


def feature_names(names: str | Iterable[str]) -> list[str]:
    """Return one name, or several, as a list; raise InvalidInput for anything else."""
    found = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if not all(isinstance(name, str) for name in found):
        raise InvalidInput(f"names of features are texts; found {names!r}")
    return found


def add_self_loop(
    g: GraphT,
    edge_feat_names: Iterable[str] | None = None,
    fill_data: float | str = 1.0,
    etype: str | EdgeType | None = None,
) -> GraphT:
    """Add an edge from every node to itself, after the edges that exist.

    Parameters
    ----------
    g : Graph
        It may have self-loops; call :func:`remove_self_loop` first to have just one per node.
    edge_feat_names : iterable of str, optional
        Edge features that ``fill_data`` applies to, by default all; others as in :func:`add_edges`.
    fill_data : float or str
        A number, or "sum", "mean", "max" or "min" of the feature over the node's in-edges.
    etype : str or tuple, optional
        Edge type, whose two ends must be of one node type.

    Returns
    -------
    Graph
        With N more edges, edge E + v being the loop of node v.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.add_self_loop(dgl.graph(([0, 0], [1, 2]))).edges()
    (tensor([0, 0, 0, 1, 2]), tensor([1, 2, 0, 1, 2]))

    References
    ----------
    Kipf and Welling (2017), "Semi-Supervised Classification with Graph Convolutional Networks".
    """
    name = _loop_etype(g, etype, "add_self_loop")
    frame, dst = g.edge_frames[name], g.relations[name].coo()[1]
    loops = torch.arange(g.relations[name].num_dst, dtype=dst.dtype, device=dst.device)
    columns = {}
    for feature in frame if edge_feat_names is None else feature_names(edge_feat_names):
        value = frame[feature]  # an unknown name is an error
        if isinstance(fill_data, str):
            columns[feature] = aggregate(value, dst, len(loops), fill_data)
        elif isinstance(fill_data, int | float):
            columns[feature] = value.new_full((len(loops), *value.shape[1:]), fill_data)
        else:
            raise InvalidInput(
                f"fill_data must be a number or one of {', '.join(REDUCERS)}; found {fill_data!r}"
            )
    return add_edges(g, loops, loops, columns, name)


def remove_self_loop(g: GraphT, etype: str | EdgeType | None = None) -> GraphT:
    """Remove all edges from a node to itself; the others keep their order.

    Parameters
    ----------
    etype : str or tuple, optional
        Edge type, whose two ends must be of one node type.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.remove_self_loop(dgl.graph(([0, 0, 2], [0, 1, 2]))).edges()
    (tensor([0]), tensor([1]))
    """
    name = _loop_etype(g, etype, "remove_self_loop")
    src, dst = g.relations[name].coo()
    return keep_edges(g, {name: (src != dst).nonzero().flatten()}, None, store_ids=False)


def add_reverse_edges(
    g: GraphT,
    readonly: bool | None = None,
    copy_ndata: bool = True,
    copy_edata: bool = False,
    ignore_bipartite: bool = False,
    exclude_self: bool = True,
) -> GraphT:
    """Add the reverse of every edge, after the edges that exist.

    Without self-loops, edge ``i + E`` is the reverse of edge ``i``. Edge duplicates are kept, see
    :func:`to_bidirected` for a simple graph.

    Parameters
    ----------
    readonly : bool, optional
        Has no effect; old scripts pass it.
    copy_ndata : bool
        Whether the result has the node features (the tensors are shared).
    copy_edata : bool
        Whether the result has the edge features, those of the original edge on its reverse too,
        and the ID of the original edge as ``edata[dgl.EID]``.
    ignore_bipartite : bool
        Skip edge types that lead from one node type to another, instead of raising an error.
    exclude_self : bool
        Do not add a reverse of a self-loop, which would double it.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.add_reverse_edges(dgl.graph(([0, 1], [1, 2]))).edges()
    (tensor([0, 1, 1, 2]), tensor([1, 2, 0, 1]))
    """
    refuse_block(g, "add_reverse_edges")
    relations, frames = {}, {}
    for name, relation in g.relations.items():
        src, dst = relation.coo()
        origin = torch.arange(relation.num_edges, device=src.device)
        if name[0] == name[2]:
            back = (src != dst).nonzero().flatten() if exclude_self else origin
            ends = torch.cat([src, dst[back]]), torch.cat([dst, src[back]])
            relation = Relation(relation.num_src, relation.num_dst, ends)
            origin = torch.cat([origin, back])
        elif not ignore_bipartite:
            raise InvalidInput(
                f"add_reverse_edges: {name} leads from one node type to another, so its reverse "
                "edges are of another type; pass ignore_bipartite=True to leave such types alone, "
                "or use dgl.AddReverse to add reverse types"
            )
        relations[name] = relation
        if copy_edata:
            columns = g.edge_frames[name].rows(origin)
            columns[EID] = g.as_ids(origin)
            frames[name] = Frame(relation.num_edges, columns, g.device, "edge")
    return g.derive(relations, node_frames=copied_node_frames(g, copy_ndata), edge_frames=frames)


def _loop_etype(g: GraphCore, etype: str | EdgeType | None, what: str) -> EdgeType:
    """Return the triple of an edge type that can have self-loops."""
    refuse_block(g, what)
    name = g.to_canonical_etype(etype)
    if name[0] != name[2]:
        raise InvalidInput(
            f"{what}: an edge of {name} leads from one node type to another and is never a loop; "
            "choose an edge type with the same type at both ends"
        )
    return name
