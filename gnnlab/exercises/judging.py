"""How judges read an answer: by its value, in whatever form it has, or say what they expect."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch


class Wrong(Exception):
    """An answer is wrong; ``reason`` is the key of a text, ``values`` are for its fields."""

    def __init__(self, reason: str = "", **values: Any) -> None:
        super().__init__(reason)
        self.reason, self.values = reason, values


def number(answer: Any) -> float:
    """Read a number: of Python or numpy, or a tensor with one element."""
    if hasattr(answer, "item") and getattr(answer, "size", None) is not None:
        answer = answer.item() if torch.as_tensor(answer).numel() == 1 else answer
    if isinstance(answer, bool) or not isinstance(answer, numbers.Real):
        raise Wrong("not a number", **_found(answer))
    return float(answer)


def sequence(answer: Any, length: int | None = None) -> list[Any]:
    """Read a list, also given as a tuple, range, array or tensor; nested ones as lists of lists."""
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        raise Wrong("not a list", **_found(answer))
    found = list(answer)
    if length is not None and len(found) != length:
        raise Wrong("length", found=len(found), expected=length)
    return found


def function(answer: Any) -> Callable[..., Any]:
    """Read a function or a class."""
    if not callable(answer):
        raise Wrong("not a function", **_found(answer))
    return answer


def tensor(answer: Any, like: torch.Tensor) -> torch.Tensor:
    """Read a tensor, list or array with the shape of another, but for axes of size 1."""
    try:
        found = torch.as_tensor(answer)
    except (TypeError, ValueError, RuntimeError):
        raise Wrong("not a tensor", **_found(answer)) from None
    if type(found) not in (torch.Tensor, torch.nn.Parameter):  # others may compare as they like
        raise Wrong("not a tensor", **_found(answer))
    if found.squeeze().shape != like.squeeze().shape:
        raise Wrong("shape", found=tuple(found.shape), expected=tuple(like.shape))
    return found.reshape(like.shape).to(like.dtype)


def is_close(found: Any, right: float, tolerance: float = 1e-6) -> bool:
    """Whether two numbers differ by at most a share of the right one (or of 1, if that is 0)."""
    return math.isclose(found, right, rel_tol=tolerance, abs_tol=tolerance if right == 0 else 0)


def expect(
    answer: Any, right: float, known: Mapping[Any, str] | None = None, tolerance: float = 1e-6
) -> None:
    """Compare with the right number; ``known`` wrong ones are told by a reason each."""
    found = number(answer)
    if not is_close(found, right, tolerance):
        same = (why for x, why in (known or {}).items() if is_close(found, x, tolerance))
        raise Wrong(next(same, ""))


def expect_each(
    answer: Any,
    right: Sequence[float],
    known: Mapping[Any, str] | None = None,
    tolerance: float = 1e-6,
) -> None:
    """Compare with a list of numbers: say which are wrong, or the reason of a ``known`` list."""
    found = [number(x) for x in sequence(answer, len(right))]
    wrong = [i for i, x in enumerate(found) if not is_close(x, right[i], tolerance)]
    if not wrong:
        return
    for other, why in (known or {}).items():
        if all(is_close(x, y, tolerance) for x, y in zip(found, other, strict=True)):
            raise Wrong(why)
    raise Wrong("which", positions=", ".join(str(i + 1) for i in wrong))


def _found(answer: Any) -> dict[str, str]:
    text = repr(answer)
    return {"found": text if len(text) <= 60 else f"{text[:60]}…", "type": type(answer).__name__}


def expect_ids(answer: Any, right: Sequence[int], known: Mapping[Any, str] | None = None) -> None:
    """Compare with a set of IDs, in any order; ``known`` wrong ones, sorted, are told a reason."""
    found = sorted(number(x) for x in sequence(answer))
    if found != sorted(right):
        twice = "twice" if set(found) == set(right) else ""
        raise Wrong((known or {}).get(tuple(sorted(set(found))), twice))


def expect_tensor(
    answer: Any,
    right: torch.Tensor,
    known: Mapping[str, torch.Tensor] | None = None,
    tolerance: float = 1e-5,
) -> None:
    """Compare with the right tensor; ``known`` has wrong ones under the reason that tells them."""
    found = tensor(answer, like=right)
    if not torch.allclose(found, right, tolerance, tolerance):
        same = (k for k, x in (known or {}).items() if torch.allclose(found, x, tolerance, 1e-5))
        raise Wrong(next(same, ""))
