"""Train GraphSAGE on a graph in parts whose nodes have no features.

Each node gets a vector to learn, a row of a DistEmbedding. A sparse optimizer sends the gradients
of the rows that a batch has looked at to the machines that own them.

    gnnlab launch --workspace workspace --part_config data/digits.json --ip_config ip_config.txt \\
        --num_trainers 2 --num_samplers 2 --num_servers 2 \\
        "python3 code/train_dist_transductive.py --graph_name digits --ip_config ip_config.txt \\
        --num_epochs 10 --batch_size 30 --num_gpus -1"

In one process: ``python3 train_dist_transductive.py --graph_name digits --part_config
data/digits.json``.
"""

import argparse
import time
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
from gnnlab.distributed import (
    DistDataLoader,
    DistEmbedding,
    DistGraph,
    DistNodeDataLoader,
    DistTensor,
    SparseAdam,
    node_split,
)
from gnnlab.nn import SAGEConv


class SAGE(nn.Module):
    """GraphSAGE with two layers."""

    def __init__(self, num_inputs: int, num_hidden: int, num_classes: int) -> None:
        super().__init__()
        self.sizes = [num_hidden, num_classes]
        self.first = SAGEConv(num_inputs, num_hidden, "mean", activation=F.relu)
        self.second = SAGEConv(num_hidden, num_classes, "mean")

    def forward(self, blocks: list[dgl.DGLGraph], x: torch.Tensor) -> torch.Tensor:
        """Compute scores of the nodes of a mini-batch."""
        return self.second(blocks[1], self.first(blocks[0], x))


@torch.no_grad()
def infer(model: SAGE, g: DistGraph, x: DistTensor, batch_size: int) -> DistTensor:
    """Compute scores of all nodes layer by layer, each trainer those of its part."""
    everything = torch.arange(g.num_nodes())
    nodes = node_split(everything, g.get_partition_book(), force_even=False)
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=batch_size)
    device = next(model.parameters()).device
    for layer, size in zip((model.first, model.second), model.sizes, strict=True):
        y = DistTensor((g.num_nodes(), size), torch.float32)
        for input_nodes, output_nodes, (block,) in loader:
            y[output_nodes] = layer(block.to(device), x[input_nodes].to(device)).cpu()
        g.barrier()  # the next layer reads what others have written
        x = y
    return x


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    gpu = g.rank() % args.num_gpus if args.num_gpus > 0 else None
    device = torch.device("cpu" if gpu is None else f"cuda:{gpu}")
    torch.manual_seed(args.seed)

    num_classes = int(g.ndata["label"][:].max()) + 1
    model = dgl.parallel.init_model(SAGE(args.num_hidden, args.num_hidden, num_classes), device)
    emb = DistEmbedding(
        g.num_nodes(),
        args.num_hidden,
        "emb",
        init_func=lambda shape, dtype: torch.randn(shape, dtype=dtype) / 8,
    )
    dense = torch.optim.Adam(model.parameters(), lr=args.lr)
    sparse = SparseAdam([emb], lr=args.sparse_lr)

    sampler = dgl.dataloading.NeighborSampler(args.fan_out)
    nodes = node_split(g.ndata["train_mask"], g.get_partition_book())
    loader = DistDataLoader(
        nodes,
        args.batch_size,
        shuffle=True,
        collate_fn=lambda seeds: sampler.sample(g, seeds),  # runs in the sampler processes
        seed=args.seed,
    )
    for epoch in range(args.num_epochs):
        start, total = time.perf_counter(), 0.0
        for input_nodes, output_nodes, blocks in loader:
            scores = model([block.to(device) for block in blocks], emb(input_nodes, device))
            loss = F.cross_entropy(scores, g.ndata["label"][output_nodes].to(device))
            dense.zero_grad()
            sparse.zero_grad()
            loss.backward()
            dense.step()
            sparse.step()
            total += loss.item()
        mean, seconds = dgl.parallel.global_mean(total, len(loader)), time.perf_counter() - start
        if g.rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}  {seconds:.2f} s", flush=True)

    scores = infer(model.module, g, emb.weight, args.batch_size_eval)
    nodes = node_split(g.ndata["test_mask"], g.get_partition_book(), force_even=False)  # each once
    right = (scores[nodes].argmax(1) == g.ndata["label"][nodes]).sum()
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
    add("--batch_size_eval", type=int, default=10000, help="of each trainer")
    add("--num_gpus", type=int, default=-1, help="of a machine; -1: train on CPUs")
    add("--fan_out", type=int, nargs=2, default=[10, 25], help="of each layer")
    add("--num_hidden", type=int, default=64)
    add("--lr", type=float, default=0.01, help="of the model")
    add("--sparse_lr", type=float, default=0.05, help="of the vectors of nodes")
    add("--seed", type=int, default=0)
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
