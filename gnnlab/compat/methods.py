"""Methods that DGL's graphs have and gnnlab's lack, as functions of a graph.

:func:`bind` makes them methods when ``gnnlab.compat`` is imported, and replaces a few methods of
gnnlab by ones that take more: message passing over all edge types, rows of features
(``g.nodes[ids].data``) and slices of types (``g[:, "plays", :]``). What gnnlab's methods take has
the same results.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch

from gnnlab.compat.rows import rows_view
from gnnlab.compat.slices import slice_of_types
from gnnlab.errors import InvalidInput
from gnnlab.function import Message, Reduce
from gnnlab.graph.construct import graph as new_graph
from gnnlab.graph.convert import from_networkx, from_scipy
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.graph.message_passing import (
    EdgeBatch,
    NodeBatch,
    _messages,
    _reduced,
    apply_nodes,
    check_alike,
    reduced,
)
from gnnlab.graph.names import ALL, EdgeType, is_all
from gnnlab.graph.queries import edge_ids
from gnnlab.graph.relation import Relation
from gnnlab.graph.views import EdgeView, NodeView
from gnnlab.system import accelerators

__all__ = ["Scheme", "bind", "unbind"]


class Scheme(NamedTuple):
    """Shape of one row and dtype of a feature."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def make(graph: Graph, num_nodes: Any = (), relations: Any = None, *args: Any, **more: Any) -> None:
    """As in gnnlab; also ``DGLGraph()`` and ``DGLGraph(data)`` of edges, networkx or scipy."""
    if relations is not None:
        _make(graph, num_nodes, relations, *args, **more)
        return
    if more.keys() - {"multigraph", "readonly"}:  # which had a use before DGL 0.5
        raise InvalidInput(f"DGLGraph takes edges; found {sorted(more)}. Use dgl.graph")
    if isinstance(num_nodes, Graph):
        raise InvalidInput("DGLGraph(…) of a graph: use the graph, or graph.clone()")
    if hasattr(num_nodes, "tocoo"):
        made = from_scipy(num_nodes)
    elif hasattr(num_nodes, "adj"):
        made = from_networkx(num_nodes)
    else:
        made = new_graph(([], []) if num_nodes is None or not len(num_nodes) else num_nodes)
    vars(graph).update(vars(made))


# ------------------------------------------------------------------------------------- questions
def is_multigraph(graph: Graph) -> bool:
    """Whether two edges of one type have the same source and destination."""

    def has_doubles(relation: Relation) -> bool:
        src, dst = relation.coo()
        return len(torch.unique(src.long() * relation.num_dst + dst)) < len(src)

    return any(has_doubles(relation) for relation in graph.relations.values())


def is_unibipartite(graph: Graph) -> bool:
    """Whether no node type is at both ends of edges; always so for a block."""
    sources, _, targets = zip(*graph.canonical_etypes, strict=True) if graph.etypes else ((),) * 3
    return graph.is_block or not set(sources) & set(targets)


def is_pinned(graph: Graph) -> bool:
    """Whether the structure is in pinned memory."""
    if accelerators.kind() is None:
        return False
    return all(end.is_pinned() for r in graph.relations.values() for end in r.coo())


def unpin_memory_(graph: Graph) -> Graph:
    """Move structure and features out of pinned memory, and return the graph."""
    from gnnlab.graph.placement import _change_tensors

    return _change_tensors(graph, lambda t: t.clone() if t.is_pinned() else t)


def node_attr_schemes(graph: Graph, ntype: str | None = None) -> dict[str, Scheme]:
    """Return shape and dtype of each node feature."""
    return _schemes(graph.nodes[ntype].data)


def edge_attr_schemes(graph: Graph, etype: str | EdgeType | None = None) -> dict[str, Scheme]:
    """Return shape and dtype of each edge feature."""
    return _schemes(graph.edge_frames[graph.to_canonical_etype(etype)])


def _schemes(frame: Frame) -> dict[str, Scheme]:
    return {name: Scheme(tuple(col.shape[1:]), col.dtype) for name, col in frame.items()}


