"""A graph whose parts are on the machines of a job.

A ``DistGraph`` holds neither edges nor features; it sends queries to the owners. It has the queries
that a mini-batch needs. Samplers, ``to_block`` and loaders accept it like an ordinary graph.

Node and edge IDs are those assigned by partitioning, within their type. On a graph with several
types, a query that names no type takes homogeneous IDs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.distributed import context, queries, sampling
from gnnlab.distributed.cache import CacheInfo
from gnnlab.distributed.ondisk import OnDisk, read_size
from gnnlab.distributed.schema import GraphSchema
from gnnlab.distributed.traffic import Traffic
from gnnlab.errors import InvalidInput, NoAttribute
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType, listing
from gnnlab.graph.neighbor import Picked
from gnnlab.graph.temporal import Until
from gnnlab.graph.views import EdgeView, NodeView, frame_view
from gnnlab.random import next_key


class DistGraph(GraphSchema):
    """A partitioned graph whose parts are held by servers.

    In standalone mode this process holds all parts.

    Parameters
    ----------
    part_config : path, optional
        The JSON file that ``partition_graph`` wrote; a job knows it.
    cache_bytes : int, optional
        Memory in which this process may cache features fetched from other machines; 0 for none. By
        default the value of the environment variable ``GNNLAB_CACHE_BYTES``. Each sampler process
        has a cache of the same size. Cached features can no longer be written to.
    cache_policy : str, optional
        Which of these rows to keep: those requested most often ("access"), of the nodes with most
        edges into this part ("degree"), of any nodes with an edge into this part ("halo"), those
        that a batch needs most probably ("vip"), or needs again soonest ("belady"). The last two
        are prepared by the loaders of :mod:`gnnlab.distributed`; "belady" samples each epoch twice.
        By default the value of ``GNNLAB_CACHE_POLICY``, or else "access".
    memory : int or str, optional
        In standalone mode, for a partition that is larger than memory: features and edges stay on
        the disk, where they cannot be written, and this much memory, such as ``"2GB"``, has tables
        by node and rows of features by ``cache_policy``; 0 caches none. Checksums are not compared.
        Name the features that the sampler prefetches: they are read while the model computes.

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
    >>> g.traffic.total("features").rows
    0
    """

    is_block = False

    def __init__(
        self,
        graph_name: str,
        part_config: Any = None,
        *,
        cache_bytes: int | None = None,
        cache_policy: str | None = None,
        memory: int | str | None = None,
    ) -> None:
        if part_config is None and context.current().mode == "standalone":
            raise InvalidInput(
                "standalone mode reads the parts itself: give part_config=, the JSON file that "
                "partition_graph wrote"
            )
        if memory is not None:
            if cache_bytes is not None:
                raise InvalidInput("give memory= or cache_bytes=, not both")
            if cache_policy == "halo":
                raise InvalidInput("cache_policy='halo' is for parts on several machines")
            memory = read_size(memory)
        before = context.current().latest
        client = context.open_client(graph_name, part_config, on_disk=memory is not None)
        if memory is not None and isinstance(client.transport, OnDisk):
            held = before if before and before.source == client.source else client  # reopened
            policy = cache_policy or client.cache.policy
            cache_bytes = client.transport.room(memory, policy, held.cache.info().bytes)
        client.use_cache(cache_bytes, cache_policy)
        super().__init__(client)

    # --------------------------------------------------------------- features
    @property
    def ndata(self) -> Any:
        """Node features: name → DistTensor, or name → {type: DistTensor} with several types."""
        return frame_view(self._nodes)  # type: ignore[arg-type]

    @property
    def edata(self) -> Any:
        """Edge features: name → DistTensor, or name → {type: DistTensor} with several types."""
        return frame_view(self.edge_frames)  # type: ignore[arg-type]

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
    @property
    def local_partition(self) -> Graph:
        """The part on this machine, as :func:`load_partition` returns it."""
        return self.client.transport.part().graph()

    def cache_info(self) -> CacheInfo:
        """Return hits and misses of the feature cache (``cache_bytes``) of this process.

        In standalone mode all rows are local, and nothing is counted.
        """
        return self.client.cache.info()

    @property
    def traffic(self) -> Traffic:
        """Requests of this process to each machine, and their replies, for all graphs of the job.

        In standalone mode nothing is sent, so all counts are 0.
        """
        remote = context.current().remote
        if remote is None:
            return Traffic(self.client.book.num_partitions())
        return remote.traffic  # type: ignore[no-any-return]

    def rank(self) -> int:
        """Return the position of this trainer among all trainers."""
        return context.rank()

    def barrier(self) -> None:
        """Wait until all trainers have called this."""
        self.client.barrier()

    # -------------------------------------------------- functions as methods
    in_degrees = queries.in_degrees
    out_degrees = queries.out_degrees
    find_edges = queries.find_edges
    reverse_edges = queries.reverse_edges
    edge_subgraph = queries.edge_subgraph
    in_subgraph = sampling.in_subgraph
    sample_neighbors = sampling.sample_neighbors
    subgraph = sampling.subgraph
    out_subgraph = sampling.out_subgraph
    has_edges_between = sampling.has_edges_between
    edge_ids = sampling.edge_ids

    # ---------------------------------------------------- what samplers need
    def pick_layer(
        self,
        seeds: Mapping[str, torch.Tensor],
        fanouts: Mapping[EdgeType, int],
        prob: Any = None,
        replace: bool = False,
        excluded: Mapping[EdgeType, torch.Tensor] | None = None,
        inward: bool = True,
        until: Until | None = None,
    ) -> dict[EdgeType, Picked]:
        """Sample edges for one layer; see :func:`gnnlab.graph.neighbor.sample_layer`."""
        if not inward:
            raise InvalidInput(
                "a distributed graph is stored by destination: edge_dir must be 'in'. Partition "
                "gnnlab.reverse(g) to follow edges the other way"
            )
        weights = sampling.weight_names(self, prob)
        request = self.client, seeds, fanouts, next_key(), replace, weights, excluded
        if until is None:
            return sampling.request_layer(*request)
        return sampling.request_layer(*request, until, sampling.time_names(self, until.column))

    # ------------------------------------------------------------------ looks
    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        tables = (
            cells.features("ntype", "num_nodes", self._nodes),
            cells.features("canonical_etype", "num_edges", self.edge_frames),
        )
        parts = self._book.metadata()
        sizes = {
            name: {str(part["machine_id"]): float(part[name]) for part in parts}
            for name in ("num_nodes", "num_edges")
        }
        values = {"graph_name": self.graph_name, "num_partitions": len(parts)}
        return cells.page(type(self).__name__, values, *tables, cells.bars(sizes))

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
            for frames in (self._nodes, self.edge_frames)
        )
        return (
            f"DistGraph(name={self.graph_name!r}, num_parts={parts},\n"
            f"      num_nodes={nodes},\n      num_edges={edges})"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not (name.startswith("_") or hasattr(Graph, name)):
            raise AttributeError(f"'DistGraph' object has no attribute {name!r}")
        what = f"has no {name!r}" if name[0] != "_" else "is not taken by this function"
        raise NoAttribute(
            f"a DistGraph {what}: its edges and features are on many machines. Sample a "
            "mini-batch and use its blocks, cut out a small graph with g.sample_neighbors(), "
            "g.in_subgraph() or g.edge_subgraph(), or use the part of this machine, "
            "g.local_partition"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        client, cache = self.client, self.client.cache
        on_disk = isinstance(client.transport, OnDisk)
        return _reopen, (*client.source, cache.num_bytes, cache.policy, on_disk)


def _reopen(
    graph_name: str, part_config: str, cache_bytes: int, cache_policy: str, on_disk: bool
) -> DistGraph:
    g = object.__new__(DistGraph)
    client = context.reopen_client(graph_name, part_config, on_disk)
    client.use_cache(cache_bytes, cache_policy)
    GraphSchema.__init__(g, client)
    return g
