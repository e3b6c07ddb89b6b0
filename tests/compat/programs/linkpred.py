"""Link prediction: on the whole graph, and in mini-batches with negative samples."""

import itertools

import dgl
import dgl.function as fn
import dgl.nn.pytorch as dglnn
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from sklearn.metrics import roc_auc_score


class GraphSAGE(nn.Module):
    def __init__(self, in_feats, h_feats):
        super().__init__()
        self.conv1 = dglnn.SAGEConv(in_feats, h_feats, "mean")
        self.conv2 = dglnn.SAGEConv(h_feats, h_feats, "mean")

    def forward(self, blocks, h):
        h = F.relu(self.conv1(blocks[0], h))
        return self.conv2(blocks[-1], h)


class DotPredictor(nn.Module):
    def forward(self, g, h):
        with g.local_scope():
            g.ndata["h"] = h
            g.apply_edges(fn.u_dot_v("h", "h", "score"))
            return g.edata["score"][:, 0]


def loss_and_scores(pos, neg):
    scores = torch.cat([pos, neg])
    labels = torch.cat([torch.ones(len(pos)), torch.zeros(len(neg))])
    return F.binary_cross_entropy_with_logits(scores, labels), scores.detach(), labels


g = Communities()[0]
u, v = g.edges()
eids = np.random.RandomState(1).permutation(g.number_of_edges())
size = len(eids) // 5
test_pos = dgl.graph((u[eids[:size]], v[eids[:size]]), num_nodes=g.number_of_nodes())
dense = g.adjacency_matrix(scipy_fmt="csr").toarray() + np.eye(g.number_of_nodes())
neg_u, neg_v = np.where(dense == 0)
chosen = np.random.RandomState(2).choice(len(neg_u), 2 * size)
neg_graph = [dgl.graph((neg_u[c], neg_v[c]), num_nodes=200) for c in np.split(chosen, 2)]
train_g = dgl.remove_edges(g, eids[:size])
train_pos = dgl.graph((u[eids[size:]], v[eids[size:]]), num_nodes=g.number_of_nodes())

torch.manual_seed(0)
pred = DotPredictor()
model = GraphSAGE(4, 16)
optimizer = torch.optim.Adam(itertools.chain(model.parameters(), pred.parameters()), lr=0.01)
for epoch in range(60):
    h = model([train_g, train_g], train_g.ndata["feat"])
    loss, _, _ = loss_and_scores(pred(train_pos, h), pred(neg_graph[0], h))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def auc(model):
    with torch.no_grad():
        h = model([train_g, train_g], train_g.ndata["feat"])
        _, scores, labels = loss_and_scores(pred(test_pos, h), pred(neg_graph[1], h))
    return roc_auc_score(labels.numpy(), scores.numpy())


print(f"whole graph: AUC {auc(model):.2f}")
assert auc(model) > 0.7

sampler = dgl.dataloading.MultiLayerNeighborSampler([10, 10])
negative = dgl.dataloading.negative_sampler.Uniform(2)
sampler = dgl.dataloading.as_edge_prediction_sampler(
    sampler, exclude="self", negative_sampler=negative
)
loader = dgl.dataloading.DataLoader(
    train_g, torch.arange(train_g.number_of_edges()), sampler, batch_size=256, shuffle=True
)
torch.manual_seed(0)
model = GraphSAGE(4, 16)
before = auc(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(15):
    for input_nodes, pos_graph, negative_graph, blocks in loader:
        h = model(blocks, blocks[0].srcdata["feat"])
        loss, _, _ = loss_and_scores(pred(pos_graph, h), pred(negative_graph, h))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"mini-batches: AUC {before:.2f} -> {auc(model):.2f}")
assert auc(model) > 0.65 > before
