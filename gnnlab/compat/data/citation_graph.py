"""Cora, Citeseer and Pubmed under DGL's names: as classes, as functions, and by name.

The graphs are DGL's. The split (Cora: 140 / 500 / 1000 nodes) is drawn by ``gnnlab.data.npz`` and
is not Planetoid's; features are those of the file, not divided by their row sums.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gnnlab.data.dataset import NodeDataset, Transform, load
from gnnlab.errors import NotFound

_DOC = """Load {name}: papers on {subject}.

    ``raw_dir`` holds the ``.npz`` file, or gets it; ``transform`` takes the graph and returns
    another, at every access to ``dataset[0]``.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.data.{name}GraphDataset().num_classes  # doctest: +SKIP
    {classes}

    References
    ----------
    {reference}
    """


def _loader(name: str, subject: str, classes: int, reference: str) -> Callable[..., NodeDataset]:
    def load_graph(
        raw_dir: str | Path | None = None,
        force_reload: bool = False,
        verbose: bool = True,
        reverse_edge: bool = True,
        transform: Transform | None = None,
    ) -> NodeDataset:
        return load(
            name.lower(),
            folder=raw_dir,
            progress=verbose,
            add_reverse_edges=reverse_edge,
            transform=transform,
        )

    load_graph.__name__ = load_graph.__qualname__ = f"{name}GraphDataset"
    load_graph.__doc__ = _DOC.format(
        name=name, subject=subject, classes=classes, reference=reference
    )
    return load_graph


CoraGraphDataset = load_cora = _loader(
    "Cora",
    "machine learning",
    7,
    'McCallum et al., "Automating the Construction of Internet Portals with Machine Learning", '
    "2000.",
)
CiteseerGraphDataset = load_citeseer = _loader(
    "Citeseer",
    "computer science",
    6,
    'Sen et al., "Collective Classification in Network Data", AI Magazine 29(3), 2008.',
)
PubmedGraphDataset = load_pubmed = _loader(
    "Pubmed",
    "diabetes",
    3,
    'Namata et al., "Query-driven Active Surveying for Collective Classification", MLG 2012.',
)
_LOADERS = {"cora": load_cora, "citeseer": load_citeseer, "pubmed": load_pubmed}


def CitationGraphDataset(name: str, *args: Any, **kwargs: Any) -> NodeDataset:
    """Load "cora", "citeseer" or "pubmed"; further arguments as in ``CoraGraphDataset``."""
    if name not in _LOADERS:
        raise NotFound(f"name must be one of {', '.join(_LOADERS)}; found {name!r}")
    return _LOADERS[name](*args, **kwargs)
