"""GraphSAGE with mini-batches of every sampler."""

import os

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.dataloading import (
    ClusterGCNSampler,
    LaborSampler,
    MultiLayerFullNeighborSampler,
    MultiLayerNeighborSampler,
    NeighborSampler,
    SAINTSampler,
    ShaDowKHopSampler,
)
from dgl.nn.pytorch import SAGEConv


class SAGE(nn.Module):
    def __init__(self, in_size, out_size):
        super().__init__()
        self.layers = nn.ModuleList([SAGEConv(in_size, 16, "mean"), SAGEConv(16, out_size, "mean")])

    def forward(self, blocks, h):
        for i, (layer, block) in enumerate(zip(self.layers, blocks)):
            h = layer(block, h if i == 0 else F.relu(h))
        return h


class Mine(dgl.dataloading.BlockSampler):
    """A sampler of the user: all in-edges from nodes with an even ID or a low degree."""

    def sample_blocks(self, g, seed_nodes, exclude_eids=None):
        output_nodes, blocks = seed_nodes, []
        for _ in range(2):
            frontier = dgl.in_subgraph(g, seed_nodes)
            src, _ = frontier.edges()
            drop = (src % 2 == 1) & (g.in_degrees()[src] > 6)
            frontier.remove_edges(drop.nonzero().flatten())
            block = dgl.to_block(frontier, seed_nodes)
            seed_nodes = block.srcdata[dgl.NID]
            blocks.insert(0, block)
        return seed_nodes, output_nodes, blocks


data = Communities()
g = data[0]
train = g.ndata["train_mask"].nonzero(as_tuple=True)[0]
test = g.ndata["test_mask"]


def fit(name, batches, epochs=10):
    torch.manual_seed(0)
    model = SAGE(4, data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(epochs):
        for blocks, feat, label, mask in batches():
            loss = F.cross_entropy(model(blocks, feat)[mask], label[mask])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        right = model([g, g], g.ndata["feat"]).argmax(1) == g.ndata["label"]
    accuracy = right[test].float().mean().item()
    print(f"{name}: test accuracy {accuracy:.2f}")
    assert accuracy > 0.55


def of_blocks(loader):
    for input_nodes, output_nodes, blocks in loader:
        label = blocks[-1].dstdata["label"]
        yield blocks, blocks[0].srcdata["feat"], label, torch.ones(len(label), dtype=torch.bool)


def of_subgraphs(loader):
    for sg in loader:
        mask = sg.ndata["train_mask"]
        if mask.any():
            yield [sg, sg], sg.ndata["feat"], sg.ndata["label"], mask


block_samplers = [
    MultiLayerNeighborSampler([10, 10]),
    NeighborSampler([5, 10], replace=True),
    MultiLayerFullNeighborSampler(2),
    LaborSampler([10, 10]),
    Mine(),
]
for sampler in block_samplers:
    loader = dgl.dataloading.NodeDataLoader(
        g, train, sampler, batch_size=10, shuffle=True, drop_last=False, num_workers=0
    )
    fit(type(sampler).__name__, lambda: of_blocks(loader))


def of_shadow(loader):
    for input_nodes, output_nodes, sg in loader:
        seeds = torch.zeros(sg.num_nodes(), dtype=torch.bool)
        seeds[: len(output_nodes)] = True  # the seeds are the first nodes
        assert torch.equal(sg.ndata["label"][seeds], g.ndata["label"][output_nodes])
        yield [sg, sg], sg.ndata["feat"], sg.ndata["label"], seeds


loader = dgl.dataloading.DataLoader(g, train, ShaDowKHopSampler([5, 5]), batch_size=10)
fit("ShaDowKHopSampler", lambda: of_shadow(loader))
cache = os.path.join(os.environ["COMMUNITIES"], "cluster_gcn.pkl")
sampler = ClusterGCNSampler(g, 8, cache, prefetch_ndata=["feat", "label", "train_mask"])
loader = dgl.dataloading.DataLoader(g, torch.arange(8), sampler, batch_size=2, shuffle=True)
fit("ClusterGCNSampler", lambda: of_subgraphs(loader))
sampler = SAINTSampler(mode="node", budget=100)
loader = dgl.dataloading.DataLoader(g, torch.arange(5), sampler, batch_size=1)
fit("SAINTSampler", lambda: of_subgraphs(loader))
