import subprocess
import sys

import pytest
import torch

import gnnlab as dgl
from gnnlab import ops
from tests.ops import reference
from tests.ops.reference import assert_near, toy_graph

ROWS = {"u": 6, "v": 5, "e": 8}


@pytest.mark.parametrize("name", list(ops.NAMED))
def test_each_name_does_what_it_says(name: str) -> None:
    function, parts = getattr(ops, name), name.split("_")
    reduce = parts.pop() if parts[-1] in reference.REDUCE else None
    x, y = (
        torch.rand(ROWS[end], 3) + 0.5 if end in ROWS else None for end in (parts[0], parts[-1])
    )
    if parts[0] == "copy":
        found = function(toy_graph(), y)
        pair = (y, None, f"{parts[1]}e")
        op = "copy_lhs"
    else:
        found = function(toy_graph(), x, y)
        pair, op = (x, y, parts[0] + parts[2]), parts[1]
    messages = reference.sddmm(toy_graph(), op, *pair)
    if reduce:
        messages = reference.spmm(toy_graph(), "copy_rhs", reduce, None, messages)
    assert_near(found, messages)
    assert function.__name__ == name and "Examples" in function.__doc__


def test_a_graph_of_several_types_needs_a_choice() -> None:
    pair = {("a", "r", "b"): ([0], [0]), ("a", "s", "b"): ([0], [0])}
    graph = dgl.heterograph(pair)
    with pytest.raises(dgl.DGLError):
        ops.copy_u_sum(graph, torch.ones(1))
    assert ops.copy_u_sum(graph["r"], torch.ones(1)).tolist() == [1.0]


def test_the_first_operator_imports_no_more_than_it_needs() -> None:
    """numba and threads come with it; sympy, which some of torch's helpers load, never."""
    code = (
        "import sys, threading, torch, gnnlab as dgl, gnnlab.ops; "
        "print('numba' in sys.modules, threading.active_count()); g = dgl.graph(([0], [1])); "
        "x = torch.ones(2, 3, requires_grad=True); "
        "dgl.ops.u_mul_e_sum(g, x, torch.ones(1, 1)).sum().backward(); "
        "print('sympy' in sys.modules, 'torch.fx.experimental.symbolic_shapes' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "1", "False", "False"]
