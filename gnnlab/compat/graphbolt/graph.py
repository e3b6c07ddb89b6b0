"""The graph that GraphBolt samples: in-edges of all nodes, one column after the other.

Nodes of all types have numbers of one range, type after type, and edges stand in the order of their
destinations. The library's graph, with a range of numbers for each type, is made from these arrays
when it is first sampled, and the library's samplers do the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial, partialmethod
from typing import Any

import torch

from gnnlab.compat.base import BadArgument
from gnnlab.compat.graphbolt.draws import LayerDraws
from gnnlab.compat.graphbolt.minibatch import (
    CSCFormatBase,
    SampledSubgraph,
    etype_str_to_tuple,
    etype_tuple_to_str,
    mapped,
)
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import NeighborSampler
from gnnlab.graph.block import Block
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, ONE_ETYPE
from gnnlab.kernels import gather
from gnnlab.random import generator

ORIGINAL_EDGE_ID = "_ORIGINAL_EDGE_ID"
TIME = "_TIME"  # name of the times of nodes and edges
_POSITION = "_position"
ARRAYS = (
    *("csc_indptr", "indices", "node_type_offset", "type_per_edge", "node_type_to_id"),
    *("edge_type_to_id", "node_attributes", "edge_attributes"),
)


class SamplingGraph:
    """Base of the graphs that samplers take."""


class FusedCSCSamplingGraph(SamplingGraph):
    """A graph, with or without types; ``fused_csc_sampling_graph`` is another name.

    ``csc_indptr`` (N + 1,) and ``indices`` (E,) are in-edges of each node. ``node_type_offset``
    says where each node type begins, ``type_per_edge`` (E,) the type of each edge; edge types are
    written ``"user:likes:item"``. Attributes have a row for each node, or each edge.

    ``in_subgraph(nodes)`` returns all in-edges of some nodes, ``sample_neighbors(nodes, fanouts,
    replace, probs_name)`` some of them, ``sample_layer_neighbors`` with fewer distinct rows; these
    are IDs in the graph. A fanout has one number, or one for each edge type; −1 takes all.
    """

    def __init__(
        self,
        csc_indptr: torch.Tensor,
        indices: torch.Tensor,
        node_type_offset: torch.Tensor | None = None,
        type_per_edge: torch.Tensor | None = None,
        node_type_to_id: Mapping[str, int] | None = None,
        edge_type_to_id: Mapping[str, int] | None = None,
        node_attributes: Mapping[str, torch.Tensor] | None = None,
        edge_attributes: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        if len(csc_indptr) < 1 or int(csc_indptr[-1]) != len(indices):
            raise BadArgument(f"csc_indptr must end at the number of edges, {len(indices)}")
        self.csc_indptr, self.indices = csc_indptr, indices
        self.node_type_offset, self.type_per_edge = node_type_offset, type_per_edge
        self.node_type_to_id, self.edge_type_to_id = node_type_to_id, edge_type_to_id
        self.node_attributes, self.edge_attributes = node_attributes, edge_attributes
        self._graph: Graph | None = None
        self._check_types()
        sizes = len(csc_indptr) - 1, len(indices)
        for size, attributes in zip(sizes, (node_attributes, edge_attributes), strict=True):
            for name, values in (attributes or {}).items():
                if len(values) != size:
                    raise BadArgument(f"attribute {name!r} has {len(values)} rows, not {size}")

    def _check_types(self) -> None:
        offset, types = self.node_type_offset, self.type_per_edge
        nodes, edges = self.node_type_to_id, self.edge_type_to_id
        if offset is None or types is None or nodes is None or edges is None:
            given = {name: getattr(self, name) is not None for name in ARRAYS[2:6]}
            if any(given.values()):
                raise BadArgument(f"a graph with types needs all of these: {given}")
            return
        if not all(isinstance(each, str) for each in (*nodes, *edges)):
            raise BadArgument(f"types have names; found {list(nodes)} and {list(edges)}")
        ends = {ntype for name in edges for ntype in etype_str_to_tuple(name)[::2]}
        if ends - set(nodes) or any(len(set(x.values())) < len(x) for x in (nodes, edges)):
            raise BadArgument(
                f"each type has an ID of its own, and {sorted(ends)} are node types; "
                f"found {dict(nodes)} and {dict(edges)}"
            )
        if len(offset) != len(nodes) + 1 or len(types) != len(self.indices):
            raise BadArgument(
                f"expected {len(nodes) + 1} offsets and {len(self.indices)} types of edges; found "
                f"{len(offset)} and {len(types)}"
            )

    @property
    def total_num_nodes(self) -> int:
        """Number of nodes of all types."""
        return len(self.csc_indptr) - 1

    @property
    def total_num_edges(self) -> int:
        """Number of edges of all types."""
        return len(self.indices)

    @property
    def num_nodes(self) -> int | dict[str, int]:
        """Number of nodes; by type, if there are types."""
        if self.node_type_to_id is None or self.node_type_offset is None:
            return self.total_num_nodes
        sizes = torch.diff(self.node_type_offset).tolist()
        return {name: sizes[number] for name, number in self.node_type_to_id.items()}

    @property
    def num_edges(self) -> int | dict[str, int]:
        """Number of edges; by type, if there are types."""
        if self.edge_type_to_id is None or self.type_per_edge is None:
            return self.total_num_edges
        sizes = torch.bincount(self.type_per_edge.long(), minlength=len(self.edge_type_to_id))
        return {name: int(sizes[number]) for name, number in self.edge_type_to_id.items()}

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_graph":
            self._graph = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_graph": None}

    def node_attribute(self, name: str) -> torch.Tensor:
        """Return an attribute of all nodes."""
        return _attribute(self.node_attributes, name, "node")

    def edge_attribute(self, name: str) -> torch.Tensor:
        """Return an attribute of all edges."""
        return _attribute(self.edge_attributes, name, "edge")

    def add_node_attribute(self, name: str, tensor: torch.Tensor) -> None:
        """Add an attribute of all nodes."""
        self.node_attributes = {**(self.node_attributes or {}), name: tensor}

    def add_edge_attribute(self, name: str, tensor: torch.Tensor) -> None:
        """Add an attribute of all edges."""
        self.edge_attributes = {**(self.edge_attributes or {}), name: tensor}

    def graph(self) -> Graph:
        """Return the library's graph, with the edges' attributes as features."""
        if self._graph is None:
            self._graph = self._made()
        return self._graph

    def _made(self) -> Graph:
        indices = self.indices.long()
        idtype = torch.int32 if self.indices.dtype == torch.int32 else torch.int64
        known = self.edge_attributes or {}
        if self.edge_type_to_id is None:
            edges: Any = "csc", (self.csc_indptr, indices, [])
            sizes = {ONE_ETYPE[0]: self.total_num_nodes}
            made = heterograph({ONE_ETYPE: edges}, sizes, idtype=idtype)
            for name, values in known.items():
                made.edata[name] = values
            return made
        self._check_types()
        columns = CSCFormatBase(self.csc_indptr, indices).columns()
        parts, positions = {}, {}
        for name, number in self.edge_type_to_id.items():
            etype = etype_str_to_tuple(name)
            is_own = torch.as_tensor(self.type_per_edge == number)
            at = positions[etype] = is_own.nonzero().flatten()
            first, last = (
                self.node_type_offset[self.node_type_to_id[ntype]]  # type: ignore[index]
                for ntype in (etype[0], etype[2])
            )
            parts[etype] = indices[at] - first, columns[at] - last
        made = heterograph(parts, self.num_nodes, idtype=idtype)  # type: ignore[arg-type]
        for etype, at in positions.items():
            made.edges[etype].data[_POSITION] = at
            for name, values in known.items():
                made.edges[etype].data[name] = values[at]
        return made

    def timed(self, node_name: str | None, edge_name: str | None) -> Graph:
        """Return the library's graph with the times of nodes, of edges, or of both."""
        if node_name is None and edge_name is None:
            raise BadArgument("give node_timestamp_attr_name, edge_timestamp_attr_name or both")
        made = self.graph().local_var()
        if node_name is not None:
            times = self.node_attribute(node_name)
            for ntype, number in (self.node_type_to_id or {made.ntypes[0]: 0}).items():
                offset = self.node_type_offset
                own = times if offset is None else times[offset[number] : offset[number + 1]]
                made.nodes[ntype].data[TIME] = own
        if edge_name is not None:
            self.edge_attribute(edge_name)  # says which there are
            for etype in made.canonical_etypes:
                made.edges[etype].data[TIME] = made.edges[etype].data[edge_name]
        return made

    def _sampled(
        self,
        kind: Any,
        seeds: Any,
        fanouts: Any,
        replace: bool = False,
        probs_name: str | None = None,
        *_: Any,
        **options: Any,
    ) -> SampledSubgraph:
        if not isinstance(seeds, dict):
            if seeds.dim() != 1 or len(torch.unique(seeds)) < len(seeds):
                raise BadArgument(f"seeds are distinct nodes, shape (N,); found {seeds}")
            if self.node_type_offset is not None:  # numbers among the nodes of all types
                seeds = self._by_type(seeds)
        if probs_name is not None:
            self.edge_attribute(probs_name)
        sampler = self.sampler(kind, [fanouts], probs_name, replace)
        layer = subgraph_of_block(self, sampler.sample_blocks(self.graph(), seeds)[2][0])
        csc, rows = layer.sampled_csc, layer.original_row_node_ids
        if not isinstance(csc, dict):
            csc.indices = rows[csc.indices.long()].to(self.indices.dtype)
        else:
            for etype, each in csc.items():
                known = rows[etype_str_to_tuple(etype)[0]]
                each.indices = known[each.indices.long()].to(self.indices.dtype)
        layer.original_row_node_ids = None
        return layer

    sample_neighbors = partialmethod(_sampled, NeighborSampler)
    sample_layer_neighbors = partialmethod(_sampled, LaborSampler)
    in_subgraph = partialmethod(_sampled, NeighborSampler, fanouts=[-1])

    def _by_type(self, nodes: torch.Tensor) -> dict[str, torch.Tensor]:
        starts = self.node_type_offset.tolist()  # type: ignore[union-attr]
        found = {}
        for ntype, number in (self.node_type_to_id or {}).items():
            first, end = starts[number : number + 2]
            own = nodes[(nodes >= first) & (nodes < end)] - first
            if len(own):
                found[ntype] = own
        return found

    def sampler(self, kind: Any, fanouts: Any, prob: str | None, replace: bool, **more: Any) -> Any:
        """Return a sampler of the library."""
        layers = [self._fanout(fanout) for fanout in fanouts]
        if kind is not LaborSampler:
            return kind(layers, prob=prob, replace=replace)
        return (LayerDraws if replace else kind)(layers, prob=prob, **more)

    def _fanout(self, fanouts: Any) -> Any:
        """Return a fanout as the library's samplers take it: a number, or a dict by edge type."""
        known = self.edge_type_to_id or {}
        try:
            given = torch.as_tensor(fanouts)
            numbers = [int(number) for number in given.flatten().tolist()]
            is_right = given.dim() < 2 and len(numbers) in {1, len(known)} and min(numbers) >= -1
        except (TypeError, ValueError, RuntimeError):
            is_right = False
        if not is_right:
            raise BadArgument(
                f"a fanout is one number, at least -1, or one for each of {len(known)} edge types; "
                f"found {fanouts!r}"
            )
        if len(numbers) == 1:
            return numbers[0]
        return {etype_str_to_tuple(name): numbers[number] for name, number in known.items()}

    def sample_negative_edges_uniform(
        self, edge_type: str | None, node_pairs: torch.Tensor, negative_ratio: int
    ) -> torch.Tensor:
        """Return ``negative_ratio`` pairs of each source with targets at random, shape (K, 2)."""
        source = torch.repeat_interleave(node_pairs[:, 0], negative_ratio)
        count = self.total_num_nodes
        if edge_type is not None:
            count = self.num_nodes[etype_str_to_tuple(edge_type)[2]]  # type: ignore[index]
        target = torch.randint(count, source.shape, generator=generator(), dtype=source.dtype)
        return torch.stack([source, target.to(source.device)], 1)

    def copy_to_shared_memory(self, shared_memory_name: str) -> FusedCSCSamplingGraph:
        """Move the arrays to shared memory; child processes get the graph with their arguments."""
        return self._changed(lambda x: x.share_memory_())

    def to(self, device: Any) -> FusedCSCSamplingGraph:
        """Return the graph on a device."""
        return self._changed(lambda x: x.to(device))

    def pin_memory_(self) -> FusedCSCSamplingGraph:
        """Move the arrays to pinned memory."""
        vars(self).update(vars(self._changed(lambda x: x.pin_memory())))
        return self

    def _changed(self, change: Any) -> FusedCSCSamplingGraph:
        twin = copy.copy(self)
        for name in ARRAYS:
            if not name.endswith("_to_id") and (value := getattr(self, name)) is not None:
                setattr(twin, name, mapped(value, change))
        return twin

    def __repr__(self) -> str:
        total = f"{self.total_num_nodes}, num_edges={self.num_edges}"
        shown = {name: getattr(self, name) for name in ARRAYS}
        lines = [f"{name}={value}" for name, value in shown.items() if value is not None]
        lines.insert(2, f"total_num_nodes={total}")
        pad = "\n" + " " * 22
        return f"FusedCSCSamplingGraph({(',' + chr(10)).join(lines)},)".replace("\n", pad)


