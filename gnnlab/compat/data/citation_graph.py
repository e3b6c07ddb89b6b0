"""``dgl.data.citation_graph``: that of gnnlab and ``CitationGraphDataset``."""

from __future__ import annotations

from typing import Any

from gnnlab.compat import lazy
from gnnlab.compat.accepted import adapted
from gnnlab.data import citation_graph as core
from gnnlab.data.dataset import NodeDataset
from gnnlab.errors import NotFound

_LOADERS = {"cora": core.load_cora, "citeseer": core.load_citeseer, "pubmed": core.load_pubmed}


def CitationGraphDataset(name: str, *args: Any, **kwargs: Any) -> NodeDataset:
    """Load "cora", "citeseer" or "pubmed"; further arguments as in ``CoraGraphDataset``."""
    if name not in _LOADERS:
        raise NotFound(f"name must be one of {', '.join(_LOADERS)}; found {name!r}")
    return adapted(_LOADERS[name])(*args, **kwargs)  # type: ignore[no-any-return]


__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.data.citation_graph")
