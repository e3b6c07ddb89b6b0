"""The work that is measured, written as a user of gnnlab would write it.

Batches of 1024 seeds without replacement, SAGE with mean aggregation, hidden width 128, float32.
The peers' scripts do the same work on the same arrays with the same seeds.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import gnnlab as dgl
import gnnlab.nn as dglnn
from gnnlab import kernels
from gnnlab.partition.assign import assign

BATCH, HIDDEN, CLASSES = 1024, 128, 47
WARM_UP = 1 << 18  # edges: enough for the kernels of large graphs to be compiled
EPOCH_LIMIT = {"M": 20}  # an epoch on M is 20 batches


class SAGE(nn.Module):
    """GraphSAGE with mean aggregation; relu and dropout in one pass, or as two operators."""

    def __init__(self, in_feats: int, layers: int, fused: bool = True) -> None:
        super().__init__()
        widths = [in_feats, *[HIDDEN] * (layers - 1), CLASSES]
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(dglnn.SAGEConv(a, b, "mean") for a, b in pairs)
        two = nn.Sequential(nn.ReLU(), nn.Dropout(0.5))
        self.between = dglnn.ReLUDropout(0.5) if fused else two

    def forward(self, blocks: list[dgl.Block], x: torch.Tensor) -> torch.Tensor:
        """Return logits of the last block's destinations, shape (num_dst, CLASSES), float32."""
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True), 1):
            x = layer(block, x)
            if number < len(self.layers):
                x = self.between(x)
        return x


def fanouts(text: str) -> list[int]:
    """Read ``"15,10,5"``."""
    return [int(part) for part in text.split(",")]


def seed_batches(train: np.ndarray, count: int, seed: int = 0) -> list[torch.Tensor]:
    """Return full batches of shuffled training nodes, int64, the same ones that the peers draw."""
    rng = np.random.default_rng(seed)
    batches: list[torch.Tensor] = []
    size = min(BATCH, len(train))
    while len(batches) < count:
        order = rng.permutation(train)
        starts = range(0, len(order) - size + 1, size)
        batches += [torch.from_numpy(order[i : i + size]) for i in starts]
    return batches[:count]


def median_ms(work: Callable[[int], object], repeats: int, warm_up: int) -> float:
    """Return the median time of ``work(i)`` in milliseconds."""
    times = []
    for i in range(warm_up + repeats):
        began = time.perf_counter()
        work(i)
        times.append(time.perf_counter() - began)
    return statistics.median(times[warm_up:]) * 1e3


