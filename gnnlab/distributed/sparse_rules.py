"""Sparse update rules: how sparse optimizers update the embedding rows that a batch looked up.

An embedding of all nodes is far larger than a model, and a batch reads few of its rows. A sparse
optimizer updates these rows only, and keeps its state (such as sums of earlier gradients) row by
row, beside the embedding: the owner of a row also owns its state and applies the rule.

A batch may look up a row several times, and several trainers may do so in one step; their
gradients are first summed, in a fixed order, and then applied once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.names import describe


def coalesce(rows: torch.Tensor, grads: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum the gradients of equal rows, in an order that depends on the input alone.

    Takes rows, shape (K,), int64, and gradients, shape (K, …), float32 or float64; returns each row
    once, ascending, and the sums, which do not depend on the number of threads.
    """
    order = np.argsort(rows.numpy(), kind="stable")
    ascending = rows.numpy()[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = ascending[1:] != ascending[:-1]
    starts = first.nonzero()[0]
    flat = grads.detach().reshape(len(rows), math.prod(grads.shape[1:])).contiguous()
    sums = kernels.spmm.weighted_sum(np.append(starts, len(order)), order, flat.numpy())
    unique = torch.from_numpy(ascending[starts])
    return unique, torch.from_numpy(sums).reshape(len(starts), *grads.shape[1:])


def merge(parts: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Average the gradients of several trainers for one step, as data parallel training does.

    Takes (rows, grads) of each trainer, in the order of their ranks; rows may repeat. Returns each
    row once, with the sum of its gradients divided by the number of trainers.
    """
    rows, grads = (torch.cat(column) for column in zip(*parts, strict=True))
    if bool((rows[1:] <= rows[:-1]).any()):  # trainers send each row once, in ascending order
        rows, grads = coalesce(rows, grads)
    return rows, grads if len(parts) == 1 else grads / len(parts)


#: Element types that the kernels support.
DTYPES = (torch.float32, torch.float64)

#: Name of a function in :mod:`gnnlab.kernels.optim` → its state tensors, and its hyperparameters.
RULES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "adagrad": (("sum",), ("lr", "eps")),
    "adam": (("mean", "square"), ("lr", "beta1", "beta2", "eps")),
}


def check(rule: str, options: Mapping[str, Any], num_states: int) -> None:
    """Raise InvalidInput unless a rule, perhaps from another machine, can be applied."""
    if rule not in RULES:
        raise InvalidInput(f"no sparse update rule {rule!r}; there are {describe(RULES)}")
    states, names = RULES[rule]
    if set(options) != set(names):
        raise InvalidInput(f"rule {rule!r} takes {describe(names)}; found {describe(options)}")
    if num_states != len(states):
        raise InvalidInput(f"rule {rule!r} keeps {describe(states)}; found {num_states} tensors")
    for name, value in options.items():
        top = 1.0 if name.startswith("beta") else math.inf
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < top:
            raise InvalidInput(
                f"{name} must be a number, at least 0 and {'below 1' if top == 1 else 'finite'}; "
                f"found {value!r}"
            )


def apply(
    rule: str,
    weight: torch.Tensor,
    rows: torch.Tensor,
    grads: torch.Tensor,
    states: Sequence[torch.Tensor],
    options: Mapping[str, float],
    step: int,
) -> None:
    """Apply a rule of :data:`RULES` to some rows of a weight, for the ``step``-th time, from 1.

    ``weight``, shape (N, …), float32 or float64, contiguous, and the ``states`` of the rule, of the
    same shape and dtype, are changed in place. ``rows`` and ``grads`` have shapes (U,) and (U, …),
    each row once.
    """
    names = RULES[rule][1]
    width = math.prod(weight.shape[1:])  # explicit, because parts may own no row
    tables = (tensor.view(len(tensor), width).numpy() for tensor in (weight, *states))
    flat = grads.reshape(len(rows), width).contiguous()
    act = getattr(kernels.optim, rule)
    act(*tables, rows.numpy(), flat.numpy(), step, *(options[name] for name in names))
