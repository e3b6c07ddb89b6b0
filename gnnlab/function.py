"""Message and reduce functions, described rather than executed.

``g.update_all(fn.u_mul_e("h", "w", "m"), fn.sum("m", "out"))`` says: multiply the feature ``h`` of
each edge's source by the edge's feature ``w``, and sum the messages at each destination. Because
the graph gets a description, not code, it can choose a kernel that never stores the messages.

In the names, ``u`` is the source of an edge, ``v`` its destination and ``e`` the edge itself:
``u_dot_v``, ``e_sub_v``, … exist for every ordered pair and the operations add, sub, mul, div, dot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING

from gnnlab.errors import InvalidInput

__all__ = [
    "Message",
    "Reduce",
    "copy_e",
    "copy_edge",
    "copy_src",
    "copy_u",
    "max",
    "mean",
    "min",
    "src_mul_edge",
    "sum",
]

_VERBS = {
    "add": "Add {l} and {r}, elementwise.",
    "sub": "Subtract {r} from {l}, elementwise.",
    "mul": "Multiply {l} by {r}, elementwise.",
    "div": "Divide {l} by {r}, elementwise.",
    "dot": "Take the inner product of {l} and {r} over the last dimension, which becomes 1.",
}
_TARGETS = {
    "u": "the source's feature",
    "v": "the destination's feature",
    "e": "the edge's feature",
}


@dataclass(frozen=True, slots=True)
class Message:
    """What each edge computes."""

    op: str  #: ``copy_lhs``, ``copy_rhs``, ``add``, ``sub``, ``mul``, ``div`` or ``dot``
    lhs_target: str | None  #: ``u``, ``v`` or ``e``: whose feature the left operand is, if it is
    rhs_target: str | None  #: the same of the right operand
    lhs: str | None  #: name of the left operand's feature
    rhs: str | None  #: name of the right operand's feature
    out: str  #: name of the result, a message or an edge feature in ``apply_edges``

    def __post_init__(self) -> None:
        names = (name for name in (self.lhs, self.rhs) if name is not None)
        _check_names("message function", "copy_u('h', 'm')", self.out, *names)


@dataclass(frozen=True, slots=True)
class Reduce:
    """How a node combines its incoming messages; a node without any gets zeros."""

    op: str  #: ``sum``, ``mean``, ``max`` or ``min``
    msg: str  #: name of the messages
    out: str  #: name of the node feature for the result

    def __post_init__(self) -> None:
        _check_names("reduce function", "sum('m', 'h')", self.msg, self.out)


def _check_names(what: str, example: str, *names: object) -> None:
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise InvalidInput(
            f"a {what} takes names of features, such as {example}; found {wrong[0]!r}"
        )


def copy_u(u: str, out: str) -> Message:
    """Send the source's feature ``u`` as message ``out``.

    Examples
    --------
    >>> import gnnlab.function as fn
    >>> fn.copy_u("h", "m")
    Message(op='copy_lhs', lhs_target='u', rhs_target=None, lhs='h', rhs=None, out='m')
    """
    return Message("copy_lhs", "u", None, u, None, out)


def copy_e(e: str, out: str) -> Message:
    """Send the edge's feature ``e`` as message ``out``."""
    return Message("copy_rhs", None, "e", None, e, out)


def copy_src(src: str, out: str) -> Message:
    """The old name of :func:`copy_u`."""
    return copy_u(src, out)


def copy_edge(edge: str, out: str) -> Message:
    """The old name of :func:`copy_e`."""
    return copy_e(edge, out)


def src_mul_edge(src: str, edge: str, out: str) -> Message:
    """The old name of :func:`u_mul_e`."""
    return Message("mul", "u", "e", src, edge, out)


def sum(msg: str, out: str) -> Reduce:
    """Add up the messages ``msg`` into the node feature ``out``."""
    return Reduce("sum", msg, out)


def mean(msg: str, out: str) -> Reduce:
    """Average the messages ``msg`` into the node feature ``out``."""
    return Reduce("mean", msg, out)


def max(msg: str, out: str) -> Reduce:
    """Keep the largest of the messages ``msg``, element by element, in ``out``."""
    return Reduce("max", msg, out)


def min(msg: str, out: str) -> Reduce:
    """Keep the smallest of the messages ``msg``, element by element, in ``out``."""
    return Reduce("min", msg, out)


def _binary(lhs_target: str, op: str, rhs_target: str) -> Callable[[str, str, str], Message]:
    def message(lhs_field: str, rhs_field: str, out: str) -> Message:
        return Message(op, lhs_target, rhs_target, lhs_field, rhs_field, out)

    name = f"{lhs_target}_{op}_{rhs_target}"
    what = _VERBS[op].format(l=_TARGETS[lhs_target], r=_TARGETS[rhs_target])
    message.__name__ = message.__qualname__ = name
    message.__doc__ = f"""{what}

    Parameters
    ----------
    lhs_field, rhs_field : str
        Names of the left and the right feature.
    out : str
        Name of the message.
    """
    return message


for _left, _right in permutations("uve", 2):
    for _op in _VERBS:
        globals()[f"{_left}_{_op}_{_right}"] = _binary(_left, _op, _right)
        __all__ += [f"{_left}_{_op}_{_right}"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Callable[[str, str, str], Message]:
        """Declare the generated functions for type checkers, which cannot see them."""
