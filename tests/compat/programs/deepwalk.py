"""DeepWalk: embeddings of nodes from random walks, without features."""

import dgl
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.sampling import node2vec_random_walk, pack_traces, random_walk


class SkipGram(nn.Module):
    def __init__(self, num_nodes, dim):
        super().__init__()
        self.u = nn.Embedding(num_nodes, dim, sparse=True)
        self.v = nn.Embedding(num_nodes, dim, sparse=True)
        nn.init.uniform_(self.u.weight, -0.5 / dim, 0.5 / dim)
        nn.init.zeros_(self.v.weight)

    def forward(self, u, v, negative):
        pos = F.logsigmoid((self.u(u) * self.v(v)).sum(-1))
        neg = F.logsigmoid(-(self.u(u)[:, None] * self.v(negative)).sum(-1)).sum(-1)
        return -(pos + neg).mean()


def walks_of(g, nodes, kind):
    if kind == "node2vec":
        return node2vec_random_walk(g, nodes, 1, 0.5, 10)
    traces, types = random_walk(g, nodes, length=10, restart_prob=0.05)
    packed, packed_types, lengths, offsets = pack_traces(traces, types)
    assert lengths.sum().item() == len(packed) == (traces >= 0).sum().item()
    assert torch.equal(packed[offsets], nodes)
    return traces


dgl.seed(0)
g = Communities()[0]
label = g.ndata["label"]
src, dst = g.edges()
for kind in ("deepwalk", "node2vec"):
    torch.manual_seed(0)
    model = SkipGram(g.num_nodes(), 16)
    optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.05)
    for epoch in range(15):
        traces = walks_of(g, g.nodes(), kind)
        for step in range(1, 4):
            u, v = traces[:, :-step].flatten(), traces[:, step:].flatten()
            u, v = u[v >= 0], v[v >= 0]
            loss = model(u, v, torch.randint(g.num_nodes(), (len(u), 5)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    h = F.normalize(model.u.weight.detach(), dim=1)
    near = (h @ h.T).fill_diagonal_(-2).topk(10).indices
    share = (label[near] == label[:, None]).float().mean().item()
    print(f"{kind}: {share:.2f} of the nearest nodes are of the same community; by chance 0.25")
    assert share > 0.6
