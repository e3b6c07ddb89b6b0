"""One value per edge from two operands (g-SDDMM).

Each operand belongs to the edge's source ("u"), its destination ("v") or the edge itself ("e").
"""

from __future__ import annotations

import math

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.relation import HasRelation, Relation
from gnnlab.ops import autograd
from gnnlab.ops.checks import check_choice, check_operand, common_dtype, feature_shape, relation_of
from gnnlab.ops.groups import NodeGroups

OPS = ("add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs")
TARGETS = ("u", "v", "e")


def gsddmm(
    g: HasRelation,
    op: str,
    lhs_data: torch.Tensor | None,
    rhs_data: torch.Tensor | None,
    lhs_target: str = "u",
    rhs_target: str = "v",
) -> torch.Tensor:
    """Compute ``lhs op rhs`` on every edge.

    Parameters
    ----------
    g : Graph
        A graph or a block with one edge type.
    op : {"add", "sub", "mul", "div", "dot", "copy_lhs", "copy_rhs"}
        ``dot`` is the inner product over the last dimension, which becomes 1.
    lhs_data, rhs_data : torch.Tensor, optional
        One row per node or edge of its target, None if unused; further dimensions broadcast.
    lhs_target, rhs_target : {"u", "v", "e"}
        Whether the rows of an operand belong to sources, destinations or edges.

    Returns
    -------
    torch.Tensor
        Shape (E, …), in edge-ID order.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 1]))
    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> dgl.ops.gsddmm(g, "dot", x, x)
    tensor([[11.],
            [25.]])
    """
    return sddmm(relation_of(g), op, lhs_data, rhs_data, lhs_target, rhs_target)


def sddmm(
    rel: Relation,
    op: str,
    lhs: torch.Tensor | None,
    rhs: torch.Tensor | None,
    lhs_target: str = "u",
    rhs_target: str = "v",
) -> torch.Tensor:
    """Do what :func:`gsddmm` does, for one relation."""
    check_choice(op, OPS, "operation")
    for target in (lhs_target, rhs_target):
        check_choice(target, TARGETS, "target")
    if op == "copy_lhs":
        return _rows(rel, lhs_target, check_operand(rel, lhs_target, lhs))
    if op == "copy_rhs":
        return _rows(rel, rhs_target, check_operand(rel, rhs_target, rhs))
    left, right = common_dtype(
        op, check_operand(rel, lhs_target, lhs), check_operand(rel, rhs_target, rhs)
    )
    if op == "dot":
        return _dot(rel, left, right, lhs_target, rhs_target)
    left, right, shape = feature_shape(left, right)
    left, right = _rows(rel, lhs_target, left), _rows(rel, rhs_target, right)
    if op == "add" and lhs_target != "e" and tuple(left.shape[1:]) == shape:
        return left.add_(right)  # rows gathered here, which no gradient needs
    return getattr(torch, op)(left, right)  # type: ignore[no-any-return]


def _rows(rel: Relation, target: str, x: torch.Tensor) -> torch.Tensor:
    """Return one row per edge."""
    return x if target == "e" else autograd.gather(NodeGroups(rel, target), x)


def _dot(
    rel: Relation, lhs: torch.Tensor, rhs: torch.Tensor, lhs_target: str, rhs_target: str
) -> torch.Tensor:
    scalar = lhs.dim() == 1 and rhs.dim() == 1
    width = [1 if x.dim() == 1 else x.shape[-1] for x in (lhs, rhs)]
    if width[0] != width[1]:
        raise InvalidInput(
            f"a dot product needs rows of equal last dimension; found shapes "
            f"{tuple(lhs.shape)} and {tuple(rhs.shape)}"
        )
    lhs, rhs, shape = feature_shape(lhs, rhs)
    between_ends = {lhs_target, rhs_target} == {"u", "v"}
    if between_ends and lhs.shape[1:] == rhs.shape[1:] and lhs.is_floating_point() and not scalar:
        heads = math.prod(shape[:-1])
        left, right = (x.reshape(len(x), heads, shape[-1]) for x in (lhs, rhs))
        out = autograd.dot(NodeGroups(rel, lhs_target), left, right)
        return out.reshape(rel.num_edges, *shape[:-1], 1)
    product = _rows(rel, lhs_target, lhs) * _rows(rel, rhs_target, rhs)
    return product if scalar else product.sum(-1, keepdim=True)
