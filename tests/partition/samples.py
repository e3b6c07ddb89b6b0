"""One small graph, cut in two by hand.

part 0: 1 2 4 │ part 1: 0 3 5

ring     0 → 1 → 2 → 3 → 4 → 5 → 0        edges 0 … 5
chords   1 → 0, 3 → 2                      edges 6, 7
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import gnnlab as dgl
from gnnlab.partition import partition_graph

PART_OF = [1, 0, 0, 1, 0, 1]


def ring() -> dgl.Graph:
    g = dgl.graph(([0, 1, 2, 3, 4, 5, 1, 3], [1, 2, 3, 4, 5, 0, 0, 2]))
    g.ndata["x"] = torch.arange(6.0)
    g.edata["w"] = torch.arange(8)
    return g


def cut_ring(folder: Path, **options: Any) -> Path:
    """Partition the ring; returns the JSON file."""
    options = {"part_method": lambda g, k: PART_OF, **options}
    partition_graph(ring(), "ring", 2, folder, **options)
    return folder / "ring.json"


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
