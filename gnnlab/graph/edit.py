"""Adding and removing nodes and edges.

Each function returns a new graph. The methods of the same names, as in DGL, change the graph in
place. In both cases all arrays are copied, so add many edges in one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gnnlab.errors import InvalidInput, NotFound, OutOfRange, whole_number
from gnnlab.graph.core import GraphCore, GraphT, check_counts, refuse_block
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.ids import pair_up, read_ids
from gnnlab.graph.names import EdgeType, complete_etype, complete_ntype, describe
from gnnlab.graph.relation import check_ids
from gnnlab.graph.subgraph import keep_edges, node_subgraph

Features = Mapping[str, Any]


def add_nodes(
    g: GraphT, num: int, data: Features | None = None, ntype: str | None = None
) -> GraphT:
    """Add nodes after those that exist.

    Parameters
    ----------
    num : int
        Number of new nodes.
    data : dict, optional
        Features of the new nodes, ``num`` rows each. Features that are not given, and those that
        the old nodes lack, are 0, or what :meth:`Graph.set_n_initializer` says.
    ntype : str, optional
        Their type, where there are several.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.add_nodes(dgl.graph(([0], [1])), 3).num_nodes()
    5
    """
    refuse_block(g, "add_nodes")
    num = whole_number(num, "the number of new nodes")
    return _grow(g, {g.resolve_ntype(ntype): (num, data or {})})


def add_edges(
    g: GraphT, u: Any, v: Any, data: Features | None = None, etype: str | EdgeType | None = None
) -> GraphT:
    """Add edges after those that exist; nodes that do not exist yet are added, too.

    Parameters
    ----------
    u, v : int, sequence of int or tensor
        Sources and destinations; one of them may be single.
    data : dict, optional
        Features of the new edges, one row for each. Features that are not given, and those that
        the old edges lack, are 0, or what :meth:`Graph.set_e_initializer` says.
    etype : str or tuple, optional
        Their type, where there are several.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.add_edges(dgl.graph(([0], [1])), [1, 2], 0)
    >>> g.edges(), g.num_nodes()
    ((tensor([0, 1, 2]), tensor([1, 0, 0])), 3)
    """
    refuse_block(g, "add_edges")
    name = g.to_canonical_etype(etype)
    src, dst = _ends(g, u, v)
    missing: dict[str, tuple[int, Features]] = {}
    for ntype, ids in ((name[0], src), (name[2], dst)):
        count = int(ids.max()) + 1 - g.num_nodes(ntype) if len(ids) else 0
        if count > missing.get(ntype, (0,))[0]:
            missing[ntype] = count, {}
    return _grow(g, missing, {name: (src, dst, data or {})})


def append(
    g: GraphT, nodes: Any = None, edges: Any = None, *, fill: Mapping[Any, Any] | None = None
) -> GraphT:
    """Add nodes, and edges between nodes that then exist, with all of their features.

    Unlike :func:`add_nodes` and :func:`add_edges`, which write 0 as DGL does, this never makes up a
    feature, and never a node.

    Parameters
    ----------
    nodes : dict, optional
        Node type → features of the new nodes, or how many there are if there are no features. On a
        graph of one type, features or number without the type.
    edges : dict, optional
        Edge type → (sources, destinations) or (sources, destinations, features); IDs of new nodes
        follow those that exist. On a graph of one type, such a tuple.
    fill : dict, optional
        Feature, or (type, feature) → value in new rows where it is not given. Features for which
        :meth:`Graph.set_n_initializer` has set a function need none.

    Raises
    ------
    InvalidInput
        A feature is not given, or is one that the graph lacks.
    OutOfRange
        An edge ends at a node that does not exist.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0], [1]))
    >>> g.ndata["x"], g.ndata["y"] = torch.ones(2), torch.tensor([0, 1])
    >>> more = dgl.append(g, {"x": [5.0]}, ([2], [0]), fill={"y": -1})
    >>> more.edges(), more.ndata["x"], more.ndata["y"]
    ((tensor([0, 2]), tensor([1, 0])), tensor([1., 1., 5.]), tensor([ 0,  1, -1]))
    """
    refuse_block(g, "append")
    frames = g.node_frames(), g.edge_frames
    sizes = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    new_nodes, new_edges = read_new_rows(*frames, sizes, nodes, edges, fill or {})
    return _grow(g, new_nodes, new_edges)


def read_new_rows(
    node_frames: Mapping[str, Frame],
    edge_frames: Mapping[EdgeType, Frame],
    sizes: Mapping[str, int],
    nodes: Any,
    edges: Any,
    fill: Mapping[Any, Any],
) -> tuple[dict[str, tuple[int, Features]], dict[EdgeType, tuple[Any, Any, Features]]]:
    """Read the arguments of :func:`append`: sizes, ends (int64) and rows of all features by type.

    Frames (only dtypes and shapes of their rows are read) and ``sizes`` are those that exist.
    """
    nodes, edges = nodes or {}, {} if edges is None else edges
    if not isinstance(nodes, Mapping) or not all(
        isinstance(each, Mapping | int) for each in nodes.values()
    ):
        nodes = {None: nodes}
    if not isinstance(edges, Mapping):
        edges = {None: edges}
    found_nodes: dict[str, tuple[int, Features]] = {}
    found_edges: dict[EdgeType, tuple[Any, Any, Features]] = {}
    for given, data in nodes.items():
        ntype, rows = complete_ntype(given, node_frames), {} if isinstance(data, int) else data
        rows = _tensors(rows, ntype)
        most = max((each.shape[:1].numel() for each in rows.values()), default=0)
        count = data if isinstance(data, int) else most
        count = whole_number(count, f"the number of new nodes of type {ntype!r}")
        found_nodes[ntype] = count, _complete(node_frames[ntype], count, rows, fill, ntype)
    for name, new in edges.items():
        if not isinstance(new, tuple) or not 2 <= len(new) <= 3:
            raise InvalidInput(
                f"new edges of type {name!r}: expected (sources, destinations) or (sources, "
                f"destinations, features); found {type(new).__name__}"
            )
        etype = complete_etype(name, edge_frames)
        device = edge_frames[etype].device  # None for any
        ends = pair_up(*(read_ids(ids, 0, "node", device, check=False).long() for ids in new[:2]))
        for ids, ntype in zip(ends, etype[::2], strict=True):
            check_ids(ids, sizes[ntype] + found_nodes.get(ntype, (0,))[0], f"{ntype!r} node")
        data = _complete(
            edge_frames[etype], len(ends[0]), _tensors((*new, {})[2], etype), fill, etype
        )
        found_edges[etype] = ends[0], ends[1], data
    known = {name for frame in (*node_frames.values(), *edge_frames.values()) for name in frame}
    for key in fill:
        if (key[1] if isinstance(key, tuple) else key) not in known:
            raise NotFound(f"fill names feature {key!r}; there are {describe(known)}")
    return found_nodes, found_edges


def _tensors(data: Any, kind: Any) -> dict[str, torch.Tensor]:
    if not isinstance(data, Mapping):
        raise InvalidInput(
            f"new rows of {kind!r}: expected their features in a dictionary, or only the number of "
            f"nodes; found {type(data).__name__}"
        )
    return {name: as_tensor(value, f"feature {name!r}") for name, value in data.items()}


def _complete(
    frame: Frame, count: int, given: dict[str, torch.Tensor], fill: Mapping[Any, Any], kind: Any
) -> dict[str, torch.Tensor]:
    """Return ``count`` rows of each column of the frame, or raise an error that names it."""
    for name in given:
        if name not in frame:
            raise InvalidInput(
                f"new {frame.what}s of {kind!r} have a feature {name!r} that those of the graph "
                f"lack, which has {describe(frame)}; set it there first"
            )
    rows = dict(given)
    for name in frame if count else ():
        like = frame[name]
        if name in rows:
            continue
        if (kind, name) not in fill and name not in fill:
            if frame.initializers.keys() & {name, None}:
                continue
            raise InvalidInput(
                f"new {frame.what}s of {kind!r} lack feature {name!r}, {like.dtype}; give it, or "
                f"say what the {count:,} new rows hold: fill={{{name!r}: value}}"
            )
        value = as_tensor(fill.get((kind, name), fill.get(name)), f"fill of {name!r}")
        cast = value.to(like)
        exact = like.is_floating_point() or bool((cast.to(value) == value).all())
        if not exact or value.shape not in ((), like.shape[1:]):
            raise InvalidInput(
                f"fill of {name!r}, {value.dtype} of shape {tuple(value.shape)}, does not fit a "
                f"row of {kind!r}, {like.dtype} of shape {tuple(like.shape[1:])}"
            )
        rows[name] = cast.expand(count, *like.shape[1:])
    return rows


def remove_nodes(g: GraphT, nids: Any, ntype: str | None = None, store_ids: bool = False) -> GraphT:
    """Remove nodes and all their edges; the others are renumbered and keep their order.

    Parameters
    ----------
    nids : IDs or boolean mask
    ntype : str, optional
        Their type, where there are several.
    store_ids : bool
        Keep the old IDs as ``ndata[dgl.NID]`` and ``edata[dgl.EID]``, for all types.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.remove_nodes(dgl.graph(([0, 1, 2], [1, 2, 3])), [1]).edges()
    (tensor([1]), tensor([2]))
    """
    refuse_block(g, "remove_nodes")
    name = g.resolve_ntype(ntype)
    kept: dict[str, Any] = {each: torch.arange(g.num_nodes(each)) for each in g.ntypes}
    kept[name] = _others(nids, g.num_nodes(name), "node", g.device)
    return node_subgraph(g, kept, store_ids=store_ids)


def remove_edges(
    g: GraphT, eids: Any, etype: str | EdgeType | None = None, store_ids: bool = False
) -> GraphT:
    """Remove edges; the others are renumbered and keep their order, all nodes stay.

    Parameters
    ----------
    eids : IDs or boolean mask
    etype : str or tuple, optional
        Their type, where there are several.
    store_ids : bool
        Keep the old IDs as ``edata[dgl.EID]``, for all types.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.remove_edges(dgl.graph(([0, 1, 2], [1, 2, 3])), [0]).edges()
    (tensor([1, 2]), tensor([2, 3]))
    """
    refuse_block(g, "remove_edges")
    name = g.to_canonical_etype(etype)
    kept = {name: _others(eids, g.num_edges(name), "edge", g.device)}
    if store_ids:
        for other, relation in g.relations.items():
            kept.setdefault(other, torch.arange(relation.num_edges, device=g.device))
    return keep_edges(g, kept, None, store_ids)


def in_place(change: Callable[..., GraphCore]) -> Callable[..., None]:
    """Make an in-place method of a function that returns a changed graph."""

    @functools.wraps(change)
    def method(self: GraphCore, *args: Any, **kwargs: Any) -> None:
        changed = change(self, *args, **kwargs)
        self.relations, self.edge_frames = changed.relations, changed.edge_frames
        self.src_frames, self.dst_frames = changed.src_frames, changed.dst_frames
        self._batch = None

    method.__doc__ = f"Change this graph as :func:`{change.__name__}` does, and return None."
    return method


def _ends(g: GraphCore, u: Any, v: Any) -> tuple[torch.Tensor, torch.Tensor]:
    src, dst = (read_ids(ids, 0, "node", g.device, check=False).long() for ids in (u, v))
    src, dst = pair_up(src, dst)
    lowest = min((int(ids.min()) for ids in (src, dst) if len(ids)), default=0)
    if lowest < 0:
        raise OutOfRange(f"node {lowest} does not exist: IDs must not be negative")
    return src, dst


def _others(given: Any, bound: int, what: str, device: torch.device) -> torch.Tensor:
    """IDs that are not among the given ones, ascending."""
    kept = torch.ones(bound, dtype=torch.bool, device=device)
    kept[read_ids(given, bound, what, device, distinct=True).long()] = False
    return kept.nonzero().flatten()


def _grow(
    g: GraphT,
    nodes: Mapping[str, tuple[int, Features]],
    edges: Mapping[EdgeType, Any] | None = None,
) -> GraphT:
    """Add nodes, (how many, features) by type, and edges, (sources, destinations, features)."""
    counts = (g.num_nodes(ntype) + count for ntype, (count, _) in nodes.items())
    check_counts(counts, g.idtype, "nodes")  # before rows of features are made
    frames = {
        name: extend(frame, *nodes[name]) if name in nodes else frame.copy()
        for name, frame in g.node_frames().items()
    }
    sizes = {name: frame.num_rows for name, frame in frames.items()}
    edge_frames = {etype: frame.copy() for etype, frame in g.edge_frames.items()}
    relations = dict(g.relations)
    for etype, old in g.relations.items():
        new = (edges or {}).get(etype)
        none = torch.empty(0, dtype=torch.int64, device=g.device)
        if new or (old.num_src, old.num_dst) != (sizes[etype[0]], sizes[etype[2]]):
            src, dst, data = new or (none, none, {})
            relations[etype] = old.append(sizes[etype[0]], sizes[etype[2]], src, dst)
            edge_frames[etype] = extend(g.edge_frames[etype], len(src), data)
    return g.derive(relations, sizes, frames, edge_frames)


def extend(frame: Frame, count: int, data: Features) -> Frame:
    """Return the frame with ``count`` more rows, initial ones where ``data`` has none."""
    given = {name: as_tensor(value, f"feature {name!r}") for name, value in data.items()}
    for name, value in given.items():
        if value.ndim == 0 or len(value) != count:
            raise InvalidInput(
                f"new {frame.what} feature {name!r} has shape {tuple(value.shape)}; expected "
                f"{count} rows, one for each new {frame.what}"
            )
    columns = {}
    added = slice(frame.num_rows, frame.num_rows + count)
    for name in dict.fromkeys([*frame, *given]):
        like = frame[name] if name in frame else given[name]
        old = like if name in frame else frame.initial(name, like)
        new = given[name] if name in given else frame.initial(name, like, added)
        if old.shape[1:] != new.shape[1:]:
            raise InvalidInput(
                f"new {frame.what} feature {name!r} has rows of shape {tuple(new.shape[1:])}; "
                f"those that exist have {tuple(old.shape[1:])}"
            )
        integral = new.dtype != old.dtype and not old.is_floating_point()
        if not torch.can_cast(new.dtype, old.dtype) or (
            integral and not torch.equal(new.to(old.dtype).to(new.dtype), new)
        ):
            raise InvalidInput(
                f"new {frame.what} feature {name!r} is {new.dtype}; those that exist are "
                f"{old.dtype}, and converting would lose digits"
            )
        columns[name] = torch.cat([old, new.to(old)])
    return Frame(added.stop, columns, frame.device, frame.what, frame.initializers)