fused_csc_sampling_graph = FusedCSCSamplingGraph  # in DGL a function


def from_dglgraph(
    g: Graph, is_homogeneous: bool = False, include_original_edge_id: bool = False
) -> FusedCSCSamplingGraph:
    """Make a sampling graph of a graph of DGL; features of one without types become attributes.

    ``is_homogeneous`` leaves out the types, ``include_original_edge_id`` keeps the edge IDs of
    ``g``, as the edge attribute ``ORIGINAL_EDGE_ID``.
    """
    sizes = torch.tensor([0, *(g.num_nodes(ntype) for ntype in g.ntypes)]).cumsum(0)
    starts = dict(zip(g.ntypes, sizes.tolist(), strict=False))
    parts = []
    for number, etype in enumerate(g.canonical_etypes):
        src, dst = (x.long() for x in g.edges(etype=etype))
        kind = torch.full_like(src, number)
        parts.append((src + starts[etype[0]], dst + starts[etype[2]], kind, torch.arange(len(src))))
    src, dst, kind, own = (torch.cat(columns) for columns in zip(*parts, strict=True))
    order = torch.argsort(dst, stable=True)
    degrees = torch.bincount(dst, minlength=int(sizes[-1]))
    indptr = torch.nn.functional.pad(torch.cumsum(degrees, 0), (1, 0))
    arrays = indptr.to(g.idtype), src[order].to(g.idtype)
    nodes, edges = {}, {}
    if g.is_homogeneous:
        nodes = dict(g.ndata)
        edges = {name: values[order] for name, values in g.edata.items()}
    if include_original_edge_id:
        edges[ORIGINAL_EDGE_ID] = own[order].to(g.idtype)
    attributes = {"node_attributes": nodes, "edge_attributes": edges}
    if is_homogeneous:
        return fused_csc_sampling_graph(*arrays, **attributes)  # type: ignore[arg-type]
    return fused_csc_sampling_graph(
        *arrays,
        sizes,
        kind[order],
        {ntype: i for i, ntype in enumerate(g.ntypes)},
        {etype_tuple_to_str(etype): i for i, etype in enumerate(g.canonical_etypes)},
        **attributes,  # type: ignore[arg-type]
    )


def subgraph_of_block(graph: FusedCSCSamplingGraph, block: Block) -> SampledSubgraph:
    """Return a sampled block of :meth:`FusedCSCSamplingGraph.graph` as GraphBolt has it."""
    known = graph.graph()
    for etype, frame in block.edge_frames.items():
        for name in ORIGINAL_EDGE_ID, _POSITION:
            if name in known.edge_frames[etype]:
                column = known.edge_frames[etype][name]
                frame.defer(EID, partial(gather.rows, column, frame[EID]))
                break
    is_typed = graph.edge_type_to_id is not None
    return SampledSubgraph.of_block(block, is_typed, graph.indices.dtype)


def _attribute(known: Mapping[str, torch.Tensor] | None, name: str, what: str) -> torch.Tensor:
    if name not in (known or {}):
        raise BadArgument(f"there is no {what} attribute {name!r}; there are {sorted(known or ())}")
    return known[name]  # type: ignore[index]
