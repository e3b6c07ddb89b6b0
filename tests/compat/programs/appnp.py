"""Predict, then propagate (APPNP), and labels that propagate without a network."""

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn.pytorch import APPNPConv, EdgeWeightNorm, LabelPropagation


class APPNP(nn.Module):
    def __init__(self, in_feats, n_classes, k=10, alpha=0.1):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(in_feats, 16), nn.ReLU(), nn.Linear(16, n_classes))
        self.propagate = APPNPConv(k, alpha, edge_drop=0.1)

    def forward(self, g, h, edge_weight=None):
        return self.propagate(g, self.mlp(h), edge_weight)


data = Communities()
g = dgl.add_self_loop(data[0])
features, labels = g.ndata["feat"], g.ndata["label"]
train, test = g.ndata["train_mask"], g.ndata["test_mask"]
norm = EdgeWeightNorm(norm="both")(g, torch.ones(g.num_edges()))
for weight in (None, norm):
    torch.manual_seed(0)
    model = APPNP(4, data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(60):
        model.train()
        loss = F.cross_entropy(model(g, features)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        alone = (model.mlp(features).argmax(1) == labels)[test].float().mean().item()
        accuracy = (model(g, features).argmax(1) == labels)[test].float().mean().item()
    print(f"test accuracy {alone:.2f} without propagation, {accuracy:.2f} with it")
    assert accuracy > max(0.75, alone)

spread = LabelPropagation(k=10, alpha=0.9)(g, labels, mask=train)
accuracy = (spread.argmax(1) == labels)[test].float().mean().item()
print(f"labels alone: test accuracy {accuracy:.2f}")
assert accuracy > 0.7
