"""Softmax, largest rows and products by group, against loops over the graphs and rows."""

from __future__ import annotations

import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.errors import InvalidInput


def batched() -> tuple[dgl.DGLGraph, list[dgl.DGLGraph]]:  # type: ignore[name-defined]
    torch.manual_seed(0)
    parts = []
    for n, m in ((3, 5), (1, 1), (6, 2)):
        g = dgl.rand_graph(n, m)
        g.ndata["h"], g.edata["h"] = torch.randn(n, 2), torch.randn(m, 2)
        parts.append(g)
    return dgl.batch(parts), parts


def test_softmax_within_each_graph() -> None:
    g, parts = batched()
    g.ndata["h"] = g.ndata["h"].double().requires_grad_()
    expected = torch.cat([part.softmax(0) for part in g.ndata["h"].split([3, 1, 6])])
    found = dgl.softmax_nodes(g, "h")
    torch.testing.assert_close(found, expected)
    weight = torch.randn_like(found)
    grads = [torch.autograd.grad((x * weight).sum(), g.ndata["h"])[0] for x in (found, expected)]
    torch.testing.assert_close(*grads)
    expected = torch.cat([part.edata["h"].softmax(0) for part in parts])
    torch.testing.assert_close(dgl.softmax_edges(g, "h"), expected)


@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("what", ["nodes", "edges"])
def test_largest_rows_of_each_graph(what: str, descending: bool) -> None:
    g, parts = batched()
    topk = getattr(dgl, f"topk_{what}")
    features = [(part.ndata if what == "nodes" else part.edata)["h"] for part in parts]
    values, ids = topk(g, "h", 3, descending=descending, sortby=1)
    apart, apart_ids = topk(g, "h", 3, descending=descending)
    assert values.shape == apart.shape == (3, 3, 2) and ids.shape == (3, 3)
    for i, h in enumerate(features):
        k = min(3, len(h))
        order = h[:, 1].argsort(descending=descending)[:k]
        assert ids[i, :k].equal(order) and values[i, :k].equal(h[order])
        assert apart[i, :k].equal(h.sort(0, descending=descending).values[:k])
        assert h.gather(0, apart_ids[i, :k]).equal(apart[i, :k])
        assert not values[i, k:].any() and not apart[i, k:].any()
    with pytest.raises(InvalidInput, match="shape"):
        g.ndata["x"] = torch.ones(10)
        dgl.topk_nodes(g, "x", 1)


def test_products_with_a_matrix_for_each_group() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(7, 3, requires_grad=True), torch.randn(4, 3, 2, requires_grad=True)
    which = torch.tensor([2, 0, 2, 3, 0, 0, 2])
    expected = torch.stack([a[i] @ b[which[i]] for i in range(7)])
    found = dgl.ops.gather_mm(a, b, idx_b=which)
    torch.testing.assert_close(found, expected)
    weight = torch.randn(7, 2)
    for x, y in zip(
        torch.autograd.grad((found * weight).sum(), (a, b)),
        torch.autograd.grad((expected * weight).sum(), (a, b)),
        strict=True,
    ):
        torch.testing.assert_close(x, y)
    lengths = torch.tensor([2, 0, 4, 1])
    expected = torch.cat([a[:2] @ b[0], a[2:6] @ b[2], a[6:] @ b[3]])
    torch.testing.assert_close(dgl.ops.segment_mm(a, b, lengths), expected)
    with pytest.raises(InvalidInput):
        dgl.ops.segment_mm(a, b, lengths[:2])
    found = dgl.ops.segment_softmax(lengths, a)
    runs = [part.softmax(0) for part in a.split(lengths.tolist())]
    torch.testing.assert_close(found, torch.cat(runs))
