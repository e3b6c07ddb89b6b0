"""Simple graph convolution, with powers of the adjacency computed once; TAGConv; jumping."""

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn.pytorch.conv import GraphConv, SGConv, TAGConv
from dgl.nn.pytorch.utils import JumpingKnowledge


class Jumping(nn.Module):
    def __init__(self, in_feats, n_classes):
        super().__init__()
        self.layers = nn.ModuleList([GraphConv(in_feats, 16), GraphConv(16, 16)])
        self.jump, self.linear = JumpingKnowledge("cat"), nn.Linear(32, n_classes)

    def forward(self, g, h):
        hidden = []
        for layer in self.layers:
            h = F.relu(layer(g, h))
            hidden.append(h)
        return self.linear(self.jump(hidden))


data = Communities()
g = dgl.add_self_loop(dgl.remove_self_loop(data[0]))
train, test = g.ndata["train_mask"], g.ndata["test_mask"]
models = [
    SGConv(4, data.num_classes, k=3, cached=True, bias=True),
    TAGConv(4, data.num_classes, k=2),
    Jumping(4, data.num_classes),
]
for model in models:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=5e-5)
    for epoch in range(40):
        logits = model(g, g.ndata["feat"])
        loss = F.cross_entropy(logits[train], g.ndata["label"][train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    right = model(g, g.ndata["feat"]).argmax(1) == g.ndata["label"]
    accuracy = right[test].float().mean().item()
    print(type(model).__name__, f"test accuracy {accuracy:.2f}")
    assert accuracy > 0.75
