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


def _runs(count: torch.Tensor, total: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the row of each entry and its position in the row, for rows of the given lengths."""
    row = torch.repeat_interleave(count, output_size=total)
    begin = torch.cumsum(count, 0) - count
    return row, torch.arange(total, device=count.device) - begin[row]


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
    """Wait twice for the device: for the number of all edges, then for that of the allowed ones."""
    row, place = _runs(degree, int(degree.sum()))
    slots = first[row] + place
    if weights is None:
        weight = torch.ones(len(slots), dtype=torch.float64, device=slots.device)
    else:
        weight = weights[slots if eids is None else eids[slots].long()].double()
    allowed = weight > 0
    if excluded is not None and len(excluded):
        at = torch.searchsorted(excluded, slots).clamp(max=len(excluded) - 1)
        allowed &= excluded[at] != slots
    candidates = torch.zeros_like(degree).index_add_(0, row, allowed.long())
    if fanout < 0:
        count = candidates
    elif replace:
        count = torch.where(candidates > 0, fanout, 0)
    else:
        count = candidates.clamp(max=fanout)
    is_wrong = ~((weight >= 0) & torch.isfinite(weight)).all()
    wrong, num_allowed, total = torch.stack([is_wrong, candidates.sum(), count.sum()]).tolist()
    if wrong:
        raise InvalidInput("weights must be finite and not negative; check them for NaN")
    if fanout < 0:
        return slots[_positions(allowed, total)], count
    out_row, out_place = _runs(count, total)
    if replace:
        kept, bits = _positions(allowed, num_allowed), draw(stream[out_row], out_place)
        return slots[kept[_draw_in_proportion(weight[kept], candidates, out_row, bits)]], count
    # Those that are not allowed come last: their score is less than the least number.
    score = torch.log(uniform(draw(stream[row], place))) / weight
    score = score.clamp(min=torch.finfo(score.dtype).min).where(allowed, -torch.inf)
    order = torch.argsort(score, descending=True, stable=True)
    order = order[torch.argsort(row[order], stable=True)]
    best = order[(torch.cumsum(degree, 0) - degree)[out_row] + out_place]
    return slots[torch.sort(best).values], count


def _positions(mask: torch.Tensor, number: int) -> torch.Tensor:
    """Return where a mask is True; the number is known, so this does not wait as nonzero() does."""
    place = torch.where(mask, torch.cumsum(mask, 0) - 1, number)
    position = torch.arange(len(mask), device=mask.device)
    return position.new_empty(number + 1).scatter_(0, place, position)[:number]


def _draw_in_proportion(
    weight: torch.Tensor, candidates: torch.Tensor, out_row: torch.Tensor, bits: torch.Tensor
) -> torch.Tensor:
    total = torch.cumsum(weight, 0)
    last = torch.cumsum(candidates, 0)
    start = torch.cat([total.new_zeros(1), total])[last - candidates]
    end = torch.cat([total.new_zeros(1), total])[last]
    point = start[out_row] + uniform(bits) * (end - start)[out_row]
    chosen = torch.searchsorted(total, point, right=True)
    # Rounding must not move a pick at the border of a row to another row.
    return torch.minimum(torch.maximum(chosen, (last - candidates)[out_row]), last[out_row] - 1)
