"""Epochs on a GPU: a graph on the device, in pinned and in pageable memory; PyG beside it.

Three layers of GraphSAGE (mean, 128 wide), 1,024 seeds a batch, Adam, fanouts [4, 4, 4] (tutorial
3) and [15, 10, 5]. Before that, the blocks of a batch are compared with the CPU's.
"""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import gnnlab as dgl
from benchmarks import data
from gnnlab.nn import SAGEConv

__all__ = ["measure", "save", "table"]

FANOUTS = ([4, 4, 4], [15, 10, 5])
BATCH, HIDDEN = 1024, 128
MOST_SECONDS = 4.0  # of an epoch; a longer one is extrapolated from its first steps


class _Model(torch.nn.Module):
    def __init__(self, width: int, classes: int, conv: Callable[..., Any]) -> None:
        super().__init__()
        sizes = [(width, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, classes)]
        self.layers = torch.nn.ModuleList(conv(*size) for size in sizes)

    def forward(self, graphs: list[Any], x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the seeds; ``graphs`` has blocks, or PyG's lists of edges."""
        for number, (layer, graph) in enumerate(zip(self.layers, graphs, strict=True)):
            x = x.relu() if number else x
            x = layer(graph, x) if isinstance(graph, dgl.Graph) else layer(x, graph)
        return x


def measure(size: str, device: torch.device, epochs: int) -> dict[str, Any]:
    """Return the setting, whether blocks are equal, and seconds per epoch, the fastest of some."""
    folder = data.folder_of(size)
    src, dst, feat, label, train = (
        torch.from_numpy(np.load(folder / f"{name}.npy")) for name in data.NAMES
    )
    g = dgl.graph((src, dst), num_nodes=len(feat))
    g.ndata["feat"], g.ndata["label"] = feat, label.long()
    there = g.to(device)
    there.create_formats_()
    found: dict[str, Any] = {
        "device": _name(device),
        "host": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "graph": f"{len(feat):,} nodes, {len(src):,} edges, {feat.shape[1]} features",
        "steps": -(-len(train) // BATCH),
        "blocks_equal": all(_same_blocks(g, there, train[:BATCH].long(), f) for f in FANOUTS),
        "epochs": [],
    }
    places = {"on the device": there}
    if device.type == "cuda":
        places["in pinned memory"] = g.local_var().pin_memory_()
    places["in pageable memory"] = g
    for fanouts in FANOUTS:
        for place, graph in places.items():
            for captured in (False, True):
                trainer = _Gnnlab(graph, train.long(), device, fanouts, captured)
                found["epochs"].append(_timed(trainer, fanouts, place, epochs, device))
    for fanouts in FANOUTS if _has_pyg() else ():
        for workers in (0, 8):
            peer = _PyG((src, dst, feat, label.long(), train.long()), device, fanouts, workers)
            place = f"PyG, {workers} workers"
            found["epochs"].append(_timed(peer, fanouts, place, epochs, device))
    return found


def table(found: dict[str, Any]) -> list[str]:
    """Return the lines of Markdown tables."""
    lines = [f"{found['device']}, {found['host']}, torch {found['torch']}; {found['graph']}", ""]
    lines += ["| graph | step | fanouts | s per epoch | GB at most |", "|---|---|---|---|---|"]
    for row in found["epochs"]:
        lines.append(
            f"| {row['place']} | {row['step']} | {row['fanouts']} | {row['seconds']:.2f} "
            f"| {row['peak_gb']:.1f} |"
        )
    return [*lines, "", f"blocks equal the CPU's: {'yes' if found['blocks_equal'] else 'NO'}"]


def save(found: dict[str, Any], path: Path) -> None:
    """Write the figures as JSON."""
    path.write_text(json.dumps(found, indent=1) + "\n", "utf8")


def _name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def _same_blocks(g: Any, there: Any, seeds: torch.Tensor, fanouts: list[int]) -> bool:
    found = []
    for graph in (g, there):
        dgl.seed(0)
        inputs, _, blocks = dgl.dataloading.NeighborSampler(fanouts).sample(graph, seeds)
        ends = [end for block in blocks for end in block.edges()]
        found.append([tensor.cpu() for tensor in (inputs, *ends)])
    return all(map(torch.equal, *found))


class _Gnnlab:
    """Iterating trains an epoch with the loader of this library."""

    def __init__(
        self, g: Any, train: torch.Tensor, device: torch.device, fanouts: list[int], captured: bool
    ) -> None:
        self.step = "captured" if captured else "ordinary"
        sampler = dgl.dataloading.NeighborSampler(fanouts, prefetch_node_feats=["feat"])
        self.loader = dgl.dataloading.DataLoader(
            g, train, sampler, device=device, batch_size=BATCH, shuffle=True
        )
        width, classes = g.ndata["feat"].shape[1], int(g.ndata["label"].max()) + 1
        self.model = _Model(width, classes, partial(SAGEConv, aggregator_type="mean")).to(device)
        is_cuda = device.type == "cuda"
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), capturable=captured and is_cuda, fused=is_cuda or None
        )
        self.training = dgl.dataloading.CapturedTraining(self.loader, self.loss, self.optimizer)

    def loss(self, input_nodes: Any, output_nodes: Any, blocks: list[Any]) -> torch.Tensor:
        """Return the loss of a mini-batch."""
        count = len(output_nodes)
        scores = self.model(blocks, blocks[0].srcdata["feat"])[:count]
        return F.cross_entropy(scores, blocks[-1].dstdata["label"][:count])

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[torch.Tensor]:
        if self.step == "captured":
            yield from self.training
            return
        for batch in self.loader:
            yield _train(self.optimizer, self.loss(*batch))