def filter_nodes(
    graph: Graph,
    predicate: Callable[[NodeBatch], torch.Tensor],
    nodes: Any = ALL,
    ntype: Any = None,
) -> torch.Tensor:
    """Return the IDs of the nodes, of some or of all, for which ``predicate(NodeBatch)`` is true.

    Examples
    --------
    >>> import gnnlab.compat as dgl, torch
    >>> g = dgl.graph([(0, 1), (1, 2)])
    >>> g.ndata["h"] = torch.tensor([1.0, -1.0, 1.0])
    >>> g.filter_nodes(lambda nodes: nodes.data["h"] > 0)
    tensor([0, 2])
    """
    name = graph.resolve_ntype(ntype)
    frame = graph.node_frames()[name]
    ids = read_ids(range(frame.num_rows) if is_all(nodes) else nodes, frame.num_rows, "node")
    ids = ids.to(graph.device)
    return graph.as_ids(ids[_mask(predicate, NodeBatch(frame, ids, {}, name))])


def filter_edges(
    graph: Graph,
    predicate: Callable[[EdgeBatch], torch.Tensor],
    edges: Any = ALL,
    etype: Any = None,
) -> torch.Tensor:
    """Return the IDs of the edges for which ``predicate(EdgeBatch)`` is true.

    ``edges`` are IDs, or sources and destinations; all by default.
    """
    name = graph.to_canonical_etype(etype)
    count = graph.num_edges(name)
    if isinstance(edges, tuple):
        edges = edge_ids(graph, edges[0], edges[1], etype=name)
    ids = read_ids(range(count) if is_all(edges) else edges, count, "edge").to(graph.device)
    batch = EdgeBatch(graph, name, graph.relations[name], ids)
    return graph.as_ids(ids[_mask(predicate, batch)])


def _mask(predicate: Callable[[Any], torch.Tensor], batch: NodeBatch | EdgeBatch) -> torch.Tensor:
    found = predicate(batch)
    if not isinstance(found, torch.Tensor) or found.shape != (len(batch),):
        shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
        raise InvalidInput(
            f"the predicate must return a tensor of shape {(len(batch),)}; found {shape}"
        )
    return found.bool()


def inc(graph: Graph, typestr: str, ctx: Any = None, etype: Any = None) -> torch.Tensor:
    """Return the incidence matrix: rows nodes, columns edges; sparse, (N, E), float32.

    ``typestr`` "in" has 1 where the node is the destination, "out" where it is the source; "both"
    has 1 for the destination, −1 for the source, 0 for an edge from a node to itself.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.graph([(0, 1), (2, 0)]).inc("both").to_dense()
    tensor([[-1.,  1.],
            [ 1.,  0.],
            [ 0., -1.]])
    """
    name = graph.to_canonical_etype(etype)
    relation = graph.relations[name]
    src, dst = (end.long() for end in relation.coo())
    edges = torch.arange(len(src), device=src.device)
    ones = torch.ones(len(src), device=src.device)
    if typestr == "in":
        rows, columns, values, num = dst, edges, ones, relation.num_dst
    elif typestr == "out":
        rows, columns, values, num = src, edges, ones, relation.num_src
    elif typestr == "both" and name[0] == name[2]:
        kept = src != dst
        rows = torch.cat([dst[kept], src[kept]])
        columns, num = edges[kept].repeat(2), relation.num_dst
        values = torch.cat([ones[kept], -ones[kept]])
    else:
        raise InvalidInput(
            f"typestr must be 'in', 'out', or between nodes of one type 'both'; found {typestr!r}"
        )
    index = torch.stack([rows, columns])
    shape = (num, len(src))
    return torch.sparse_coo_tensor(index, values, shape, check_invariants=False).to(ctx).coalesce()


# ------------------------------------------------------------------------------- message passing
def update_all(
    graph: Graph,
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Callable[[NodeBatch], Mapping[str, torch.Tensor]] | None = None,
    etype: str | EdgeType | None = None,
) -> None:
    """As in gnnlab; without an edge type, messages of all types are reduced together."""
    if etype is not None or len(graph.relations) == 1:
        _update_all(graph, message_func, reduce_func, apply_node_func, etype)
        return
    found = {}
    for ntype, frame in graph.dst_frames.items():
        etypes = [each for each in graph.relations if each[2] == ntype]
        if etypes:
            found[ntype] = _reduced_together(graph, etypes, frame, message_func, reduce_func)
    for ntype, values in found.items():
        graph.dst_frames[ntype].update(values)
        if apply_node_func is not None:
            apply_nodes(graph, apply_node_func, ntype=ntype)


