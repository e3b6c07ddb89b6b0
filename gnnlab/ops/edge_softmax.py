"""Attention weights: softmax over the edges of each node.

References
----------
Veličković et al., "Graph Attention Networks", ICLR 2018, equation 3.
"""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.relation import HasRelation
from gnnlab.ops import primitive
from gnnlab.ops.checks import check_choice, relation_of
from gnnlab.ops.groups import Groups, NodeGroups

__all__ = ["edge_softmax"]

ALL = "__ALL__"


def edge_softmax(
    graph: HasRelation, logits: torch.Tensor, eids: Any = ALL, norm_by: str = "dst"
) -> torch.Tensor:
    """Turn scores of edges into weights that are positive and sum to 1 at each node.

    Parameters
    ----------
    graph : Graph
        A graph or a block with one edge type.
    logits : torch.Tensor
        Shape (E, …), float; or one row for each of ``eids``.
    eids : IDs, optional
        Use only these edges, each at most once.
    norm_by : {"dst", "src"}
        Normalize over the in-edges of each destination, or over the out-edges of each source.

    Returns
    -------
    torch.Tensor
        Shape and dtype of ``logits``.

    Raises
    ------
    InvalidInput
        For a wrong number of rows, logits that are not floating point, or an unknown ``norm_by``.
    OutOfRange
        For an edge that does not exist.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1, 2], [2, 2, 0]))
    >>> dgl.ops.edge_softmax(g, torch.tensor([1.0, 1.0, 7.0]))
    tensor([0.5000, 0.5000, 1.0000])
    """
    check_choice(norm_by, ("dst", "src"), "norm_by")
    groups: Groups = NodeGroups(relation_of(graph), "v" if norm_by == "dst" else "u")
    if not isinstance(logits, torch.Tensor):
        raise InvalidInput(f"logits are a tensor; found {type(logits).__name__}: torch.tensor(x)")
    if not isinstance(eids, str):
        groups = _subset(groups, torch.as_tensor(eids, device=groups.index.device))
    if not logits.is_floating_point() or logits.dim() == 0 or len(logits) != groups.size:
        raise InvalidInput(
            f"found logits of shape {tuple(logits.shape)} and {logits.dtype}; expected "
            f"{groups.size} rows of floating point numbers, one per edge"
        )
    flat = logits.flatten(1) if logits.dim() > 1 else logits.unsqueeze(1)
    return primitive.softmax(groups, flat).reshape(logits.shape)


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
