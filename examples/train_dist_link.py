"""Train GraphSAGE to predict links of a graph in parts.

The model learns to score pairs that are linked above random pairs. It never looks at the links that
are kept for the test, nor, while it trains, at those that it is to predict, in either direction;
``partition.py --kind links`` makes the graph so that they can be left out.

    gnnlab launch --workspace workspace --part_config links/links.json --ip_config ip_config.txt \\
        --num_trainers 2 --num_samplers 2 --num_servers 2 \\
        "python3 code/train_dist_link.py --graph_name links --ip_config ip_config.txt \\
        --num_epochs 3 --batch_size 500 --num_gpus -1"

In one process: ``python3 train_dist_link.py --graph_name links --part_config links/links.json``.
"""

import argparse
import time
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
from gnnlab.distributed import DistEdgeDataLoader, DistGraph, edge_split
from gnnlab.nn import HeteroGraphConv, SAGEConv


class SAGE(nn.Module):
    """GraphSAGE with weights for each direction of a link."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            HeteroGraphConv({name: SAGEConv(*pair, "mean") for name in ("links", "linked_by")})
            for pair in pairwise(sizes)
        )

    def forward(
        self, blocks: list[dgl.DGLGraph], x: torch.Tensor, *graphs: dgl.DGLGraph
    ) -> list[torch.Tensor]:
        """Score the links of each graph, shape (number of its links,)."""
        h = {"node": x}
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            h = layer(block, h if number == 0 else {"node": F.relu(h["node"])})
        rows = F.normalize(h["node"])
        ends = [graph.edges(etype="links") for graph in graphs]
        return [10 * (rows[u] * rows[v]).sum(1) for u, v in ends]


def make_loader(
    g: DistGraph, mask: str, num_negatives: int, device: torch.device, args: argparse.Namespace
) -> DistEdgeDataLoader:
    """Make the loader of this trainer's share of the links in a mask.

    In training all trainers have equally many links, hence one may stand in two shares; in the
    test each link counts once.
    """
    links = edge_split(
        g.edges["links"].data[mask],
        g.get_partition_book(),
        "links",
        force_even=mask == "train_mask",
    )
    sampler = dgl.dataloading.NeighborSampler(
        args.fan_out, mask="train_mask", prefetch_node_feats=["feat"]
    )
    return DistEdgeDataLoader(
        g,
        {"links": links},
        sampler,
        device,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(num_negatives),
        exclude="reverse_types",
        reverse_etypes={"links": "linked_by", "linked_by": "links"},
        batch_size=args.batch_size,
        shuffle=True,
        seed=args.seed,
    )


@torch.no_grad()
def accuracy(model: SAGE, loader: DistEdgeDataLoader) -> float:
    """Return how often a link is scored above a random pair with the same source."""
    right = count = 0
    for _, links, others, blocks in loader:
        true, false = model(blocks, blocks[0].srcdata["feat"], links, others)
        above = true[:, None] > false.view(len(true), -1)
        right, count = right + int(above.sum()), count + above.numel()
    return dgl.parallel.global_mean(right, count)


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    gpu = g.rank() % args.num_gpus if args.num_gpus > 0 else None
    device = torch.device("cpu" if gpu is None else f"cuda:{gpu}")
    torch.manual_seed(args.seed)

    num_features = g.ndata["feat"].shape[1]
    model = SAGE([num_features, args.num_hidden, args.num_hidden])
    model = dgl.parallel.init_model(model, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    loader = make_loader(g, "train_mask", args.num_negs, device, args)
    for epoch in range(args.num_epochs):
        start, total = time.perf_counter(), 0.0
        for _, links, others, blocks in loader:
            true, false = model(blocks, blocks[0].srcdata["feat"], links, others)
            scores = torch.cat([true, false])
            loss = F.binary_cross_entropy_with_logits(
                scores, torch.cat([torch.ones_like(true), torch.zeros_like(false)])
            )
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean, seconds = dgl.parallel.global_mean(total, len(loader)), time.perf_counter() - start
        if g.rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}  {seconds:.2f} s", flush=True)

    test = accuracy(model.module, make_loader(g, "test_mask", 10, device, args))
    if g.rank() == 0:
        print(f"test accuracy {test:.4f}: so often a link is scored above a random pair")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])

    def add(name: str, **about: Any) -> None:
        """Add an option whose name may be spelt with dashes too."""
        parser.add_argument(*dict.fromkeys([name, name.replace("_", "-")]), **about)

    add("--graph_name", required=True)
    add("--part_config", help="JSON file of the graph; gnnlab launch knows it")
    add("--ip_config", help="file with the addresses of the machines")
    add("--num_epochs", type=int, default=3)
    add("--batch_size", type=int, default=500, help="links of each trainer")
    add("--num_gpus", type=int, default=-1, help="of a machine; -1: train on CPUs")
    add("--num_negs", type=int, default=1, help="random pairs for each link")
    add("--fan_out", type=int, nargs=2, default=[10, 10], help="of each layer")
    add("--num_hidden", type=int, default=64)
    add("--lr", type=float, default=0.01)
    add("--seed", type=int, default=0)
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
