"""Many small graphs as one large graph.

A batch is the disjoint union of its graphs: no message passes from one to another, so layers work
on it unchanged. It stores how many nodes and edges each graph has, for readouts of a row per graph.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch

from gnnlab.errors import InvalidInput, OutOfRange, list_of_graphs
from gnnlab.graph.core import GraphCore, GraphT, refuse_block
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.ids import as_integers
from gnnlab.graph.names import ALL, EdgeType, describe, is_all
from gnnlab.graph.relation import Relation, narrow


def batch(graphs: Iterable[GraphT], ndata: Any = ALL, edata: Any = ALL) -> GraphT:
    """Join graphs into one; its nodes and edges are numbered graph by graph.

    Parameters
    ----------
    graphs : iterable of Graph
        Of the same types, ID dtype and device. Batches may be batched again.
    ndata, edata : list of str or None, optional
        Node and edge features to keep; all by default, none with None. Each graph must have them,
        with rows of the same shape and dtype.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0, 1, 2], [1, 2, 0]))])
    >>> both.edges(), both.batch_num_nodes()
    ((tensor([0, 2, 3, 4]), tensor([1, 3, 4, 2])), tensor([2, 3]))
    """
    parts = list_of_graphs(graphs, "batch")
    if not parts:
        raise InvalidInput("batch() needs at least one graph; found an empty list")
    first = parts[0]
    kind = _kind(first)
    for i, g in enumerate(parts):
        refuse_block(g, "batch")
        if _kind(g) != kind:
            _refuse_unlike(first, g, i)
    of_nodes, of_edges = [g.node_frames() for g in parts], [g.edge_frames for g in parts]
    nodes = {t: _join(of_nodes, t, ndata, f"nodes of type {t!r}") for t in first.ntypes}
    edges = {t: _join(of_edges, t, edata, f"edges of type {t}") for t in first.canonical_etypes}
    relations = {etype: _union([g.relations[etype] for g in parts]) for etype in edges}
    sizes = {ntype: frame.num_rows for ntype, frame in nodes.items()}
    joined = first.derive(relations, sizes, nodes, edges)
    joined._batch = (
        {t: _sizes(parts, of_nodes, t, batch_num_nodes) for t in nodes},
        {t: _sizes(parts, of_edges, t, batch_num_edges) for t in edges},
    )
    return joined


def unbatch(g: GraphT, node_split: Any = None, edge_split: Any = None) -> list[GraphT]:
    """Split a batch into its graphs; features are views of those of the batch.

    Parameters
    ----------
    node_split, edge_split : tensor or dict of tensor by type, optional
        Number of nodes and of edges of each graph, instead of those stored in the batch.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0, 1, 2], [1, 2, 0]))])
    >>> [g.num_edges() for g in dgl.unbatch(both)]
    [1, 3]
    """
    refuse_block(g, "unbatch")
    totals = {t: g.num_nodes(t) for t in g.ntypes}
    node_counts = _counts(g, node_split, totals, g.resolve_ntype, batch_num_nodes, "nodes")
    sizes = {t: r.num_edges for t, r in g.relations.items()}
    edge_counts = _counts(g, edge_split, sizes, g.to_canonical_etype, batch_num_edges, "edges")
    lengths = {len(counts) for counts in (*node_counts.values(), *edge_counts.values())}
    if len(lengths) > 1:
        raise InvalidInput(f"all types must be split into equally many graphs; found {lengths}")
    nodes = {t: _split(g.node_frames()[t], counts) for t, counts in node_counts.items()}
    edges = {t: _split(g.edge_frames[t], counts) for t, counts in edge_counts.items()}
    relations = {
        t: _slices(t, g.relations[t], counts, node_counts[t[0]], node_counts[t[2]])
        for t, counts in edge_counts.items()
    }
    return [
        g.derive(
            {t: parts[i] for t, parts in relations.items()},
            {t: counts[i] for t, counts in node_counts.items()},
            {t: frames[i] for t, frames in nodes.items()},
            {t: frames[i] for t, frames in edges.items()},
        )
        for i in range(lengths.pop() if lengths else 0)
    ]


# ---------------------------------------------------------------------- sizes of the graphs
def batch_size(g: GraphCore) -> int:
    """Number of graphs in the batch; 1 for a graph that is not a batch."""
    if g._batch is None:
        return 1
    return max((len(counts) for side in g._batch for counts in side.values()), default=1)


def batch_num_nodes(g: GraphCore, ntype: str | None = None) -> torch.Tensor:
    """Number of nodes of each graph in the batch, shape (batch size,), in the graph's ID dtype."""
    name = g.resolve_ntype(ntype)
    return _remembered(g, 0, name, g.num_nodes(name))


