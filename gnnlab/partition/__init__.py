"""A graph divided into parts, one for each machine.

``partition_graph`` writes the parts, ``open_part`` opens one, and a ``GraphPartitionBook`` maps IDs
to owners. ``plan`` estimates the costs beforehand, ``partition_report`` measures the result.
``partition_files`` and ``partition_tables`` partition graphs larger than memory.
"""

from typing import Any

from gnnlab.partition.append import append_partition
from gnnlab.partition.book import GraphPartitionBook, PartitionPolicy
from gnnlab.partition.estimate import Plan, plan
from gnnlab.partition.load import load_partition, load_partition_book, load_partition_feats
from gnnlab.partition.outofcore import partition_files, partition_tables
from gnnlab.partition.part import EdgePart, NodePart, Part, open_part
from gnnlab.partition.partition import partition_graph
from gnnlab.partition.report import PartitionReport, partition_report
from gnnlab.system.names import no_attribute

__all__ = [
    "EdgePart",
    "GraphPartitionBook",
    "NodePart",
    "Part",
    "PartitionPolicy",
    "PartitionReport",
    "Plan",
    "append_partition",
    "load_partition",
    "load_partition_book",
    "load_partition_feats",
    "open_part",
    "partition_files",
    "partition_graph",
    "partition_report",
    "partition_tables",
    "plan",
]


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
