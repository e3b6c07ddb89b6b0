"""Data sets: one call for a graph, ready to train on.

``load("digits")`` needs no network. Each reader gives plain arrays (:class:`RawDataset`); ``load``
makes a graph of them. Modules are imported when first used: pandas and numba take their time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from gnnlab.data.ogb import read_ogb, write_ogb
    from gnnlab.data.raw import RawDataset
    from gnnlab.data.split import per_class_split, random_split, split_dataset, stratified_split
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
    "stratified_split",
    "unpack",
    "write_ogb",
]

_HOMES = {
    "adapter": "AsGraphPredDataset AsLinkPredDataset AsNodePredDataset",
    "catalog": "DATASETS DatasetInfo",
    "citation_graph": "CiteseerGraphDataset CoraGraphDataset PubmedGraphDataset",
    "dataset": "NodeDataset RedditDataset load load_data products_like register_data_args",
    "digits": "digits_folder",
    "download": "DownloadFailed data_home fetch unpack",
    "gin": "GINDataset",
    "ogb": "read_ogb write_ogb",
    "raw": "RawDataset",
    "split": "per_class_split random_split split_dataset stratified_split",
    "tensors": "load_tensors save_tensors",
}
_LAZY = {name: f"gnnlab.data.{home}" for home, names in _HOMES.items() for name in names.split()}
_LAZY |= dict.fromkeys(("load_graphs", "save_graphs"), "gnnlab.graph.io")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in ("citation_graph", "utils"):
        return importlib.import_module(f"gnnlab.data.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
