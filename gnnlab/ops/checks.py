"""Check operands, and convert and broadcast pairs of them."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from typing import Any

import numpy as np
import torch
from torch.utils.weak import WeakIdKeyDictionary

from gnnlab.errors import GNNLabError, InvalidInput, check_graph
from gnnlab.graph.relation import HasRelation, Relation

_OWNER = {"u": "source node", "v": "destination node", "e": "edge"}


AT_ONCE = 2**28  # most elements of a tensor that is checked as a whole
_checked = WeakIdKeyDictionary()
_warned: set[str] = set()  # features that are checked mini-batch by mini-batch


def warn_unless_finite(x: torch.Tensor, what: str, ids: torch.Tensor | range | None = None) -> None:
    """Warn, once per tensor and its views, when a feature ``what`` contains NaN or infinity.

    Such values may be intended, for instance for missing values, so they are not an error. But a
    single one silently makes the loss NaN. Tensors of integers, of 8-bit floats, with which torch
    does not compute, and of more than 2^28 elements are not checked.

    If ``x`` is only some rows of the feature, ``ids`` are those of the rows. Then the warning is
    given once per name, and the size does not matter.
    """
    if not x.is_floating_point() or x.itemsize == 1 or not x.numel():
        return
    if (ids is None and x.numel() > AT_ONCE) or _is_checked(x):
        return
    if bool(torch.isfinite(x.detach().sum())):  # a sum with NaN or infinity is not finite
        return
    wrong = ~torch.isfinite(x.detach().flatten(1) if x.dim() > 1 else x.detach()[:, None])
    rows = wrong.any(1).nonzero().flatten()
    if not len(rows):
        return  # the sum of large numbers overflowed
    if ids is not None:
        if what in _warned:
            return
        _warned.add(what)
    first = int(rows[0] if ids is None else ids[int(rows[0])])
    warnings.warn(
        f"{what} hold NaN or infinity in {len(rows)} of {len(x)} rows (the first is row {first}): "
        "the loss would become NaN. Replace such values, for instance with torch.nan_to_num(x)",
        stacklevel=2,
    )


def _is_checked(x: torch.Tensor) -> bool:
    """Whether these values, or the tensor of which x is a view, were checked; from now on they are.

    A tensor that was made in inference mode counts no changes.
    """
    version, whole = 0 if x.is_inference() else x._version, x._base
    if _checked.get(x) == version or (whole is not None and _checked.get(whole) == version):
        return True
    _checked[x] = version
    return False


def check_choice(
    found: str, choices: Collection[str], what: str, error: type[GNNLabError] = InvalidInput
) -> None:
    """Raise an error unless ``found`` is one of the choices."""
    if found not in tuple(choices):  # what is no text may not be hashable
        names = ", ".join(repr(choice) for choice in choices)
        raise error(f"unknown {what} {found!r}; choose one of {names}", code="unknown_choice")


def relation_of(g: HasRelation, what: str = "an operator") -> Relation:
    """Return the relation of an operator's graph, which must have one edge type."""
    try:
        return g.relation()
    except (AttributeError, TypeError):
        check_graph(g, what)
        raise
    except InvalidInput:
        raise InvalidInput(several_types(g, what)) from None


def several_types(g: Any, what: str) -> str:
    """Return the message for a graph that has not exactly one edge type."""
    known = ", ".join(map(repr, g.canonical_etypes)) or "none"
    return f"say which edge type is meant: {what} takes the graph of one, g[etype], of {known}"


def check_operand(rel: Relation, target: str, x: torch.Tensor | None) -> torch.Tensor:
    """Return x if it has one row per node or edge of the target, on the device of the graph."""
    owner = _OWNER[target]
    if not isinstance(x, torch.Tensor):
        raise InvalidInput(
            f"this operation needs a tensor with one row per {owner}; found {type(x).__name__}"
        )
    expected = {"u": rel.num_src, "v": rel.num_dst, "e": rel.num_edges}[target]
    if x.dim() == 0 or len(x) != expected:
        raise InvalidInput(
            f"found a tensor of shape {tuple(x.shape)} where {expected} rows are expected, "
            f"one per {owner}"
        )
    if x.device != rel.device:
        raise InvalidInput(
            f"the graph is on {rel.device}, but the rows of its {owner}s are on {x.device}; "
            "move one of them with .to(device)"
        )
    return x


def common_dtype(
    op: str, lhs: torch.Tensor, rhs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Convert both operands to the dtype of the result of ``op`` in torch."""
    dtype = torch.promote_types(lhs.dtype, rhs.dtype)
    if dtype == torch.bool and op != "div":
        raise InvalidInput(f"cannot {op} booleans; convert them first, for instance with .float()")
    if op == "div" and not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return lhs.to(dtype), rhs.to(dtype)


def feature_shape(
    lhs: torch.Tensor, rhs: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, tuple[int, ...]]:
    """Give both operands the same number of dimensions; return them and the broadcast row shape.

    Dimensions after the first broadcast by numpy's rules.
    """
    dims = max(lhs.dim(), rhs.dim())
    left, right = (x.reshape(len(x), *[1] * (dims - x.dim()), *x.shape[1:]) for x in (lhs, rhs))
    try:
        # torch.broadcast_shapes imports sympy, which takes more than a second.
        shape = np.broadcast_shapes(left.shape[1:], right.shape[1:])
    except ValueError:
        raise InvalidInput(
            f"rows of shapes {tuple(lhs.shape[1:])} and {tuple(rhs.shape[1:])} do not match: "
            "counted from the last, their dimensions must be equal or 1"
        ) from None
    return left, right, tuple(shape)
