"""``dgl.data.citation_graph``: that of gnnlab and ``CitationGraphDataset``."""

from __future__ import annotations

from typing import Any

from gnnlab.data.citation_graph import *  # noqa: F403
from gnnlab.data.citation_graph import load_citeseer, load_cora, load_pubmed
from gnnlab.data.dataset import NodeDataset
from gnnlab.errors import NotFound

_LOADERS = {"cora": load_cora, "citeseer": load_citeseer, "pubmed": load_pubmed}


def CitationGraphDataset(name: str, *args: Any, **kwargs: Any) -> NodeDataset:
    """Load "cora", "citeseer" or "pubmed"; further arguments as in ``CoraGraphDataset``."""
    if name not in _LOADERS:
        raise NotFound(f"name must be one of {', '.join(_LOADERS)}; found {name!r}")
    return _LOADERS[name](*args, **kwargs)
