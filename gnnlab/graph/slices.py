"""``g[:, "plays", "game"]``: all edges that fit, with the types that a slice stands for as one."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import torch

from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.core import GraphCore, GraphT
from gnnlab.graph.frame import Frame
from gnnlab.graph.homogeneous import stacked
from gnnlab.graph.names import EID, ETYPE, NID, NTYPE, EdgeType, describe
from gnnlab.graph.relation import Relation


def slice_of_types(graph: GraphT, key: tuple[Any, ...]) -> GraphT:
    """Return the graph of one edge type that holds the edges of all types that fit.

    ``key`` is source type, relation and destination type, of which ``:`` stands for any. If one
    type fits, the result is ``graph[etype]``. Otherwise types are named ``"a+b"``, and nodes and
    edges have their old IDs and type IDs in ``dgl.NID``, ``dgl.EID``, ``dgl.NTYPE``, ``dgl.ETYPE``.
    Features that all types have are kept.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.heterograph({("a", "r", "b"): [(0, 0), (1, 0)], ("a", "s", "c"): [(1, 1)]})
    >>> part = g["a", :, :]
    >>> part.canonical_etypes, part.edges()
    ([('a', 'r+s', 'b+c')], (tensor([0, 1, 1]), tensor([0, 0, 2])))
    """
    if len(key) != 3 or any(part != slice(None) for part in key if isinstance(part, slice)):
        raise InvalidInput(
            f"g[…] takes an edge type, or g[source type, relation, destination type] with `:` for "
            f"any of them; found {key!r}"
        )
    fitting = [
        etype
        for etype in graph.canonical_etypes
        if all(part == slice(None) or part == name for part, name in zip(key, etype, strict=True))
    ]
    if not fitting:
        raise NotFound(f"no edge type fits {key!r}; the graph has {describe(graph.relations)}")
    if len(fitting) == 1:
        return graph[fitting[0]]
    sources, names, targets = (sorted(set(part)) for part in zip(*fitting, strict=True))
    is_same = bool(set(sources) & set(targets))
    if is_same:
        sources = targets = sorted({*sources, *targets})
    first = {**_offsets(graph, sources), **_offsets(graph, targets)}
    ends: list[list[torch.Tensor]] = [[], []]
    for etype in fitting:
        src, dst = graph.relations[etype].coo()
        ends[0].append(src.long() + first[etype[0]])
        ends[1].append(dst.long() + first[etype[2]])
    frames: dict[str, Frame] = {}
    for ntypes in (sources, targets):
        each = {ntype: graph.node_frames()[ntype] for ntype in ntypes}
        kinds = [graph.get_ntype_id(ntype) for ntype in ntypes]
        frames["+".join(ntypes)] = _of_all(graph, each, NID, NTYPE, kinds)
    sizes = {name: frame.num_rows for name, frame in frames.items()}
    together: EdgeType = ("+".join(sources), "+".join(names), "+".join(targets))
    relation = Relation(
        sizes[together[0]], sizes[together[2]], (torch.cat(ends[0]), torch.cat(ends[1]))
    )
    of_edges = {etype: graph.edge_frames[etype] for etype in fitting}
    kinds = [graph.get_etype_id(etype) for etype in fitting]
    edges = _of_all(graph, of_edges, EID, ETYPE, kinds)
    return graph.derive({together: relation}, sizes, frames, {together: edges})


def _offsets(graph: GraphCore, ntypes: list[str]) -> dict[str, int]:
    counts = map(graph.num_nodes, ntypes)
    return dict(zip(ntypes, accumulate(counts, initial=0), strict=False))


def _of_all(
    g: GraphCore, frames: dict[Any, Frame], own_id: str, type_id: str, kinds: list[int]
) -> Frame:
    """Stack the features that all types have."""
    first, *others = frames.values()
    names = [name for name in first if all(name in frame for frame in others)]
    made = stacked(g, frames, names, own_id, type_id, kinds)
    made[type_id] = g.as_ids(made[type_id])
    return made
