"""``dgl.dataloading.dist_dataloader``: loaders of distributed graphs under their older path."""

from __future__ import annotations

import warnings
from typing import Any

from gnnlab.dataloading import EdgeCollator, NodeCollator
from gnnlab.distributed import DistDataLoader, DistEdgeDataLoader, DistNodeDataLoader

__all__ = [
    "DistDataLoader",
    "DistEdgeDataLoader",
    "DistNodeDataLoader",
    "EdgeCollator",
    "NodeCollator",
]


def _remove_kwargs_dist(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Take options of worker processes out of a loader's: a job starts its samplers itself."""
    for name in ("num_workers", "pin_memory"):
        if kwargs.pop(name, None):
            warnings.warn(
                f"{name} has no effect on a distributed loader: samplers are started with the job "
                "(gnnlab launch --num_samplers)",
                stacklevel=3,
            )
    return kwargs
