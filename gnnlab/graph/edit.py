"""Adding and removing nodes and edges.

Each function returns a new graph. The methods of the same names, as in DGL, change the graph in
place. In both cases all arrays are written again, so add many edges in one call.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from gnnlab.errors import InvalidInput, OutOfRange, whole_number
from gnnlab.graph.core import GraphCore, GraphT, check_counts, copied_node_frames, refuse_block
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.ids import pair_up, read_ids
from gnnlab.graph.names import EdgeType
from gnnlab.graph.relation import Relation, narrow
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
    g: GraphT,
    u: Any,
    v: Any,
    data: Features | None = None,
    etype: str | EdgeType | None = None,
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
    g = _grow(g, missing) if missing else g
    old = g.relations[name]
    old_src, old_dst = old.coo()
    src = torch.cat([old_src, narrow(src, old.num_src)])
    dst = torch.cat([old_dst, narrow(dst, old.num_dst)])
    relation = Relation(old.num_src, old.num_dst, (src, dst))
    frame = _extend(g.edge_frames[name], len(dst) - len(old_dst), data or {})
    frames = {etype: each.copy() for etype, each in g.edge_frames.items()} | {name: frame}
    return g.derive({**g.relations, name: relation}, None, copied_node_frames(g), frames)


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


def _grow(g: GraphT, extra: Mapping[str, tuple[int, Features]]) -> GraphT:
    """Add nodes of some types: {type: (how many, features)}."""
    counts = (g.num_nodes(ntype) + count for ntype, (count, _) in extra.items())
    check_counts(counts, g.idtype, "nodes")  # before rows of features are made
    frames = {
        name: _extend(frame, *extra[name]) if name in extra else frame.copy()
        for name, frame in g.node_frames().items()
    }
    sizes = {name: frame.num_rows for name, frame in frames.items()}
    relations = {}
    for etype, relation in g.relations.items():
        num_src, num_dst = sizes[etype[0]], sizes[etype[2]]
        src, dst = relation.coo()
        ends = narrow(src, num_src), narrow(dst, num_dst)
        relations[etype] = Relation(num_src, num_dst, ends)
    edge_frames = {etype: frame.copy() for etype, frame in g.edge_frames.items()}
    return g.derive(relations, sizes, frames, edge_frames)


def _extend(frame: Frame, count: int, data: Features) -> Frame:
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
        if not torch.can_cast(new.dtype, old.dtype):
            raise InvalidInput(
                f"new {frame.what} feature {name!r} is {new.dtype}; those that exist are "
                f"{old.dtype}, and converting would lose digits"
            )
        columns[name] = torch.cat([old, new.to(old)])
    return Frame(added.stop, columns, frame.device, frame.what, frame.initializers)
