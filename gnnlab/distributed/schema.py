"""Types, sizes and owners of a partitioned graph: what every process knows without a message."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from gnnlab.distributed.client import Client
from gnnlab.distributed.tensor import DistFrame
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType, complete_etype, complete_ntype
from gnnlab.graph.relation import Relation
from gnnlab.partition.book import GraphPartitionBook, PartitionPolicy


class GraphSchema:
    """The base of :class:`DistGraph`, and what queries and samplers need of it."""

    device = torch.device("cpu")
    idtype = torch.int64

    def __init__(self, client: Client) -> None:
        self.client = client
        self._book = book = client.book
        self._nodes = {
            ntype: DistFrame(client, PartitionPolicy(f"node~{ntype}", book))
            for ntype in book.ntypes
        }
        self.edge_frames = {
            etype: DistFrame(client, PartitionPolicy(f"edge~{':'.join(etype)}", book))
            for etype in book.canonical_etypes
        }

    @property
    def graph_name(self) -> str:
        """The name under which the graph was partitioned."""
        return self.client.source[0]

    @property
    def ntypes(self) -> list[str]:
        """Node types, in the order of their type IDs."""
        return self._book.ntypes

    @property
    def etypes(self) -> list[str]:
        """Relation names, in the order of their type IDs."""
        return self._book.etypes

    @property
    def canonical_etypes(self) -> list[EdgeType]:
        """Triples (source type, relation, destination type), in the order of their type IDs."""
        return self._book.canonical_etypes

    @property
    def is_homogeneous(self) -> bool:
        """Whether there is one node type and one edge type."""
        return self._book.is_homogeneous

    def to_canonical_etype(self, etype: str | EdgeType | None) -> EdgeType:
        """Complete an edge type name to its triple; None is allowed with one type."""
        return complete_etype(etype, self.edge_frames)

    def resolve_ntype(self, ntype: str | None) -> str:
        """Return the name of a node type; None is the only one. A wrong one raises NotFound."""
        return complete_ntype(ntype, self._nodes)

    def get_ntype_id(self, ntype: str | None) -> int:
        """Return the position of a node type in :attr:`ntypes`."""
        return self.ntypes.index(self.resolve_ntype(ntype))

    def get_etype_id(self, etype: str | EdgeType | None) -> int:
        """Return the position of an edge type in :attr:`canonical_etypes`."""
        return self.client.etype_ids[self.to_canonical_etype(etype)]

    # ----------------------------------------------------------------- counts
    def num_nodes(self, ntype: str | None = None) -> int:
        """Number of nodes of a type (by default, of all types) on all machines."""
        if ntype is None:
            return sum(frame.num_rows for frame in self._nodes.values())
        return self._nodes[self.resolve_ntype(ntype)].num_rows

    def num_edges(self, etype: str | EdgeType | None = None) -> int:
        """Number of edges of a type (by default, of all types) on all machines."""
        if etype is None:
            return sum(frame.num_rows for frame in self.edge_frames.values())
        return self.edge_frames[self.to_canonical_etype(etype)].num_rows

    number_of_nodes = num_nodes
    number_of_edges = num_edges

    def node_frames(self) -> dict[str, DistFrame]:
        """Frames of the nodes by type."""
        return self._nodes

    def get_partition_book(self) -> GraphPartitionBook:
        """Return the partition book, which maps IDs to owners."""
        return self._book

    def get_node_partition_policy(self, ntype: str) -> PartitionPolicy:
        """Return the partition policy of the nodes of a type."""
        return PartitionPolicy(f"node~{ntype}", self._book)

    def get_edge_partition_policy(self, etype: str | EdgeType) -> PartitionPolicy:
        """Return the partition policy of the edges of a type."""
        return PartitionPolicy(f"edge~{':'.join(self.to_canonical_etype(etype))}", self._book)

    def derive(
        self,
        relations: Mapping[EdgeType, Relation],
        num_nodes: Mapping[str, int] | None = None,
        node_frames: Mapping[str, Frame] | None = None,
        edge_frames: Mapping[EdgeType, Frame] | None = None,
    ) -> Graph:
        """Make an ordinary graph with the nodes of this one and some edges."""
        sizes = num_nodes or {name: frame.num_rows for name, frame in self._nodes.items()}
        return Graph(sizes, relations, node_frames, edge_frames, self.idtype, self.device)
