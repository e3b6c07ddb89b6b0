"""Trees and points: messages in topological order, transforms, top-k readout, old names.

A tree's class says whether its leaves carry a mark; a small network passes sums to the root. Edges
are lists of pairs, the graphs a DGLDataset with a composed transform.
"""

import dgl
import dgl.function as fn
import torch
import torch.nn as nn
import torch.nn.functional as F
from dgl import transforms as T
from dgl.data import DGLDataset
from dgl.dataloading import GraphDataLoader
from dgl.geometry import farthest_point_sampler, neighbor_matching
from dgl.nn.pytorch.conv import EGATConv, HGTConv, PNAConv

torch.manual_seed(0)
dgl.seed(0)


class Trees(DGLDataset):
    """Binary trees of 15 nodes, from the leaves (7 … 14) to the root (0)."""

    def __init__(self, transform):
        super().__init__(name="trees", transform=transform)

    def process(self):
        self.graphs, self.labels = [], torch.arange(60) % 2
        for label in self.labels.tolist():
            g = dgl.graph([(child, (child - 1) // 2) for child in range(1, 15)])
            marks = torch.zeros(15, 1)
            if label:
                marks[torch.randint(7, 15, (2,))] = 1.0
            g.ndata["x"] = torch.cat([marks, torch.rand(15, 1)], 1)
            g.edata["w"] = torch.ones(14, 1)
            self.graphs.append(g.astype(torch.int32))

    def __getitem__(self, i):
        return self._transform(self.graphs[i]), self.labels[i]

    def __len__(self):
        return len(self.graphs)


class TreeNet(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embed, self.update = nn.Linear(2, size), nn.Linear(2 * size, size)
        self.head = nn.Linear(3 * size, 2)

    def apply_node_func(self, nodes):
        return {"h": torch.tanh(self.update(torch.cat([nodes.data["own"], nodes.data["c"]], 1)))}

    def forward(self, g):
        g = g.local_var()
        g.ndata["own"] = self.embed(g.ndata["x"])
        g.ndata["h"] = g.ndata["c"] = torch.zeros_like(g.ndata["own"])
        message = fn.src_mul_edge(src="h", edge="w", out="m")
        dgl.prop_nodes_topo(g, message, fn.sum("m", "c"), apply_node_func=self.apply_node_func)
        best, _ = dgl.topk_nodes(g, "h", 2)
        g.ndata["a"] = dgl.softmax_nodes(g, "h")
        g.ndata["h"] = g.ndata["h"] + dgl.broadcast_nodes(g, dgl.mean_nodes(g, "h"))
        return self.head(torch.cat([best.flatten(1), dgl.sum_nodes(g, "a")], 1))


data = Trees(T.Compose([T.FeatMask(0.0, ["x"]), T.RowFeatNormalizer()]))
model = TreeNet(12)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for epoch in range(40):
    for batched, labels in GraphDataLoader(data, batch_size=20, shuffle=True):
        loss = F.cross_entropy(model(batched), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
whole = dgl.batch([g for g, _ in data])
accuracy = (model(whole).argmax(1) == data.labels).float().mean().item()
print("accuracy", accuracy)
assert accuracy > 0.9

# Points: a graph of neighbors, coarsened, with encodings, and three layers on it.
points = torch.rand(1, 40, 2)
g = dgl.to_bidirected(dgl.knn_graph(points[0], 4, exclude_self=True))
picked = farthest_point_sampler(points, 10)
assert picked.shape == (1, 10) and len(set(picked[0].tolist())) == 10
clusters = neighbor_matching(g)
assert 20 <= int(clusters.max()) + 1 < 40
g = T.Compose([T.AddSelfLoop(), T.GCNNorm(), T.LapPE(k=3, feat_name="lap")])(g)
g = T.RandomWalkPE(k=4, feat_name="walk")(g)
g = T.SIGNDiffusion(k=2, in_feat_name="walk", eweight_name="w")(g)
assert g.ndata["out_feat_2"].shape == (40, 4)
x = torch.cat([g.ndata["lap"], g.ndata["walk"]], 1)
x = PNAConv(7, 8, ["mean", "max"], ["identity", "attenuation"], delta=1.5)(g, x)
x, _ = EGATConv(8, 1, 4, 2, num_heads=2)(g, x, g.edata["w"][:, None])
kinds = torch.zeros(g.num_nodes(), dtype=torch.int64)
types = torch.zeros(g.num_edges(), dtype=torch.int64)
x = HGTConv(8, 4, 2, num_ntypes=1, num_etypes=1)(g, x.flatten(1), kinds, types)
assert x.shape == (40, 8) and bool(torch.isfinite(x).all())
assert T.PPR(avg_degree=3)(g).num_edges() >= 120
assert dgl.reverse(T.DropEdge(p=0.5)(g)).num_edges() < g.num_edges()
