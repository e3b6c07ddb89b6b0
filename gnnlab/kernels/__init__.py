"""Plain arrays in, plain arrays out.

Each module holds one concept and does not depend on graph classes; its first lines say which. Those
with a suffix do the same by torch or Triton.

The modules are imported when first used: numba takes about half a second to import, and a program
that only builds a graph on a GPU never needs it.
"""

import importlib.util
from types import ModuleType
from typing import Any


def __getattr__(name: str) -> ModuleType:
    if importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def node_list(num_nodes: int, device: Any) -> Any:
    """Return a ``NodeList``: of ``relabel`` for the CPU, of ``relabel_torch`` for other devices."""
    if str(device) == "cpu":
        return importlib.import_module(f"{__name__}.relabel").NodeList(num_nodes)
    return importlib.import_module(f"{__name__}.relabel_torch").NodeList(num_nodes, device)
