from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

import gnnlab.function as fn
from gnnlab.errors import InvalidInput


def test_messages_and_reducers_describe_themselves() -> None:
    assert fn.copy_u("h", "m") == fn.Message("copy_lhs", "u", None, "h", None, "m")
    assert fn.copy_e("w", "m") == fn.Message("copy_rhs", None, "e", None, "w", "m")
    assert fn.u_mul_e("h", "w", "m") == fn.Message("mul", "u", "e", "h", "w", "m")
    assert fn.mean("m", "h") == fn.Reduce("mean", "m", "h")
    assert fn.copy_src(src="h", out="m") == fn.copy_u(u="h", out="m")
    assert fn.copy_edge(edge="w", out="m") == fn.copy_e(e="w", out="m")


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "dot"])
def test_every_pair_of_ends_has_every_operation(op: str) -> None:
    for lhs, rhs in permutations("uve", 2):
        function = getattr(fn, f"{lhs}_{op}_{rhs}")
        assert function("x", "y", "m") == fn.Message(op, lhs, rhs, "x", "y", "m")
        assert function(lhs_field="x", rhs_field="y", out="m").out == "m"
        assert function.__name__ in fn.__all__ and function.__doc__


def test_the_same_reducers_do_not_shadow_python() -> None:
    assert {fn.sum("m", "h").op, fn.max("m", "h").op, fn.min("m", "h").op} == {"sum", "max", "min"}


@pytest.mark.parametrize("wrong", [7, ["h"], None])
def test_names_are_texts(wrong: Any) -> None:
    for make in (
        lambda: fn.copy_u("h", wrong),
        lambda: fn.sum("m", wrong),
        lambda: fn.mean(wrong, "h"),
    ):
        with pytest.raises(InvalidInput, match="names"):
            make()
