"""Messages and their reduction in one step (g-SpMM).

The message of an edge is ``u op e``, from its source's row and its own; each destination reduces
the messages of its in-edges. The common cases do not materialize messages: sums and means of
copies, of sums and differences, and of products with one weight per edge (and head); on the CPU
also of products of whole rows. Others, such as maxima of combined operands, store a row per edge.
"""

from __future__ import annotations

import math

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.relation import HasRelation, Relation
from gnnlab.ops import autograd
from gnnlab.ops.checks import check_choice, check_operand, common_dtype, feature_shape, relation_of
from gnnlab.ops.groups import NodeGroups

OPS = ("copy_lhs", "copy_rhs", "add", "sub", "mul", "div")
REDUCERS = ("sum", "mean", "max", "min")


def gspmm(
    g: HasRelation,
    op: str,
    reduce_op: str,
    lhs_data: torch.Tensor | None,
    rhs_data: torch.Tensor | None,
) -> torch.Tensor:
    """Compute ``lhs op rhs`` on every edge and reduce it at every destination.

    Parameters
    ----------
    g : Graph
        A graph or a block with one edge type.
    op : {"copy_lhs", "copy_rhs", "add", "sub", "mul", "div"}
    reduce_op : {"sum", "mean", "max", "min"}
    lhs_data : torch.Tensor, optional
        Rows of the sources, shape (number of sources, …); None for ``copy_rhs``.
    rhs_data : torch.Tensor, optional
        Rows of the edges by ID, shape (E, …); None for ``copy_lhs``. Further dimensions broadcast.

    Returns
    -------
    torch.Tensor
        Shape (number of destinations, …); zeros for nodes without in-edges.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [2, 2]))
    >>> dgl.ops.gspmm(g, "mul", "sum", torch.tensor([1.0, 2.0, 3.0]), torch.tensor([10.0, 20.0]))
    tensor([ 0.,  0., 50.])
    """
    return spmm(relation_of(g), op, reduce_op, lhs_data, rhs_data)


def spmm(
    rel: Relation, op: str, reduce: str, ufeat: torch.Tensor | None, efeat: torch.Tensor | None
) -> torch.Tensor:
    """Do what :func:`gspmm` does, for one relation."""
    check_choice(op, OPS, "operation")
    check_choice(reduce, REDUCERS, "reduce operation")
    if op == "copy_lhs":
        return _reduce(rel, reduce, check_operand(rel, "u", ufeat), by_source=True)
    edge = check_operand(rel, "e", efeat)
    if op == "copy_rhs":
        return _reduce(rel, reduce, edge)
    source, edge = common_dtype(op, check_operand(rel, "u", ufeat), edge)
    source, edge, shape = feature_shape(source, edge)
    if op == "sub":
        op, edge = "add", -edge
    elif op == "div":
        op, edge = "mul", edge.reciprocal()
    if reduce in ("sum", "mean"):
        if op == "add":  # Σ (u + e) = Σ u + Σ e
            return _reduce(rel, reduce, source, by_source=True) + _reduce(rel, reduce, edge)
        heads = _num_heads(edge, shape)
        if heads is not None:
            return _weighted(rel, reduce, source, edge, shape, heads)
    rows = autograd.gather(NodeGroups(rel, "u"), source)
    return _reduce(rel, reduce, rows + edge if op == "add" else rows * edge)


def _reduce(rel: Relation, reduce: str, x: torch.Tensor, by_source: bool = False) -> torch.Tensor:
    """Reduce rows of sources (or of edges) at each destination."""
    flat = x.flatten(1) if x.dim() > 1 else x.unsqueeze(1)
    groups = NodeGroups(rel, "v")
    check_number(reduce, x)
    if reduce in ("max", "min"):
        out = autograd.extreme(groups, flat, by_source, reduce == "min")
    elif by_source:
        out = autograd.weighted_sum(groups, flat, norm="v" if reduce == "mean" else None)
    else:
        out = autograd.row_sum(groups, flat, reduce == "mean")
    return out if out.dim() == x.dim() else out.reshape(rel.num_dst, *x.shape[1:])


def _weighted(
    rel: Relation,
    reduce: str,
    source: torch.Tensor,
    edge: torch.Tensor,
    shape: tuple[int, ...],
    heads: int,
) -> torch.Tensor:
    """Sum rows of sources, each times one weight per edge (and head)."""
    check_number(reduce, source)
    width = math.prod(shape) // heads if heads else 0
    source = source.expand(rel.num_src, *shape).reshape(rel.num_src, heads, width)
    weights = edge.reshape(rel.num_edges, heads)
    norm = "v" if reduce == "mean" else None
    out = autograd.weighted_sum(NodeGroups(rel, "v"), source, weights, norm)
    return out.reshape(rel.num_dst, *shape)


# torch has no sums of the large unsigned integers.
_NOT_ADDED = (torch.bool, torch.uint16, torch.uint32, torch.uint64)


def _num_heads(edge: torch.Tensor, shape: tuple[int, ...]) -> int | None:
    """Return into how many heads the edge's values divide a row of ``shape``; None if they do not.

    With (E, 1) or (E, 1, 1), a row (H, D) is one head; with (E, H, 1) it is H heads of size D. With
    a value for each element of a row, each is a head, if there are kernels for that.
    """
    own = tuple(edge.shape[1:])
    kept = len(own)
    while kept and own[kept - 1] == 1:
        kept -= 1
    if own[:kept] != shape[:kept]:
        return None
    heads = math.prod(own[:kept])
    compiled = edge.device.type == "cpu" and edge.is_floating_point()
    return heads if heads == 1 or compiled or math.prod(shape[kept:]) > 1 else None


def check_number(reduce: str, x: torch.Tensor) -> None:
    """Raise InvalidInput for dtypes whose sum, mean or largest is not defined."""
    wrong = x.dtype in _NOT_ADDED or (reduce == "mean" and not x.is_floating_point())
    if wrong or (reduce != "sum" and x.is_complex()):
        raise InvalidInput(
            f"found rows of {x.dtype} values, whose {reduce} is not defined here; "
            "convert them first, for instance with .float()"
        )
