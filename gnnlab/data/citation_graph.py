"""Cora, Citeseer and Pubmed under DGL's names: as classes and as functions.

The graphs are DGL's. The split (Cora: 140 / 500 / 1000 nodes) is drawn by ``npz.py`` and is not
Planetoid's; features are those of the file, not divided by their row sums.
"""

from __future__ import annotations

from pathlib import Path

from gnnlab.data.dataset import NodeDataset, Transform, load

__all__ = [
    "CiteseerGraphDataset",
    "CoraGraphDataset",
    "PubmedGraphDataset",
    "load_citeseer",
    "load_cora",
    "load_pubmed",
]


def CoraGraphDataset(
    raw_dir: str | Path | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    reverse_edge: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Cora: papers on machine learning.

    Parameters
    ----------
    raw_dir : str or Path, optional
        Folder that holds the ``.npz`` file, or into which it is downloaded.
    force_reload : bool
        Accepted and not needed: the file is read every time.
    verbose : bool
        Whether to show a progress bar.
    reverse_edge : bool
        Whether to add reverse edges.
    transform : callable, optional
        Takes the graph and returns another; called at every access to ``dataset[0]``.

    Returns
    -------
    NodeDataset

    Raises
    ------
    InvalidInput
        The file is damaged or not of this layout.
    DownloadFailed
        The download did not succeed; the message says how to do it by hand.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.CoraGraphDataset().num_classes                         # doctest: +SKIP
    7

    References
    ----------
    McCallum et al., "Automating the Construction of Internet Portals with Machine Learning", 2000.
    """
    return _load("cora", raw_dir, verbose, reverse_edge, transform)


def CiteseerGraphDataset(
    raw_dir: str | Path | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    reverse_edge: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Citeseer: papers on computer science. Arguments as for :func:`CoraGraphDataset`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.data.CiteseerGraphDataset(transform=dgl.AddSelfLoop())[0]  # doctest: +SKIP

    References
    ----------
    Sen et al., "Collective Classification in Network Data", AI Magazine 29(3), 2008.
    """
    return _load("citeseer", raw_dir, verbose, reverse_edge, transform)


def PubmedGraphDataset(
    raw_dir: str | Path | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    reverse_edge: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Pubmed: papers on diabetes. Arguments as for :func:`CoraGraphDataset`.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.data.PubmedGraphDataset()[0]                            # doctest: +SKIP

    References
    ----------
    Namata et al., "Query-driven Active Surveying for Collective Classification", MLG 2012.
    """
    return _load("pubmed", raw_dir, verbose, reverse_edge, transform)


load_cora, load_citeseer, load_pubmed = CoraGraphDataset, CiteseerGraphDataset, PubmedGraphDataset


def _load(
    name: str,
    folder: str | Path | None,
    progress: bool,
    reverse_edge: bool,
    transform: Transform | None,
) -> NodeDataset:
    return load(
        name, folder=folder, progress=progress, add_reverse_edges=reverse_edge, transform=transform
    )
