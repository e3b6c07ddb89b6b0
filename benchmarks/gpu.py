"""An epoch of tutorial 3 on a GPU: fanouts [4, 4, 4], 1,024 seeds, three layers of GraphSAGE.

Measured with graph and features on the device, and on the host. Before that, the blocks of one
batch are compared with the CPU's.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import gnnlab as dgl
from benchmarks import data
from gnnlab.nn import SAGEConv

__all__ = ["measure"]

FANOUTS, BATCH, HIDDEN = [4, 4, 4], 1024, 128


class _Model(torch.nn.Module):
    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        sizes = [(width, HIDDEN), (HIDDEN, HIDDEN), (HIDDEN, classes)]
        self.layers = torch.nn.ModuleList(SAGEConv(*size, "mean") for size in sizes)

    def forward(self, blocks: list[Any], x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the seeds."""
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            x = layer(block, x.relu() if number else x)
        return x


def measure(size: str, device: torch.device, epochs: int) -> list[str]:
    """Return the lines of a Markdown table: seconds of the fastest epoch, after one to warm up."""
    folder = data.folder_of(size)
    src, dst, feat, label, train = (
        torch.from_numpy(np.load(folder / f"{name}.npy")) for name in data.NAMES
    )
    g = dgl.graph((src, dst), num_nodes=len(feat))
    g.ndata["feat"], g.ndata["label"] = feat, label.long()
    there = g.to(device)
    there.create_formats_()
    equal = _same_blocks(g, there, train[:BATCH].long())
    lines = [f"| {len(feat):,} nodes, {len(src):,} edges on {device} | s per epoch |", "|---|---|"]
    for place, graph in (("graph on the device", there), ("graph on the host", g)):
        model = _Model(feat.shape[1], int(label.max()) + 1).to(device)
        seconds = min([_epoch(graph, train, device, model) for _ in range(epochs + 1)][1:])
        lines.append(f"| {place} | {seconds:.2f} |")
    return [*lines, f"| blocks equal the CPU's | {'yes' if equal else 'NO'} |"]


def _same_blocks(g: Any, there: Any, seeds: torch.Tensor) -> bool:
    found = []
    for graph in (g, there):
        dgl.seed(0)
        inputs, _, blocks = dgl.dataloading.NeighborSampler(FANOUTS).sample(graph, seeds)
        ends = [end for block in blocks for end in block.edges()]
        found.append([tensor.cpu() for tensor in (inputs, *ends)])
    return all(map(torch.equal, *found))


def _epoch(g: Any, train: torch.Tensor, device: torch.device, model: _Model) -> float:
    sampler = dgl.dataloading.NeighborSampler(FANOUTS, prefetch_node_feats=["feat"])
    loader = dgl.dataloading.DataLoader(
        g, train, sampler, device=device, batch_size=BATCH, shuffle=True
    )
    optimizer = torch.optim.Adam(model.parameters())
    started = time.perf_counter()
    for _, _, blocks in loader:
        loss = F.cross_entropy(
            model(blocks, blocks[0].srcdata["feat"]), blocks[-1].dstdata["label"]
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    loss.item()  # waits for the device
    return time.perf_counter() - started
