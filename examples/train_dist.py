"""Train GraphSAGE on a graph in parts, and classify its nodes.

On the machines that ip_config.txt lists:

    gnnlab launch --workspace workspace --part_config data/digits.json --ip_config ip_config.txt \\
        --num_trainers 2 --num_samplers 2 --num_servers 2 \\
        "python3 code/train_dist.py --graph_name digits --ip_config ip_config.txt \\
        --num_epochs 30 --batch_size 60 --num_gpus -1"

The same in one process, which then holds all parts:

    python3 train_dist.py --graph_name digits --part_config data/digits.json \\
        --num_epochs 30 --batch_size 60

A batch of ``--batch_size`` nodes is divided among all trainers. How many these are, if they divide
it evenly, changes nothing but the time: neighbors are sampled alike, and the mean of the trainers'
gradients is the gradient of the batch.
"""

import argparse
import time
from itertools import pairwise
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
from gnnlab.distributed import (
    DistGraph,
    DistNodeDataLoader,
    DistTensor,
    load_checkpoint,
    node_split,
    save_checkpoint,
    should_stop,
)
from gnnlab.errors import NotFound
from gnnlab.nn import SAGEConv


class SAGE(nn.Module):
    """GraphSAGE; a layer takes the mean of the neighbors."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = sizes
        self.layers = nn.ModuleList(SAGEConv(*pair, "mean") for pair in pairwise(sizes))

    def forward(self, blocks: list[dgl.DGLGraph], x: torch.Tensor) -> torch.Tensor:
        """Compute scores of the nodes of a mini-batch."""
        for number, block in enumerate(blocks):
            x = self.layer(number, block, x)
        return x

    def layer(self, number: int, block: dgl.DGLGraph, x: torch.Tensor) -> torch.Tensor:
        """Compute one layer; all but the last end in a ReLU."""
        x = self.layers[number](block, x)
        return x if number == len(self.layers) - 1 else F.relu(x)


@torch.no_grad()
def infer(model: SAGE, g: DistGraph, batch_size: int, device: torch.device) -> DistTensor:
    """Compute scores of all nodes layer by layer, each trainer those of its part."""
    everything = torch.arange(g.num_nodes())
    nodes = node_split(everything, g.get_partition_book(), force_even=False)
    sampler = dgl.dataloading.MultiLayerFullNeighborSampler(1)
    loader = DistNodeDataLoader(g, nodes, sampler, device, batch_size=batch_size)
    x = g.ndata["feat"]
    for number, size in enumerate(model.sizes[1:]):
        y = DistTensor((g.num_nodes(), size), torch.float32, f"layer{number}")
        for input_nodes, output_nodes, (block,) in loader:
            y[output_nodes] = model.layer(number, block, x[input_nodes].to(device)).cpu()
        g.barrier()  # the next layer reads what others have written
        x = y
    return x


def accuracy(scores: DistTensor, g: DistGraph, mask: str) -> float:
    """Return the share of the nodes in a mask whose class is found."""
    nodes = node_split(g.ndata[mask], g.get_partition_book(), force_even=False)  # each once
    right = scores[nodes].argmax(1) == g.ndata["label"][nodes]
    return dgl.parallel.global_mean(right.sum(), len(nodes))


def share(nodes: torch.Tensor, batch_size: int, g: DistGraph, epoch: int) -> torch.Tensor:
    """Shuffle nodes, cut them into batches, and return this trainer's share of every batch.

    All trainers' shares have the same size, and are mostly nodes that the trainer's machine owns.
    A last batch that is not full is left out.
    """
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(epoch))
    batches = nodes[order[: len(nodes) // batch_size * batch_size]].split(batch_size)
    return torch.cat([node_split(batch, g.get_partition_book()) for batch in batches])


def resume(folder: str | None, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Load the newest checkpoint, if there is one; return the number of the next epoch."""
    if not folder:
        return 0
    try:
        return load_checkpoint(folder, model=model, optimizer=optimizer)["epoch"] + 1
    except NotFound:
        return 0


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    gpu = g.rank() % args.num_gpus if args.num_gpus > 0 else None
    device = torch.device("cpu" if gpu is None else f"cuda:{gpu}")
    torch.manual_seed(args.seed)

    num_classes = int(g.ndata["label"][:].max()) + 1
    sizes = [g.ndata["feat"].shape[1], *[args.num_hidden] * (len(args.fan_out) - 1), num_classes]
    model = dgl.parallel.init_model(SAGE(sizes), device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    sampler = dgl.dataloading.NeighborSampler(
        args.fan_out, prefetch_node_feats=["feat"], prefetch_labels=["label"]
    )

    train = g.ndata["train_mask"][:].nonzero().flatten()
    batch_size = min(args.batch_size, len(train))
    each = -(-batch_size // torch.distributed.get_world_size())  # rounded up, as node_split does
    for epoch in range(resume(args.checkpoint, model, optimizer), args.num_epochs):
        start, total = time.perf_counter(), 0.0
        nodes = share(train, batch_size, g, epoch + args.seed)
        loader = DistNodeDataLoader(
            g, nodes, sampler, device, batch_size=each, seed=epoch + args.seed
        )
        for _, _, blocks in loader:
            scores = model(blocks, blocks[0].srcdata["feat"])
            loss = F.cross_entropy(scores, blocks[-1].dstdata["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean, seconds = dgl.parallel.global_mean(total, len(loader)), time.perf_counter() - start
        if g.rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}  {seconds:.2f} s", flush=True)
        if args.checkpoint:
            save_checkpoint(args.checkpoint, model=model, optimizer=optimizer, epoch=epoch)
            if should_stop():  # the time of the job is nearly over
                return

    scores = infer(model.module, g, args.batch_size_eval, device)
    found = {name: accuracy(scores, g, f"{name}_mask") for name in ("val", "test")}
    if g.rank() == 0:
        if args.save:
            torch.save(model.module.state_dict(), args.save)
        print(f"validation accuracy {found['val']:.4f}  test accuracy {found['test']:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])

    def add(name: str, **about: Any) -> None:
        """Add an option whose name may be spelt with dashes too."""
        parser.add_argument(*dict.fromkeys([name, name.replace("_", "-")]), **about)

    add("--graph_name", required=True)
    add("--part_config", help="JSON file of the graph; gnnlab launch knows it")
    add("--ip_config", help="file with the addresses of the machines")
    add("--num_epochs", type=int, default=30)
    add("--batch_size", type=int, default=1000, help="of all trainers together")
    add("--batch_size_eval", type=int, default=10000, help="of each trainer")
    add("--num_gpus", type=int, default=-1, help="of a machine; -1: train on CPUs")
    add("--fan_out", type=int, nargs="+", default=[10, 25], help="of each layer")
    add("--num_hidden", type=int, default=64)
    add("--lr", type=float, default=0.01)
    add("--seed", type=int, default=0)
    add("--save", help="file for the model's parameters, on machine 0")
    add("--checkpoint", help="folder to save to after each epoch, and to resume from")
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
