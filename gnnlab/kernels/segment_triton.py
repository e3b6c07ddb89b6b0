"""Aggregation over neighbors in Triton, for GPUs: what ``spmm`` and ``sddmm`` do on a CPU.

A program computes up to 128 columns of one row of the result. It reads several edges at a time, and
stores nothing per edge. The order of additions is fixed, so results are equal from run to run.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import triton
import triton.language as tl

_NONE = tl.constexpr(2**31 - 1)  # position in its group of no edge at all


@triton.jit
def _read(rows, x, slot, live, cols, width, stride):  # type: ignore[no-untyped-def]
    """Return which rows of x some slots have, and these rows."""
    row = slot if rows is None else tl.load(rows + slot, mask=live, other=0).to(tl.int64)
    there = live[:, None] & (cols < width)[None, :]
    return row, tl.load(x + row[:, None] * stride + cols[None, :], mask=there, other=0)


# A width is a number of units of constant size, so that Triton can load several values at a time.
@triton.jit(do_not_specialize=["units", "heads"])
def _sum(  # type: ignore[no-untyped-def]
    indptr, rows, x, weights, order, others, out, units, heads,
    UNIT: tl.constexpr, MEAN: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    v, width = tl.program_id(0).to(tl.int64), units * UNIT
    head, cols = tl.program_id(1), tl.program_id(2) * BLOCK + tl.arange(0, BLOCK)
    first, end = tl.load(indptr + v), tl.load(indptr + v + 1)
    wide = tl.float64 if x.dtype.element_ty == tl.float64 else tl.float32
    total = tl.zeros((EDGES, BLOCK), wide)
    at = first
    while at < end:
        slot = at + tl.arange(0, EDGES)
        live = slot < end
        row, values = _read(rows, x + head * width, slot, live, cols, width, heads * width)
        values = values.to(wide)
        if weights is not None:
            edge = slot if order is None else tl.load(order + slot, mask=live, other=0).to(tl.int64)
            scale = tl.load(weights + edge * heads + head, mask=live, other=0).to(wide)
            values *= scale[:, None]
        if others is not None:
            degree = tl.load(others + row + 1, mask=live, other=1)
            degree -= tl.load(others + row, mask=live, other=0)
            values *= (1 / degree.to(wide))[:, None]
        total += values
        at += EDGES
    result = tl.sum(total, 0)
    if MEAN:
        result /= tl.maximum(end - first, 1).to(wide)
    tl.store(out + (v * heads + head) * width + cols, result, mask=cols < width)


@triton.jit
def _first_extreme(a, i, b, j):  # type: ignore[no-untyped-def]
    """Of two values and their positions: the larger, NaN before all others, or the first."""
    same = (a == b) | ((a != a) & (b != b))
    second = (b > a) | ((b != b) & (a == a)) | (same & (j < i))
    return tl.where(second, b, a), tl.where(second, j, i)


@triton.jit(do_not_specialize=["units", "nowhere"])
def _extreme(  # type: ignore[no-untyped-def]
    indptr, rows, x, out, winner, units, nowhere,
    UNIT: tl.constexpr, SMALLEST: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    v, width = tl.program_id(0).to(tl.int64), units * UNIT
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first, end = tl.load(indptr + v), tl.load(indptr + v + 1)
    best = tl.full((EDGES, BLOCK), -float("inf"), x.dtype.element_ty)
    which = tl.full((EDGES, BLOCK), _NONE, tl.int32)
    at = first
    while at < end:
        slot = at + tl.arange(0, EDGES)
        live = slot < end
        values = _read(rows, x, slot, live, cols, width, width)[1]
        values = -values if SMALLEST else values
        position = tl.where(live, (slot - first).to(tl.int32), _NONE)[:, None]
        values = tl.where(live[:, None], values, -float("inf"))
        best, which = _first_extreme(best, which, values, position + tl.zeros_like(which))
        at += EDGES
    best, which = tl.reduce((best, which), 0, _first_extreme)
    some, inside = which != _NONE, cols < width
    slot = first + which
    row = slot if rows is None else tl.load(rows + slot, mask=some & inside, other=0).to(tl.int64)
    best = tl.where(some, -best if SMALLEST else best, 0)
    tl.store(out + v * width + cols, best, mask=inside)
    tl.store(winner + v * width + cols, tl.where(some, row, nowhere), mask=inside)


@triton.jit(do_not_specialize=["count", "heads", "units"])
def _dot(  # type: ignore[no-untyped-def]
    src, dst, lhs, rhs, out, count, heads, units,
    UNIT: tl.constexpr, EDGES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    pair, width = tl.program_id(0).to(tl.int64) * EDGES + tl.arange(0, EDGES), units * UNIT
    live = pair < count
    edge, head = pair // heads, pair % heads
    left = tl.load(src + edge, mask=live, other=0).to(tl.int64) * heads + head
    right = tl.load(dst + edge, mask=live, other=0).to(tl.int64) * heads + head
    wide = tl.float64 if lhs.dtype.element_ty == tl.float64 else tl.float32
    total = tl.zeros((EDGES, BLOCK), wide)
    at = width * 0
    while at < width:
        cols = at + tl.arange(0, BLOCK)
        there = live[:, None] & (cols < width)[None, :]
        a = tl.load(lhs + left[:, None] * width + cols[None, :], mask=there, other=0)
        b = tl.load(rhs + right[:, None] * width + cols[None, :], mask=there, other=0)
        total += a.to(wide) * b.to(wide)
        at += BLOCK
    tl.store(out + pair, tl.sum(total, 1), mask=live)


def weighted_sum(
    indptr: torch.Tensor,
    indices: torch.Tensor | None,
    x: torch.Tensor,
    weights: torch.Tensor | None = None,
    order: torch.Tensor | None = None,
    mean: bool = False,
    others: torch.Tensor | None = None,
) -> torch.Tensor:
    """Do what :func:`gnnlab.kernels.spmm.weighted_sum` does.

    ``indices`` and ``order`` may be None: slot k adds row k, or has weight k. With ``others``, the
    ``indptr`` of the rows of x, each row is divided by its number of slots there.
    """
    out = x.new_empty((len(indptr) - 1, *x.shape[1:]))
    heads, width = (1, x.shape[1]) if x.dim() == 2 else x.shape[1:]
    blocks, sizes = _tiles(len(out), x if indices is None else indices, width)
    _launch(
        _sum, (len(out), heads, blocks), indptr, indices, x, weights, order, others, out,
        width // sizes["UNIT"], heads, MEAN=mean, **sizes,
    )  # fmt: skip
    return out


def extreme(
    indptr: torch.Tensor, indices: torch.Tensor | None, x: torch.Tensor, smallest: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Do what :func:`gnnlab.kernels.spmm.extreme` does; slot k has row k if ``indices`` is None."""
    out = x.new_empty((len(indptr) - 1, x.shape[1]))
    winner = torch.empty_like(out, dtype=torch.int64)
    blocks, sizes = _tiles(len(out), x if indices is None else indices, x.shape[1])
    _launch(
        _extreme, (len(out), blocks), indptr, indices, x, out, winner,
        x.shape[1] // sizes["UNIT"], len(x), SMALLEST=smallest, **sizes,
    )  # fmt: skip
    return out, winner


