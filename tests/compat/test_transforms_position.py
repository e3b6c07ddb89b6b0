"""Encodings of positions against numpy's matrices, networkx's paths and SEAL's formula."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

import gnnlab as dgl
from gnnlab.compat import transforms
from tests.graph.samples import edge_lists, toy


def undirected(n: int = 20) -> dgl.Graph:
    return dgl.to_bidirected(dgl.from_networkx(nx.gnp_random_graph(n, 0.3, seed=2)))


def test_laplacian_encoding_has_eigenvectors() -> None:
    g = undirected()
    simple = nx.Graph(g.to_networkx())
    matrix = torch.from_numpy(nx.normalized_laplacian_matrix(simple, weight=None).toarray())
    values = torch.linalg.eigvalsh(matrix)
    encoding, found = transforms.lap_pe(g, 5, return_eigval=True)
    assert torch.allclose(found.double(), values[1:6], atol=1e-6)
    moved = matrix @ encoding.double()
    assert torch.allclose(moved, encoding.double() * values[1:6], atol=1e-5)
    assert torch.allclose(encoding.norm(dim=0), torch.ones(5), atol=1e-5)
    small = dgl.to_bidirected(dgl.graph(([0], [1])))
    padded, found = transforms.laplacian_pe(small, 3, padding=True, return_eigval=True)
    assert padded.shape == (2, 3) and not padded[:, 1:].any()
    assert found[0] == 2 and found[1:].isnan().all()
    largest = transforms.laplacian_lambda_max(dgl.batch([g, small]))
    assert largest == pytest.approx([float(values[-1]), 2.0])
    with pytest.raises(dgl.InvalidInput, match="padding=True"):
        transforms.lap_pe(small, 2)


@given(edge_lists())
def test_random_walk_encoding_is_the_diagonal_of_powers(
    edges: tuple[int, list[int], list[int]],
) -> None:
    count, src, dst = edges
    g = dgl.graph((src, dst), num_nodes=count)
    g.edata["w"] = torch.arange(len(src)) + 1.0
    for name, weight in (None, torch.ones(len(src))), ("w", g.edata["w"]):
        matrix = torch.zeros(count, count, dtype=torch.float64)
        ends = torch.tensor(src).long(), torch.tensor(dst).long()
        matrix.index_put_(ends, weight.double(), True)
        step = torch.nan_to_num(matrix / matrix.sum(1, keepdim=True))
        powers = [torch.linalg.matrix_power(step, i).diagonal() for i in (1, 2, 3)] if count else []
        expected = torch.stack(powers, 1) if count else torch.zeros(0, 3)
        found = transforms.random_walk_pe(g, 3, name).double()
        assert torch.allclose(found, expected.double(), atol=1e-6)


def test_singular_vectors_approximate_the_matrix() -> None:
    g = dgl.rand_graph(9, 30)
    matrix = g.adj_external(scipy_fmt="csr").toarray()
    values = np.linalg.svd(matrix, compute_uv=False)
    for k in (2, 9):
        encoding = transforms.svd_pe(g, k, random_flip=False).double().numpy()
        rest = matrix - encoding[:, :k] @ encoding[:, k:].T
        assert np.linalg.norm(rest, 2) == pytest.approx(values[k] if k < 9 else 0, abs=1e-4)
    signs = {
        tuple((transforms.svd_pe(g, 3) / transforms.svd_pe(g, 3, random_flip=False))[0].tolist())
        for _ in range(20)
    }
    assert len(signs) > 2
    padded = transforms.svd_pe(dgl.graph(([0], [1])), 3, padding=True, random_flip=False)
    assert padded.shape == (2, 6) and not padded[:, [1, 2, 4, 5]].any()
    with pytest.raises(dgl.InvalidInput, match="padding=True"):
        transforms.svd_pe(dgl.graph(([0], [1])), 3)


@pytest.mark.parametrize(("src", "dst"), [(0, 1), (3, 11), (12, 2)])
def test_labels_of_a_link_are_seal(src: int, dst: int) -> None:
    g = dgl.from_networkx(nx.gnp_random_graph(15, 0.2, seed=5, directed=True))
    seen = nx.Graph(g.to_networkx())
    expected = []
    for node in range(15):
        hops = []
        for start, other in ((src, dst), (dst, src)):
            without = seen.subgraph(set(seen) - {other})
            reached = nx.single_source_shortest_path_length(without, start)
            hops.append(reached.get(node))
        if node in (src, dst):
            expected.append(1)
        elif None in hops:
            expected.append(0)
        else:
            total = sum(hops)
            half, odd = divmod(total, 2)
            expected.append(1 + min(hops) + half * (half + odd - 1))
    assert transforms.double_radius_node_labeling(g, src, dst).tolist() == expected
    assert len(set(expected)) > 2


def test_transforms_write_the_features() -> None:
    g = undirected()
    assert transforms.RandomWalkPE(4, "walk")(g) is g
    assert g.ndata["walk"].equal(transforms.random_walk_pe(g, 4))
    weighted = toy()
    transforms.RandomWalkPE(2, eweight_name="w")(weighted)
    assert weighted.ndata["PE"].equal(transforms.random_walk_pe(weighted, 2, "w"))
    assert transforms.LaplacianPE is transforms.LapPE
    transforms.LapPE(5, eigval_name="values")(g)
    encoding, values = transforms.lap_pe(g, 5, return_eigval=True)
    assert torch.allclose(g.ndata["PE"].abs(), encoding.abs())  # signs are random
    assert torch.allclose(g.ndata["values"], values.expand(20, 5))
    transforms.SVDPE(2, random_flip=False)(g)
    assert g.ndata["svd_pe"].equal(transforms.svd_pe(g, 2, random_flip=False))
