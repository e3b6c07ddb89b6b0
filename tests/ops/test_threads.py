"""Results are bit-equal for any number of threads, on operands that are large enough to share."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from gnnlab.kernels import threads
from gnnlab.ops import edge_softmax, relu_dropout, sddmm, spmm
from tests.ops.reference import random_graph

GRAPH = random_graph(500, 640, 40_000)
SOURCES, EDGES = GRAPH.relation().num_src, GRAPH.num_edges()
CASES: dict[str, tuple[Callable[..., torch.Tensor], list[tuple[int, ...]]]] = {
    f"{reduce} {shapes}": (
        lambda x, y, reduce=reduce: spmm(GRAPH.relation(), "mul", reduce, x, y),
        [(SOURCES, *shapes[0]), (EDGES, *shapes[1])],
    )
    for reduce in ("sum", "mean", "max", "min")
    for shapes in (((25,), ()), ((2, 15), (2, 1)), ((33,), (33,)))
}
CASES |= {
    "dot": (
        lambda x, y: sddmm(GRAPH.relation(), "dot", x, y),
        [(SOURCES, 2, 37), (GRAPH.relation().num_dst, 2, 37)],
    ),
    "softmax": (lambda x: edge_softmax(GRAPH, x), [(EDGES, 25)]),
    "relu_dropout": (lambda x: relu_dropout(x, 0.5), [(1001, 1007)]),
}


@pytest.mark.parametrize("name", CASES)
def test_threads_change_nothing(name: str, torch_threads: Callable[[int], None]) -> None:
    function, shapes = CASES[name]
    results = []
    for count in (1, 2, 3):
        torch_threads(count)
        assert threads.grain_for(EDGES, cost=25 * EDGES) < EDGES  # they have chunks to share
        torch.manual_seed(1)
        values = [torch.randn(shape, requires_grad=True) for shape in shapes]
        out = function(*values)
        results.append([out, *torch.autograd.grad(out.square().sum(), values)])
    assert all(map(torch.equal, results[0], results[1]))
    assert all(map(torch.equal, results[0], results[2]))


def test_the_seed_decides_what_is_dropped() -> None:
    x, found = torch.ones(101, 7), []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        found += [relu_dropout(x, 0.5), relu_dropout(x, 0.5)]
    assert torch.equal(found[0], found[2]) and torch.equal(found[1], found[3])
    assert not torch.equal(found[0], found[1]) and not torch.equal(found[0], found[4])
