"""GraphSAGE without labels: predict links, then classify nodes from what it has learned.

python3 link_prediction.py
python3 link_prediction.py --loader torch_geometric.loader    # PyG's own
"""

import argparse
from importlib import import_module

import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from torch_geometric import seed_everything
from torch_geometric.nn import GraphSAGE

import gnnlab as dgl
from gnnlab.pyg import to_pyg


def main(args: argparse.Namespace) -> None:
    """Train on links; test the vectors of the nodes with a linear classifier."""
    loaders = import_module(args.loader)
    data = to_pyg(dgl.data.load(args.dataset)[0], {"feat": "x", "label": "y"})
    seed_everything(args.seed)
    loader = loaders.LinkNeighborLoader(
        data, num_neighbors=[10, 5], neg_sampling_ratio=1.0, batch_size=1024, shuffle=True
    )
    model = GraphSAGE(data.x.shape[1], hidden_channels=64, num_layers=2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    for epoch in range(args.num_epochs):
        total = 0.0
        for batch in loader:
            optimizer.zero_grad()
            h = model(batch.x, batch.edge_index)
            src, dst = batch.edge_label_index
            loss = F.binary_cross_entropy_with_logits((h[src] * h[dst]).sum(1), batch.edge_label)
            loss.backward()
            optimizer.step()
            total += float(loss)
        print(f"epoch {epoch:3}  loss {total / len(loader):.4f}")
    with torch.no_grad():
        h = model(data.x, data.edge_index).numpy()
    train, test = data.train_mask.numpy(), data.test_mask.numpy()
    classifier = LogisticRegression(max_iter=500).fit(h[train], data.y.numpy()[train])
    print(f"test accuracy {classifier.score(h[test], data.y.numpy()[test]):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--loader", default="gnnlab.pyg", help="or torch_geometric.loader")
    parser.add_argument("--num_epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
