"""A graph whose parts are on the machines of a job.

A ``DistGraph`` holds neither edges nor features; it sends queries to the owners. It has the queries
that a mini-batch needs. Samplers, ``to_block`` and loaders accept it like an ordinary graph.

Node and edge IDs are those assigned by partitioning, within their type. On a graph with several
types, a query that names no type takes homogeneous IDs.

References
----------
DGL user guide, chapter 7.2, "Distributed Graph".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.distributed import context, queries, sampling
from gnnlab.distributed.cache import CacheInfo
from gnnlab.distributed.client import Client
from gnnlab.distributed.tensor import DistFrame
from gnnlab.errors import InvalidInput, NoAttribute
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType, complete_etype, complete_ntype, listing
from gnnlab.graph.relation import Relation
from gnnlab.graph.views import EdgeView, NodeView, frame_view
from gnnlab.partition.book import GraphPartitionBook, PartitionPolicy
from gnnlab.random import next_key
from gnnlab.sampling.neighbor import Picked

__all__ = ["DistGraph"]


class DistGraph:
    """A partitioned graph whose parts are held by servers.

    In standalone mode this process holds all parts.

    Parameters
    ----------
    graph_name : str
    gpb : GraphPartitionBook, optional
        Accepted for scripts of DGL and ignored: parts include their book. A path is taken as the
        ``part_config``.
    part_config : path
        The JSON file that ``partition_graph`` wrote.
    cache_bytes : int, optional
        Memory in which this process may cache features fetched from other machines; 0 for none. By
        default the value of the environment variable ``GNNLAB_CACHE_BYTES``. Each sampler process
        has a cache of the same size. Cached features can no longer be written to.
    cache_policy : "access" or "degree"
        Keep the rows requested most often, or those of the nodes with most edges into this part.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> g.ndata["x"] = torch.arange(4.0)
    >>> dgl.distributed.partition_graph(g, "ring", 2, folder, part_method=lambda g, k: [0, 1, 0, 1])
    ring: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("ring", part_config=f"{folder}/ring.json")
    >>> g
    DistGraph(name='ring', num_nodes=4, num_edges=4, num_parts=2,
          ndata_schemes={'x': Scheme(shape=(), dtype=torch.float32)}
          edata_schemes={})
    >>> g.ndata["x"][[0, 1, 2]], g.sample_neighbors([0], -1).edges()
    (tensor([0., 2., 1.]), (tensor([3]), tensor([0])))

    References
    ----------
    DGL user guide, chapter 7.2.
    """

    is_block = False
    device = torch.device("cpu")
    idtype = torch.int64

    def __init__(
        self,
        graph_name: str,
        gpb: Any = None,
        part_config: Any = None,
        *,
        cache_bytes: int | None = None,
        cache_policy: str = "access",
    ) -> None:
        if part_config is None and gpb is not None and not isinstance(gpb, GraphPartitionBook):
            part_config = gpb
        if part_config is None and context.current().mode == "standalone":
            raise InvalidInput(
                "standalone mode reads the parts itself: give part_config=, the JSON file that "
                "partition_graph wrote"
            )
        client = context.open_client(graph_name, part_config)
        if cache_bytes is not None or cache_policy != "access":
            asked = client.cache_settings[0] if cache_bytes is None else cache_bytes
            client.use_cache(asked, cache_policy)
        self._bind(client)

    def _bind(self, client: Client) -> None:
        self._client = client
        self._book = book = client.book
        self._nodes = {
            ntype: DistFrame(client, PartitionPolicy(f"node~{ntype}", book))
            for ntype in book.ntypes
        }
        self._edge_frames = {
            etype: DistFrame(client, PartitionPolicy(f"edge~{':'.join(etype)}", book))
            for etype in book.canonical_etypes
        }

    # ------------------------------------------------------------------ types
    @property
    def graph_name(self) -> str:
        """The name under which the graph was partitioned."""
        return self._client.source[0]

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
        return complete_etype(etype, self._edge_frames)

    def _ntype(self, ntype: str | None) -> str:
        return complete_ntype(ntype, self._nodes)

    def get_ntype_id(self, ntype: str | None) -> int:
        """Return the position of a node type in :attr:`ntypes`."""
        return self.ntypes.index(self._ntype(ntype))

    def get_etype_id(self, etype: str | EdgeType | None) -> int:
        """Return the position of an edge type in :attr:`canonical_etypes`."""
        return self._client.etype_ids[self.to_canonical_etype(etype)]

    # ----------------------------------------------------------------- counts
    def num_nodes(self, ntype: str | None = None) -> int:
        """Number of nodes of a type (by default, of all types) on all machines."""
        if ntype is None:
            return sum(frame.num_rows for frame in self._nodes.values())
        return self._nodes[self._ntype(ntype)].num_rows

    def num_edges(self, etype: str | EdgeType | None = None) -> int:
        """Number of edges of a type (by default, of all types) on all machines."""
        if etype is None:
            return sum(frame.num_rows for frame in self._edge_frames.values())
        return self._edge_frames[self.to_canonical_etype(etype)].num_rows

    number_of_nodes = num_nodes
    number_of_edges = num_edges

    # --------------------------------------------------------------- features
    def _node_frames(self) -> dict[str, DistFrame]:
        return self._nodes

    @property
    def ndata(self) -> Any:
        """Node features: name → DistTensor, or name → {type: DistTensor} with several types."""
        return frame_view(self._nodes)  # type: ignore[arg-type]

    @property
    def edata(self) -> Any:
        """Edge features: name → DistTensor, or name → {type: DistTensor} with several types."""
        return frame_view(self._edge_frames)  # type: ignore[arg-type]

    @property
    def nodes(self) -> NodeView:
        """``g.nodes[ntype].data`` gives the features of a type, ``g.nodes(ntype)`` the IDs."""
        return NodeView(self._nodes, self.idtype, self.device)  # type: ignore[arg-type]

    @property
    def edges(self) -> EdgeView:
        """``g.edges[etype].data`` gives the features of a type."""
        return EdgeView(self)  # type: ignore[arg-type]

    def all_edges(self, *args: Any, **kwargs: Any) -> Any:
        """Unsupported, because the edges are on many machines: raises InvalidInput."""
        raise InvalidInput(
            "the edges of a DistGraph are never in one place; ask g.find_edges(ids) for some"
        )

    # ------------------------------------------------------------- partitions
    def get_partition_book(self) -> GraphPartitionBook:
        """Return the partition book, which maps IDs to owners."""
        return self._book

    def get_node_partition_policy(self, ntype: str) -> PartitionPolicy:
        """Return the partition policy of the nodes of a type."""
        return PartitionPolicy(f"node~{ntype}", self._book)

    def get_edge_partition_policy(self, etype: str | EdgeType) -> PartitionPolicy:
        """Return the partition policy of the edges of a type."""
        return PartitionPolicy(f"edge~{':'.join(self.to_canonical_etype(etype))}", self._book)

    @property
    def local_partition(self) -> Graph:
        """The part on this machine, as :func:`load_partition` returns it."""
        return self._client.transport.part().graph()

    def cache_info(self) -> CacheInfo:
        """Return hits and misses of the feature cache (``cache_bytes``).

        Counts are those of this process. In standalone mode all rows are local, and nothing is
        counted.

        Examples
        --------
        >>> import gnnlab as dgl, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> g = dgl.graph(([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
        >>> dgl.distributed.partition_graph(g, "path", 2, folder, part_method="random")
        path: ...
        >>> dgl.distributed.initialize()
        >>> g = dgl.distributed.DistGraph("path", part_config=f"{folder}/path.json")
        >>> info = g.cache_info()
        >>> info.hits, info.misses, info.hit_rate
        (0, 0, 0.0)
        """
        return self._client.cache_info()

    def rank(self) -> int:
        """Return the position of this trainer among all trainers."""
        return context.rank()

    def barrier(self) -> None:
        """Wait until all trainers have called this."""
        self._client.barrier()

    # -------------------------------------------------- functions as methods
    in_degrees = queries.in_degrees
    out_degrees = queries.out_degrees
    find_edges = queries.find_edges
    reverse_edges = queries.reverse_edges
    edge_subgraph = queries.edge_subgraph
    in_subgraph = sampling.in_subgraph
    sample_neighbors = sampling.sample_neighbors

    # ---------------------------------------------------- what samplers need
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

    def pick_layer(
        self,
        seeds: Mapping[str, torch.Tensor],
        fanouts: Mapping[EdgeType, int],
        prob: Any = None,
        replace: bool = False,
        excluded: Mapping[EdgeType, torch.Tensor] | None = None,
        inward: bool = True,
    ) -> dict[EdgeType, Picked]:
        """Sample edges for one layer; see :func:`gnnlab.sampling.neighbor.pick_layer`."""
        if not inward:
            raise InvalidInput(
                "a distributed graph is stored by destination: edge_dir must be 'in'. Partition "
                "gnnlab.reverse(g) to follow edges the other way"
            )
        weights = sampling.weight_names(self, prob)
        return sampling.pick_layer(
            self._client, seeds, fanouts, next_key(), replace, weights, excluded
        )

    # ------------------------------------------------------------------ looks
    def __repr__(self) -> str:
        parts = self._book.num_partitions()
        if self.is_homogeneous:
            return (
                f"DistGraph(name={self.graph_name!r}, num_nodes={self.num_nodes()}, "
                f"num_edges={self.num_edges()}, num_parts={parts},\n"
                f"      ndata_schemes={self.ndata.scheme(20)}\n"
                f"      edata_schemes={self.edata.scheme(20)})"
            )
        nodes, edges = (
            listing((f"{name!r}: {frame.num_rows}" for name, frame in frames.items()), 16)  # type: ignore[attr-defined]
            for frames in (self._nodes, self._edge_frames)
        )
        return (
            f"DistGraph(name={self.graph_name!r}, num_parts={parts},\n"
            f"      num_nodes={nodes},\n      num_edges={edges})"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(Graph, name):
            raise AttributeError(f"'DistGraph' object has no attribute {name!r}")
        raise NoAttribute(
            f"a DistGraph has no {name!r}: its edges and features are on many machines. Sample a "
            "mini-batch and use its blocks, cut out a small graph with g.sample_neighbors(), "
            "g.in_subgraph() or g.edge_subgraph(), or use the part of this machine, "
            "g.local_partition"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (*self._client.source, *self._client.cache_settings)


def _reopen(graph_name: str, part_config: str, cache_bytes: int, cache_policy: str) -> DistGraph:
    g = object.__new__(DistGraph)
    client = context.reopen_client(graph_name, part_config)
    client.use_cache(cache_bytes, cache_policy)
    g._bind(client)
    return g
