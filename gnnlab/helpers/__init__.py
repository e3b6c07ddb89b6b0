"""The small library: helpers of one file each that need torch alone, to be read and to be copied.

They are the reference of the fast library, which gives the same blocks and the same shares. A file
is imported when one of its names is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gnnlab.helpers.block_sampler import BlockSampler
    from gnnlab.helpers.ddp_loader import DDPLoader
    from gnnlab.helpers.dist_graph_simulator import DistGraphSimulator
    from gnnlab.helpers.fork import fix_openmp, prepare_mp

__all__ = ["BlockSampler", "DDPLoader", "DistGraphSimulator", "fix_openmp", "prepare_mp"]

_FILES = {
    "BlockSampler": "block_sampler",
    "DDPLoader": "ddp_loader",
    "DistGraphSimulator": "dist_graph_simulator",
    "fix_openmp": "fork",
    "prepare_mp": "fork",
}


def __getattr__(name: str) -> Any:
    if name in _FILES:
        return getattr(importlib.import_module(f"{__name__}.{_FILES[name]}"), name)
    if name in _FILES.values():
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"gnnlab.helpers has no {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_FILES, *_FILES.values()})
