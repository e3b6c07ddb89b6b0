"""Attention weights: softmax over the edges of each node.

References
----------
Veličković et al., "Graph Attention Networks", ICLR 2018, equation 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, overload

import torch

from gnnlab.errors import InvalidInput, OutOfRange, check_graph
from gnnlab.graph.relation import HasRelation, Relation
from gnnlab.ops import autograd
from gnnlab.ops.checks import check_choice, relation_of
from gnnlab.ops.groups import Groups, NodeGroups

ALL = "__ALL__"
EdgeType = tuple[str, str, str]


@overload
def edge_softmax(
    graph: HasRelation, logits: torch.Tensor, eids: Any = ALL, norm_by: str = "dst"
) -> torch.Tensor: ...
@overload
def edge_softmax(
    graph: HasRelation, logits: Mapping[Any, torch.Tensor], eids: Any = ALL, norm_by: str = "dst"
) -> dict[EdgeType, torch.Tensor]: ...
def edge_softmax(
    graph: HasRelation, logits: Any, eids: Any = ALL, norm_by: str = "dst"
) -> torch.Tensor | dict[EdgeType, torch.Tensor]:
    """Turn scores of edges into weights that are positive and sum to 1 at each node.

    Parameters
    ----------
    graph : Graph
        A graph or a block. With a tensor of logits, it has one edge type.
    logits : torch.Tensor, or dict of edge type to torch.Tensor
        Shape (E, …), float; or one row for each of ``eids``. In a dict, types share one softmax.
    eids : IDs, or dict of edge type to IDs, optional
        Use only these edges, each at most once.
    norm_by : {"dst", "src"}
        Normalize over the in-edges of each destination, or over the out-edges of each source.

    Returns
    -------
    torch.Tensor, or dict of (str, str, str) to torch.Tensor
        Shape and dtype of ``logits``.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    >>> dgl.ops.edge_softmax(g, torch.tensor([1.0, 1.0, 7.0]))
    tensor([0.5000, 0.5000, 1.0000])
    >>> g = dgl.heterograph({("a", "r", "b"): ([0], [0]), ("c", "s", "b"): ([0], [0])})
    >>> dgl.ops.edge_softmax(g, {"r": torch.zeros(1), "s": torch.zeros(1)})
    {('a', 'r', 'b'): tensor([0.5000]), ('c', 's', 'b'): tensor([0.5000])}
    """
    check_choice(norm_by, ("dst", "src"), "norm_by")
    if isinstance(logits, Mapping):
        return _of_types(graph, logits, eids, norm_by)
    relation = relation_of(graph, "edge_softmax of a tensor (not a dict by edge type)")
    return _softmax(_groups(relation, logits, eids, norm_by), logits)


def _of_types(
    graph: Any, logits: Mapping[Any, Any], eids: Any, norm_by: str
) -> dict[EdgeType, torch.Tensor]:
    """Normalize over the edges of all types that a node has, together."""
    check_graph(graph, "edge_softmax")
    if not isinstance(eids, str | Mapping):
        raise InvalidInput("where logits are a dict, eids are a dict by edge type, too")
    given = {} if isinstance(eids, str) else eids
    some = {graph.to_canonical_etype(etype): ids for etype, ids in given.items()}
    rows = {graph.to_canonical_etype(etype): x for etype, x in logits.items()}
    groups = {
        etype: _groups(graph.relation(etype), x, some.get(etype, ALL), norm_by)
        for etype, x in rows.items()
    }
    found: dict[EdgeType, torch.Tensor] = {}
    end = 2 if norm_by == "dst" else 0
    for ntype in dict.fromkeys(etype[end] for etype in rows):
        etypes = [etype for etype in rows if etype[end] == ntype]
        kinds = {(tuple(rows[etype].shape[1:]), rows[etype].dtype): etype for etype in etypes}
        if len(kinds) > 1:
            raise InvalidInput(
                f"logits at nodes {ntype!r} must have rows of one shape and dtype; found {kinds}"
            )
        parts = [groups[etype] for etype in etypes]
        sizes = [part.size for part in parts]
        index = torch.cat([part.index for part in parts])
        together = Groups(parts[0].count, sum(sizes), index=index)
        weights = _softmax(together, torch.cat([rows[etype] for etype in etypes]))
        found.update(zip(etypes, weights.split(sizes), strict=True))
    return {etype: found[etype] for etype in rows}


def _groups(relation: Relation, logits: Any, eids: Any, norm_by: str) -> Groups:
    """Return the groups of the edges that have logits, which must be a row for each."""
    groups: Groups = NodeGroups(relation, "v" if norm_by == "dst" else "u")
    if not isinstance(logits, torch.Tensor):
        raise InvalidInput(
            f"logits are a tensor, or a dict of tensors by edge type; found "
            f"{type(logits).__name__}: torch.tensor(x)"
        )
    if not isinstance(eids, str):
        groups = _subset(groups, torch.as_tensor(eids, device=groups.index.device))
    if not logits.is_floating_point() or logits.dim() == 0 or len(logits) != groups.size:
        raise InvalidInput(
            f"found logits of shape {tuple(logits.shape)} and {logits.dtype}; expected "
            f"{groups.size} rows of floating point numbers, one per edge"
        )
    return groups


def _softmax(groups: Groups, logits: torch.Tensor) -> torch.Tensor:
    flat = logits.flatten(1) if logits.dim() > 1 else logits.unsqueeze(1)
    return autograd.softmax(groups, flat).reshape(logits.shape)


def _subset(groups: Groups, eids: torch.Tensor) -> Groups:
    if eids.dtype == torch.bool:
        eids = eids.nonzero().flatten()
    eids = eids.long()
    here = eids.device.type == "cpu" and len(eids) > 0  # a GPU would wait for each look
    if here and not 0 <= int(eids.min()) <= int(eids.max()) < groups.size:
        raise OutOfRange(
            f"found edge IDs from {int(eids.min())} to {int(eids.max())}; the graph has "
            f"{groups.size} edges, numbered from 0"
        )
    return Groups(groups.count, len(eids), index=groups.index[eids])
