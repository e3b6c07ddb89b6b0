"""Many small graphs, the work of libraries for molecules, as a program for DGL.

It is run as it stands: by DGL's interpreter, and for gnnlab by ``python -m gnnlab.as_dgl``. It
prints READY and answers each task that it reads from standard input with one line of JSON, as
``drive.py`` describes: ``ms`` is the fastest of many repetitions, since most take less than the
machine is disturbed for. Batches have 128 graphs of 10 to 30 nodes, layers are 64 wide.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import dgl
import dgl.function as fn
import dgl.nn as dglnn
import numpy as np
import torch
from torch import nn

GRAPHS, BATCH, NODES, EDGES, WIDTH = 512, 128, 16, 8, 64  # numbers of graphs, sizes of rows
SECONDS, FEWEST = 0.3, 5  # of a task: how long and how often at least


def molecule(rng: np.random.Generator) -> Any:
    """Return a tree of 10 to 30 atoms with up to three rings, each bond as two edges."""
    size = int(rng.integers(10, 31))
    u = list(range(1, size))
    v = [int(rng.integers(max(0, i - 3), i)) for i in u]
    for _ in range(int(rng.integers(0, 4))):
        a, b = rng.choice(size, 2, replace=False)
        u, v = [*u, int(a)], [*v, int(b)]
    g = dgl.graph((torch.tensor(u + v), torch.tensor(v + u)), num_nodes=size)
    g.ndata["h"] = torch.from_numpy(rng.standard_normal((size, NODES), dtype=np.float32))
    g.edata["e"] = torch.from_numpy(rng.standard_normal((len(u + v), EDGES), dtype=np.float32))
    return g


def complex_(rng: np.random.Generator) -> Any:
    """Return a graph of 5 to 15 atoms, as many residues, and three types of edges."""
    sizes = {name: int(rng.integers(5, 16)) for name in ("atom", "residue")}
    edges = {}
    for src, name, dst in (("atom", "bond", "atom"), ("atom", "in", "residue"),
                           ("residue", "near", "atom")):  # fmt: skip
        ends = (torch.from_numpy(rng.integers(0, sizes[end], 20)) for end in (src, dst))
        edges[src, name, dst] = tuple(ends)
    g = dgl.heterograph(edges, num_nodes_dict=sizes)
    for name, size in sizes.items():
        g.nodes[name].data["h"] = torch.ones(size, NODES)
    for name in g.canonical_etypes:
        g.edges[name].data["e"] = torch.ones(20, EDGES)
    return g


class Model(nn.Module):
    """Three layers of a kind, and the sum of a number per node."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.nodes, self.edges = nn.Linear(NODES, WIDTH), nn.Linear(EDGES, WIDTH)
        self.layers = nn.ModuleList(layer(kind) for _ in range(3))
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, g: Any) -> torch.Tensor:
        """Return a number per graph, shape (batch size, 1)."""
        h = self.nodes(g.ndata["h"])
        edges = [] if isinstance(self.layers[0], dglnn.GraphConv) else [g.edata["e"]]
        edges = [self.edges(e) for e in edges]
        for each in self.layers:
            h = each(g, h, *edges).relu()
        g.ndata["out"] = self.out(h)
        return dgl.sum_nodes(g, "out")


def layer(kind: str) -> nn.Module:
    """Return a layer of width 64."""
    if kind == "GINEConv":
        two = nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)
        return dglnn.GINEConv(nn.Sequential(*two))
    if kind == "CFConv":
        return dglnn.CFConv(*[WIDTH] * 4)
    return dglnn.GraphConv(WIDTH, WIDTH)


class Tasks:
    """The graphs, and what is measured with them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.graphs = [molecule(rng) for _ in range(GRAPHS)]
        self.typed = [complex_(rng) for _ in range(BATCH)]
        self.one, self.typed_one = self.batch(), self.batch("typed")
        self.h = torch.randn(self.one.num_nodes(), WIDTH, requires_grad=True)
        self.e = torch.randn(self.one.num_edges(), WIDTH, requires_grad=True)
        self.kinds = {kind: layer(kind) for kind in ("GraphConv", "GINEConv", "CFConv")}
        self.models = {kind: Model(kind) for kind in self.kinds}

    def batch(self, kind: str = "") -> Any:
        """Join 128 graphs with their features."""
        return dgl.batch(self.typed if kind == "typed" else self.graphs[:BATCH])

    def unbatch(self, kind: str = "") -> Any:
        """Split them again."""
        return dgl.unbatch(self.typed_one if kind == "typed" else self.one)

    def line_graph(self) -> Any:
        """Make the graph whose nodes are the edges of the batch."""
        return dgl.line_graph(self.one)

    def layer(self, kind: str) -> None:
        """Forward and backward of one layer."""
        edges = [] if kind == "GraphConv" else [self.e]
        self.kinds[kind](self.one, self.h, *edges).sum().backward()

    def message(self, function: str) -> None:
        """Forward and backward of messages, or of a reduction, that the user has written."""
        with self.one.local_scope():
            self.one.ndata["h"], self.one.edata["e"] = self.h, self.e
            if function == "message":
                self.one.update_all(_times, fn.sum("m", "out"))
            else:
                self.one.update_all(fn.copy_u("h", "m"), _sum)
            self.one.ndata["out"].sum().backward()

    def readout(self) -> None:
        """Sum and mean of the nodes of each graph."""
        with self.one.local_scope():
            self.one.ndata["h"] = self.h.detach()
            dgl.sum_nodes(self.one, "h")
            dgl.mean_nodes(self.one, "h")

    def epoch(self, kind: str) -> None:
        """Train on all 512 graphs: batch, forward, backward, step."""
        model = self.models[kind]
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        for i in range(0, GRAPHS, BATCH):
            loss = model(dgl.batch(self.graphs[i : i + BATCH])).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def _times(edges: Any) -> dict[str, torch.Tensor]:
    return {"m": edges.src["h"] * edges.data["e"] + edges.dst["h"]}


def _sum(nodes: Any) -> dict[str, torch.Tensor]:
    return {"out": nodes.mailbox["m"].sum(1)}


def fastest_ms(work: Callable[[], object]) -> float:
    """Return the shortest time of ``work()`` in milliseconds, after two calls to warm up."""
    times: list[float] = []
    work()
    work()
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < FEWEST:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times) * 1e3


def main() -> None:
    """Answer tasks such as ``small:batch:typed``."""
    torch.manual_seed(0)
    tasks = Tasks()
    print("READY", flush=True)
    for line in map(str.strip, sys.stdin):
        if line == "quit":
            break
        _, name, *arguments = line.split(":")
        try:
            answer: dict[str, Any] = {"ms": fastest_ms(lambda: getattr(tasks, name)(*arguments))}  # noqa: B023
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
