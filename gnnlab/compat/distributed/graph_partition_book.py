"""Partition books and policies under the names of ``dgl.distributed.graph_partition_book``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gnnlab.compat.accepted import warn_of_graphbolt
from gnnlab.errors import InvalidInput
from gnnlab.graph.names import ONE_ETYPE, EdgeType
from gnnlab.partition.book import GraphPartitionBook, PartitionPolicy
from gnnlab.partition.load import load_partition_book as load_partition_book


def dgl_partition_to_graphbolt(part_config: str, *_: Any, **options: Any) -> None:
    """Check that a partition is there; it is in gnnlab's one format, which serves GraphBolt too."""
    load_partition_book(part_config, 0)
    warn_of_graphbolt()


class _AnyBook(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, GraphPartitionBook)


class RangePartitionBook(GraphPartitionBook, metaclass=_AnyBook):
    """A partition book made as in DGL; every book of gnnlab is an instance, since all own ranges.

    ``node_map`` has by node type an array (num_parts, 2): first homogeneous ID of each part, and
    the one after its last; ``edge_map`` the same by canonical edge type; ``ntypes`` and ``etypes``
    type IDs.

    Examples
    --------
    >>> from gnnlab.compat.distributed.graph_partition_book import RangePartitionBook
    >>> node_map = {"user": [[0, 2], [3, 4]], "game": [[2, 3], [4, 6]]}
    >>> edge_map = {("user", "plays", "game"): [[0, 2], [2, 5]]}
    >>> types = {"user": 0, "game": 1}, {("user", "plays", "game"): 0}
    >>> book = RangePartitionBook(0, 2, node_map, edge_map, *types)
    >>> book.nid2partid([0, 1, 2], "user"), book.map_to_per_ntype([4])
    (tensor([0, 0, 1]), (tensor([1]), tensor([1])))
    """

    def __init__(
        self,
        part_id: int,
        num_parts: int,
        node_map: Mapping[str, Any],
        edge_map: Mapping[EdgeType, Any],
        ntypes: Mapping[str, int],
        etypes: Mapping[EdgeType, int],
    ) -> None:
        nodes, edges = _offsets(node_map, ntypes, num_parts), _offsets(edge_map, etypes, num_parts)
        super().__init__(part_id, nodes, edges)


def _offsets(ranges: Mapping[Any, Any], ids: Mapping[Any, int], num_parts: int) -> dict[Any, Any]:
    found = {}
    for kind in sorted(ids, key=ids.__getitem__):
        table = np.asarray(ranges[kind])
        if table.shape != (num_parts, 2):
            raise InvalidInput(
                f"the ranges of {kind!r} have shape {table.shape}; expected ({num_parts}, 2): the "
                "first ID of each part and the one after its last"
            )
        found[kind] = np.concatenate([[0], np.cumsum(table[:, 1] - table[:, 0])])
    return found


class NodePartitionPolicy(PartitionPolicy):
    """Policy of the nodes of a type: :class:`PartitionPolicy` with DGL's arguments."""

    def __init__(self, partition_book: GraphPartitionBook, ntype: str = "_N") -> None:
        super().__init__(f"node~{ntype}", partition_book)


class EdgePartitionPolicy(PartitionPolicy):
    """Policy of the edges of a type: :class:`PartitionPolicy` with DGL's arguments."""

    def __init__(
        self, partition_book: GraphPartitionBook, etype: str | EdgeType = ONE_ETYPE
    ) -> None:
        etype = partition_book.to_canonical_etype(etype)
        super().__init__(f"edge~{_etype_tuple_to_str(etype)}", partition_book)


def _etype_tuple_to_str(c_etype: EdgeType) -> str:
    """Join a canonical edge type by colons, as files and policies name it."""
    if not isinstance(c_etype, tuple) or len(c_etype) != 3:
        raise InvalidInput(
            f"expected a canonical edge type (source, relation, destination); found {c_etype!r}"
        )
    return ":".join(c_etype)


def _etype_str_to_tuple(c_etype: str) -> EdgeType:
    """Undo :func:`_etype_tuple_to_str`."""
    names = c_etype.split(":")
    if len(names) != 3:
        raise InvalidInput(f"expected 'source:relation:destination'; found {c_etype!r}")
    return names[0], names[1], names[2]
