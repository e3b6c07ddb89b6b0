from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import gnnlab as dgl
from gnnlab.ops import edge_softmax
from tests.ops import reference
from tests.ops.reference import assert_near, random_graph, toy_graph


def slow_softmax(ends: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(scores)
    for node in ends.unique():
        out[ends == node] = torch.softmax(scores[ends == node], 0)
    return out


@pytest.mark.parametrize("norm_by", ["dst", "src"])
@pytest.mark.parametrize("shape", [(), (1,), (4,), (3, 1), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equals_the_definition(shape: tuple, dtype: torch.dtype, norm_by: str, path: str) -> None:
    for graph in (toy_graph(), random_graph(30, 20, 150)):
        scores = torch.randn(graph.num_edges(), *shape, dtype=dtype) * 3
        ends = graph.edges()[norm_by == "dst"]
        found = edge_softmax(graph, scores, norm_by=norm_by)
        assert_near(found, slow_softmax(ends, scores))


@pytest.mark.parametrize("norm_by", ["dst", "src"])
def test_gradient(norm_by: str, path: str) -> None:
    scores = torch.randn(8, 3, 1, dtype=torch.float64, requires_grad=True)
    for check in gradcheck, gradgradcheck:
        assert check(lambda x: edge_softmax(toy_graph(), x, norm_by=norm_by), scores)
    some = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: edge_softmax(toy_graph(), x, [6, 0, 2, 4], norm_by), some)


def test_some_edges_only(path: str) -> None:
    scores = torch.randn(4, 2)
    dst = torch.tensor(reference.DST)[[6, 0, 2, 4]]
    for eids in ([6, 0, 2, 4], torch.tensor([6, 0, 2, 4], dtype=torch.int32)):
        assert_near(edge_softmax(toy_graph(), scores, eids), slow_softmax(dst, scores))
    mask = torch.tensor([1, 0, 1, 0, 1, 0, 0, 1]).bool()
    expected = slow_softmax(torch.tensor(reference.DST)[mask], scores)
    assert_near(edge_softmax(toy_graph(), scores, mask), expected)
    assert edge_softmax(toy_graph(), scores[:0], []).shape == (0, 2)


def test_large_scores_do_not_overflow(path: str) -> None:
    scores = torch.tensor([1e4, 3e38, -1e4, 3e38, -1e4, 0.0, -1e4, 1e4 + 1])
    out = edge_softmax(toy_graph(), scores)
    assert_near(out[[1, 3, 5]], torch.tensor([0.5, 0.5, 1.0]))
    assert_near(out[[2, 4, 6]], torch.full((3,), 1 / 3))
    scores[[1, 2]] = -torch.inf
    assert_near(edge_softmax(toy_graph(), scores)[[1, 3, 2, 6]], torch.tensor([0.0, 1, 0, 0.5]))


def test_half_precision_and_empty_graphs(path: str) -> None:
    scores = torch.randn(8, 2).half().requires_grad_()
    out = edge_softmax(toy_graph(), scores)
    assert out.dtype == torch.float16
    torch.testing.assert_close(
        out.float(), edge_softmax(toy_graph(), scores.float()), atol=1e-3, rtol=1e-2
    )
    assert torch.autograd.grad(out[0].sum(), scores)[0].dtype == torch.float16
    empty = dgl.graph(([], []), num_nodes=3)
    assert edge_softmax(empty, torch.ones(0, 4)).shape == (0, 4)


def typed_graph() -> dgl.Graph:
    """Edges to b 0: (0) from a 0 and (1) from a 1 by r, (0) from c 0 by s; to b 1: (1) c 0 by s."""
    ends = {("a", "r", "b"): ([0, 1], [0, 0]), ("c", "s", "b"): ([0, 0], [0, 1])}
    return dgl.heterograph(ends)


def test_scores_by_edge_type(path: str) -> None:
    g, r, s = typed_graph(), ("a", "r", "b"), ("c", "s", "b")
    scores = {"r": torch.tensor([1.0, 2.0]).log(), s: torch.tensor([5.0, 7.0]).log()}
    for graph in (g, dgl.to_block(g, {"b": [0, 1]})):
        found = edge_softmax(graph, scores)
        assert list(found) == [r, s]
        assert_near(found[r], torch.tensor([0.125, 0.25]))
        assert_near(found[s], torch.tensor([0.625, 1.0]))
        found = edge_softmax(graph, scores, norm_by="src")
        assert_near(found[r], torch.ones(2))
        assert_near(found[s], torch.tensor([5 / 12, 7 / 12]))
    some = edge_softmax(g, {"r": scores["r"][1:], "s": scores[s]}, {"r": [1]})
    assert_near(some[r], torch.tensor([2 / 7]))
    assert_near(some[s], torch.tensor([5 / 7, 1.0]))
    assert_near(edge_softmax(g, {r: scores["r"]})[r], torch.tensor([1 / 3, 2 / 3]))
    assert edge_softmax(g, {}) == {}


@pytest.mark.parametrize("norm_by", ["dst", "src"])
def test_gradient_by_edge_type(norm_by: str, path: str) -> None:
    def weights(r: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(edge_softmax(typed_graph(), {"r": r, "s": s}, norm_by=norm_by).values())

    scores = [torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in "rs"]
    assert gradcheck(weights, scores)