def _reduced_together(
    graph: Graph, etypes: list[EdgeType], frame: Frame, message_func: Any, reduce_func: Any
) -> Mapping[str, torch.Tensor]:
    is_sum = isinstance(message_func, Message) and isinstance(reduce_func, Reduce)
    if len(etypes) == 1 or (is_sum and reduce_func.op == "sum"):
        sums = [_reduced(graph, etype, message_func, reduce_func) for etype in etypes]
        return {name: sum(each[name] for each in sums) for name in sums[0]}  # type: ignore[misc]
    parts = [_messages(graph, etype, message_func, None) for etype in etypes]
    check_alike(zip(etypes, parts, strict=True), "the message function")
    messages = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    dst = torch.cat([graph.relations[etype].coo()[1] for etype in etypes])
    relation = Relation(len(dst), frame.num_rows, (torch.arange(len(dst), device=dst.device), dst))
    return reduced(frame, relation, messages, reduce_func, etypes[0][2])


def apply_edges(graph: Graph, func: Any, edges: Any = ALL, etype: Any = None) -> None:
    """As in gnnlab; without an edge type, compute features of the edges of all types."""
    if etype is None and is_all(edges):
        for each in graph.canonical_etypes:
            _apply_edges(graph, func, edges, each)
    else:
        _apply_edges(graph, func, edges, etype)


# ------------------------------------------------------------------------------- blocks and views
def getitem(graph: Graph, key: Any) -> Graph:
    """As in gnnlab, also with slices that stand for any type: ``g[:, "plays", :]``."""
    if isinstance(key, tuple) and any(isinstance(part, slice) for part in key):
        return slice_of_types(graph, key, _getitem)
    return _getitem(graph, key)


def _later(module: str, name: str) -> Callable[..., Any]:
    """Return a method that imports its module when it is first called."""

    def method(graph: Graph, *args: Any, **kwargs: Any) -> Any:
        return getattr(importlib.import_module(module), name)(graph, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See :func:`{module}.{name}`."
    return method


_METHODS: dict[str, Any] = {
    "add_edge": lambda graph, u, v, data=None, etype=None: graph.add_edges(u, v, data, etype),
    "adjacency_matrix": _later("gnnlab.graph.queries", "adj_external"),
    "edge_attr_schemes": edge_attr_schemes,
    "filter_edges": filter_edges,
    "filter_nodes": filter_nodes,
    "inc": inc,
    "incidence_matrix": inc,
    "is_multigraph": property(is_multigraph),
    "is_pinned": is_pinned,
    "is_readonly": property(lambda graph: False),
    "is_unibipartite": property(is_unibipartite),
    "node_attr_schemes": node_attr_schemes,
    "unpin_memory_": unpin_memory_,
}
_FUNCTIONS = {  # module → functions that are methods, too
    "gnnlab.compat.transforms": "khop_adj khop_graph line_graph prop_edges prop_nodes",
    "gnnlab.compat.sampling": "global_uniform_negative_sampling sample_etype_neighbors "
    "sample_labors select_topk",
}
_make = Graph.__init__
_update_all, _apply_edges, _getitem = Graph.update_all, Graph.apply_edges, Graph.__getitem__
_WIDENED: dict[tuple[Any, str], Any] = {
    (Graph, "__init__"): make,
    (Graph, "update_all"): update_all,
    (Graph, "apply_edges"): apply_edges,
    (Graph, "__getitem__"): getitem,
    (NodeView, "__getitem__"): rows_view(NodeView.__getitem__),
    (EdgeView, "__getitem__"): rows_view(EdgeView.__getitem__),
}


_BEFORE: dict[tuple[Any, str], Any] = {}


def bind() -> None:
    """Set the methods on :class:`gnnlab.Graph`; those that gnnlab has are left as they are."""
    later = {n: _later(m, n) for m, names in _FUNCTIONS.items() for n in names.split()}
    added = {(Graph, name): method for name, method in {**later, **_METHODS}.items()}
    for (kind, name), method in {**added, **_WIDENED}.items():
        before = getattr(kind, name, None)
        if (kind, name) in _WIDENED and before is not method:
            ours, theirs = (x.fget if isinstance(x, property) else x for x in (method, before))
            functools.update_wrapper(ours, theirs)  # type: ignore[arg-type]
        elif before is not None:
            continue
        _BEFORE[kind, name] = vars(kind).get(name)
        setattr(kind, name, method)


def unbind() -> None:
    """Undo :func:`bind`, for programs that use compat for a while."""
    while _BEFORE:
        (kind, name), before = _BEFORE.popitem()
        if before is None:
            delattr(kind, name)
        else:
            setattr(kind, name, before)
