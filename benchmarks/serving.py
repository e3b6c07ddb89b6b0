"""How long a request takes: ``score`` of one node by two layers, one request after the other.

All neighbors, sampled ones, or stored rows of the first layer, on a graph in one memory and on the
same graph in two parts in one process. Nodes are drawn at random, the same ones for each way; the
ways take turns, so that a slow moment of the machine affects all of them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gnnlab as dgl
from benchmarks import distributed
from benchmarks.tasks import SAGE
from gnnlab.dataloading import MultiLayerFullNeighborSampler, NeighborSampler, score

FANOUTS = [10, 25]
PER_TURN = 20  # requests


def measure(folder: Path, requests: int) -> list[list[str]]:
    """Return a table: for each graph and way, p50 and p99 of the latency, and the nodes read."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as name:
        part_config = distributed.cut(folder, Path(name))
        dgl.distributed.initialize()
        parts = dgl.distributed.DistGraph("g", part_config=part_config)
        src, dst, feat = (np.load(folder / f"{each}.npy") for each in ("src", "dst", "feat"))
        whole = dgl.graph((src, dst), num_nodes=len(feat))
        whole.ndata["feat"] = torch.from_numpy(feat)
        model = SAGE(feat.shape[1], 2).eval()
        work = {f"Graph, {way}": ask for way, ask in _ways(whole, model).items()}
        work |= {f"DistGraph, {way}": ask for way, ask in _ways(parts, model).items()}
        times: dict[str, list[float]] = {each: [] for each in work}
        read: dict[str, list[int]] = {each: [] for each in work}
        nodes = torch.randint(len(feat), (requests,), generator=torch.Generator().manual_seed(1))
        for turn in (nodes[:PER_TURN], *nodes.split(PER_TURN)):  # the first one warms up
            for each, ask in work.items():
                for node in turn:
                    began = time.perf_counter()
                    read[each].append(ask(node))
                    times[each].append((time.perf_counter() - began) * 1e3)
    table = [["score of a node", "p50 ms", "p99 ms", "nodes read, mean", "at most"]]
    for way, values in times.items():
        middle, most = np.percentile(values[PER_TURN:], [50, 99])
        counts = read[way][PER_TURN:]
        table.append(
            [way, f"{middle:.2f}", f"{most:.2f}", f"{np.mean(counts):.0f}", f"{max(counts)}"]
        )
    return table


def _ways(g: Any, model: SAGE) -> dict[str, Callable[[torch.Tensor], int]]:
    """Return a function per way that scores a node and returns how many rows were read."""
    one, two = MultiLayerFullNeighborSampler(1), MultiLayerFullNeighborSampler(2)
    first, last = model.layers

    def hidden(blocks: Any, x: torch.Tensor) -> torch.Tensor:
        return model.between(first(blocks[0], x))  # type: ignore[no-any-return]

    stored = score(g, hidden, range(g.num_nodes()), one, "feat")
    if isinstance(g, dgl.distributed.DistGraph):
        rows = dgl.distributed.DistTensor(tuple(stored.shape), stored.dtype)
        rows[:], stored = stored, rows

    def asking(model: Any, sampler: Any, inputs: Any) -> Callable[[torch.Tensor], int]:
        def ask(node: torch.Tensor) -> int:
            sizes: list[int] = []

            def counted(blocks: Any, x: torch.Tensor) -> Any:
                sizes.append(len(x))
                return model(blocks, x)

            score(g, counted, node, sampler, inputs)
            return sizes[0]

        return ask

    return {
        "all neighbors": asking(model, two, "feat"),
        f"sampled {FANOUTS}": asking(model, NeighborSampler(FANOUTS), "feat"),
        "stored": asking(lambda blocks, h: last(blocks[0], h), one, stored),
    }
