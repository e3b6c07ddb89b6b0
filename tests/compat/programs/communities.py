"""The data set of the programs beside this file: communities of nodes, made by a random generator.

Written, as all programs here, in the style of code for DGL: it does not know gnnlab.
"""

import os

import dgl
import numpy as np
import torch
from dgl.data import DGLDataset
from dgl.data.utils import load_graphs, save_graphs


class Communities(DGLDataset):
    """One graph: nodes of a community are joined more often, and have similar features."""

    def __init__(self, raw_dir=None, num_classes=4, size=50, force_reload=True, verbose=False):
        self.num_classes = num_classes
        self._size = size
        super().__init__(
            name="communities",
            raw_dir=raw_dir or os.environ["COMMUNITIES"],
            hash_key=(num_classes, size),
            force_reload=force_reload,
            verbose=verbose,
        )

    def download(self):
        pass

    def process(self):
        rng = np.random.RandomState(0)
        num_nodes = self.num_classes * self._size
        label = np.arange(num_nodes) // self._size
        edges = []
        for u in range(num_nodes):
            same = np.where(label == label[u])[0]
            edges += [(u, int(v)) for v in rng.choice(same, 4)]
            edges += [(u, int(v)) for v in rng.choice(num_nodes, 1)]
        g = dgl.to_bidirected(dgl.graph(edges, num_nodes=num_nodes))
        feat = np.eye(self.num_classes)[label] + rng.normal(scale=1.5, size=(num_nodes, 4))
        order = rng.permutation(num_nodes)
        g.ndata["feat"] = torch.tensor(feat, dtype=torch.float32)
        g.ndata["label"] = torch.tensor(label)
        for name, part in (("train", order[:40]), ("val", order[40:80]), ("test", order[80:])):
            mask = torch.zeros(num_nodes, dtype=torch.bool)
            mask[torch.tensor(part)] = True
            g.ndata[name + "_mask"] = mask
        self._graph = g

    def save(self):
        os.makedirs(self.save_path, exist_ok=True)
        save_graphs(os.path.join(self.save_path, "graph.bin"), [self._graph])

    def load(self):
        self._graph = load_graphs(os.path.join(self.save_path, "graph.bin"))[0][0]

    def has_cache(self):
        return os.path.exists(os.path.join(self.save_path, "graph.bin"))

    def __getitem__(self, idx):
        assert idx == 0
        return self._graph

    def __len__(self):
        return 1
