"""Messages along edges.

A message is computed for every edge from the features of its source, its destination and its own;
at every node the incoming messages are reduced. Message and reduce functions from
:mod:`gnnlab.function` are fused, and no message is stored. User-defined functions are called with
batches of edges, or of nodes with their mailboxes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from gnnlab import ops
from gnnlab.errors import InvalidInput
from gnnlab.function import Message, Reduce
from gnnlab.graph.core import GraphCore
from gnnlab.graph.frame import Frame
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import ALL, EdgeType, describe, is_all
from gnnlab.graph.queries import edge_ids, in_edges, incident_slots, out_edges
from gnnlab.graph.relation import Relation
from gnnlab.ops import autograd
from gnnlab.ops.groups import Groups, NodeGroups
from gnnlab.ops.spmm import check_number

Rows = Mapping[str, torch.Tensor]
_FUSED = {"copy_lhs", "copy_rhs", "add", "sub", "mul", "div"}
_CROSS = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin, "stack": None}


class EdgeBatch:
    """The argument of a user-defined message function: a batch of edges.

    Attributes
    ----------
    src, dst, data : dict
        Features of the sources, of the destinations and of the edges; one row per edge.
    canonical_etype : tuple of str
        Type of the edges.
    """

    def __init__(
        self, graph: GraphCore, etype: EdgeType, relation: Relation, eids: torch.Tensor | None
    ) -> None:
        src, dst = relation.coo()
        if eids is not None:
            src, dst = src[eids], dst[eids]
            relation = Relation(relation.num_src, relation.num_dst, (src, dst))
        self._graph, self._src, self._dst, self._eids = graph, src, dst, eids
        self.canonical_etype = etype
        count = len(src)
        self.src = Frame(count, graph.src_frames[etype[0]].rows(src, _at_end(relation, "u")))
        self.dst = Frame(count, graph.dst_frames[etype[2]].rows(dst, _at_end(relation, "v")))
        edges = graph.edge_frames[etype]
        rows = None if eids is None else edges.rows(eids)
        self.data = edges.copy() if rows is None else Frame(count, rows, what="edge")

    def edges(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Sources, destinations and IDs of the edges, shapes (K,)."""
        src, dst, eids, as_ids = self._src, self._dst, self._eids, self._graph.as_ids
        eids = torch.arange(len(src), device=src.device) if eids is None else eids
        return as_ids(src), as_ids(dst), as_ids(eids)

    def batch_size(self) -> int:
        """Number of edges."""
        return len(self)

    def __len__(self) -> int:
        return len(self._src)


