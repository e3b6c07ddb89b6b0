"""GraphSAGE of PyG on a graph in parts; the parts are those of ../partition.py.

In one process, which then holds all parts:

    python3 many_machines.py --graph_name digits --part_config data/digits.json

On the machines that ip_config.txt lists:

    gnnlab launch --workspace workspace --part_config data/digits.json --ip_config ip_config.txt \\
        --num_trainers 1 --num_samplers 1 --num_servers 1 \\
        "python3 code/many_machines.py --graph_name digits --ip_config ip_config.txt"
"""

import argparse

import torch
import torch.nn.functional as F
from torch_geometric.nn import GraphSAGE

import gnnlab as dgl
from gnnlab.distributed import DistGraph
from gnnlab.pyg import NeighborLoader


def main(args: argparse.Namespace) -> None:
    """Join the job and train; in a server, the first line does not return."""
    dgl.distributed.initialize(args.ip_config)
    torch.distributed.init_process_group("gloo")
    g = DistGraph(args.graph_name, part_config=args.part_config)
    torch.manual_seed(args.seed)
    num_classes = int(g.ndata["label"][:].max()) + 1
    model = GraphSAGE(g.ndata["feat"].shape[1], 64, num_layers=2, out_channels=num_classes)
    model = dgl.parallel.init_model(model, torch.device("cpu"))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)

    def loader(mask: str, shuffle: bool) -> NeighborLoader:
        # A mask of a graph in parts: each trainer gets an equal share of its nodes.
        return NeighborLoader(
            g, [10, 5], g.ndata[mask], batch_size=64, shuffle=shuffle, seed=args.seed
        )

    train = loader("train_mask", True)
    for epoch in range(args.num_epochs):
        total = 0.0
        for batch in train:
            scores = model(batch.feat, batch.edge_index)[: batch.batch_size]
            loss = F.cross_entropy(scores, batch.label[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        mean = dgl.parallel.global_mean(total, len(train))
        if g.rank() == 0:
            print(f"epoch {epoch:3}  loss {mean:.4f}", flush=True)
    right = count = 0
    with torch.no_grad():
        for batch in loader("test_mask", False):
            found = model(batch.feat, batch.edge_index)[: batch.batch_size].argmax(1)
            right += int((found == batch.label[: batch.batch_size]).sum())
            count += batch.batch_size
    accuracy = dgl.parallel.global_mean(torch.tensor(float(right)), count)
    if g.rank() == 0:
        print(f"test accuracy {accuracy:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph_name", required=True)
    parser.add_argument("--part_config", help="JSON file of the graph; gnnlab launch knows it")
    parser.add_argument("--ip_config", help="file with the addresses of the machines")
    parser.add_argument("--num_epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
    torch.distributed.destroy_process_group()  # when nothing holds the model any more
