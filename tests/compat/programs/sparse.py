"""Models written with sparse matrices: GCN, GAT, APPNP, a graph transformer, a hypergraph network.

Where the older interface has the same layer, both have the same output for the same weights.
"""

import dgl
import dgl.sparse as dglsp
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn import APPNPConv, GATConv, GraphConv


class GCNLayer(nn.Module):
    def __init__(self, in_size, out_size):
        super().__init__()
        self.W = nn.Linear(in_size, out_size)

    def forward(self, A, X):
        A_hat = A + dglsp.identity(A.shape)
        D_hat = dglsp.diag(A_hat.sum(dim=1)) ** -0.5
        return D_hat @ A_hat @ D_hat @ self.W(X)


class GATLayer(nn.Module):
    def __init__(self, in_size, out_size, num_heads):
        super().__init__()
        self.W = nn.Linear(in_size, out_size * num_heads, bias=False)
        self.a_l = nn.Parameter(torch.randn(1, out_size, num_heads) * 0.3)
        self.a_r = nn.Parameter(torch.randn(1, out_size, num_heads) * 0.3)
        self.shape = (-1, out_size, num_heads)

    def forward(self, A_hat, Z):
        Z = self.W(Z).view(self.shape)
        e_l = (Z * self.a_l).sum(dim=1)
        e_r = (Z * self.a_r).sum(dim=1)
        e = e_l[A_hat.row] + e_r[A_hat.col]
        A_atten = dglsp.val_like(A_hat, F.leaky_relu(e, 0.2)).softmax()
        return dglsp.bspmm(A_atten, Z)


class APPNP(nn.Module):
    def __init__(self, in_size, out_size, num_hops=5, alpha=0.1):
        super().__init__()
        self.f_theta = nn.Sequential(nn.Linear(in_size, 16), nn.ReLU(), nn.Linear(16, out_size))
        self.num_hops, self.alpha, self.dropout = num_hops, alpha, nn.Dropout(0.2)

    def forward(self, A_hat, X):
        Z_0 = Z = self.f_theta(X)
        for _ in range(self.num_hops):
            A_drop = dglsp.val_like(A_hat, self.dropout(A_hat.val))
            Z = (1 - self.alpha) * A_drop @ Z + self.alpha * Z_0
        return Z


class SparseAttention(nn.Module):
    def __init__(self, in_size, hidden_size, num_heads):
        super().__init__()
        self.num_heads, self.head_dim = num_heads, hidden_size // num_heads
        self.q, self.k, self.v = (nn.Linear(in_size, hidden_size) for _ in range(3))

    def forward(self, A, h):
        N = len(h)
        q = self.q(h).reshape(N, self.head_dim, self.num_heads) * self.head_dim**-0.5
        k = self.k(h).reshape(N, self.head_dim, self.num_heads)
        v = self.v(h).reshape(N, self.head_dim, self.num_heads)
        attn = dglsp.bsddmm(A, q, k.transpose(1, 0)).softmax()
        return dglsp.bspmm(attn, v).reshape(N, -1)


class GraphTransformer(nn.Module):
    def __init__(self, in_size, out_size, hidden_size=32):
        super().__init__()
        self.attention = SparseAttention(in_size, hidden_size, 4)
        self.again = SparseAttention(hidden_size, hidden_size, 4)
        self.out = nn.Linear(hidden_size, out_size)

    def forward(self, A, X):
        return self.out(F.relu(self.again(A, F.relu(self.attention(A, X)))))


class HGNN(nn.Module):
    def __init__(self, H, in_size, out_size):
        super().__init__()
        self.W1, self.W2 = nn.Linear(in_size, 16), nn.Linear(16, out_size)
        d_V, d_E = H.sum(1), H.sum(0)
        D_V_invsqrt, D_E_inv = dglsp.diag(d_V**-0.5), dglsp.diag(d_E**-1)
        self.L = D_V_invsqrt @ H @ D_E_inv @ H.T @ D_V_invsqrt

    def forward(self, X):
        return self.L @ self.W2(F.relu(self.L @ self.W1(X)))


class Layers(nn.Module):
    def __init__(self, first, second, merge):
        super().__init__()
        self.first, self.second, self.merge = first, second, merge

    def forward(self, A, X):
        return self.merge(self.second(A, F.relu(self.first(A, X).flatten(1))))


def train(name, model, forward):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for epoch in range(60):
        model.train()
        loss = F.cross_entropy(forward()[masks["train"]], labels[masks["train"]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    right = forward().argmax(1) == labels
    accuracy = right[masks["test"]].float().mean().item()
    print(f"{name}: test accuracy {accuracy:.2f}")
    assert accuracy > 0.6
    return accuracy


data = Communities()
g = dgl.remove_self_loop(data[0])
masks = {name: g.ndata[f"{name}_mask"] for name in ("train", "test")}
X, labels = g.ndata["feat"], g.ndata["label"]
N, num_classes = g.num_nodes(), data.num_classes
A = dglsp.spmatrix(torch.stack(g.edges()), shape=(N, N))
looped = dgl.add_self_loop(g)
A_loop = A + dglsp.identity(A.shape)
assert torch.equal(A_loop.to_dense(), torch.eye(N) + g.adj().to_dense())

torch.manual_seed(0)
gcn = Layers(GCNLayer(4, 16), GCNLayer(16, num_classes), nn.Identity())
train("GCN", gcn, lambda: gcn(A, X))
old = GraphConv(4, 16)
old.weight.data = gcn.first.W.weight.data.t().clone()
gcn.first.W.bias.data.zero_()
assert torch.allclose(gcn.first(A, X), old(looped, X), atol=1e-5)

merge = nn.Flatten(1)
gat = Layers(GATLayer(4, 8, 4), GATLayer(32, num_classes, 1), merge)
train("GAT", gat, lambda: gat(A_loop, X))
mine, theirs = GATLayer(4, 8, 2), GATConv(4, 8, 2, bias=False)
order = mine.W.weight.data.view(8, 2, 4).transpose(0, 1).reshape(16, 4)  # heads before sizes
theirs.fc.weight.data = order
theirs.attn_l.data, theirs.attn_r.data = (x.data.transpose(1, 2) for x in (mine.a_r, mine.a_l))
assert torch.allclose(mine(A_loop, X), theirs(looped, X).transpose(1, 2), atol=1e-5)

D = dglsp.diag(A_loop.sum(1)) ** -0.5
A_hat = D @ A_loop @ D
appnp = APPNP(4, num_classes)
train("APPNP", appnp, lambda: appnp(A_hat, X))
old = APPNPConv(5, 0.1)
assert torch.allclose(appnp(A_hat, X), old(looped, appnp.f_theta(X)), atol=1e-5)

transformer = GraphTransformer(4, num_classes)
train("graph transformer", transformer, lambda: transformer(A_loop, X))

# A hyperedge for each node: the node and its neighbors.
hgnn = HGNN(A_loop.coalesce(), 4, num_classes)
train("hypergraph", hgnn, lambda: hgnn(X))
