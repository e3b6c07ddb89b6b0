"""Data sets: read, check, download and generate graphs with features, labels and splits.

``load(NAME)`` returns a graph that is ready for training; ``load("digits")`` needs no network. A
reader turns files into plain arrays (:class:`RawDataset`), and ``load`` makes a graph of them. The
table of names, readers and URLs is ``catalog.py``. pandas, numba, pooch and requests are imported
by the functions that use them.
"""

from __future__ import annotations

from gnnlab.data import citation_graph, utils
from gnnlab.data.adapter import AsGraphPredDataset, AsLinkPredDataset, AsNodePredDataset
from gnnlab.data.catalog import DATASETS, DatasetInfo
from gnnlab.data.citation_graph import (
    CiteseerGraphDataset,
    CoraGraphDataset,
    PubmedGraphDataset,
)
from gnnlab.data.dataset import (
    NodeDataset,
    RedditDataset,
    load,
    load_data,
    products_like,
    register_data_args,
)
from gnnlab.data.digits import digits_folder
from gnnlab.data.download import DownloadFailed, data_home, fetch, unpack
from gnnlab.data.gin import GINDataset
from gnnlab.data.ogb import read_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.data.split import per_class_split, random_split, split_dataset
from gnnlab.data.tensors import load_tensors, save_tensors
from gnnlab.graph.io import load_graphs, save_graphs

__all__ = [
    "DATASETS",
    "AsGraphPredDataset",
    "AsLinkPredDataset",
    "AsNodePredDataset",
    "CiteseerGraphDataset",
    "CoraGraphDataset",
    "DatasetInfo",
    "DownloadFailed",
    "GINDataset",
    "NodeDataset",
    "PubmedGraphDataset",
    "RawDataset",
    "RedditDataset",
    "citation_graph",
    "data_home",
    "digits_folder",
    "fetch",
    "load",
    "load_data",
    "load_graphs",
    "load_tensors",
    "per_class_split",
    "products_like",
    "random_split",
    "read_ogb",
    "register_data_args",
    "save_graphs",
    "save_tensors",
    "split_dataset",
    "unpack",
    "utils",
]
