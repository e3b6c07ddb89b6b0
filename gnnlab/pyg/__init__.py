"""PyG's users' way into gnnlab: their data, models and loops, with gnnlab's sampling and servers.

Needs torch-geometric 2.6 or newer (``pip install "gnnlab[pyg]"``), none of its compiled companions.
In a PyG script one import changes::

    from gnnlab.pyg import NeighborLoader  # was: from torch_geometric.loader import NeighborLoader

``data`` is then a ``Data``, a ``HeteroData``, a :class:`gnnlab.Graph`, or a
:class:`gnnlab.distributed.DistGraph`, whose parts are on many machines.

References
----------
Fey and Lenssen, "Fast Graph Representation Learning with PyTorch Geometric", RLGM 2019.
"""

import importlib
from typing import Any

_PLACES = {
    **dict.fromkeys(("from_pyg", "to_pyg"), "convert"),
    **dict.fromkeys(("FeatureStore", "GraphStore"), "stores"),
    **dict.fromkeys(("LinkNeighborLoader", "NeighborLoader"), "loader"),
    "NeighborSampler": "sampler",
}
__all__ = ["FeatureStore", "GraphStore", "LinkNeighborLoader", "NeighborLoader"]
__all__ += ["NeighborSampler", "from_pyg", "to_pyg"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"gnnlab.pyg has no {name!r}; it has {', '.join(__all__)}")
    try:
        return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("torch_geometric"):
            raise
        raise ImportError(
            f"gnnlab.pyg.{name} needs torch-geometric, which is not installed: "
            'pip install "gnnlab[pyg]"'
        ) from error
