"""Graph convolutional network by hand, with functions of the user and with built-in ones."""

import argparse

import dgl
import dgl.function as fn
import torch
import torch.nn as nn
import torch.nn.functional as F
from communities import Communities
from dgl.nn.pytorch import GraphConv


class GCNLayer(nn.Module):
    def __init__(self, in_feats, out_feats, builtin):
        super().__init__()
        self.linear = nn.Linear(in_feats, out_feats)
        self.builtin = builtin

    def forward(self, g, h):
        g = g.local_var()
        g.ndata["h"] = self.linear(h) * g.ndata["norm"]
        if self.builtin:
            g.update_all(fn.copy_src(src="h", out="m"), fn.sum(msg="m", out="h"))
        else:
            g.update_all(
                lambda edges: {"m": edges.src["h"]},
                lambda nodes: {"h": torch.sum(nodes.mailbox["m"], dim=1)},
            )
        return g.ndata.pop("h") * g.ndata["norm"]


class GCN(nn.Module):
    def __init__(self, sizes, builtin):
        super().__init__()
        pairs = zip(sizes, sizes[1:])
        self.layers = nn.ModuleList([GCNLayer(*pair, builtin) for pair in pairs])

    def forward(self, g, h):
        for i, layer in enumerate(self.layers):
            h = layer(g, h if i == 0 else F.relu(h))
        return h


def evaluate(model, g, mask):
    model.eval()
    with torch.no_grad():
        right = model(g, g.ndata["feat"]).argmax(1) == g.ndata["label"]
    return right[mask].float().mean().item()


def main(args):
    data = Communities()
    g = data[0]
    g = dgl.remove_self_loop(g)
    g = dgl.add_self_loop(g)
    g = g.astype(torch.int32).to(args.device)
    assert g.idtype == torch.int32
    norm = torch.pow(g.in_degrees().float(), -0.5)
    norm[torch.isinf(norm)] = 0
    g.ndata["norm"] = norm.unsqueeze(1)

    torch.manual_seed(0)
    model = GCN([g.ndata["feat"].shape[1], 16, data.num_classes], builtin=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    before = evaluate(model, g, g.ndata["test_mask"])
    for epoch in range(args.n_epochs):
        model.train()
        logits = model(g, g.ndata["feat"])
        mask = g.ndata["train_mask"]
        loss = F.cross_entropy(logits[mask], g.ndata["label"][mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = evaluate(model, g, g.ndata["test_mask"])
    print(f"test accuracy {before:.2f} -> {after:.2f}")
    assert after > 0.8 > before

    # the same weights with functions of the user, and in DGL's layer
    twin = GCN([4, 16, data.num_classes], builtin=False)
    twin.load_state_dict(model.state_dict())
    assert torch.allclose(twin(g, g.ndata["feat"]), model(g, g.ndata["feat"]), atol=1e-5)
    conv = GraphConv(4, 16)
    conv.weight.data = model.layers[0].linear.weight.data.t().clone()
    model.layers[0].linear.bias.data.zero_()
    out = conv(g, g.ndata["feat"])
    assert torch.allclose(out, model.layers[0](g, g.ndata["feat"]), atol=1e-5)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--n-epochs", type=int, default=60)
    main(parser.parse_args())