def batch_num_edges(g: GraphCore, etype: str | EdgeType | None = None) -> torch.Tensor:
    """Number of edges of each graph in the batch, shape (batch size,), in the graph's ID dtype."""
    name = g.to_canonical_etype(etype)
    return _remembered(g, 1, name, g.num_edges(name))


def set_batch_num_nodes(g: GraphCore, val: torch.Tensor | Mapping[str, torch.Tensor]) -> None:
    """Set the number of nodes of each graph, after an operation that dropped it."""
    counts = _read_counts(val, g.resolve_ntype, g.num_nodes, "nodes")
    g._batch = counts, {} if g._batch is None else g._batch[1]


def set_batch_num_edges(g: GraphCore, val: torch.Tensor | Mapping[Any, torch.Tensor]) -> None:
    """Set the number of edges of each graph, after an operation that dropped it."""
    counts = _read_counts(val, g.to_canonical_etype, g.num_edges, "edges")
    g._batch = {} if g._batch is None else g._batch[0], counts


def broadcast_nodes(
    graph: GraphCore, graph_feat: torch.Tensor, *, ntype: str | None = None
) -> torch.Tensor:
    """Repeat the row of each graph for all of its nodes: shape (batch size, ...) to (N, ...).

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> both = dgl.batch([dgl.graph(([0], [1])), dgl.graph(([0], [0]))])
    >>> dgl.broadcast_nodes(both, torch.tensor([5.0, 7.0]))
    tensor([5., 5., 7.])
    """
    return _broadcast(graph_feat, batch_num_nodes(graph, ntype))


def broadcast_edges(
    graph: GraphCore, graph_feat: torch.Tensor, *, etype: str | EdgeType | None = None
) -> torch.Tensor:
    """Repeat the row of each graph for all of its edges: shape (batch size, ...) to (E, ...)."""
    return _broadcast(graph_feat, batch_num_edges(graph, etype))


