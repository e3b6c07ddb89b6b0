"""Named operators: ``u_mul_e_sum``, ``copy_u_mean``, ``u_dot_v``, …

``u`` is the source of an edge, ``v`` its destination, ``e`` the edge itself. An operator whose name
ends in a reducer returns one row per destination; the others return one row per edge.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import torch

from gnnlab.graph.relation import HasRelation
from gnnlab.ops.sddmm import gsddmm
from gnnlab.ops.spmm import REDUCERS, gspmm

_SYMBOL = {"add": "+", "sub": "−", "mul": "·", "div": "/", "dot": "dot"}
_ROWS = {"u": "source", "v": "destination", "e": "edge"}


def _binary_reduced(op: str, reduce: str) -> Callable[..., torch.Tensor]:
    def function(g: HasRelation, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return gspmm(g, op, reduce, x, y)

    return _document(
        function,
        f"u_{op}_e_{reduce}",
        f"At each destination, the {reduce} of x {_SYMBOL[op]} y over its in-edges.",
        {"x": "source", "y": "edge"},
        "destination",
    )


def _copy_reduced(target: str, reduce: str) -> Callable[..., torch.Tensor]:
    def function(g: HasRelation, x: torch.Tensor) -> torch.Tensor:
        if target == "u":
            return gspmm(g, "copy_lhs", reduce, x, None)
        return gspmm(g, "copy_rhs", reduce, None, x)

    of = "sources" if target == "u" else "in-edges"
    summary = f"At each destination, the {reduce} of the rows of its {of}."
    return _document(
        function, f"copy_{target}_{reduce}", summary, {"x": _ROWS[target]}, "destination"
    )


def _binary(lhs: str, op: str, rhs: str) -> Callable[..., torch.Tensor]:
    def function(g: HasRelation, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return gsddmm(g, op, x, y, lhs, rhs)

    return _document(
        function,
        f"{lhs}_{op}_{rhs}",
        f"On each edge, x {_SYMBOL[op]} y.",
        {"x": _ROWS[lhs], "y": _ROWS[rhs]},
        "edge",
    )


def _copy(target: str) -> Callable[..., torch.Tensor]:
    def function(g: HasRelation, x: torch.Tensor) -> torch.Tensor:
        return gsddmm(g, "copy_lhs", x, None, target)

    summary = f"On each edge, the row of its {_ROWS[target]}."
    return _document(function, f"copy_{target}", summary, {"x": _ROWS[target]}, "edge")


def _document(
    function: Callable[..., torch.Tensor],
    name: str,
    summary: str,
    operands: dict[str, str],
    result: str,
) -> Callable[..., torch.Tensor]:
    rows = ", ".join(f"{operand} has one row per {owner}" for operand, owner in operands.items())
    ones = ", ".join("torch.ones(2)" for _ in operands)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{summary}

    g is a graph or a block with one edge type; {rows}, the result has one per {result}.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> g = dgl.graph(([0, 1], [1, 0]))
    >>> dgl.ops.{name}(g, {ones}).shape
    torch.Size([2])
    """
    return function


def _all() -> list[Callable[..., torch.Tensor]]:
    arithmetic = [op for op in _SYMBOL if op != "dot"]
    return [
        *(_copy_reduced(target, reduce) for target in "ue" for reduce in REDUCERS),
        *(_binary_reduced(op, reduce) for op in arithmetic for reduce in REDUCERS),
        *(_copy(target) for target in "uve"),
        *(_binary(lhs, op, rhs) for lhs, rhs in permutations("uve", 2) for op in _SYMBOL),
    ]


NAMED = {function.__name__: function for function in _all()}
