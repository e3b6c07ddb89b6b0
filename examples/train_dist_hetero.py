"""Train R-GCN on a typed graph in parts, some of whose nodes have no features.

Items have features and labels; words have neither and learn a vector each, a row of a
DistEmbedding. Each relation has weights of its own (``partition.py --kind typed`` makes the graph).

    gnnlab launch --workspace workspace --part_config typed/typed.json --ip_config ip_config.txt \\
        --num_trainers 2 --num_samplers 2 --num_servers 2 \\
        "python3 code/train_dist_hetero.py --graph_name typed --ip_config ip_config.txt \\
        --num_epochs 10 --batch_size 30 --num_gpus -1"

In one process: ``python3 train_dist_hetero.py --graph_name typed --part_config typed/typed.json``.
"""

import argparse
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, DistGraph, DistNodeDataLoader, SparseAdam, node_split
from gnnlab.nn import GraphConv, HeteroGraphConv

Rows = dict[str, torch.Tensor]


class RelationalLayer(nn.Module):
    """The mean of the neighbors by each relation, and the node itself, through weights of each."""

    def __init__(self, g: DistGraph, sizes: dict[str, int], num_outputs: int) -> None:
        super().__init__()
        self.relations = HeteroGraphConv(
            {
                name: GraphConv(sizes[source], num_outputs, norm="right", bias=False)
                for source, name, _ in g.canonical_etypes
            }
        )
        self.itself = nn.ModuleDict({t: nn.Linear(n, num_outputs) for t, n in sizes.items()})

    def forward(self, block: dgl.DGLGraph, rows: Rows) -> Rows:
        """Compute the rows of the block's destinations from those of its sources."""
        heard = self.relations(block, rows)
        return {
            ntype: self.itself[ntype](rows[ntype][: block.num_dst_nodes(ntype)]) + heard[ntype]
            for ntype in heard
        }


class RGCN(nn.Module):
    """R-GCN with two layers."""

    def __init__(self, g: DistGraph, sizes: dict[str, int], hidden: int, classes: int) -> None:
        super().__init__()
        self.first = RelationalLayer(g, sizes, hidden)
        self.second = RelationalLayer(g, dict.fromkeys(sizes, hidden), classes)

    def forward(self, blocks: list[dgl.DGLGraph], rows: Rows) -> torch.Tensor:
        """Compute scores of the items of a mini-batch."""
        rows = {ntype: F.relu(h) for ntype, h in self.first(blocks[0], rows).items()}
        return self.second(blocks[1], rows)["item"]


def inputs(g: DistGraph, emb: DistEmbedding, nodes: Rows, device: torch.device) -> Rows:
    """Fetch the features of items, and the vectors of words."""
    features = g.nodes["item"].data["feat"]
    return {"item": features[nodes["item"]].to(device), "word": emb(nodes["word"], device)}


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    gpu = g.rank() % args.num_gpus if args.num_gpus > 0 else None
    device = torch.device("cpu" if gpu is None else f"cuda:{gpu}")
    torch.manual_seed(args.seed)

    items, book = g.nodes["item"].data, g.get_partition_book()
    label = items["label"]
    sizes = {"item": items["feat"].shape[1], "word": args.num_hidden}
    model = RGCN(g, sizes, args.num_hidden, int(label[:].max()) + 1)
    # The last layer computes no words, so some weights have no gradient.
    model = dgl.parallel.init_model(model, device, find_unused_parameters=True)
    emb = DistEmbedding(
        g.num_nodes("word"),
        args.num_hidden,
        "words",
        init_func=lambda shape, dtype: torch.randn(shape, dtype=dtype) / 8,
        part_policy=g.get_node_partition_policy("word"),
    )
    dense = torch.optim.Adam(model.parameters(), lr=args.lr)
    sparse = SparseAdam([emb], lr=args.lr)

    nodes = node_split(items["train_mask"], book, "item")
    sampler = dgl.dataloading.MultiLayerNeighborSampler(args.fan_out)
    loader = DistNodeDataLoader(
        g,
        {"item": nodes},
        sampler,
        device,
        shuffle=True,
        batch_size=args.batch_size,
        seed=args.seed,
    )
    for epoch in range(args.num_epochs):
        start, total = time.perf_counter(), 0.0
        for input_nodes, output_nodes, blocks in loader:
            scores = model(blocks, inputs(g, emb, input_nodes, device))
            loss = F.cross_entropy(scores, label[output_nodes["item"]].to(device))
            dense.zero_grad()
            sparse.zero_grad()
            loss.backward()
            dense.step()
            sparse.step()
            total += loss.item()
        mean, seconds = dgl.parallel.global_mean(total, len(loader)), time.perf_counter() - start
        if g.rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}  {seconds:.2f} s", flush=True)

    nodes = node_split(items["test_mask"], book, "item", force_even=False)  # each once
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(2)
    loader = DistNodeDataLoader(g, {"item": nodes}, sampler, device, batch_size=500)
    right = 0
    with torch.no_grad():
        for input_nodes, output_nodes, blocks in loader:
            scores = model.module(blocks, inputs(g, emb, input_nodes, device))
            right += int((scores.argmax(1).cpu() == label[output_nodes["item"]]).sum())
    test = dgl.parallel.global_mean(right, len(nodes))
    if g.rank() == 0:
        print(f"test accuracy {test:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])

    def add(name: str, **about: Any) -> None:
        """Add an option whose name may be spelt with dashes too."""
        parser.add_argument(*dict.fromkeys([name, name.replace("_", "-")]), **about)

    add("--graph_name", required=True)
    add("--part_config", help="JSON file of the graph; gnnlab launch knows it")
    add("--ip_config", help="file with the addresses of the machines")
    add("--num_epochs", type=int, default=10)
    add("--batch_size", type=int, default=30, help="of each trainer")
    add("--num_gpus", type=int, default=-1, help="of a machine; -1: train on CPUs")
    add("--fan_out", type=int, nargs=2, default=[10, 25], help="of each layer")
    add("--num_hidden", type=int, default=64)
    add("--lr", type=float, default=0.01)
    add("--seed", type=int, default=0)
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
