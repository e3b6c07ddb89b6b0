"""Graph isomorphism network: which kind of graph is it?"""

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from dgl.data import DGLDataset
from dgl.data.utils import Subset, split_dataset
from dgl.dataloading import GraphDataLoader
from dgl.nn.pytorch.conv import GINConv
from dgl.nn.pytorch.glob import MaxPooling, SortPooling, SumPooling


class Shapes(DGLDataset):
    def __init__(self, number):
        self.number = number
        super().__init__(name="shapes")

    def process(self):
        self.graphs, labels = [], []
        for i in range(self.number):
            n = 5 + i % 7
            ring = [(k, (k + 1) % n) for k in range(n)]
            star = [(0, k) for k in range(1, n)]
            full = [(k, j) for k in range(n) for j in range(k)]
            g = dgl.to_bidirected(dgl.graph((ring, star, full)[i % 3]))
            g.ndata["attr"] = torch.ones(g.number_of_nodes(), 1)
            self.graphs.append(g)
            labels.append(i % 3)
        self.labels = torch.tensor(labels)

    def __getitem__(self, idx):
        return self.graphs[idx], self.labels[idx]

    def __len__(self):
        return len(self.graphs)


class GIN(nn.Module):
    def __init__(self, pool, width):
        super().__init__()
        mlps = [nn.Sequential(nn.Linear(i, 16), nn.ReLU(), nn.Linear(16, 16)) for i in (1, 16)]
        self.layers = nn.ModuleList(GINConv(mlp, "sum", learn_eps=True) for mlp in mlps)
        self.pool, self.linear = pool, nn.Linear(width, 3)

    def forward(self, g, h):
        for layer in self.layers:
            h = F.relu(layer(g, h))
        return self.linear(self.pool(g, h))


dataset = Shapes(90)
train, _, test = split_dataset(dataset, [0.6, 0.0, 0.4], shuffle=True, random_state=0)
assert isinstance(train, Subset)
for pool, width in ((SumPooling(), 16), (MaxPooling(), 16), (SortPooling(k=3), 48)):
    torch.manual_seed(0)
    model = GIN(pool, width)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for epoch in range(12):
        for batched, labels in GraphDataLoader(train, batch_size=16, shuffle=True):
            loss = F.cross_entropy(model(batched, batched.ndata["attr"]), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = total = 0
    for batched, labels in GraphDataLoader(test, batch_size=64):
        assert batched.batch_size == len(labels)
        right += (model(batched, batched.ndata["attr"]).argmax(1) == labels).sum().item()
        total += len(labels)
    print(type(pool).__name__, f"test accuracy {right / total:.2f}")
    assert right / total > 0.8
