"""An equivariant transformer on molecules: scalars and vectors of atoms, attention over bonds.

It predicts a scalar that does not change, and a vector that turns, when a molecule is rotated.
"""

import dgl
import dgl.function as fn
import torch
import torch.nn as nn
import torch.nn.functional as F
from dgl import ops
from dgl.nn import AvgPooling, SumPooling
from dgl.nn.functional import edge_softmax


class EquivariantAttention(nn.Module):
    def __init__(self, size, num_heads=4):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v = (nn.Linear(size, size) for _ in range(3))
        self.radial = nn.Sequential(nn.Linear(8, size), nn.SiLU(), nn.Linear(size, 3 * size))
        self.mix = nn.Linear(size, size, bias=False)
        self.out = nn.Linear(2 * size, size)

    def forward(self, g, s, v):
        """s: scalars (N, D); v: vectors (N, D, 3)."""
        split = (-1, self.num_heads, s.shape[1] // self.num_heads)
        weight, to_s, to_v = self.radial(g.edata["rbf"]).chunk(3, 1)
        key = self.k(s).view(split)
        logits = ops.e_dot_v(g, (weight.view(split) * ops.copy_u(g, key)), self.q(s).view(split))
        attention = edge_softmax(g, logits / split[2] ** 0.5)
        value = ops.copy_u(g, self.v(s)).view(split) * attention
        value = value.reshape(len(value), -1)
        s_new = ops.copy_e_sum(g, value * to_s)
        along = (value * to_v)[:, :, None] * g.edata["dir"][:, None, :]
        carried = ops.u_mul_e_sum(g, v, value[:, :, None])
        v_new = ops.copy_e_sum(g, along) + carried
        mixed = self.mix((v + v_new).transpose(1, 2)).transpose(1, 2)
        norm = (mixed.pow(2).sum(2) + 1e-8).sqrt()
        return s + self.out(torch.cat([s_new, norm], 1)), v + mixed


class Model(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.embed = nn.Embedding(3, size)
        self.layers = nn.ModuleList([EquivariantAttention(size) for _ in range(2)])
        self.energy = nn.Sequential(nn.Linear(size, size), nn.SiLU(), nn.Linear(size, 1))
        self.dipole = nn.Linear(size, 1, bias=False)
        self.sum, self.mean = SumPooling(), AvgPooling()

    def forward(self, g):
        with g.local_scope():
            g.apply_edges(fn.v_sub_u("pos", "pos", "vec"))
            length = g.edata["vec"].norm(dim=1, keepdim=True)
            g.edata["dir"] = g.edata["vec"] / length
            g.edata["rbf"] = torch.exp(-10 * (length - torch.linspace(0.5, 2.5, 8)) ** 2)
            s = self.embed(g.ndata["kind"])
            v = torch.zeros(len(s), s.shape[1], 3)
            for layer in self.layers:
                s, v = layer(g, s, v)
            energy = self.mean(g, self.energy(s))
            return energy, self.sum(g, self.dipole(v.transpose(1, 2)).squeeze(2))


def molecule():
    """Atoms in a bent chain; the wanted energy is the mean distance of neighbors in it."""
    n = int(torch.randint(4, 8, ()))
    steps = F.normalize(torch.randn(n, 3), dim=1) * (0.8 + torch.rand(n, 1))
    g = dgl.to_bidirected(dgl.graph((torch.arange(n - 1), torch.arange(1, n))))
    g.ndata["pos"], g.ndata["kind"] = steps.cumsum(0), torch.randint(3, (n,))
    return g, steps[1:].norm(dim=1).mean()


def collate(samples):
    graphs, energies = zip(*samples)
    return dgl.batch(list(graphs)), torch.stack(energies)[:, None]


torch.manual_seed(0)
samples = [molecule() for _ in range(96)]
loader = dgl.dataloading.GraphDataLoader(
    samples[:64], batch_size=16, shuffle=True, collate_fn=collate
)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(30):
    for g, energy in loader:
        loss = F.mse_loss(model(g)[0], energy)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
test, energy = collate(samples[64:])
with torch.no_grad():
    found, dipole = model(test)
    error, spread = F.l1_loss(found, energy), (energy - energy.mean()).abs().mean()
    print(f"mean absolute error {error:.3f}, of the mean {spread:.3f}")
    assert error < 0.7 * spread
    turn, _ = torch.linalg.qr(torch.randn(3, 3))
    test.ndata["pos"] = test.ndata["pos"] @ turn
    again, turned = model(test)
    assert torch.allclose(again, found, atol=1e-4)
    assert torch.allclose(turned, dipole @ turn, atol=1e-4)