def _broadcast(feat: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
    feat = as_tensor(feat, "graph_feat")
    if feat.ndim == 0 or len(feat) != len(counts):
        raise InvalidInput(
            f"graph_feat needs one row per graph, {len(counts)}; found shape {tuple(feat.shape)}"
        )
    return torch.repeat_interleave(feat, counts.to(feat.device), dim=0)


def _remembered(g: GraphCore, side: int, name: Any, total: int) -> torch.Tensor:
    counts = None if g._batch is None else g._batch[side].get(name)
    return g.as_ids(torch.tensor([total]) if counts is None else counts).to(g.device)


# --------------------------------------------------------------------------------- joining
def _refuse_unlike(first: GraphCore, g: GraphCore, i: int) -> None:
    for what, of_first, of_this in (
        ("node types", first.ntypes, g.ntypes),
        ("edge types", first.canonical_etypes, g.canonical_etypes),
        ("ID dtype", first.idtype, g.idtype),
        ("device", first.device, g.device),
    ):
        if of_first != of_this:
            raise InvalidInput(
                f"all graphs of a batch must have the same {what}; graph 0 has {of_first}, "
                f"graph {i} has {of_this}"
            )


def _kind(g: GraphCore) -> tuple[Any, ...]:
    return g._ntypes, list(g.relations), g._idtype, g._device


def _sizes(
    parts: Sequence[GraphCore], frames: Sequence[Mapping[Any, Frame]], name: Any, remembered: Any
) -> torch.Tensor:
    """Return the numbers of nodes, or edges, of all graphs, those of batches among the parts."""
    if any(g._batch is not None for g in parts):
        return torch.cat([remembered(g, name) for g in parts])
    first, rows = parts[0], [each[name].num_rows for each in frames]
    return torch.tensor(rows, dtype=first.idtype, device=first.device)


def _join(parts: Sequence[Mapping[Any, Frame]], of: Any, wanted: Any, where: str) -> Frame:
    frames = [each[of] for each in parts]
    rows = sum(frame.num_rows for frame in frames)
    joined = Frame(rows, None, frames[0].device, frames[0].what)
    if wanted is None:
        return joined
    filled = [frame for frame in frames if frame.num_rows] or frames[:1]
    everything = isinstance(wanted, str) and is_all(wanted)
    names = list(filled[0]) if everything else list(wanted)
    expected = set(names)
    for frame in filled:
        found = frame._columns.keys()
        if found == expected if everything else found >= expected:
            continue
        missing = expected - found
        extra = found - expected if everything else set()
        raise InvalidInput(
            f"not all graphs have the features {describe(sorted(missing | extra))} on their "
            f"{where}; list the ones to keep with ndata=[…] and edata=[…], or pass None"
        )
    for name in names:
        columns = [frame[name] for frame in filled]
        kinds = {(column.shape[1:], column.dtype) for column in columns}
        if len(kinds) > 1:
            each = sorted(f"rows of shape {tuple(shape)}, {dtype}" for shape, dtype in kinds)
            raise InvalidInput(
                f"feature {name!r} differs on {where} of the graphs: {' and '.join(each)}"
            )
        joined[name] = torch.cat(columns)
    return joined


def _union(relations: Sequence[Relation]) -> Relation:
    edges = [relation.num_edges for relation in relations]
    ends, totals = [], []
    for side in (0, 1):
        sizes = [r.num_dst if side else r.num_src for r in relations]
        ids = narrow(torch.cat([r.coo()[side] for r in relations]), sum(sizes))
        ends.append(ids + _per_edge(ids, _starts(sizes), edges))
        totals.append(sum(sizes))
    return Relation(totals[0], totals[1], (ends[0], ends[1]))


def _starts(sizes: Iterable[int]) -> list[int]:
    return list(accumulate(sizes, initial=0))[:-1]


def _per_edge(ends: torch.Tensor, values: Sequence[int], edges: Sequence[int]) -> torch.Tensor:
    """Repeat the number of each graph for all of its edges, of which ``ends`` are one end."""
    counts = torch.tensor(edges, device=ends.device)
    return torch.repeat_interleave(ends.new_tensor(values), counts, output_size=len(ends))


# ------------------------------------------------------------------------------- splitting
def _counts(
    g: GraphCore, given: Any, totals: Mapping[Any, int], full_name: Any, remembered: Any, what: str
) -> dict[Any, list[int]]:
    if given is None:
        return {name: remembered(g, name).tolist() for name in totals}
    counts = _read_counts(given, full_name, totals.__getitem__, what)
    if set(counts) != set(totals):
        raise InvalidInput(f"the split must cover all types: {describe(totals)}")
    return {name: counts[name].tolist() for name in totals}


def _read_counts(
    given: Any, full_name: Any, total: Callable[[Any], int], what: str
) -> dict[Any, torch.Tensor]:
    """Read the number of nodes, or edges, of each type per graph, and check their sums."""
    by_type = given if isinstance(given, Mapping) else {full_name(None): given}
    counts = {
        full_name(name): as_integers(value, f"the numbers of {what}").long()
        for name, value in by_type.items()
    }
    for name, each in counts.items():
        if each.ndim != 1 or int(each.sum()) != total(name) or bool((each < 0).any()):
            raise InvalidInput(
                f"the numbers of {what} of type {name!r} must be one per graph and add up to "
                f"{total(name)}; found {each.tolist()}"
            )
    return counts


def _split(frame: Frame, counts: Sequence[int]) -> list[Frame]:
    columns = {name: torch.split(value, list(counts)) for name, value in frame.items()}
    return [
        Frame(count, {name: c[i] for name, c in columns.items()}, frame.device, frame.what)
        for i, count in enumerate(counts)
    ]


def _slices(
    etype: EdgeType,
    relation: Relation,
    edges: Sequence[int],
    num_src: Sequence[int],
    num_dst: Sequence[int],
) -> list[Relation]:
    sides = []
    for end, sizes in zip(relation.coo(), (num_src, num_dst), strict=True):
        local = end - _per_edge(end, _starts(sizes), edges)
        outside = ((local < 0) | (local >= _per_edge(end, sizes, edges))).nonzero().flatten()
        if len(outside):
            i = bisect_right(_starts(edges), int(outside[0])) - 1
            raise OutOfRange(
                f"an edge of type {etype} of graph {i} leaves the graph (node "
                f"{int(local[outside[0]])} of {sizes[i]}); the split of the nodes and that of the "
                "edges do not fit together"
            )
        # Copies: a view would keep, and be stored with, the edges of all graphs.
        sides.append([part.clone() for part in torch.split(local, list(edges))])
    return [
        Relation(*each) for each in zip(num_src, num_dst, zip(*sides, strict=True), strict=True)
    ]
