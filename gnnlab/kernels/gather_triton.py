"""Rows of a feature matrix in main memory that is pinned: a GPU reads them by itself, with Triton.

No processor core copies anything, and the bus carries only the rows that are asked for. With a
cache, rows that are on the GPU are read there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_ROWS, _MOST_COLUMNS = 16, 256  # of a program


@triton.jit(do_not_specialize=["num_rows", "count"])
def _rows(out, matrix, ids, slots, table, hits, num_rows, count, width,  # type: ignore[no-untyped-def]
          CACHED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # fmt: skip
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    row = tl.load(ids + i, mask=i < count, other=-1).to(tl.int64)
    exists = (row >= 0) & (row < num_rows)
    inside = column < width
    far = exists
    if CACHED:
        slot = tl.load(slots + row, mask=exists, other=-1).to(tl.int64)
        far = exists & (slot < 0)
        if tl.program_id(1) == 0:
            tl.atomic_add(hits, tl.sum((slot >= 0).to(tl.int64), 0))
    values = tl.load(matrix + row[:, None] * width + column, mask=far[:, None] & inside, other=0)
    if CACHED:
        near = (slot >= 0)[:, None] & inside
        here = tl.load(table + slot[:, None] * width + column, mask=near, other=0)
        values = tl.where(near, here, values)
    tl.store(out + i[:, None] * width + column, values, mask=(i < count)[:, None] & inside)


def rows(
    matrix: torch.Tensor,
    ids: torch.Tensor,
    slots: torch.Tensor | None = None,
    table: torch.Tensor | None = None,
    hits: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``matrix[ids]`` on the device of the IDs; rows that do not exist are zeros.

    ``matrix`` has shape (N, W), contiguous, on the device or pinned; ``ids`` shape (K,), int32 or
    int64. With a cache, ``slots``, shape (N,), int32, is the row of ``table``, shape (S, W), on the
    device, that has the values of each row, or −1; ``hits``, (1,) int64, counts rows read there.
    """
    count, width = len(ids), matrix.shape[1]
    out = torch.empty((count, width), dtype=matrix.dtype, device=ids.device)
    if not count * width:
        return out
    columns = min(_MOST_COLUMNS, triton.next_power_of_2(width))
    cached = slots is not None
    _rows[triton.cdiv(count, _ROWS), triton.cdiv(width, columns)](
        *(out, matrix, ids, slots, table, hits, len(matrix), count, width),
        CACHED=cached,
        ROWS=_ROWS,
        COLUMNS=columns,
    )
    return out
