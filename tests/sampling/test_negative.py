"""Pairs of nodes without an edge."""

import pytest
import torch

import gnnlab as dgl
from gnnlab.errors import InvalidInput


def test_pairs_are_no_edges_and_distinct():
    g = dgl.rand_graph(100, 3000)
    src, dst = dgl.sampling.global_uniform_negative_sampling(g, 2000)
    assert len(src) == 2000 and src.dtype is torch.int64
    assert not g.has_edges_between(src, dst).any()
    assert not (src == dst).any()
    assert len(set(zip(src.tolist(), dst.tolist(), strict=True))) == 2000


def test_the_seed_decides(torch_threads):
    g = dgl.rand_graph(100, 3000)
    found = []
    for threads in (1, 2):
        torch_threads(threads)
        dgl.seed(4)
        found.append(torch.stack(dgl.sampling.global_uniform_negative_sampling(g, 9000)))
    assert torch.equal(*found)
    again = torch.stack(dgl.sampling.global_uniform_negative_sampling(g, 50))
    assert not torch.equal(again, found[0][:, :50])


def test_types_and_bad_input():
    ends = ([0, 1], [1, 0])
    g = dgl.heterograph({("a", "to", "b"): ends, ("b", "back", "a"): ends})
    src, dst = dgl.sampling.global_uniform_negative_sampling(g, 5, etype="to")
    assert sorted(zip(src.tolist(), dst.tolist(), strict=True)) == [(0, 0), (1, 1)]
    with pytest.raises(InvalidInput, match="etype="):
        dgl.sampling.global_uniform_negative_sampling(g, 5)
    with pytest.raises(InvalidInput, match="at least 0; found -1"):
        dgl.sampling.global_uniform_negative_sampling(g, -1, etype="to")


def test_names_of_the_guide():
    assert dgl.sampling.NodeDataLoader is dgl.dataloading.NodeDataLoader
    assert dgl.sampling.MultiLayerNeighborSampler is dgl.dataloading.MultiLayerNeighborSampler
    with pytest.raises(
        AttributeError, match=r"has no 'Nothing'; .* gnnlab\.compat\.sampling has more"
    ):
        _ = dgl.sampling.Nothing
