"""The partition book: which part owns a node or an edge, and under which ID.

Parts own ranges of IDs, hence the book of K parts is K + 1 offsets per type, whatever the size
of the graph; every lookup is a binary search among them.

Two kinds of IDs occur. *Type-wise* IDs number the nodes of one type, 0 … N_t − 1, and part p owns
one range of each type. *Homogeneous* IDs number the nodes of all types: part after part, and within
a part type after type. With a single type the two coincide. Edges likewise.

References
----------
DGL user guide, chapter 7.2, "Distributed APIs", and 7.3, which uses both kinds of IDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.graph.ids import read_ids
from gnnlab.graph.names import ONE_ETYPE, EdgeType, complete_etype, complete_ntype

_ONE_NTYPE = "_N"
_ONE_ETYPES = (None, "_E", ONE_ETYPE)


class _Ranges:
    """Ownership of the nodes, or of the edges, of all types.

    Cell ``p * T + t`` is the range that part p owns of type t (T types). ``cells`` holds the first
    homogeneous ID of each cell, and the total; ``first`` its first type-wise ID.
    """

    def __init__(self, what: str, offsets: Mapping[Any, Any]) -> None:
        self.what = what
        self.offsets = {t: np.asarray(b, np.int64) for t, b in offsets.items()}
        self.types = list(self.offsets)
        table = np.stack(list(self.offsets.values()), 1)  # (K + 1, T)
        self.first = table[:-1].reshape(-1)
        self.cells = np.concatenate([[0], np.cumsum(np.diff(table, axis=0).reshape(-1))])
        self.parts = table.sum(1)

    def of(self, kind: Any) -> np.ndarray:
        """Offsets of the parts (K + 1,) in the IDs of a type, or homogeneous ones for None."""
        return self.parts if kind is None else self.offsets[kind]

    def read(self, ids: Any, kind: Any) -> np.ndarray:
        return read_ids(ids, int(self.of(kind)[-1]), self.what).cpu().numpy()

    def owners(self, ids: Any, kind: Any) -> torch.Tensor:
        found = np.searchsorted(self.of(kind), self.read(ids, kind), side="right")
        return torch.from_numpy(found - 1)

    def owned(self, part: int, kind: Any) -> torch.Tensor:
        return torch.arange(*self.of(kind)[part : part + 2].tolist())

    def local(self, ids: Any, part: int, kind: Any) -> torch.Tensor:
        lo, hi = self.of(kind)[part : part + 2].tolist()
        found = self.read(ids, kind)
        outside = (found < lo) | (found >= hi)
        if outside.any():
            owns = f"IDs {lo} to {hi - 1}" if lo < hi else "none"
            raise OutOfRange(
                f"{self.what} {found[outside][0]} does not belong to part {part}, which owns "
                f"{owns}; ask the part that owns it"
            )
        return torch.from_numpy(found.astype(np.int64) - lo)

    def split(self, ids: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Homogeneous IDs as (type IDs, type-wise IDs)."""
        found = self.read(ids, None)
        cell = np.searchsorted(self.cells, found, side="right") - 1
        within = found - self.cells[cell] + self.first[cell]
        return torch.from_numpy(cell % len(self.types)), torch.from_numpy(within)

    def join(self, ids: Any, kind: Any) -> torch.Tensor:
        """Type-wise IDs as homogeneous IDs."""
        found = self.read(ids, kind).astype(np.int64)
        if kind is None:
            return torch.from_numpy(found)
        part = np.searchsorted(self.offsets[kind], found, side="right") - 1
        cell = part * len(self.types) + self.types.index(kind)
        return torch.from_numpy(found - self.first[cell] + self.cells[cell])

    def map(self) -> dict[Any, list[list[int]]]:
        """[first, last + 1] per type and part in homogeneous IDs, as the JSON file has it."""
        pairs = np.stack([self.cells[:-1], self.cells[1:]], 1).reshape(-1, len(self.types), 2)
        return {kind: pairs[:, i].tolist() for i, kind in enumerate(self.types)}