def _at_end(relation: Relation, end: str) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a function that takes the row at one end of each edge, with a fast gradient."""
    groups = NodeGroups(relation, end)
    return lambda rows, _: autograd.gather(groups, rows)


class NodeBatch:
    """The argument of a user-defined reduce or apply function: a batch of nodes.

    Attributes
    ----------
    data : dict
        Node features, one row per node.
    mailbox : dict
        Messages, shape (nodes, messages per node, ...); all nodes have the same in-degree.
    ntype : str
        Type of the nodes.
    """

    def __init__(
        self,
        frame: Frame,
        nodes: torch.Tensor | None,
        mailbox: Mapping[str, torch.Tensor],
        ntype: str = "_N",
    ) -> None:
        self.ntype = ntype
        self._nodes = torch.arange(frame.num_rows, device=frame.device) if nodes is None else nodes
        self.data = frame.copy() if nodes is None else Frame(len(nodes), frame.rows(nodes))
        self.mailbox = Frame(len(self), mailbox, what="message")

    def nodes(self) -> torch.Tensor:
        """IDs of the nodes, shape (K,)."""
        return self._nodes

    def batch_size(self) -> int:
        """Number of nodes."""
        return len(self)

    def __len__(self) -> int:
        return len(self._nodes)


def update_all(
    graph: GraphCore,
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Callable[[NodeBatch], Mapping[str, torch.Tensor]] | None = None,
    etype: str | EdgeType | None = None,
) -> None:
    """Send messages along all edges, or those of a type, and reduce them at their destinations.

    Parameters
    ----------
    message_func : Message or callable
        For instance ``fn.copy_u("h", "m")``, or a function of an :class:`EdgeBatch` that returns
        {name: tensor} with one row per edge.
    reduce_func : Reduce or callable
        For instance ``fn.mean("m", "h")``, or a function of a :class:`NodeBatch` that returns
        {name: tensor} with one row per node. A node that no message reaches gets zeros, or, from
        a function of your own, what :meth:`set_n_initializer` says.
    apply_node_func : callable, optional
        Called once afterwards on all destinations; its result is stored, too.
    etype : str or tuple, optional
        By default all types; messages of several types that reach a node are reduced together.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> import gnnlab.function as fn
    >>> g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    >>> g.ndata["h"] = torch.tensor([1.0, 3.0, 5.0])
    >>> g.update_all(fn.copy_u("h", "m"), fn.mean("m", "mean"))
    >>> g.ndata["mean"]
    tensor([5., 0., 2.])
    """
    if not isinstance(reduce_func, Reduce):
        _check_function(reduce_func, "reduce", 'fn.sum("m", "h")')
    by_target: dict[str, list[EdgeType]] = {}
    for name in _etypes(graph, etype):
        by_target.setdefault(name[2], []).append(name)
    found = {
        ntype: _reduced_together(graph, names, message_func, reduce_func)
        for ntype, names in by_target.items()
    }
    for ntype, values in found.items():
        graph.dst_frames[ntype].update(values)
        if apply_node_func is not None:
            apply_nodes(graph, apply_node_func, ntype=ntype)


def _etypes(graph: GraphCore, etype: str | EdgeType | None) -> list[EdgeType]:
    """Return the edge types that an argument means: without one, all."""
    if etype is None and len(graph.relations) > 1:
        return graph.canonical_etypes
    return [graph.to_canonical_etype(etype)]


def _reduced_together(graph: GraphCore, etypes: list[EdgeType], message: Any, reduce: Any) -> Rows:
    """Reduce the messages of edge types with the same destination type."""
    is_sum = isinstance(message, Message) and isinstance(reduce, Reduce) and reduce.op == "sum"
    if len(etypes) == 1 or is_sum:
        first, *others = (_reduced(graph, etype, message, reduce) for etype in etypes)
        return {name: sum((rows[name] for rows in others), x) for name, x in first.items()}
    parts = [_messages(graph, etype, message, None) for etype in etypes]
    _check_alike(zip(etypes, parts, strict=True), "the message function")
    messages = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    dst = torch.cat([graph.relations[etype].coo()[1] for etype in etypes])
    frame = graph.dst_frames[etypes[0][2]]
    relation = Relation(len(dst), frame.num_rows, (torch.arange(len(dst), device=dst.device), dst))
    return _reduce(frame, relation, messages, reduce, etypes[0][2])


def _call(function: Any, role: str, batch: EdgeBatch | NodeBatch, degree: int = 0) -> Rows:
    """Call a user-defined function; raise unless it returns {name: tensor}, a row for each."""
    values, count = function(batch), len(batch)
    who = f"the {role} function {_name(function)}"
    if not isinstance(values, Mapping):
        raise InvalidInput(f"{who} must return {{name: tensor}}; found {type(values).__name__}")
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and value.shape[:1] == (count,):
            continue
        what = "edges" if isinstance(batch, EdgeBatch) else "nodes"
        found = f"a value of type {type(value).__name__}"
        if isinstance(value, torch.Tensor):
            found = f"a tensor of shape {tuple(value.shape)}"
        text = f"{who} must return tensors with one row for each of its {what}; found {name!r}, "
        text += f"{found}: expected {count} rows"
        if degree:
            text += (
                f" from mailboxes of shape ({count}, {degree}, …), those of in-degree "
                f"{degree}. mailbox[name].sum(1) sums over the messages"
            )
        raise InvalidInput(text)
    return values


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _check_alike(parts: Iterable[tuple[Any, Rows]], who: str) -> None:
    """Raise unless all parts, which become one, have the same names, row shapes and dtypes."""
    first: tuple[Any, dict[str, Any]] | None = None
    for part, rows in parts:
        found = {name: (x.shape[1:], x.dtype) for name, x in rows.items()}
        first = first or (part, found)
        if found == first[1]:
            continue
        both = {**first[1], **found}
        name = next(each for each in both if first[1].get(each) != found.get(each))
        before, now = (
            f"rows of {tuple(each[name][0])}, {each[name][1]}" if name in each else "nothing"
            for each in (first[1], found)
        )
        raise InvalidInput(
            f"{who} must return the same names, with rows of one shape and dtype, each time; "
            f"found {name!r}: {before} for {first[0]}, {now} for {part}"
        )


def _check_function(function: Any, role: str, example: str) -> None:
    """Raise unless given a callable or a description from ``gnnlab.function``."""
    if callable(function) and getattr(function, "__module__", None) != "gnnlab.function":
        return
    found = repr(function)
    if callable(function):
        found = f"{_name(function)} itself, which must be called with the names of features"
    raise InvalidInput(
        f"the {role} function is a function of your own, or a built-in one such as {example}; "
        f"found {found}"
    )


def _reduced(graph: GraphCore, etype: EdgeType, message: Any, reduce: Any) -> Rows:
    relation = graph.relations[etype]
    if isinstance(message, Message) and isinstance(reduce, Reduce):
        if message.out != reduce.msg:
            raise InvalidInput(
                f"the message function writes {message.out!r} but the reduce function reads "
                f"{reduce.msg!r}; give both the same name"
            )
        targets = (message.lhs_target, message.rhs_target)
        if message.op in _FUSED and targets[0] in ("u", None) and targets[1] in ("e", None):
            lhs, rhs = _operands(graph, etype, message)
            return {reduce.out: ops.spmm(relation, message.op, reduce.op, lhs, rhs)}
    messages = _messages(graph, etype, message, None)
    return _reduce(graph.dst_frames[etype[2]], relation, messages, reduce, etype[2])


def _reduce(frame: Frame, relation: Relation, messages: Rows, reduce: Any, ntype: str) -> Rows:
    """Reduce one message per edge at the destinations, whose features are in ``frame``."""
    if not isinstance(reduce, Reduce):
        return _reduce_by_degree(frame, relation, messages, reduce, ntype)
    if reduce.msg not in messages:
        raise InvalidInput(
            f"the reduce function reads {reduce.msg!r}, but the message function returns "
            f"{describe(messages)}"
        )
    return {reduce.out: ops.spmm(relation, "copy_rhs", reduce.op, None, messages[reduce.msg])}


def _operands(
    graph: GraphCore, etype: EdgeType, message: Message
) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    frames = {
        "u": graph.src_frames[etype[0]],
        "v": graph.dst_frames[etype[2]],
        "e": graph.edge_frames[etype],
    }

    def operand(target: str | None, name: str | None) -> torch.Tensor | None:
        return None if target is None or name is None else frames[target][name]

    return operand(message.lhs_target, message.lhs), operand(message.rhs_target, message.rhs)


def _messages(
    graph: GraphCore, etype: EdgeType, message: Any, eids: torch.Tensor | None
) -> Mapping[str, torch.Tensor]:
    relation = graph.relations[etype]
    if not isinstance(message, Message):
        _check_function(message, "message", 'fn.copy_u("h", "m")')
        return _call(message, "message", EdgeBatch(graph, etype, relation, eids))
    lhs, rhs = _operands(graph, etype, message)
    if eids is not None:
        src, dst = relation.coo()
        lhs = lhs[eids] if lhs is not None and message.lhs_target == "e" else lhs
        rhs = rhs[eids] if rhs is not None and message.rhs_target == "e" else rhs
        relation = Relation(relation.num_src, relation.num_dst, (src[eids], dst[eids]))
    result = ops.sddmm(
        relation, message.op, lhs, rhs, message.lhs_target or "u", message.rhs_target or "e"
    )
    return {message.out: result}


def _reduce_by_degree(
    frame: Frame, relation: Relation, messages: Rows, reduce: Any, ntype: str
) -> Rows:
    """Call ``reduce`` per in-degree: nodes of equal degree have mailboxes of equal shape."""
    adjacency = relation.csc()
    degrees = torch.diff(adjacency.indptr)
    results: dict[str, torch.Tensor] = {}
    alike: list[tuple[int, torch.Tensor]] = []
    for degree in torch.unique(degrees[degrees > 0]).tolist():
        nodes = (degrees == degree).nonzero().flatten()
        # As many nodes as messages would hide that a function reduces the wrong dimension.
        several = (nodes[:1], nodes[1:]) if len(nodes) == degree > 1 else (nodes,)
        alike += [(degree, each) for each in several]
    rows = [nodes for _, nodes in alike]
    boxes: list[dict[str, torch.Tensor]] = [{} for _ in alike]
    if alike:
        eids = adjacency.eids_at(incident_slots(adjacency, torch.cat(rows))[1])
        groups = Groups(relation.num_edges, relation.num_edges, eids)
        counts = [degree * len(nodes) for degree, nodes in alike]
        for name, value in messages.items():  # all at once, as is then the gradient
            # Of a plain split, a function could not change its mailbox in place.
            split = torch.unsafe_split_with_sizes(autograd.gather(groups, value), counts)
            for box, part, (degree, nodes) in zip(boxes, split, alike, strict=True):
                box[name] = part.reshape(len(nodes), degree, *value.shape[1:])
    parts: list[tuple[str, Rows]] = []
    for box, (degree, nodes) in zip(boxes, alike, strict=True):
        batch = NodeBatch(frame, nodes, box, ntype)
        parts.append((f"in-degree {degree}", _call(reduce, "reduce", batch, degree)))
    _check_alike(parts, f"the reduce function {_name(reduce)}")
    for name in parts[0][1] if parts else ():
        values = torch.cat([part[name] for _, part in parts])
        results[name] = frame.initial(name, values).index_copy(0, torch.cat(rows), values)
    return results


def apply_edges(
    graph: GraphCore, func: Any, edges: Any = ALL, etype: str | EdgeType | None = None
) -> None:
    """Compute edge features from the features of the edges and of their ends.

    Parameters
    ----------
    func : Message or callable
        For instance ``fn.u_dot_v("h", "h", "score")``, or a function of an :class:`EdgeBatch`.
    edges : IDs, optional
        Edges to compute; the others keep their value (where there was none, zero or what
        :meth:`set_e_initializer` says).
    etype : str or tuple, optional
        By default all types, unless ``edges`` are given.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> import gnnlab.function as fn
    >>> g = dgl.graph(([0, 1], [1, 0]))
    >>> g.ndata["h"] = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> g.apply_edges(fn.u_dot_v("h", "h", "score"))
    >>> g.edata["score"]
    tensor([[11.],
            [11.]])
    """
    if is_all(edges):
        for name in _etypes(graph, etype):
            graph.edge_frames[name].update(_messages(graph, name, func, None))
        return
    name = graph.to_canonical_etype(etype)
    frame = graph.edge_frames[name]
    if isinstance(edges, tuple):
        edges = edge_ids(graph, edges[0], edges[1], etype=name)
    eids = read_ids(edges, frame.num_rows, "edge", graph.device, distinct=True)
    _write_rows(frame, eids, _messages(graph, name, func, eids))


def _write_rows(frame: Frame, rows: torch.Tensor, values: Rows) -> None:
    for name, value in values.items():
        column = frame[name] if name in frame else frame.initial(name, value)
        if (column.shape[1:], column.dtype) != (value.shape[1:], value.dtype):
            raise InvalidInput(
                f"{frame.what} feature {name!r} has rows of shape {tuple(column.shape[1:])}, "
                f"{column.dtype}; found {tuple(value.shape[1:])}, {value.dtype} for some of its "
                f"rows: convert them, or write to another name"
            )
        frame[name] = column.index_copy(0, rows.long(), value)


def apply_nodes(
    graph: GraphCore,
    func: Callable[[NodeBatch], Mapping[str, torch.Tensor]],
    v: Any = ALL,
    ntype: str | None = None,
) -> None:
    """Compute node features from node features with a function of a :class:`NodeBatch`."""
    _check_function(func, "apply", "lambda nodes: {...}")
    name = graph.resolve_ntype(ntype, graph.dst_frames)
    frame = graph.dst_frames[name]
    if is_all(v):
        frame.update(_call(func, "apply", NodeBatch(frame, None, {}, name)))
        return
    nodes = read_ids(v, frame.num_rows, "node", graph.device, distinct=True)
    _write_rows(frame, nodes, _call(func, "apply", NodeBatch(frame, nodes, {}, name)))


def multi_update_all(
    graph: GraphCore,
    etype_dict: Mapping[Any, tuple[Any, ...]],
    cross_reducer: str | Callable[[list[torch.Tensor]], torch.Tensor],
    apply_node_func: Callable[[NodeBatch], Mapping[str, torch.Tensor]] | None = None,
) -> None:
    """Message passing over several edge types, then a reduction of their results per node type.

    Parameters
    ----------
    etype_dict : dict
        Edge type → (message function, reduce function[, apply function]).
    cross_reducer : {"sum", "mean", "max", "min", "stack"} or callable
        How results of different edge types for one node type and name are combined. For "max" and
        "min", a type does not count at nodes that none of its messages reach, unless its reduce
        function is a sum; a node that no message reaches gets zeros. A callable gets the list of
        tensors, with zeros at nodes that a type does not reach. A type without edges has no result
        if its reduce function is your own.
    """
    if isinstance(cross_reducer, str) and cross_reducer not in _CROSS:
        raise InvalidInput(
            f"cross_reducer must be one of {describe(_CROSS)}; found {cross_reducer!r}"
        )
    found: dict[tuple[str, str], list[tuple[torch.Tensor, Relation | None]]] = {}
    if not isinstance(etype_dict, Mapping):
        raise InvalidInput(
            "etype_dict is a dict of (message function, reduce function) by edge type; found "
            f"{type(etype_dict).__name__}"
        )
    for etype, functions in etype_dict.items():
        name = graph.to_canonical_etype(etype)
        if not isinstance(functions, tuple | list) or len(functions) not in (2, 3):
            raise InvalidInput(
                f"etype_dict needs (message function, reduce function) for {etype!r}, and as the "
                f"third an apply function if there is one; found {functions!r}"
            )
        part = graph[name].local_var()
        update_all(part, *functions)
        # A sum of no messages is 0; other reductions of no messages have no value.
        is_sum = isinstance(functions[1], Reduce) and functions[1].op == "sum"
        relation = None if is_sum else graph.relations[name]
        written = _written(part.dst_frames[name[2]], graph.dst_frames[name[2]])
        for key, value in written.items():
            found.setdefault((name[2], key), []).append((value, relation))
    for (ntype, key), values in found.items():
        graph.dst_frames[ntype][key] = _cross(key, values, cross_reducer)
    if apply_node_func is not None:
        for ntype in dict.fromkeys(ntype for ntype, _ in found):
            apply_nodes(graph, apply_node_func, ntype=ntype)


def _written(after: Frame, before: Frame) -> dict[str, torch.Tensor]:
    # Columns that are still lazy on both sides are compared without computing them.
    kept = {
        key
        for key in after.keys() & before.keys()
        if after.column(key) is before.column(key) or after[key] is before[key]
    }
    return {key: after[key] for key in after if key not in kept}


def _cross(
    key: str, found: list[tuple[torch.Tensor, Relation | None]], reducer: Any
) -> torch.Tensor:
    """Combine the results of edge types; with a relation, one counts where this has edges."""
    values = [value for value, _ in found]
    if callable(reducer):
        return reducer(values)  # type: ignore[no-any-return]
    shapes = dict.fromkeys(tuple(value.shape) for value in values)
    if len(shapes) > 1:
        raise InvalidInput(
            f"the results {key!r} of all edge types must have one shape; found {describe(shapes)}"
        )
    if reducer == "stack":
        return torch.stack(values, dim=1)
    if len(values) == 1:
        return values[0]
    together = torch.stack(values)
    if reducer == "mean":
        check_number(reducer, together)
    elif reducer != "sum":
        all_nodes = torch.ones(together.shape[1], dtype=torch.bool, device=together.device)
        counts = torch.stack([r.in_degrees() > 0 if r else all_nodes for _, r in found])
        silent = ~counts & counts.any(0)
        silent = silent.reshape(*silent.shape, *[1] * (together.dim() - 2))
        together.masked_fill_(silent, _neutral(together.dtype, reducer == "min"))
    return _CROSS[reducer](together, 0)  # type: ignore[misc, no-any-return]


def _neutral(dtype: torch.dtype, largest: bool) -> float:
    """Return the largest or the smallest value of a dtype."""
    if dtype == torch.bool:
        return largest
    if dtype.is_floating_point:
        return torch.inf if largest else -torch.inf
    return torch.iinfo(dtype).max if largest else torch.iinfo(dtype).min


def send_and_recv(
    graph: GraphCore,
    edges: Any,
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
    etype: str | EdgeType | None = None,
) -> None:
    """Message passing along some edges; nodes that no message reaches keep their features."""
    name = graph.to_canonical_etype(etype)
    if isinstance(edges, tuple):
        edges = edge_ids(graph, edges[0], edges[1], etype=name)
    eids = read_ids(edges, graph.num_edges(name), "edge", graph.device)
    nodes = torch.unique(graph.relations[name].coo()[1][eids])
    _along(graph, name, eids, nodes, (message_func, reduce_func, apply_node_func))


def pull(
    graph: GraphCore,
    v: Any,
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
    etype: str | EdgeType | None = None,
) -> None:
    """Message passing along the in-edges of some nodes; without in-edges as in ``update_all``."""
    name = graph.to_canonical_etype(etype)
    relation = graph.relations[name]
    nodes = torch.unique(read_ids(v, relation.num_dst, "node", graph.device, distinct=True))
    eids = in_edges(graph, nodes, form="eid", etype=name)
    _along(graph, name, eids, nodes, (message_func, reduce_func, apply_node_func))


def push(
    graph: GraphCore,
    u: Any,
    message_func: Any,
    reduce_func: Any,
    apply_node_func: Any = None,
    etype: str | EdgeType | None = None,
) -> None:
    """Message passing along the out-edges of some nodes."""
    name = graph.to_canonical_etype(etype)
    count = graph.relations[name].num_src
    nodes = torch.unique(read_ids(u, count, "node", graph.device, distinct=True))
    eids = out_edges(graph, nodes, form="eid", etype=name)
    send_and_recv(graph, eids, message_func, reduce_func, apply_node_func, name)


def _along(
    graph: GraphCore,
    etype: EdgeType,
    eids: torch.Tensor,
    nodes: torch.Tensor,
    functions: tuple[Any, Any, Any],
) -> None:
    """Send messages along some edges and write the results of the given destinations."""
    message_func, reduce_func, apply_node_func = functions
    relation = graph.relations[etype]
    src, dst = relation.coo()
    part = graph[etype].local_var()
    part.relations[etype] = Relation(relation.num_src, relation.num_dst, (src[eids], dst[eids]))
    part.edge_frames[etype] = Frame(
        len(eids), graph.edge_frames[etype].rows(eids), graph.device, "edge"
    )
    update_all(part, message_func, reduce_func)
    after, frame = part.dst_frames[etype[2]], graph.dst_frames[etype[2]]
    _write_rows(frame, nodes, {k: v[nodes] for k, v in _written(after, frame).items()})
    if apply_node_func is not None:
        apply_nodes(graph, apply_node_func, nodes, etype[2])
