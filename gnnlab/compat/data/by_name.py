"""Reddit under DGL's name, and data sets that ``--dataset`` of a command line names."""

from __future__ import annotations

import argparse
from pathlib import Path

from gnnlab.data.dataset import NodeDataset, Transform, load
from gnnlab.errors import NotFound


def RedditDataset(
    self_loop: bool = False,
    raw_dir: str | Path | None = None,
    force_reload: bool = False,
    verbose: bool = True,
    transform: Transform | None = None,
) -> NodeDataset:
    """Load Reddit under DGL's name: an edge joins posts that the same user commented on.

    Parameters
    ----------
    self_loop : bool
        Whether every node has an edge to itself: a different archive.
    raw_dir : str or Path, optional
        Folder that holds the two files, or into which the archive is downloaded.
    force_reload : bool
        Accepted and not needed: the files are read every time.
    verbose : bool
        Whether to show a progress bar.
    transform : callable, optional
        Takes the graph and returns another; called at every access to ``dataset[0]``.

    Returns
    -------
    NodeDataset
        Both directions of every edge, ``feat``, ``label`` and the published masks.

    Raises
    ------
    InvalidInput
        A file is damaged or not of this layout.
    DownloadFailed
        The download did not succeed; the message says how to do it by hand.

    Examples
    --------
    >>> import gnnlab.compat as dgl
    >>> dgl.data.RedditDataset(self_loop=True).num_classes              # doctest: +SKIP
    41

    References
    ----------
    Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
    """
    return load(
        "reddit", folder=raw_dir, progress=verbose, transform=transform, self_loop=self_loop
    )


_ARGUMENTS = ("cora", "citeseer", "pubmed", "reddit", "reddit-self-loop")


def register_data_args(parser: argparse.ArgumentParser) -> None:
    """Add the argument ``--dataset`` to a command line, for :func:`load_data`.

    Parameters
    ----------
    parser : argparse.ArgumentParser

    Examples
    --------
    >>> import argparse
    >>> from gnnlab.compat.data import register_data_args
    >>> parser = argparse.ArgumentParser()
    >>> register_data_args(parser)
    >>> parser.parse_args(["--dataset", "cora"])
    Namespace(dataset='cora')
    """
    parser.add_argument("--dataset", help=f"one of {', '.join(_ARGUMENTS)}")


def load_data(args: argparse.Namespace) -> NodeDataset:
    """Load the data set that ``--dataset`` names; see :func:`gnnlab.data.load` for other data sets.

    Parameters
    ----------
    args : argparse.Namespace
        Its ``dataset`` is cora, citeseer, pubmed, reddit or reddit-self-loop.

    Returns
    -------
    NodeDataset

    Raises
    ------
    NotFound
        ``--dataset`` is missing or has another value.

    Examples
    --------
    >>> import argparse
    >>> from gnnlab.compat.data import load_data
    >>> load_data(argparse.Namespace(dataset="cora")).num_classes       # doctest: +SKIP
    7
    """
    if args.dataset not in _ARGUMENTS:
        raise NotFound(f"--dataset must be one of {', '.join(_ARGUMENTS)}; found {args.dataset}")
    if args.dataset.startswith("reddit"):
        return RedditDataset(self_loop=args.dataset == "reddit-self-loop")
    return load(args.dataset)
