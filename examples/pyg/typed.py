"""A typed graph: a convolution of PyG for each edge type, on items and their words.

python3 typed.py
python3 typed.py --loader torch_geometric.loader    # PyG's own: needs pyg-lib or torch-sparse
"""

import argparse
from importlib import import_module

import torch
import torch.nn.functional as F
from torch_geometric import seed_everything
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import gnnlab as dgl


def items_and_words(name: str, per_item: int = 8) -> HeteroData:
    """Make a word of each feature, and join items to the words that are largest in them."""
    g = dgl.data.load(name)[0]
    feat = g.ndata["feat"]
    items = torch.arange(len(feat)).repeat_interleave(per_item)
    words = feat.topk(per_item).indices.flatten()
    data = HeteroData()
    data["item"].x, data["item"].y = feat, g.ndata["label"]
    data["item"].train_mask, data["item"].test_mask = g.ndata["train_mask"], g.ndata["test_mask"]
    data["word"].x = torch.eye(feat.shape[1])
    data["item", "near", "item"].edge_index = torch.stack(g.edges())
    data["item", "has", "word"].edge_index = torch.stack([items, words])
    data["word", "in", "item"].edge_index = torch.stack([words, items])
    return data


class Net(torch.nn.Module):
    """Two layers, in each a convolution of its own for each edge type, as in R-GCN."""

    def __init__(self, data: HeteroData, num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            HeteroConv({etype: SAGEConv((-1, -1), hidden) for etype in data.edge_types})
            for _ in range(2)
        )
        self.last = torch.nn.Linear(hidden, num_classes)

    def forward(self, x_dict: dict, edge_index_dict: dict) -> torch.Tensor:
        """Compute scores of the items of a mini-batch."""
        for layer in self.layers:
            x_dict = {ntype: x.relu() for ntype, x in layer(x_dict, edge_index_dict).items()}
        return self.last(x_dict["item"])


def main(args: argparse.Namespace) -> None:
    """Train and test."""
    loaders = import_module(args.loader)
    data = items_and_words(args.dataset)
    seed_everything(args.seed)
    fanouts = {etype: [10, 5] for etype in data.edge_types}

    def loader(mask: str, shuffle: bool) -> object:
        seeds = ("item", data["item"][mask])
        return loaders.NeighborLoader(
            data, num_neighbors=fanouts, input_nodes=seeds, batch_size=64, shuffle=shuffle
        )

    model = Net(data, int(data["item"].y.max()) + 1)
    train, test = loader("train_mask", True), loader("test_mask", False)
    with torch.no_grad():  # lazy layers learn their sizes
        batch = next(iter(train))
        model(batch.x_dict, batch.edge_index_dict)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(args.num_epochs):
        total = 0.0
        for batch in train:
            count = batch["item"].batch_size
            optimizer.zero_grad()
            scores = model(batch.x_dict, batch.edge_index_dict)[:count]
            loss = F.cross_entropy(scores, batch["item"].y[:count])
            loss.backward()
            optimizer.step()
            total += float(loss)
        print(f"epoch {epoch:3}  loss {total / len(train):.4f}")
    right = count = 0
    with torch.no_grad():
        for batch in test:
            number = batch["item"].batch_size
            scores = model(batch.x_dict, batch.edge_index_dict)[:number]
            right += int((scores.argmax(1) == batch["item"].y[:number]).sum())
            count += number
    print(f"test accuracy {right / count:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--loader", default="gnnlab.pyg", help="or torch_geometric.loader")
    parser.add_argument("--num_epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
