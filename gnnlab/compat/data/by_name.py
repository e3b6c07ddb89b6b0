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

    ``raw_dir`` holds the two files, or gets the archive; another archive has self-loops. The graph
    has ``feat``, ``label`` and the published masks; ``transform`` is called at every access to it.

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
