"""The operators as their definitions say, one edge at a time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import gnnlab as dgl
from tests.helpers import THOROUGH

OPS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "copy_lhs": lambda x, y: x,
    "copy_rhs": lambda x, y: y,
}
REDUCE = {
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0),
    "max": lambda rows: rows.amax(0),
    "min": lambda rows: rows.amin(0),
}

#  Eight edges into five destinations, given in no order. 3 gets no message, 1 → 0 occurs twice.
#
#      0 → 1    1 → 0    4 → 2    1 → 0    2 → 2    3 → 4    0 → 2    5 → 1
SRC, DST = [0, 1, 4, 1, 2, 3, 0, 5], [1, 0, 2, 0, 2, 4, 2, 1]


def some(shapes: list[Any]) -> list[Any]:
    """All of them in a thorough run, every third else: the reference loops over edges."""
    return shapes if THOROUGH else shapes[::3]


def toy_graph(device: str = "cpu") -> dgl.Graph:
    """Six sources, five destinations, eight edges."""
    return dgl.heterograph(
        {("user", "rates", "item"): (SRC, DST)}, {"user": 6, "item": 5}, device=device
    )


def random_graph(num_src: int, num_dst: int, num_edges: int, seed: int = 0) -> dgl.Graph:
    """Edges drawn at random into the first half of the destinations: the others get none."""
    torch.manual_seed(seed)
    src = torch.randint(num_src, (num_edges,))
    dst = torch.randint(max(num_dst // 2, 1), (num_edges,))
    return dgl.heterograph({("u", "to", "v"): (src, dst)}, {"u": num_src, "v": num_dst})


def align(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Insert dimensions of size 1 after the first, so that rows broadcast as in numpy."""
    dims = max(x.dim(), y.dim())
    return tuple(t.reshape(len(t), *[1] * (dims - t.dim()), *t.shape[1:]) for t in (x, y))


def sddmm(graph: dgl.Graph, op: str, lhs: Tensor, rhs: Tensor, ends: str = "uv") -> Tensor:
    """Compute each edge on its own."""
    src, dst = graph.edges()
    if not op.startswith("copy"):
        lhs, rhs = align(lhs, rhs)
    rows = []
    for e, (u, v) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        at = {"u": u, "v": v, "e": e}
        x = None if lhs is None else lhs[at[ends[0]]]
        y = None if rhs is None else rhs[at[ends[1]]]
        if op == "dot":
            rows.append((x * y).sum(-1, keepdim=True) if x.dim() else x * y)
        else:
            rows.append(OPS[op](x, y))
    return torch.stack(rows)


def spmm(graph: dgl.Graph, op: str, reduce: str, x: Tensor | None, y: Tensor | None) -> Tensor:
    """Compute each edge, then each destination, on its own."""
    messages = sddmm(graph, op, x, y, "ue")
    dst = graph.edges()[1]
    rows = []
    for v in range(graph.relation().num_dst):
        arrived = messages[dst == v]
        rows.append(REDUCE[reduce](arrived) if len(arrived) else torch.zeros_like(messages[0]))
    return torch.stack(rows)


def assert_near(found: Tensor, expected: Tensor) -> None:
    """Equal in shape and dtype, and in value to 1e-5 (float32) or 1e-10 (float64)."""
    tolerance = 1e-10 if expected.dtype == torch.float64 else 1e-5
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
