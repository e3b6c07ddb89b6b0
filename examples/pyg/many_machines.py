"""GraphSAGE or GAT of PyG on a graph in parts: classify nodes, or predict links without labels.

The parts are those of ../partition.py. In one process, which then holds all parts:

    python3 many_machines.py --graph_name digits --part_config data/digits.json --model gat

On the machines that ip_config.txt lists:

    gnnlab launch --workspace workspace --part_config data/digits.json --ip_config ip_config.txt \\
        --num_trainers 1 --num_samplers 1 --num_servers 1 \\
        "python3 code/many_machines.py --graph_name digits --ip_config ip_config.txt --task links"
"""

import argparse
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GraphSAGE

import gnnlab as dgl
from gnnlab.distributed import DistGraph, edge_split
from gnnlab.pyg import LinkNeighborLoader, NeighborLoader

MODELS = {"sage": GraphSAGE, "gat": GAT}


def share(batch_size: int) -> int:
    """Return this trainer's part of a batch, so that any number of trainers learn the same."""
    return -(-batch_size // torch.distributed.get_world_size())


def train(model: torch.nn.Module, loader: Iterable, loss_of: Callable, num_epochs: int) -> None:
    """Train in data parallel; all trainers have the same number of batches."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(num_epochs):
        total = 0.0
        for batch in loader:
            loss = loss_of(model(batch.feat, batch.edge_index), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean = dgl.parallel.global_mean(total, len(loader))
        if torch.distributed.get_rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}", flush=True)


@torch.no_grad()
def accuracy(model: torch.nn.Module, loader: Iterable, right: Callable) -> float:
    """Return the share of right predictions of all trainers."""
    found = [right(model(batch.feat, batch.edge_index), batch).float() for batch in loader]
    return dgl.parallel.global_mean(torch.cat(found).sum(), sum(map(len, found)))


def classify(g: DistGraph, model: torch.nn.Module, args: argparse.Namespace) -> float:
    """Train with the labels of nodes; return the accuracy on the test nodes."""
    options = {"batch_size": share(64), "seed": args.seed}
    # A mask of a graph in parts: each trainer gets an equal share of its nodes.
    loader = NeighborLoader(g, [10, 5], g.ndata["train_mask"], shuffle=True, **options)
    test = NeighborLoader(g, [10, 5], g.ndata["test_mask"], **options)

    def loss(scores: torch.Tensor, batch: Data) -> torch.Tensor:
        return F.cross_entropy(scores[: batch.batch_size], batch.label[: batch.batch_size])

    def right(scores: torch.Tensor, batch: Data) -> torch.Tensor:
        return scores[: batch.batch_size].argmax(1) == batch.label[: batch.batch_size]

    train(model, loader, loss, args.num_epochs)
    return accuracy(model, test, right)


def predict_links(g: DistGraph, model: torch.nn.Module, args: argparse.Namespace) -> float:
    """Tell nine of ten edges from random pairs; return the accuracy on the others and as many."""
    edges = edge_split(torch.ones(g.num_edges(), dtype=torch.bool), g.get_partition_book())
    options = {"neg_sampling": "binary", "batch_size": share(512), "seed": args.seed}
    held_out = edges[::10]
    used = edges[torch.arange(len(edges)) % 10 > 0]
    loader = LinkNeighborLoader(g, [10, 5], used, shuffle=True, **options)
    test = LinkNeighborLoader(g, [10, 5], held_out, **options)

    def score(h: torch.Tensor, batch: Data) -> torch.Tensor:
        src, dst = batch.edge_label_index
        return (h[src] * h[dst]).sum(1)

    def loss(h: torch.Tensor, batch: Data) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(score(h, batch), batch.edge_label)

    def right(h: torch.Tensor, batch: Data) -> torch.Tensor:
        return (score(h, batch) > 0) == (batch.edge_label > 0)

    train(model, loader, loss, args.num_epochs)
    return accuracy(model, test, right)


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    torch.manual_seed(args.seed)
    task = {"nodes": classify, "links": predict_links}[args.task]
    width = int(g.ndata["label"][:].max()) + 1 if args.task == "nodes" else 64
    model = MODELS[args.model](g.ndata["feat"].shape[1], 64, num_layers=2, out_channels=width)
    model = dgl.parallel.init_model(model, torch.device("cpu"))
    found = task(g, model, args)
    if g.rank() == 0:
        print(f"test accuracy {found:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph_name", required=True)
    parser.add_argument("--part_config", help="JSON file of the graph; gnnlab launch knows it")
    parser.add_argument("--ip_config", help="file with the addresses of the machines")
    parser.add_argument("--model", choices=list(MODELS), default="sage")
    parser.add_argument("--task", choices=["nodes", "links"], default="nodes")
    parser.add_argument("--num_epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
