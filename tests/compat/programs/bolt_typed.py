"""R-GAT with GraphBolt on users, items and tags: classes of users, and what they buy."""

import dgl
import dgl.graphbolt as gb
import dgl.nn as dglnn
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.RandomState(0)
NUM, CLASSES = 120, 3
label = rng.randint(CLASSES, size=NUM)
items = [[i for i in range(60) if i % CLASSES == c] for c in range(CLASSES)]
buys = [(u, int(v)) for u in range(NUM) for v in rng.choice(items[label[u]], 4)]
has = [(i, i % 6) for i in range(60)]
hg = dgl.heterograph(
    {
        ("user", "buys", "item"): buys,
        ("item", "bought-by", "user"): [(v, u) for u, v in buys],
        ("item", "has", "tag"): has,
        ("tag", "of", "item"): [(v, u) for u, v in has],
    }
)
labels, order = torch.tensor(label), torch.tensor(rng.permutation(NUM))
train, test = order[:40], order[40:]
BUYS, BOUGHT = "user:buys:item", "item:bought-by:user"


class RGAT(nn.Module):
    def __init__(self, out_size, hidden_size=16, num_heads=2):
        super().__init__()
        self.embeds = nn.ModuleDict(
            {ntype: nn.Embedding(hg.num_nodes(ntype), hidden_size) for ntype in hg.ntypes}
        )
        size = hidden_size // num_heads
        self.layers = nn.ModuleList(
            dglnn.HeteroGraphConv(
                {rel: dglnn.GATConv(hidden_size, size, num_heads) for rel in hg.etypes}, "sum"
            )
            for _ in range(2)
        )
        self.linears = nn.ModuleList(nn.Linear(hidden_size, hidden_size) for _ in range(2))
        self.out = nn.Linear(hidden_size, out_size)

    def forward(self, blocks, nodes):
        h = {ntype: self.embeds[ntype](ids) for ntype, ids in nodes.items()}
        for layer, own, block in zip(self.layers, self.linears, blocks):
            new = layer(block, h)
            h = {
                ntype: own(h[ntype][: block.num_dst_nodes(ntype)])
                + (new[ntype].flatten(1) if ntype in new else 0)
                for ntype in block.dsttypes
            }
            h = {ntype: F.relu(x) for ntype, x in h.items()}
        return h


def node_pipe(graph, nodes, shuffle=True):
    item_set = gb.HeteroItemSet(
        {"user": gb.ItemSet((nodes, labels[nodes]), names=("seeds", "labels"))}
    )
    datapipe = gb.ItemSampler(item_set, batch_size=16, shuffle=shuffle)
    datapipe = datapipe.sample_neighbor(graph, [torch.LongTensor([5, 5, 5, 5]), 5])
    return gb.DataLoader(datapipe.copy_to("cpu"))


def new(nodes, shuffle=True):
    for data in node_pipe(graph, nodes, shuffle):
        yield data.blocks, data.node_ids(), data.labels["user"]


def old(nodes, shuffle=True):
    loader = dgl.dataloading.DataLoader(
        hg, {"user": nodes}, dgl.dataloading.NeighborSampler([5, 5]), batch_size=16, shuffle=shuffle
    )
    for input_nodes, output_nodes, blocks in loader:
        yield blocks, input_nodes, labels[output_nodes["user"]]


def fit(name, batches):
    torch.manual_seed(0)
    model = RGAT(CLASSES)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(25):
        for blocks, nodes, y in batches(train):
            loss = F.cross_entropy(model.out(model(blocks, nodes)["user"]), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    right = 0
    with torch.no_grad():
        for blocks, nodes, y in batches(test, shuffle=False):
            right += (model.out(model(blocks, nodes)["user"]).argmax(1) == y).sum().item()
    print(f"{name}: test accuracy {right / len(test):.2f}")
    assert right / len(test) > 0.6
    return right / len(test)


graph = gb.from_dglgraph(hg)
assert abs(fit("old", old) - fit("GraphBolt", new)) < 0.2

# Link prediction: pairs that are bought against pairs at random.
pairs = gb.HeteroItemSet({BUYS: gb.ItemSet(torch.tensor(buys), names="seeds")})
datapipe = gb.ItemSampler(pairs, batch_size=64, shuffle=True)
datapipe = datapipe.sample_uniform_negative(graph, 1).sample_neighbor(graph, [5, 5])
datapipe = datapipe.exclude_seed_edges(
    include_reverse_edges=True, reverse_etypes_mapping={BUYS: BOUGHT}
)
torch.manual_seed(0)
model = RGAT(1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    right = total = 0
    for data in gb.DataLoader(datapipe):
        h = model(data.blocks, data.node_ids())
        users, others = data.compacted_seeds[BUYS].T
        logits = model.out(h["user"][users] * h["item"][others]).flatten()
        wanted = data.labels[BUYS].float()
        loss = F.binary_cross_entropy_with_logits(logits, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += ((logits > 0) == (wanted > 0)).sum().item()
        total += len(wanted)
print(f"links: accuracy {right / total:.2f}")
assert right / total > 0.65
