"""GraphSAGE or GAT of PyG, trained on mini-batches; inference layer by layer.

    python3 node_classification.py --conv sage
    python3 node_classification.py --conv gat --loader torch_geometric.loader

The second line uses PyG's own loader, which needs pyg-lib or torch-sparse: the import is all that
differs.
"""

import argparse
from importlib import import_module

import torch
import torch.nn.functional as F
from torch_geometric import seed_everything
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, SAGEConv

import gnnlab as dgl
from gnnlab.pyg import to_pyg


class Net(torch.nn.Module):
    """Two layers."""

    def __init__(self, conv: str, num_features: int, num_classes: int) -> None:
        super().__init__()
        if conv == "gat":
            layers = [GATConv(num_features, 16, heads=4), GATConv(64, num_classes)]
        else:
            layers = [SAGEConv(num_features, 64), SAGEConv(64, num_classes)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Compute scores of all nodes of a mini-batch; those of the seeds come first."""
        x = F.elu(self.layers[0](x, edge_index))
        return self.layers[1](F.dropout(x, 0.3, self.training), edge_index)

    @torch.no_grad()
    def inference(self, x: torch.Tensor, loader: object) -> torch.Tensor:
        """Compute each layer for all nodes before the next; the loader takes one hop, all edges."""
        for number, layer in enumerate(self.layers):
            rows = []
            for batch in loader:
                h = layer(x[batch.n_id], batch.edge_index)[: batch.batch_size]
                rows.append(F.elu(h) if number == 0 else h)
            x = torch.cat(rows)
        return x


def main(args: argparse.Namespace) -> None:
    """Train and test."""
    loaders = import_module(args.loader)
    data: Data = to_pyg(dgl.data.load(args.dataset)[0], {"feat": "x", "label": "y"})
    seed_everything(args.seed)
    train = loaders.NeighborLoader(
        data, num_neighbors=[10, 5], input_nodes=data.train_mask, batch_size=64, shuffle=True
    )
    every = loaders.NeighborLoader(data, num_neighbors=[-1], input_nodes=None, batch_size=512)
    model = Net(args.conv, data.x.shape[1], int(data.y.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(args.num_epochs):
        model.train()
        total = 0.0
        for batch in train:
            optimizer.zero_grad()
            scores = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = F.cross_entropy(scores, batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
            total += float(loss)
        print(f"epoch {epoch:3}  loss {total / len(train):.4f}")
    model.eval()
    found = model.inference(data.x, every).argmax(1)
    accuracy = (found == data.y)[data.test_mask].float().mean()
    print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--conv", choices=["sage", "gat"], default="sage")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--loader", default="gnnlab.pyg", help="or torch_geometric.loader")
    parser.add_argument("--num_epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
