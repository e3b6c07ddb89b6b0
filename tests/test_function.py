from itertools import permutations
from typing import Any

import pytest

import gnnlab.function as fn
from gnnlab.errors import InvalidInput


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "dot"])
def test_every_pair_of_ends_has_every_operation(op: str) -> None:
    for lhs, rhs in permutations("uve", 2):
        function = getattr(fn, f"{lhs}_{op}_{rhs}")
        assert function("x", "y", "m") == fn.Message(op, lhs, rhs, "x", "y", "m")
        assert function(lhs_field="x", rhs_field="y", out="m").out == "m"
        assert function.__name__ in fn.__all__ and function.__doc__


def test_old_names() -> None:
    assert fn.copy_src(src="h", out="m") == fn.copy_u(u="h", out="m")
    assert fn.copy_edge(edge="w", out="m") == fn.copy_e(e="w", out="m")
    assert fn.src_mul_edge(src="h", edge="w", out="m") == fn.u_mul_e("h", "w", "m")


@pytest.mark.parametrize("wrong", [7, ["h"], None])
def test_names_are_texts(wrong: Any) -> None:
    for make in (
        lambda: fn.copy_u("h", wrong),
        lambda: fn.sum("m", wrong),
        lambda: fn.mean(wrong, "h"),
    ):
        with pytest.raises(InvalidInput, match="names"):
            make()
