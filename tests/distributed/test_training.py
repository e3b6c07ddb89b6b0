"""Whole training loops on a graph in parts end where the loops on the whole graph end.

Samples, order of seeds and first weights are the same, so losses agree step for step, up to the
order in which numbers are added.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

import gnnlab as dgl
from gnnlab.distributed import (
    DistEdgeDataLoader,
    DistEmbedding,
    DistNodeDataLoader,
    SparseAdagrad,
    SparseAdam,
    edge_split,
    node_split,
)
from gnnlab.nn import SAGEConv
from tests.distributed import cut as cuts
from tests.distributed.cut import Cut

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")


@pytest.fixture(scope="module")
def digits(tmp_path_factory) -> Cut:
    graph = dgl.data.load("digits", add_reverse_edges=True)[0]
    return cuts.cut(graph, 3, tmp_path_factory.mktemp("digits"), "digits", how="metis")


class Model(torch.nn.Module):
    """GraphSAGE with two layers."""

    def __init__(self, num_features: int, num_classes: int = 10) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, 64, "mean")
        self.second = SAGEConv(64, num_classes, "mean")

    def forward(self, blocks: list[dgl.Block], x: torch.Tensor) -> torch.Tensor:
        return self.second(blocks[1], F.relu(self.first(blocks[0], x)))


def train(g: Any, seeds: torch.Tensor, epochs: int) -> tuple[Model, list[float]]:
    torch.manual_seed(0)
    model = Model(64)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    sampler = dgl.dataloading.NeighborSampler([10, 10], prefetch_node_feats=["feat"])
    loader = DistNodeDataLoader(g, seeds, sampler, batch_size=64, shuffle=True, seed=1)
    losses = []
    for _ in range(epochs):
        for _, output_nodes, blocks in loader:
            scores = model(blocks, blocks[0].srcdata["feat"])
            loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return model, losses


@torch.no_grad()
def accuracy(model: Model, g: Any, ids: torch.Tensor) -> float:
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    right = 0
    for _, nodes, blocks in DistNodeDataLoader(g, ids, sampler, batch_size=500):
        scores = model(blocks, blocks[0].srcdata["feat"])
        right += int((scores.argmax(1) == g.ndata["label"][nodes]).sum())
    return right / len(ids)


def test_a_supervised_loop(digits: Cut) -> None:
    whole, parts = digits.whole, digits.parts
    seeds = whole.ndata["train_mask"].nonzero().flatten()
    model, losses = train(whole, seeds, epochs=15)
    twin, found = train(parts, digits.new(seeds), epochs=15)
    assert len(found) == len(losses) == 45
    torch.testing.assert_close(found, losses, rtol=1e-3, atol=1e-4)
    tested = whole.ndata["test_mask"].nonzero().flatten()
    in_memory, in_parts = accuracy(model, whole, tested), accuracy(twin, parts, digits.new(tested))
    assert in_memory > 0.94
    assert abs(in_parts - in_memory) < 0.005
    share = node_split(parts.ndata["train_mask"])
    assert torch.equal(digits.nodes["_N"][share].sort().values, seeds)


def test_nodes_without_features_learn_embeddings(digits: Cut) -> None:
    """Rows of a DistEmbedding in place of features, against a sparse torch.nn.Embedding."""
    table = torch.randn(1797, 16, generator=torch.Generator().manual_seed(2)) / 4
    seeds = digits.whole.ndata["train_mask"].nonzero().flatten()
    curves = []
    for rule in ("adagrad", "adam"):
        for g, ids in ((digits.whole, seeds), (digits.parts, digits.new(seeds))):
            torch.manual_seed(0)
            model = Model(16)
            dense = torch.optim.Adam(model.parameters(), lr=0.01)
            if g is digits.whole:
                emb: Any = torch.nn.Embedding.from_pretrained(table.clone(), False, sparse=True)
                sparse: Any = (
                    torch.optim.Adagrad(emb.parameters(), lr=0.1)
                    if rule == "adagrad"
                    else torch.optim.SparseAdam(emb.parameters(), lr=0.05)
                )
            else:
                emb = DistEmbedding(1797, 16)
                emb.weight[:] = table[digits.nodes["_N"]]
                sparse = (
                    SparseAdagrad([emb], lr=0.1)
                    if rule == "adagrad"
                    else SparseAdam([emb], lr=0.05)
                )
            sampler = dgl.dataloading.NeighborSampler([5, 5])
            loader = DistNodeDataLoader(g, ids, sampler, batch_size=64, shuffle=True, seed=1)
            losses = []
            for _ in range(6):
                for input_nodes, output_nodes, blocks in loader:
                    scores = model(blocks, emb(input_nodes))
                    loss = F.cross_entropy(scores, g.ndata["label"][output_nodes])
                    dense.zero_grad()
                    sparse.zero_grad()
                    loss.backward()
                    dense.step()
                    sparse.step()
                    losses.append(loss.item())
            curves.append(losses)
    for in_memory, in_parts in (curves[:2], curves[2:]):
        torch.testing.assert_close(in_parts, in_memory, rtol=1e-3, atol=1e-4)
        assert sum(in_parts[-3:]) < 0.7 * sum(in_parts[:3])


def test_links_are_learned(digits: Cut) -> None:
    g = digits.parts
    reverse = torch.cat([torch.arange(9929, 2 * 9929), torch.arange(9929)])
    loader = DistEdgeDataLoader(
        g,
        edge_split(torch.ones(g.num_edges(), dtype=torch.bool), g.get_partition_book()),
        dgl.dataloading.NeighborSampler([5, 5]),
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
        exclude="reverse_id",
        reverse_eids=digits.new_edges(reverse[digits.edges[("_N", "_E", "_N")]]),
        batch_size=1024,
        shuffle=True,
        seed=0,
    )
    torch.manual_seed(0)
    model = Model(64, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _, pairs, negatives, blocks in loader:
        h = F.normalize(model(blocks, blocks[0].srcdata["feat"]))
        scores = torch.cat([dgl.ops.u_dot_v(part, h, h).flatten() for part in (pairs, negatives)])
        labels = torch.cat([torch.ones(pairs.num_edges()), torch.zeros(negatives.num_edges())])
        loss = F.binary_cross_entropy_with_logits(5 * scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.85 * losses[0]
