"""A typed graph: a convolution of PyG for each edge type, on items and their words.

    python3 typed.py
    python3 typed.py --loader torch_geometric.loader    # PyG's own: needs pyg-lib or torch-sparse

On many machines, once cut into parts:

    python3 typed.py --cut 3 --part_config data/typed.json
    gnnlab launch --workspace workspace --part_config data/typed.json --ip_config ip_config.txt \\
        --num_trainers 1 --num_samplers 1 --num_servers 1 \\
        "python3 code/typed.py --part_config data/typed.json --ip_config ip_config.txt"
"""

import argparse
from importlib import import_module
from pathlib import Path

import torch
import torch.nn.functional as F
from torch_geometric import seed_everything
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

import gnnlab as dgl
from gnnlab.distributed import DistGraph


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

    def __init__(self, etypes: list[tuple], num_classes: int, hidden: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            HeteroConv({etype: SAGEConv((-1, -1), hidden) for etype in etypes}) for _ in range(2)
        )
        self.last = torch.nn.Linear(hidden, num_classes)

    def forward(self, x_dict: dict, edge_index_dict: dict) -> torch.Tensor:
        """Compute scores of the items of a mini-batch."""
        for layer in self.layers:
            x_dict = {ntype: x.relu() for ntype, x in layer(x_dict, edge_index_dict).items()}
        return self.last(x_dict["item"])


def open_parts(args: argparse.Namespace) -> DistGraph:
    """Join the job; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    return DistGraph(Path(args.part_config).stem, part_config=args.part_config)


def main(args: argparse.Namespace) -> None:
    """Train and test."""
    if args.cut:
        name, folder = Path(args.part_config).stem, Path(args.part_config).parent
        dgl.distributed.partition_graph(items_and_words(args.dataset), name, args.cut, folder)
        return
    loaders = import_module(args.loader)
    if args.part_config:
        data = open_parts(args)
        etypes, items = data.canonical_etypes, data.nodes["item"].data
    else:
        data = items_and_words(args.dataset)
        etypes, items = data.edge_types, data["item"]
    seed_everything(args.seed)
    fanouts = {etype: [10, 5] for etype in etypes}
    # The batches of all trainers together have 64 seeds.
    batch_size = -(-64 // torch.distributed.get_world_size()) if args.part_config else 64

    def loader(mask: str, shuffle: bool) -> object:
        # A mask of a graph in parts: each trainer gets an equal share of its nodes.
        return loaders.NeighborLoader(
            data, fanouts, ("item", items[mask]), batch_size=batch_size, shuffle=shuffle
        )

    model = Net(etypes, int(items["y"][:].max()) + 1)
    train, test = loader("train_mask", True), loader("test_mask", False)
    with torch.no_grad():  # lazy layers learn their sizes
        batch = next(iter(train))
        model(batch.x_dict, batch.edge_index_dict)
    if args.part_config:  # the last layer also computes words, which nothing reads
        model = dgl.parallel.init_model(model, "cpu", find_unused_parameters=True)
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
            total += loss.item()
        say(f"epoch {epoch:3}  loss {dgl.parallel.global_mean(total, len(train)):.4f}")
    right = count = 0
    with torch.no_grad():
        for batch in test:
            number = batch["item"].batch_size
            scores = model(batch.x_dict, batch.edge_index_dict)[:number]
            right += int((scores.argmax(1) == batch["item"].y[:number]).sum())
            count += number
    say(f"test accuracy {dgl.parallel.global_mean(right, count):.4f}")


def say(text: str) -> None:
    """Print in one trainer."""
    if not torch.distributed.is_initialized() or torch.distributed.get_rank() == 0:
        print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--loader", default="gnnlab.pyg", help="or torch_geometric.loader")
    parser.add_argument("--cut", type=int, help="cut the graph into this many parts, and end")
    parser.add_argument("--part_config", help="JSON file of the graph in parts")
    parser.add_argument("--ip_config", help="file with the addresses of the machines")
    parser.add_argument("--num_epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # when nothing holds the model any more
