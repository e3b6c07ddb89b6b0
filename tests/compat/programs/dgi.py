"""Deep graph infomax: an encoder trained without labels, judged by a linear classifier."""

import math

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn.pytorch import GraphConv


class Encoder(nn.Module):
    def __init__(self, in_feats, n_hidden):
        super().__init__()
        self.conv = GraphConv(in_feats, n_hidden, activation=nn.PReLU(n_hidden))

    def forward(self, g, features, corrupt=False):
        if corrupt:
            features = features[torch.randperm(g.number_of_nodes())]
        return self.conv(g, features)


class Discriminator(nn.Module):
    def __init__(self, n_hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_hidden, n_hidden))
        bound = 1 / math.sqrt(n_hidden)
        nn.init.uniform_(self.weight, -bound, bound)

    def forward(self, features, summary):
        return features @ (self.weight @ summary)


class DGI(nn.Module):
    def __init__(self, in_feats, n_hidden):
        super().__init__()
        self.encoder = Encoder(in_feats, n_hidden)
        self.discriminator = Discriminator(n_hidden)

    def forward(self, g, features):
        positive = self.encoder(g, features)
        negative = self.encoder(g, features, corrupt=True)
        with g.local_scope():
            g.ndata["p"] = positive
            summary = torch.sigmoid(dgl.mean_nodes(g, "p")[0])
        real = self.discriminator(positive, summary)
        fake = self.discriminator(negative, summary)
        loss = F.binary_cross_entropy_with_logits
        return loss(real, torch.ones_like(real)) + loss(fake, torch.zeros_like(fake))


def probe(embeds, labels, train, test):
    torch.manual_seed(0)
    classifier = nn.Linear(embeds.shape[1], 4)
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.05, weight_decay=1e-3)
    for epoch in range(100):
        loss = F.cross_entropy(classifier(embeds[train]), labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (classifier(embeds).argmax(1) == labels)[test].float().mean().item()


torch.manual_seed(0)
g = dgl.add_self_loop(Communities()[0])
features, labels = g.ndata["feat"], g.ndata["label"]
masks = g.ndata["train_mask"], g.ndata["test_mask"]
model = DGI(4, 32)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
losses = []
for epoch in range(80):
    loss = model(g, features)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
raw = probe(features, labels, *masks)
learned = probe(model.encoder(g, features).detach(), labels, *masks)
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}; accuracy {raw:.2f} raw, {learned:.2f} learned")
assert losses[-1] < losses[0] - 0.05
assert learned > raw + 0.1