class _PyG:
    """The same with the loader and the layers of PyG, which samples on the CPU."""

    step = "ordinary"

    def __init__(
        self, tensors: Any, device: torch.device, fanouts: list[int], workers: int
    ) -> None:
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.nn import SAGEConv as Conv

        src, dst, feat, label, train = tensors
        graph = Data(x=feat, y=label, edge_index=torch.stack([src.long(), dst.long()]))
        options = {"num_workers": workers, "persistent_workers": workers > 0, "shuffle": True}
        self.loader = NeighborLoader(
            graph, fanouts[::-1], input_nodes=train, batch_size=BATCH, **options
        )
        self.model = _Model(feat.shape[1], int(label.max()) + 1, Conv).to(device)
        fused = device.type == "cuda" or None
        self.optimizer = torch.optim.Adam(self.model.parameters(), fused=fused)
        self.device = device

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[torch.Tensor]:
        for batch in self.loader:
            batch = batch.to(self.device)
            scores = self.model([batch.edge_index] * 3, batch.x)[: batch.batch_size]
            yield _train(self.optimizer, F.cross_entropy(scores, batch.y[: batch.batch_size]))


def _has_pyg() -> bool:
    try:
        from torch_geometric import typing
    except ImportError:
        return False
    return bool(typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE)


def _train(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach()


def _timed(
    trainer: Any, fanouts: list[int], place: str, epochs: int, device: torch.device
) -> dict[str, Any]:
    memory = torch.get_device_module(device)
    if is_cuda := device.type == "cuda":
        memory.reset_peak_memory_stats()
    seconds, is_whole = _epoch(trainer)
    for _ in range(epochs if is_whole else 0):  # the first epoch warms up
        seconds = min(_epoch(trainer)[0], seconds)
    peak = memory.max_memory_allocated() / 1e9 if is_cuda else 0.0
    row = {"place": place, "step": trainer.step, "fanouts": str(fanouts)}
    return {**row, "seconds": round(seconds, 4), "peak_gb": round(peak, 2)}


def _epoch(trainer: Any) -> tuple[float, bool]:
    """Return the seconds of an epoch; for a long one, from its steps after the first quarter."""
    started, first, begin, steps = time.perf_counter(), 0.0, 0, 0
    for steps, loss in enumerate(trainer, 1):
        passed = time.perf_counter() - started
        if not first and passed > MOST_SECONDS / 4:
            loss.item()  # waits for the device
            first, begin = time.perf_counter() - started, steps
        if passed > MOST_SECONDS and steps > begin:
            break
    loss.item()
    passed = time.perf_counter() - started
    if steps == len(trainer):
        return passed, True
    return (passed - first) / (steps - begin) * len(trainer), False
