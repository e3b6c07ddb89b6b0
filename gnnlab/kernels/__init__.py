"""Plain arrays in, plain arrays out.

Each module holds one concept and does not depend on graph classes: ``csc`` (sorting edges by one
end), ``sample`` (neighbor sampling), ``relabel`` (global to local IDs), ``spmm``, ``sddmm``,
``softmax`` (messages), ``gather`` (rows of a feature matrix), ``owners`` (rows of a distributed
tensor), ``cache`` (which rows to keep), ``activation``, ``optim`` (optimizer steps on rows),
``ldg`` (assigning nodes to parts), ``halo`` (the edges and nodes at the border of a part), ``rng``
(stateless random numbers), ``threads``. Those with a suffix do the same by torch or Triton.

The modules are imported when first used: numba takes about half a second to import, and a program
that only builds a graph on a GPU never needs it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

__all__ = [
    "activation",
    "cache",
    "csc",
    "dtypes",
    "gather",
    "gather_numba",
    "gather_triton",
    "halo",
    "ldg",
    "optim",
    "owners",
    "relabel",
    "relabel_torch",
    "rng",
    "rng_torch",
    "sample",
    "sample_torch",
    "sample_triton",
    "sample_weighted",
    "sddmm",
    "segment_triton",
    "softmax",
    "spmm",
    "temporal",
    "threads",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}"
    )


def node_list(num_nodes: int, device: Any) -> Any:
    """Return a ``NodeList``: of ``relabel`` for the CPU, of ``relabel_torch`` for other devices."""
    if str(device) == "cpu":
        return importlib.import_module(f"{__name__}.relabel").NodeList(num_nodes)
    return importlib.import_module(f"{__name__}.relabel_torch").NodeList(num_nodes, device)
