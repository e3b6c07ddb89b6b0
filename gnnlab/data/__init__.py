"""Data sets: read, check, download and generate graphs with features, labels and splits.

``load(NAME)`` returns a graph that is ready for training; ``load("digits")`` needs no network. A
reader turns files into plain arrays (:class:`RawDataset`), and ``load`` makes a graph of them. The
table of names, readers and URLs is ``catalog.py``. pandas, pooch and requests load when first used.
"""

from typing import Any

from gnnlab.data.catalog import DATASETS, DatasetInfo
from gnnlab.data.dataset import NodeDataset, load, products_like
from gnnlab.data.digits import digits_folder
from gnnlab.data.download import DownloadFailed, data_home, fetch, unpack
from gnnlab.data.from_tables import (
    EdgeTable,
    NodeTable,
    TableReport,
    append_tables,
    graph_from_tables,
    keys_of,
    to_table,
)
from gnnlab.data.ogb import read_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.data.split import per_class_split, random_split
from gnnlab.errors import takes_graph
from gnnlab.system.names import no_attribute

__all__ = [
    "DATASETS",
    "DatasetInfo",
    "DownloadFailed",
    "EdgeTable",
    "NodeDataset",
    "NodeTable",
    "RawDataset",
    "TableReport",
    "append_tables",
    "data_home",
    "digits_folder",
    "fetch",
    "graph_from_tables",
    "keys_of",
    "load",
    "per_class_split",
    "products_like",
    "random_split",
    "read_ogb",
    "to_table",
    "unpack",
]
globals().update({name: takes_graph(globals()[name], __name__) for name in __all__})


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
