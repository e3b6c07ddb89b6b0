"""R-GCN on users, items and tags: as one graph with type IDs, and by HeteroGraphConv."""

import dgl
import dgl.function as fn
import dgl.nn as dglnn
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from dgl.nn.pytorch import RelGraphConv

rng = np.random.RandomState(0)
NUM, CLASSES = 120, 3
label = rng.randint(CLASSES, size=NUM)
items = [[i for i in range(60) if i % CLASSES == c] for c in range(CLASSES)]
buys = [(u, int(v)) for u in range(NUM) for v in rng.choice(items[label[u]], 3)]
views = [(u, int(v)) for u in range(NUM) for v in rng.choice(60, 3)]  # says nothing
has = [(i, i % 6) for i in range(60)]
hg = dgl.heterograph(
    {
        ("user", "buys", "item"): buys,
        ("item", "bought-by", "user"): [(v, u) for u, v in buys],
        ("user", "views", "item"): views,
        ("item", "viewed-by", "user"): [(v, u) for u, v in views],
        ("item", "has", "tag"): has,
        ("tag", "of", "item"): [(v, u) for u, v in has],
    }
)
labels = torch.tensor(label)
order = torch.tensor(rng.permutation(NUM))
train, test = order[:30], order[30:]


class EntityClassify(nn.Module):
    """One graph with type IDs; each edge is weighted by 1 / in-degree of its type."""

    def __init__(self, num_nodes, num_rels):
        super().__init__()
        self.embed = nn.Embedding(num_nodes, 16)
        self.layer1 = RelGraphConv(16, 16, num_rels, regularizer="basis", num_bases=3)
        self.layer2 = RelGraphConv(16, CLASSES, num_rels, regularizer="basis", num_bases=3)

    def forward(self, g):
        h = F.relu(self.layer1(g, self.embed.weight, g.edata[dgl.ETYPE], g.edata["norm"]))
        return self.layer2(g, h, g.edata[dgl.ETYPE], g.edata["norm"])


class HeteroRGCN(nn.Module):
    def __init__(self, hg):
        super().__init__()
        self.embeds = nn.ParameterDict()
        for ntype in hg.ntypes:
            self.embeds[ntype] = nn.Parameter(torch.randn(hg.num_nodes(ntype), 16) * 0.3)
        sizes = ((16, 16), (16, CLASSES))
        self.layers = nn.ModuleList(
            dglnn.HeteroGraphConv(
                {rel: dglnn.GraphConv(i, o, norm="right") for rel in hg.etypes}, aggregate="sum"
            )
            for i, o in sizes
        )

    def forward(self, hg):
        h = self.layers[0](hg, dict(self.embeds))
        return self.layers[1](hg, {k: F.relu(v) for k, v in h.items()})["user"]


def fit(model, forward, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(epochs):
        loss = F.cross_entropy(forward()[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    accuracy = (forward().argmax(1) == labels)[test].float().mean().item()
    print(type(model).__name__, f"test accuracy {accuracy:.2f}")
    assert accuracy > 0.7


torch.manual_seed(0)
for etype in hg.canonical_etypes:
    hg.edges[etype].data["norm"] = dgl.norm_by_dst(hg, etype).unsqueeze(1)
g = dgl.to_homogeneous(hg, edata=["norm"])
users = (g.ndata[dgl.NTYPE] == hg.get_ntype_id("user")).nonzero(as_tuple=True)[0]
first = EntityClassify(g.num_nodes(), len(hg.canonical_etypes))
fit(first, lambda: first(g)[users], 40)
second = HeteroRGCN(hg)
fit(second, lambda: second(hg), 40)

# Messages of all relations at once: how many neighbors each node has.
for ntype in hg.ntypes:
    hg.nodes[ntype].data["one"] = torch.ones(hg.num_nodes(ntype))
hg.update_all(fn.copy_u("one", "m"), fn.sum("m", "degree"))
degree = sum(hg.in_degrees(etype=e) for e in hg.canonical_etypes if e[2] == "item")
assert torch.equal(hg.nodes["item"].data["degree"], degree.float())