class Tasks:
    """One graph and the work done on it; ``run("sample:15,10,5:eids")`` runs a task.

    Parameters
    ----------
    folder : Path
        Holds src, dst (E,), feat (N, D) float32, label and train int64, each as ``.npy``.
    size : str
        Name of the graph; on M an epoch is 20 batches.
    """

    def __init__(self, folder: Path, size: str) -> None:
        names = ("src", "dst", "feat", "label", "train")
        arrays = {name: np.load(folder / f"{name}.npy") for name in names}
        self.edges = (arrays["src"], arrays["dst"])
        self.feat = torch.from_numpy(arrays["feat"])
        self.label = torch.from_numpy(arrays["label"])
        self.train = arrays["train"]
        self.limit = EPOCH_LIMIT.get(size)
        self.num_nodes = len(self.label)
        self._graph: dgl.Graph | None = None
        self._batches: dict[str, list[tuple]] = {}

    def run(self, task: str) -> dict[str, float]:
        """Run ``name[:argument…]`` and return what it measured."""
        name, *arguments = task.split(":")
        if name not in self.NAMES:
            raise ValueError(f"no task {name!r}; there are {', '.join(self.NAMES)}")
        return getattr(self, name)(*arguments)

    NAMES = ("build", "sample", "gather", "step", "epoch", "inference", "assign", "partition")

    @property
    def graph(self) -> dgl.Graph:
        """The graph with its features, built on first use."""
        if self._graph is None:
            self.build()
        assert self._graph is not None
        self._graph.ndata["feat"], self._graph.ndata["label"] = self.feat, self.label
        return self._graph

    def build(self) -> dict[str, float]:
        """Edge list to adjacency grouped by destination."""
        self._graph = None
        some = tuple(ends[:WARM_UP] for ends in self.edges)
        dgl.graph(some, num_nodes=self.num_nodes).formats("csc")
        began = time.perf_counter()
        g = dgl.graph(self.edges, num_nodes=self.num_nodes, idtype=torch.int64)
        g = g.formats("csc")
        took = time.perf_counter() - began
        self._graph = g
        return {"ms": took * 1e3}

    def sample(self, fanout: str, variant: str = "", repeats: str = "50") -> dict[str, float]:
        """Sample the blocks of a batch; ``eids`` also reads every block's original edge IDs."""
        g, sampler = self.graph, dgl.dataloading.NeighborSampler(fanouts(fanout))
        seeds, edges = seed_batches(self.train, int(repeats) + 5), []

        def work(i: int) -> None:
            blocks = sampler.sample_blocks(g, seeds[i])[2]
            edges.append(sum(block.num_edges() for block in blocks))
            if variant == "eids":
                for block in blocks:
                    block.edata[dgl.EID]

        return {"ms": median_ms(work, int(repeats), 5), "edges": statistics.mean(edges)}

    def gather(self, fanout: str, repeats: str = "50") -> dict[str, float]:
        """Read the features of a batch's input nodes."""
        inputs = [batch[0] for batch in self._sampled(fanout)]
        rows = statistics.mean(len(nodes) for nodes in inputs)
        feat = self.graph.ndata["feat"]
        ms = median_ms(
            lambda i: kernels.gather.rows(feat, inputs[i % len(inputs)]), int(repeats), 5
        )
        return {"ms": ms, "rows": rows}

    def step(self, fanout: str, variant: str = "", repeats: str = "30") -> dict[str, float]:
        """Forward and backward of the model; ``plain``: relu and dropout as two operators."""
        batches = self._sampled(fanout)
        model = SAGE(self.feat.shape[1], len(fanouts(fanout)), fused=variant != "plain")
        inputs = [self.feat[nodes] for nodes, _, _ in batches]
        labels = [self.label[seeds] for _, seeds, _ in batches]
        forward = []

        def work(i: int) -> None:
            k = i % len(batches)
            began = time.perf_counter()
            loss = F.cross_entropy(model(batches[k][2], inputs[k]), labels[k])
            forward.append(time.perf_counter() - began)
            model.zero_grad()
            loss.backward()

        ms = median_ms(work, int(repeats), 5)
        return {"ms": ms, "forward_ms": statistics.median(forward[5:]) * 1e3}

    def epoch(self, variant: str = "", fanout: str = "15,10,5") -> dict[str, float]:
        """Train an epoch; ``prefetch``: a thread makes the batches ahead."""
        g = self.graph
        model = SAGE(self.feat.shape[1], len(fanouts(fanout)))
        optimizer = torch.optim.Adam(model.parameters(), 3e-3)
        sampler = dgl.dataloading.NeighborSampler(
            fanouts(fanout), prefetch_node_feats=["feat"], prefetch_labels=["label"]
        )
        loader = dgl.dataloading.DataLoader(
            g,
            torch.from_numpy(self.train),
            sampler,
            batch_size=BATCH,
            shuffle=True,
            drop_last=False,
            num_workers=0,
            prefetch=2 if variant == "prefetch" else 0,
        )
        began, count = time.perf_counter(), 0
        for _, _, blocks in self._first(loader):
            x, y = blocks[0].srcdata["feat"], blocks[-1].dstdata["label"]
            loss = F.cross_entropy(model(blocks, x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            count += 1
        took = time.perf_counter() - began
        return {"s": took, "batches": count, "ms_per_batch": took / count * 1e3}

    @torch.no_grad()
    def inference(self) -> dict[str, float]:
        """Every node's logits, a layer at a time, with all neighbors."""
        g, model = self.graph, SAGE(self.feat.shape[1], 3).eval()
        began = time.perf_counter()
        x = self.feat
        for number, layer in enumerate(model.layers, 1):
            width = HIDDEN if number < 3 else CLASSES
            y = torch.empty(self.num_nodes, width)
            for rows, block in dgl.dataloading.full_neighbor_blocks(g, BATCH):
                h = layer(block, (x, x[rows]))
                y[rows] = F.relu(h) if number < 3 else h
            x = y
        return {"s": time.perf_counter() - began}

    def assign(self, parts: str = "4") -> dict[str, float]:
        """Choose a part for every node by METIS, in-edges balanced; files are not written."""
        began = time.perf_counter()
        part, _ = assign(self.graph, int(parts), "metis", balance_edges=True)
        took = time.perf_counter() - began
        src, dst = self.edges
        return {"assign_s": took, "cut_frac": float((part[src] != part[dst]).mean())}

    def partition(self, parts: str = "4") -> dict[str, float]:
        """Cut the graph by METIS and write the parts with their features to files."""
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            dgl.distributed.partition_graph(self.graph, "g", int(parts), folder, balance_edges=True)
            return {"s": time.perf_counter() - began}

    def _first(self, batches: Iterator) -> Iterator:
        return itertools.islice(batches, self.limit)

    def _sampled(self, fanout: str) -> list[tuple]:
        if fanout not in self._batches:
            sampler = dgl.dataloading.NeighborSampler(fanouts(fanout))
            count = 4 if self.limit else 10
            seeds = seed_batches(self.train, count, seed=1)
            self._batches[fanout] = [sampler.sample_blocks(self.graph, s) for s in seeds]
        return self._batches[fanout]
