"""Weights and diffusions against dense matrices; rows are destinations."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

import gnnlab as dgl
from gnnlab.compat import transforms
from tests.graph.samples import toy, typed


def weighted(weights: bool = True) -> dgl.Graph:
    """A simple graph of 8 nodes, the last without in-edges."""
    torch.manual_seed(0)
    g = dgl.graph(([0, 1, 2, 3, 4, 5, 6, 7, 7, 0, 3], [1, 2, 0, 4, 3, 6, 5, 0, 3, 6, 1]))
    g.ndata["feat"] = torch.randn(8, 3)
    if weights:
        g.edata["w"] = torch.rand(11) + 0.5
    return g


def dense(g: dgl.Graph, name: str = "w") -> torch.Tensor:
    matrix = torch.zeros(g.num_nodes(), g.num_nodes(), dtype=torch.float64)
    values = g.edata[name].double() if name in g.edata else torch.ones(g.num_edges()).double()
    for (u, v), value in zip(zip(*g.edges(), strict=True), values, strict=True):
        matrix[v, u] += value
    return matrix


def normalized(matrix: torch.Tensor) -> torch.Tensor:
    scale = matrix.sum(1) ** -0.5
    scale[scale.isinf()] = 0
    return scale.diag() @ matrix @ scale.diag()


@pytest.mark.parametrize("weights", [True, False])
def test_gcn_norm(weights: bool) -> None:
    g = weighted(weights)
    expected = normalized(dense(g))
    made = transforms.GCNNorm()(g)
    assert made is g
    torch.testing.assert_close(dense(g), expected, rtol=1e-6, atol=1e-7)
    g = transforms.GCNNorm("n")(typed())
    assert "n" in g.edges["follows"].data and "n" not in g.edges["plays"].data


DIFFUSIONS = {
    "ppr": (
        lambda **kw: transforms.PPR(alpha=0.2, **kw),
        lambda a: sum(0.2 * (0.8**k) * torch.linalg.matrix_power(a, k) for k in range(400)),
    ),
    "heat": (lambda **kw: transforms.HeatKernel(t=1.5, **kw), lambda a: poisson_series(a, 1.5)),
    "gdc": (
        lambda **kw: transforms.GDC([0.1, 0.0, 0.5, 0.2], **kw),
        lambda a: 0.1 * torch.eye(8).double() + 0.5 * a @ a + 0.2 * a @ a @ a,
    ),
}


def poisson_series(a: torch.Tensor, t: float) -> torch.Tensor:
    """The Poisson series of the exponential."""
    total, term = torch.zeros_like(a), torch.eye(len(a)).double() * torch.exp(torch.tensor(-t))
    for k in range(1, 60):
        total, term = total + term, term @ a * t / k
    return total


@pytest.mark.parametrize("name", DIFFUSIONS)
def test_diffusion_is_its_series(name: str) -> None:
    make, series = DIFFUSIONS[name]
    g = transforms.GCNNorm()(weighted())
    expected = series(dense(g))
    every = make(eps=-1e9)(g)
    assert every.num_edges() == 64 and every.ndata["feat"].equal(g.ndata["feat"])
    torch.testing.assert_close(dense(every), expected, rtol=1e-5, atol=1e-6)
    some = make(eps=0.05)(g)
    torch.testing.assert_close(
        dense(some), torch.where(expected >= 0.05, expected, 0), rtol=1e-5, atol=1e-6
    )
    kept = make(avg_degree=2)(g)  # the 16 largest entries
    least = expected.flatten().sort().values[-16]
    assert kept.num_edges() == int((expected >= least - 1e-7).sum())
    assert float(kept.edata["w"].min()) == pytest.approx(float(least), rel=1e-4)


def test_pagerank_is_networkx() -> None:
    """The mean over all starts is the PageRank of the reversed roles: columns are starts."""
    g = dgl.to_bidirected(dgl.graph(([0, 1, 2, 3, 0], [1, 2, 3, 4, 3])))
    walk = dense(g) / dense(g).sum(0)  # each column sums to 1
    g.edata["w"] = walk[g.edges()[1], g.edges()[0]].float()
    made = transforms.PPR(alpha=0.15, eps=-1.0)(g)
    ranks = nx.pagerank(nx.DiGraph(g.to_networkx()), alpha=0.85, tol=1e-9, max_iter=1000)
    expected = torch.tensor([ranks[v] for v in range(5)], dtype=torch.float64)
    torch.testing.assert_close(dense(made).mean(1), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("op", ["raw", "rw", "gcn", "ppr"])
def test_sign_is_powers_of_a_matrix(op: str, weights: bool) -> None:
    g = weighted(weights)
    a = dense(g)
    sums = a.sum(1, keepdim=True)
    matrix = {"raw": a, "rw": (a / sums).nan_to_num()}.get(op, normalized(a))
    first = rows = g.ndata["feat"].double()
    made = transforms.SIGNDiffusion(3, eweight_name="w" if weights else None, diffuse_op=op)(g)
    for step in (1, 2, 3):
        rows = matrix @ rows
        if op == "ppr":
            rows = 0.8 * rows + 0.2 * first
        torch.testing.assert_close(
            made.ndata[f"out_feat_{step}"].double(), rows, rtol=1e-5, atol=1e-6
        )
    assert made.ndata["feat"].double().equal(first)


def test_rows_sum_to_one() -> None:
    g = toy()
    g.ndata["h"] = torch.tensor([[1.0, 3.0], [0.2, 0.3], [0.0, 0.0], [-1.0, 6.0]])
    made = transforms.RowFeatNormalizer(node_feat_names=["h"])(g)
    assert made.ndata["h"].tolist() == [
        [0.25, 0.75],
        pytest.approx([0.2, 0.3]),
        [0, 0],
        pytest.approx([-0.2, 1.2]),
    ]
    g.edata["v"] = torch.tensor([[1.0, 2.0, 4.0]] * 5)
    moved = transforms.RowFeatNormalizer(True, edge_feat_names=["v"])(g)
    assert moved.edata["v"][0].tolist() == [0, 0.25, 0.75]
