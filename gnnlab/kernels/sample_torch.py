"""Neighbor sampling with torch operators, for GPUs.

All picks of all seeds are made at once. The random numbers are those of ``rng``, so
uniform picks equal the CPU's bit for bit, unless edges are excluded: that is done by weights, 0 for
excluded edges and 1 for the others. Arrays stay on their device; the host only reads sizes.
"""

from __future__ import annotations

import torch

from gnnlab.errors import InvalidInput
from gnnlab.helpers.block_sampler import sample_slots
from gnnlab.kernels.rng_torch import draw, streams, uniform

__all__ = ["sample_neighbors"]


def sample_neighbors(
    indptr: torch.Tensor,
    indices: torch.Tensor,
    seeds: torch.Tensor,
    fanout: int,
    key: int,
    *,
    replace: bool = False,
    weights: torch.Tensor | None = None,
    eids: torch.Tensor | None = None,
    excluded: torch.Tensor | None = None,
    names: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Sample in-edges of each seed; arguments and results as in ``sample.sample_neighbors``.

    The last result is the number of edges of each seed.
    """
    seeds = seeds.long()
    if weights is None and (excluded is None or len(excluded) == 0):
        slots, count = sample_slots(indptr, seeds, fanout, key, replace, names)
    else:
        first = indptr[seeds]
        degree = indptr[seeds + 1] - first
        stream = streams(key, seeds if names is None else names)
        slots, count = _pick_weighted(
            first, degree, fanout, replace, stream, weights, eids, excluded
        )
    ptr = torch.nn.functional.pad(torch.cumsum(count, 0), (1, 0))
    return ptr, slots, indices[slots], count


def _runs(count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the row of each entry and its position in the row, for rows of the given lengths."""
    row = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
    begin = torch.cumsum(count, 0) - count
    return row, torch.arange(len(row), device=count.device) - begin[row]


def _pick_weighted(
    first: torch.Tensor,
    degree: torch.Tensor,
    fanout: int,
    replace: bool,
    stream: torch.Tensor,
    weights: torch.Tensor | None,
    eids: torch.Tensor | None,
    excluded: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    row, place = _runs(degree)
    slots = first[row] + place
    if weights is None:
        weight = torch.ones(len(slots), dtype=torch.float64, device=slots.device)
    else:
        weight = weights[slots if eids is None else eids[slots].long()].double()
        if not bool(((weight >= 0) & torch.isfinite(weight)).all()):
            raise InvalidInput("weights must be finite and not negative; check them for NaN")
    allowed = weight > 0
    if excluded is not None and len(excluded):
        allowed &= ~torch.isin(slots, excluded)
    row, place, slots, weight = (x[allowed] for x in (row, place, slots, weight))
    candidates = torch.bincount(row, minlength=len(degree))
    if fanout < 0:
        return slots, candidates
    if replace:
        return _draw_in_proportion(slots, weight, candidates, fanout, stream)
    score = torch.log(uniform(draw(stream[row], place))) / weight
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    best = order[_runs(candidates)[1] < fanout]
    kept = torch.sort(best).values
    return slots[kept], candidates.clamp(max=fanout)


def _draw_in_proportion(
    slots: torch.Tensor,
    weight: torch.Tensor,
    candidates: torch.Tensor,
    fanout: int,
    stream: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    count = torch.where(candidates > 0, fanout, 0)
    out_row, place = _runs(count)
    total = torch.cumsum(weight, 0)
    last = torch.cumsum(candidates, 0)
    start = torch.cat([total.new_zeros(1), total])[last - candidates]
    end = torch.cat([total.new_zeros(1), total])[last]
    point = start[out_row] + uniform(draw(stream[out_row], place)) * (end - start)[out_row]
    chosen = torch.searchsorted(total, point, right=True)
    # Rounding must not move a pick at the border of a row to another row.
    chosen = torch.minimum(torch.maximum(chosen, (last - candidates)[out_row]), last[out_row] - 1)
    return slots[chosen], count
