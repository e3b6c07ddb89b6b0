"""Data sets on a disk for GraphBolt, written as its guide says: without types, and with types."""

import os

import dgl.graphbolt as gb
import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml
from communities import Communities
from dgl.nn import HeteroGraphConv, SAGEConv

legacy = Communities()
g = legacy[0]
src, dst = (x.numpy() for x in g.edges())
nodes = {name: g.ndata[f"{name}_mask"].nonzero().flatten().numpy() for name in ("train", "test")}


def write(name, is_typed):
    """Node classification; with types, edges of both directions have a type."""
    base = os.path.join(os.environ["COMMUNITIES"], name)
    os.makedirs(base, exist_ok=True)

    def path(file):
        return os.path.join(base, file)

    np.save(path("feat.npy"), g.ndata["feat"].numpy())
    torch.save(torch.from_numpy(src[:, None].astype("float32")), path("edge.pt"))
    pd.DataFrame({"src": src, "dst": dst}).to_csv(path("edges.csv"), index=False, header=False)
    np.save(path("edges.npy"), np.stack([dst, src]))
    kind = {"type": "node"} if is_typed else {}
    edges = [{"format": "csv", "path": "edges.csv"}]
    if is_typed:
        edges[0]["type"] = "node:cites:node"
        edges.append({"type": "node:cited-by:node", "format": "numpy", "path": "edges.npy"})
    of_edges = {"type": "node:cites:node"} if is_typed else {}
    feature = {"domain": "node", "name": "feat", "format": "numpy", "path": "feat.npy"}
    source = {"domain": "edge", "name": "source", "format": "torch", "path": "edge.pt"}
    task = {"name": "node_classification", "num_classes": 4}
    for part in "train", "test":
        np.save(path(f"{part}.npy"), nodes[part])
        np.save(path(f"{part}_labels.npy"), g.ndata["label"].numpy()[nodes[part]])
        data = [
            {"name": "seeds", "format": "numpy", "in_memory": True, "path": f"{part}.npy"},
            {"name": "labels", "format": "numpy", "path": f"{part}_labels.npy"},
        ]
        task[f"{part}_set"] = [{**kind, "data": data}]
    metadata = {
        "dataset_name": name,
        "graph": {"nodes": [{**kind, "num": g.num_nodes()}], "edges": edges},
        "feature_data": [{**feature, **kind, "in_memory": False}, {**source, **of_edges}],
        "tasks": [task],
    }
    with open(path("metadata.yaml"), "w") as f:
        yaml.dump(metadata, f)
    return base


class Model(nn.Module):
    def __init__(self, is_typed):
        super().__init__()

        def layer(*sizes):
            if not is_typed:
                return SAGEConv(*sizes, "mean")
            return HeteroGraphConv(
                {rel: SAGEConv(*sizes, "mean") for rel in ("cites", "cited-by")}, "sum"
            )

        self.layers = nn.ModuleList([layer(4, 16), layer(16, 4)])
        self.is_typed = is_typed

    def forward(self, blocks, x):
        h = {"node": x} if self.is_typed else x
        h = self.layers[0](blocks[0], h)
        h = {"node": F.relu(h["node"])} if self.is_typed else F.relu(h)
        h = self.layers[1](blocks[1], h)
        return h["node"] if self.is_typed else h


def run(name, is_typed):
    dataset = gb.OnDiskDataset(write(name, is_typed), include_original_edge_id=True).load()
    graph, feature, task = dataset.graph, dataset.feature, dataset.tasks[0]
    keys = {"node": ["feat"]} if is_typed else ["feat"]
    edge_keys = {"node:cites:node": ["source"]} if is_typed else ["source"]

    def batches(item_set, shuffle):
        datapipe = gb.ItemSampler(item_set, batch_size=10, shuffle=shuffle)
        datapipe = datapipe.sample_neighbor(graph, [10, 10])
        datapipe = datapipe.fetch_feature(feature, keys, edge_keys)
        for data in gb.DataLoader(datapipe.copy_to("cpu")):
            x = data.node_features[("node", "feat") if is_typed else "feat"]
            source = data.edge_features[0][("node:cites:node", "source") if is_typed else "source"]
            block = data.blocks[0]
            start = block.edges(etype="cites" if is_typed else None)[0]
            ids = block.srcdata["_ID"][start.long()]
            assert torch.equal(source.flatten().long(), ids)
            yield data.blocks, x, data.labels["node"] if is_typed else data.labels

    torch.manual_seed(0)
    model = Model(is_typed)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(10):
        for blocks, x, y in batches(task.train_set, True):
            loss = F.cross_entropy(model(blocks, x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        found = [model(blocks, x).argmax(1) == y for blocks, x, y in batches(task.test_set, False)]
    accuracy = torch.cat(found).float().mean().item()
    print(f"{name}: test accuracy {accuracy:.2f}")
    assert accuracy > 0.55 and dataset.dataset_name == name


run("homogeneous", False)
run("typed", True)