class GraphPartitionBook:
    """The owner of each node and edge of a partitioned graph.

    A type of None (or "_N", "_E") means homogeneous IDs on a graph with several types.

    Parameters
    ----------
    part_id : int
        The part from which the book is read.
    node_ranges : dict
        Node type → offsets, shape (K + 1,): part p owns the type-wise IDs ``offsets[p]`` to
        ``offsets[p + 1] - 1``. The order of the types is that of their type IDs.
    edge_ranges : dict
        Canonical edge type → offsets likewise.

    Examples
    --------
    Two parts own users 0–1 and 2, and games 0 and 1–2.

    >>> from gnnlab.partition import GraphPartitionBook
    >>> nodes = {"game": [0, 1, 3], "user": [0, 2, 3]}
    >>> book = GraphPartitionBook(0, nodes, {("user", "plays", "game"): [0, 2, 5]})
    >>> book.nid2partid([0, 1, 2], "user")
    tensor([0, 0, 1])
    >>> book.map_to_homo_nid([0, 1, 2], "user")
    tensor([1, 2, 5])
    >>> book.map_to_per_ntype([0, 1, 2, 3, 4, 5])
    (tensor([0, 1, 1, 0, 0, 1]), tensor([0, 0, 1, 1, 2, 2]))
    """

    global_nid_dtype = global_eid_dtype = torch.int64

    def __init__(
        self, part_id: int, node_ranges: Mapping[str, Any], edge_ranges: Mapping[EdgeType, Any]
    ) -> None:
        self._nodes = _Ranges("node", node_ranges)
        self._edges = _Ranges("edge", edge_ranges)
        self.node_ranges, self.edge_ranges = self._nodes.offsets, self._edges.offsets
        self.partid = self._part(part_id)

    # ------------------------------------------------------------------ types
    @property
    def ntypes(self) -> list[str]:
        """Node types, in the order of their type IDs."""
        return list(self.node_ranges)

    @property
    def etypes(self) -> list[str]:
        """Relation names, in the order of their type IDs."""
        return [etype[1] for etype in self.edge_ranges]

    @property
    def canonical_etypes(self) -> list[EdgeType]:
        """Triples (source type, relation, destination type), in the order of their type IDs."""
        return list(self.edge_ranges)

    @property
    def is_homogeneous(self) -> bool:
        """Whether there is one node type and one edge type."""
        return len(self.node_ranges) == 1 and len(self.edge_ranges) == 1

    def to_canonical_etype(self, etype: str | EdgeType) -> EdgeType:
        """Complete a relation name to its triple, where it is unambiguous."""
        return complete_etype(etype, self.edge_ranges)

    def resolve_ntype(self, ntype: str | None) -> str | None:
        """A node type, or None for homogeneous IDs."""
        if ntype not in self.node_ranges and ntype in (None, _ONE_NTYPE):
            return None
        return complete_ntype(ntype, self.node_ranges)

    def ranges_of(self, what: str, kind: Any = None) -> np.ndarray:
        """Return the offsets of the parts in the IDs of a type, of "node" or "edge"."""
        if what == "node":
            return self._nodes.of(self.resolve_ntype(kind))
        return self._edges.of(self._etype(kind))

    def _etype(self, etype: str | EdgeType | None) -> EdgeType | None:
        known = etype in self.edge_ranges or etype in self.etypes
        if etype is None or (etype in _ONE_ETYPES and not known):
            return None
        return self.to_canonical_etype(etype)

    def _part(self, part_id: int) -> int:
        if not 0 <= part_id < self.num_partitions():
            raise OutOfRange(f"part {part_id} does not exist: 0 to {self.num_partitions() - 1} do")
        return int(part_id)

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        ranges = {
            cells.type_name(kind): offsets
            for kind, offsets in (*self.node_ranges.items(), *self.edge_ranges.items())
        }
        rows = [
            [part, *(f"{at[part]:,} – {at[part + 1] - 1:,}" for at in ranges.values())]
            for part in range(self.num_partitions())
        ]
        sizes = {
            name: {str(part): int(size) for part, size in enumerate(np.diff(offsets))}
            for name, offsets in ranges.items()
        }
        values = {"num_partitions": self.num_partitions(), "partid": self.partid}
        owned = cells.table(["partid", *ranges], rows)
        return cells.page(type(self).__name__, values, owned, cells.bars(sizes))

    # --------------------------------------------------------------- ownership
    def num_partitions(self) -> int:
        """Return the number of parts, K."""
        return len(self._nodes.parts) - 1

    def metadata(self) -> list[dict[str, int]]:
        """Return machine ID and number of nodes and edges, per part."""
        nodes, edges = np.diff(self._nodes.parts), np.diff(self._edges.parts)
        return [
            {"machine_id": p, "num_nodes": int(nodes[p]), "num_edges": int(edges[p])}
            for p in range(self.num_partitions())
        ]

    def nid2partid(self, nids: Any, ntype: str | None = None) -> torch.Tensor:
        """Return the part that owns each node; shape (number of IDs,), int64."""
        return self._nodes.owners(nids, self.resolve_ntype(ntype))

    def eid2partid(self, eids: Any, etype: str | EdgeType | None = None) -> torch.Tensor:
        """Return the part that owns each edge; shape (number of IDs,), int64."""
        return self._edges.owners(eids, self._etype(etype))

    def partid2nids(self, partid: int, ntype: str | None = None) -> torch.Tensor:
        """Return the nodes that a part owns, ascending; int64."""
        return self._nodes.owned(self._part(partid), self.resolve_ntype(ntype))

    def partid2eids(self, partid: int, etype: str | EdgeType | None = None) -> torch.Tensor:
        """Return the edges that a part owns, ascending; int64."""
        return self._edges.owned(self._part(partid), self._etype(etype))

    def nid2localnid(self, nids: Any, partid: int, ntype: str | None = None) -> torch.Tensor:
        """Return IDs within a part; shape (K,), int64. Raises OutOfRange for others' nodes."""
        return self._nodes.local(nids, self._part(partid), self.resolve_ntype(ntype))

    def eid2localeid(
        self, eids: Any, partid: int, etype: str | EdgeType | None = None
    ) -> torch.Tensor:
        """Return IDs within a part; shape (K,), int64. Raises OutOfRange for others' edges."""
        return self._edges.local(eids, self._part(partid), self._etype(etype))

    # -------------------------------------------------------- two kinds of IDs
    def map_to_per_ntype(self, ids: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Split homogeneous node IDs into type IDs and type-wise IDs; shapes (K,), int64."""
        return self._nodes.split(ids)

    def map_to_per_etype(self, ids: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Split homogeneous edge IDs into type IDs and type-wise IDs; shapes (K,), int64."""
        return self._edges.split(ids)

    def map_to_homo_nid(self, ids: Any, ntype: str) -> torch.Tensor:
        """Return the homogeneous IDs of type-wise node IDs; shape (K,), int64."""
        return self._nodes.join(ids, self.resolve_ntype(ntype))

    def map_to_homo_eid(self, ids: Any, etype: str | EdgeType) -> torch.Tensor:
        """Return the homogeneous IDs of type-wise edge IDs; shape (K,), int64."""
        return self._edges.join(ids, self._etype(etype))


class PartitionPolicy:
    """Distribution of a tensor's rows over parts: as the nodes, or edges, of one type.

    Parameters
    ----------
    policy_str : str
        "node~" and a node type, or "edge~" and an edge type as "source:relation:destination".
    partition_book : GraphPartitionBook

    Examples
    --------
    >>> from gnnlab.partition import GraphPartitionBook, PartitionPolicy
    >>> book = GraphPartitionBook(1, {"_N": [0, 2, 6]}, {("_N", "_E", "_N"): [0, 5, 9]})
    >>> policy = PartitionPolicy("node~_N", book)
    >>> policy.get_size(), policy.get_part_size(), policy.to_local([3, 5])
    (6, 4, tensor([1, 3]))
    >>> PartitionPolicy("edge~_N:_E:_N", book).get_data_name("w")
    'edge~_N:_E:_N~w'
    """

    def __init__(self, policy_str: str, partition_book: GraphPartitionBook) -> None:
        what, _, name = policy_str.partition("~")
        if what not in ("node", "edge") or not name:
            raise InvalidInput(
                f"policy {policy_str!r} is neither 'node~TYPE' nor 'edge~SOURCE:RELATION:TARGET'"
            )
        self.partition_book = partition_book
        self.is_node = what == "node"
        self.type_name: str | EdgeType = name
        if self.is_node:
            complete_ntype(name, partition_book.node_ranges)
        else:
            triple = tuple(name.split(":"))
            etype = partition_book.to_canonical_etype(triple if len(triple) == 3 else name)
            self.type_name, name = etype, ":".join(etype)
        self.policy_str = f"{what}~{name}"
        self._ranges = partition_book._nodes if self.is_node else partition_book._edges

    @property
    def part_id(self) -> int:
        """The part from which the book is read."""
        return self.partition_book.partid

    @property
    def ranges(self) -> np.ndarray:
        """Offsets of the parts, shape (K + 1,), int64, in type-wise IDs."""
        return self._ranges.offsets[self.type_name]

    def to_local(self, ids: Any) -> torch.Tensor:
        """Convert type-wise IDs that this part owns to its rows; shape (K,), int64."""
        return self._ranges.local(ids, self.part_id, self.type_name)

    def to_partid(self, ids: Any) -> torch.Tensor:
        """Return the part that owns each type-wise ID; shape (K,), int64."""
        return self._ranges.owners(ids, self.type_name)

    def get_part_size(self) -> int:
        """Return how many rows this part owns."""
        return int(np.diff(self.ranges)[self.part_id])

    def get_size(self) -> int:
        """Return how many rows all parts own together."""
        return int(self.ranges[-1])

    def get_data_name(self, name: str) -> str:
        """Return the full name of a tensor: the policy and the name."""
        return f"{self.policy_str}~{name}"

    def __eq__(self, other: object) -> bool:
        """Policies are equal if they distribute rows of the same type in the same way."""
        return (
            isinstance(other, PartitionPolicy)
            and self.policy_str == other.policy_str
            and np.array_equal(self.ranges, other.ranges)
        )

    def __hash__(self) -> int:
        """Be consistent with equality."""
        return hash((self.policy_str, self.get_size()))

    def __repr__(self) -> str:
        """Return the policy, the number of rows and the part."""
        return f"PartitionPolicy({self.policy_str!r}, rows={self.get_size()}, part={self.part_id})"
