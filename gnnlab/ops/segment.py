"""Reduce runs of rows, for instance the nodes of each graph of a batch."""

from __future__ import annotations

import torch

from gnnlab.errors import InvalidInput
from gnnlab.ops import autograd
from gnnlab.ops.checks import check_choice
from gnnlab.ops.groups import Groups
from gnnlab.ops.spmm import REDUCERS, check_number


def segment_reduce(seglen: torch.Tensor, value: torch.Tensor, reducer: str = "sum") -> torch.Tensor:
    """Reduce each run of consecutive rows to one row.

    Parameters
    ----------
    seglen : torch.Tensor
        Shape (B,), integers: the length of each run; together they cover all rows.
    value : torch.Tensor
        Shape (N, …).
    reducer : {"sum", "mean", "max", "min"}

    Returns
    -------
    torch.Tensor
        Shape (B, …); zeros for runs of length 0.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> dgl.ops.segment_reduce(torch.tensor([2, 0, 1]), torch.tensor([1.0, 3.0, 5.0]), "mean")
    tensor([2., 0., 5.])
    """
    check_choice(reducer, REDUCERS, "reducer")
    check_number(reducer, value)
    if value.dim() == 0:
        raise InvalidInput("value has one row per member of a segment; found a single number")
    seglen = seglen.to(value.device, torch.int64)
    indptr = torch.zeros(len(seglen) + 1, dtype=torch.int64, device=value.device)
    torch.cumsum(seglen, 0, out=indptr[1:])
    if value.device.type == "cpu" and (int(indptr[-1]) != len(value) or bool((seglen < 0).any())):
        raise InvalidInput(
            f"found lengths that add up to {int(indptr[-1])} (smallest "
            f"{int(seglen.min()) if len(seglen) else 0}) for {len(value)} rows; "
            "they must cover all rows"
        )
    groups = Groups(len(seglen), len(value), indptr=indptr)
    flat = value.flatten(1) if value.dim() > 1 else value.unsqueeze(1)
    if reducer in ("max", "min"):
        out = autograd.extreme(groups, flat, smallest=reducer == "min")
    else:
        out = autograd.row_sum(groups, flat, reducer == "mean")
    return out.reshape(len(seglen), *value.shape[1:])
