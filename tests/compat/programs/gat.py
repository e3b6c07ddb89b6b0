"""Graph attention: the layer from its parts, GATConv and GATv2Conv."""

import dgl.function as fn
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn.functional import edge_softmax
from dgl.nn.pytorch.conv import GATConv
from dgl.nn.pytorch.conv.gatv2conv import GATv2Conv


class GATLayer(nn.Module):
    def __init__(self, in_dim, out_dim, num_heads):
        super().__init__()
        self.fc = nn.Linear(in_dim, out_dim * num_heads, bias=False)
        self.attn_l = nn.Parameter(torch.randn(1, num_heads, out_dim) * 0.3)
        self.attn_r = nn.Parameter(torch.randn(1, num_heads, out_dim) * 0.3)
        self.shape = (-1, num_heads, out_dim)

    def edge_attention(self, edges):
        return {"e": F.leaky_relu(edges.src["el"] + edges.dst["er"], 0.2)}

    def forward(self, g, h):
        with g.local_scope():
            z = self.fc(h).view(self.shape)
            g.ndata.update({"z": z, "el": (z * self.attn_l).sum(-1, keepdim=True)})
            g.ndata["er"] = (z * self.attn_r).sum(-1, keepdim=True)
            g.apply_edges(self.edge_attention)
            g.edata["a"] = edge_softmax(g, g.edata["e"])
            g.update_all(fn.u_mul_e("z", "a", "m"), fn.sum("m", "out"))
            return g.ndata["out"]


class GAT(nn.Module):
    def __init__(self, conv, in_dim, num_classes):
        super().__init__()
        self.layer1 = conv(in_dim, 8, 4)
        self.layer2 = conv(32, num_classes, 1)

    def forward(self, g, h):
        return self.layer2(g, F.elu(self.layer1(g, h).flatten(1))).mean(1)


data = Communities()
g = data[0]
features, labels = g.ndata["feat"], g.ndata["label"]
train, test = g.ndata["train_mask"], g.ndata["test_mask"]
for conv in (GATLayer, GATConv, GATv2Conv):
    torch.manual_seed(0)
    model = GAT(conv, features.shape[1], data.num_classes)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(40):
        loss = F.cross_entropy(model(g, features)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (model(g, features).argmax(1) == labels)[test].float().mean().item()
    print(conv.__name__, f"test accuracy {accuracy:.2f}")
    assert accuracy > 0.6

mine, theirs = GATLayer(4, 8, 2), GATConv(4, 8, 2, bias=False)
theirs.fc.weight.data = mine.fc.weight.data
theirs.attn_l.data, theirs.attn_r.data = mine.attn_l.data, mine.attn_r.data
assert torch.allclose(mine(g, features), theirs(g, features), atol=1e-5)