def dot(src: torch.Tensor, dst: torch.Tensor, lhs: torch.Tensor, rhs: torch.Tensor) -> torch.Tensor:
    """Inner products of ``lhs[src]`` and ``rhs[dst]``: shapes (N, H, D) → (E, H)."""
    _, heads, width = lhs.shape
    out = lhs.new_empty((len(src), heads))
    _, sizes = _tiles(len(out), src, width)
    _launch(
        _dot, (triton.cdiv(out.numel(), sizes["EDGES"]),), src, dst, lhs, rhs, out, out.numel(),
        heads, width // sizes["UNIT"], **sizes,
    )  # fmt: skip
    return out


def _tiles(count: int, slots: torch.Tensor, width: int) -> tuple[int, dict[str, int]]:
    """Return the number of blocks of columns, and how much a program reads at a time.

    A program with few edges must not have many idle threads; one with a million needs them.
    """
    edges = 16 if len(slots) <= 16 * count else 64
    block = min(128, triton.next_power_of_2(max(width, 1)))
    warps = max(1, min(8, edges * block // 512))
    sizes = {"UNIT": math.gcd(width, 4), "EDGES": edges, "BLOCK": block}
    return triton.cdiv(width, block), {**sizes, "num_warps": warps}


def _launch(kernel: Any, grid: tuple[int, ...], *arguments: Any, **options: Any) -> None:
    if math.prod(grid):
        with torch.accelerator.device_index(arguments[0].device.index):
            kernel[grid](*arguments, **options)
