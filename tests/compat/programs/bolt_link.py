"""Link prediction with GraphBolt: negatives, seed edges left out; and the same by the old way."""

import dgl
import dgl.graphbolt as gb
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn import SAGEConv


class SAGE(nn.Module):
    def __init__(self, in_size, hidden_size):
        super().__init__()
        self.layers = nn.ModuleList(
            [SAGEConv(in_size, hidden_size, "mean"), SAGEConv(hidden_size, hidden_size, "mean")]
        )
        self.predictor = nn.Linear(hidden_size, 1)

    def forward(self, blocks, x):
        for i, (layer, block) in enumerate(zip(self.layers, blocks)):
            x = layer(block, x if i == 0 else F.relu(x))
        return x

    def score(self, y, seeds):
        return self.predictor(y[seeds[:, 0]] * y[seeds[:, 1]]).flatten()


def new(model, optimizer):
    datapipe = gb.ItemSampler(train_set, batch_size=64, shuffle=True)
    datapipe = datapipe.sample_uniform_negative(graph, 1)
    datapipe = datapipe.sample_neighbor(graph, [10, 10])
    datapipe = datapipe.exclude_seed_edges(include_reverse_edges=True)
    datapipe = datapipe.fetch_feature(features, node_feature_keys=["feat"])
    for data in gb.DataLoader(datapipe.copy_to("cpu")):
        y = model(data.blocks, data.node_features["feat"])
        logits = model.score(y, data.compacted_seeds)
        loss = F.binary_cross_entropy_with_logits(logits, data.labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        layer = data.sampled_subgraphs[-1]
        assert torch.equal(layer.original_column_node_ids[data.compacted_seeds], data.seeds)


def old(model, optimizer):
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        dgl.dataloading.NeighborSampler([10, 10]),
        exclude="reverse_id",
        reverse_eids=reverse_eids,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
    )
    loader = dgl.dataloading.DataLoader(g, train_eids, sampler, batch_size=64, shuffle=True)
    for _, pairs, negatives, blocks in loader:
        y = model(blocks, blocks[0].srcdata["feat"])
        seeds = torch.cat([torch.stack(part.edges(), 1) for part in (pairs, negatives)])
        labels = torch.zeros(len(seeds))
        labels[: pairs.num_edges()] = 1
        loss = F.binary_cross_entropy_with_logits(model.score(y, seeds), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def fit(name, epoch):
    torch.manual_seed(0)
    model = SAGE(4, 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(15):
        epoch(model, optimizer)
    with torch.no_grad():
        y = model([g, g], g.ndata["feat"])
        right, wrong = model.score(y, held_out), model.score(y, others)
    auc = (right[:, None] > wrong[None, :]).float().mean().item()
    print(f"{name}: AUC {auc:.2f}")
    assert auc > 0.6
    return auc


torch.manual_seed(0)
whole = Communities()[0]
edges = torch.stack(whole.edges(), 1)
forward = (edges[:, 0] < edges[:, 1]).nonzero().flatten()
held_out = edges[forward[torch.randperm(len(forward))[:80]]]
g = dgl.remove_edges(
    whole, torch.cat([whole.edge_ids(*held_out.T), whole.edge_ids(*held_out.T.flip(0))])
)
others = torch.randint(g.num_nodes(), (300, 2))
src, dst = g.edges()
train_eids = (src < dst).nonzero().flatten()
reverse_eids = g.edge_ids(dst, src)
graph = gb.from_dglgraph(g, is_homogeneous=True)
features = gb.BasicFeatureStore({("node", None, "feat"): gb.TorchBasedFeature(g.ndata["feat"])})
train_set = gb.ItemSet(torch.stack([src, dst], 1)[train_eids], names="seeds")
assert abs(fit("old", old) - fit("GraphBolt", new)) < 0.1
