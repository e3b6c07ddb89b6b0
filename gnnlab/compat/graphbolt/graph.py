"""The graph that GraphBolt samples: in-edges of all nodes, one column after the other.

Nodes of all types have numbers of one range, type after type, and edges stand in the order of their
destinations. The library's graph, with a range of numbers for each type, is made from these arrays
when it is first sampled, and the library's samplers do the rest.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch

from gnnlab.compat.graphbolt.minibatch import (
    CSCFormatBase,
    SampledSubgraph,
    etype_str_to_tuple,
    etype_tuple_to_str,
)
from gnnlab.dataloading.labor import LaborSampler
from gnnlab.dataloading.sampler import NeighborSampler
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.graph.block import Block
from gnnlab.graph.construct import heterograph
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID
from gnnlab.random import generator

__all__ = ["ORIGINAL_EDGE_ID", "FusedCSCSamplingGraph", "SamplingGraph", "from_dglgraph"]
__all__ += ["fused_csc_sampling_graph", "subgraph_of_block"]

ORIGINAL_EDGE_ID = "_ORIGINAL_EDGE_ID"
_ONE = ("_N", "_E", "_N")
_POSITION = "_position"


class SamplingGraph:
    """Base of the graphs that samplers take."""


class FusedCSCSamplingGraph(SamplingGraph):
    """A graph, with or without types; ``fused_csc_sampling_graph`` is another name.

    Attributes
    ----------
    csc_indptr : torch.Tensor
        Shape (N + 1,).
    indices : torch.Tensor
        Shape (E,): source of each edge.
    node_type_offset : torch.Tensor, optional
        Shape (node types + 1,): where each type begins.
    type_per_edge : torch.Tensor, optional
        Shape (E,).
    node_type_to_id, edge_type_to_id : dict of str to int, optional
        Edge types are written ``"user:likes:item"``.
    node_attributes, edge_attributes : dict of str to torch.Tensor, optional
        A row for each node, and for each edge in the order of ``indices``.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb, torch
    >>> gb.fused_csc_sampling_graph(torch.tensor([0, 2, 3]), torch.tensor([0, 1, 0])).num_edges
    3
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
            raise InvalidInput(
                f"csc_indptr must end at the number of edges, which is {len(indices)}"
            )
        kinds = node_type_to_id, edge_type_to_id, node_type_offset, type_per_edge
        if any(each is not None for each in kinds) and any(each is None for each in kinds):
            raise InvalidInput(
                "a graph with types has node_type_offset, type_per_edge, node_type_to_id and "
                "edge_type_to_id"
            )
        for what, size, attributes in (
            ("node", len(csc_indptr) - 1, node_attributes),
            ("edge", len(indices), edge_attributes),
        ):
            for name, values in (attributes or {}).items():
                if len(values) != size:
                    raise InvalidInput(
                        f"{what} attribute {name!r} has {len(values)} rows, not {size}"
                    )
        self.csc_indptr, self.indices = csc_indptr, indices
        self.node_type_offset, self.type_per_edge = node_type_offset, type_per_edge
        self.node_type_to_id, self.edge_type_to_id = node_type_to_id, edge_type_to_id
        self.node_attributes, self.edge_attributes = node_attributes, edge_attributes
        self._graph: Graph | None = None

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
        if self.node_type_to_id is None:
            return self.total_num_nodes
        sizes = torch.diff(self.node_type_offset).tolist()  # type: ignore[arg-type]
        return {name: sizes[number] for name, number in self.node_type_to_id.items()}

    @property
    def num_edges(self) -> int | dict[str, int]:
        """Number of edges; by type, if there are types."""
        if self.edge_type_to_id is None:
            return self.total_num_edges
        assert self.type_per_edge is not None
        sizes = torch.bincount(self.type_per_edge.long(), minlength=len(self.edge_type_to_id))
        return {name: int(sizes[number]) for name, number in self.edge_type_to_id.items()}

    def node_attribute(self, name: str) -> torch.Tensor:
        """Return an attribute of all nodes."""
        return _attribute(self.node_attributes, name, "node")

    def edge_attribute(self, name: str) -> torch.Tensor:
        """Return an attribute of all edges."""
        return _attribute(self.edge_attributes, name, "edge")

    def add_node_attribute(self, name: str, tensor: torch.Tensor) -> None:
        """Add an attribute of all nodes."""
        self.node_attributes = {**(self.node_attributes or {}), name: tensor}
        self._graph = None

    def add_edge_attribute(self, name: str, tensor: torch.Tensor) -> None:
        """Add an attribute of all edges."""
        self.edge_attributes = {**(self.edge_attributes or {}), name: tensor}
        self._graph = None

    def graph(self) -> Graph:
        """Return the library's graph, with the edges' attributes as features."""
        if self._graph is None:
            self._graph = self._made()
        return self._graph

    def _made(self) -> Graph:
        columns = CSCFormatBase(self.csc_indptr, self.indices).columns()
        positions = torch.arange(len(self.indices), device=self.indices.device)
        if self.edge_type_to_id is None:
            sizes = {_ONE[0]: self.total_num_nodes}
            parts = {_ONE: (self.indices, columns, positions)}
        else:
            assert self.type_per_edge is not None and self.node_type_offset is not None
            sizes = self.num_nodes  # type: ignore[assignment]
            parts = {}
            for name, number in self.edge_type_to_id.items():
                etype = etype_str_to_tuple(name)
                at = (self.type_per_edge == number).nonzero().flatten()
                first, last = (self.node_type_offset[self._type(n)] for n in (etype[0], etype[2]))
                parts[etype] = self.indices[at] - first, columns[at] - last, at
        made = heterograph({etype: part[:2] for etype, part in parts.items()}, sizes)
        for etype, (_, _, at) in parts.items():
            features = made.edges[etype].data
            features[_POSITION] = at
            for name, values in (self.edge_attributes or {}).items():
                features[name] = values[at]
        return made

    def _type(self, ntype: str) -> int:
        known = self.node_type_to_id or {}
        if ntype not in known:
            raise NotFound(f"there is no node type {ntype!r}; there are {', '.join(known)}")
        return known[ntype]

    def in_subgraph(self, nodes: Any) -> SampledSubgraph:
        """Return all in-edges of some nodes; rows are IDs in the graph."""
        return self.sample_neighbors(nodes, torch.tensor([-1]))

    def sample_neighbors(
        self,
        seeds: Any,
        fanouts: torch.Tensor,
        replace: bool = False,
        probs_name: str | None = None,
        *_: Any,
        **options: Any,
    ) -> SampledSubgraph:
        """Sample in-edges of nodes; rows are IDs in the graph.

        Parameters
        ----------
        seeds : torch.Tensor, or dict by node type
        fanouts : torch.Tensor
            One number for all edge types, or one for each, in the order of their IDs; −1 takes all.
        replace : bool
        probs_name : str, optional
            Edge attribute with weights.
        """
        sampler = NeighborSampler([self.fanout(fanouts)], prob=probs_name, replace=replace)
        return self._with_rows_of_graph(sampler, seeds)

    def sample_layer_neighbors(
        self,
        seeds: Any,
        fanouts: torch.Tensor,
        replace: bool = False,
        probs_name: str | None = None,
        *_: Any,
        **options: Any,
    ) -> SampledSubgraph:
        """As :meth:`sample_neighbors`, with fewer distinct rows: LABOR."""
        _check_labor(replace)
        return self._with_rows_of_graph(
            LaborSampler([self.fanout(fanouts)], prob=probs_name), seeds
        )

    def _with_rows_of_graph(self, sampler: NeighborSampler, seeds: Any) -> SampledSubgraph:
        block = sampler.sample_blocks(self.graph(), seeds)[2][0]
        layer = subgraph_of_block(self, block)
        rows = layer.original_row_node_ids
        if isinstance(layer.sampled_csc, dict):
            for etype, csc in layer.sampled_csc.items():
                csc.indices = rows[etype_str_to_tuple(etype)[0]][csc.indices.long()]
        else:
            layer.sampled_csc.indices = rows[layer.sampled_csc.indices.long()]
        layer.original_row_node_ids = None
        return layer

    def fanout(self, fanouts: Any) -> Any:
        """Return a fanout as the library's samplers take it: a number, or a dict by edge type."""
        try:
            numbers = torch.as_tensor(fanouts).flatten().tolist()
        except (TypeError, ValueError, RuntimeError) as error:
            raise InvalidInput(f"a fanout is a number or a tensor; found {fanouts!r}") from error
        if len(numbers) == 1:
            return int(numbers[0])
        known = self.edge_type_to_id or {}
        if len(numbers) != len(known):
            raise InvalidInput(
                f"a fanout is one number, or one for each of {len(known)} edge types; found "
                f"{numbers}"
            )
        return {etype_str_to_tuple(name): int(numbers[number]) for name, number in known.items()}

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
        pinned = self._changed(lambda x: x.pin_memory())
        vars(self).update(vars(pinned))
        return self

    def _changed(self, change: Any) -> FusedCSCSamplingGraph:
        def of(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return change(value)
            return {name: of(each) for name, each in value.items()} if value else value

        twin = copy.copy(self)
        arrays = "csc_indptr", "indices", "node_type_offset", "type_per_edge"
        for name in (*arrays, "node_attributes", "edge_attributes"):
            setattr(twin, name, of(getattr(self, name)))
        twin._graph = None
        return twin

    def __repr__(self) -> str:
        return (
            f"FusedCSCSamplingGraph(num_nodes={self.num_nodes}, num_edges={self.num_edges},\n"
            f"{' ' * 22}node_attributes={sorted(self.node_attributes or ())}, "
            f"edge_attributes={sorted(self.edge_attributes or ())})"
        )


fused_csc_sampling_graph = FusedCSCSamplingGraph  # in DGL a function


def from_dglgraph(
    g: Graph, is_homogeneous: bool = False, include_original_edge_id: bool = False
) -> FusedCSCSamplingGraph:
    """Make a sampling graph of a graph of DGL; features stay where they are.

    Parameters
    ----------
    g : Graph
    is_homogeneous : bool
        Leave out the types, of which there is one.
    include_original_edge_id : bool
        Keep the edge IDs of ``g``, as the edge attribute ``ORIGINAL_EDGE_ID``.
    """
    sizes = [g.num_nodes(ntype) for ntype in g.ntypes]
    starts = dict(zip(g.ntypes, torch.tensor([0, *sizes]).cumsum(0).tolist(), strict=False))
    parts = []
    for number, etype in enumerate(g.canonical_etypes):
        src, dst = (x.long() for x in g.edges(etype=etype))
        kind = torch.full_like(src, number)
        parts.append((src + starts[etype[0]], dst + starts[etype[2]], kind, torch.arange(len(src))))
    src, dst, kind, own = (torch.cat(columns) for columns in zip(*parts, strict=True))
    order = torch.argsort(dst, stable=True)
    degrees = torch.bincount(dst, minlength=sum(sizes))
    indptr = torch.nn.functional.pad(torch.cumsum(degrees, 0), (1, 0))
    attributes = {ORIGINAL_EDGE_ID: own[order]} if include_original_edge_id else None
    if is_homogeneous:
        if not g.is_homogeneous:
            raise InvalidInput(f"the graph has types {g.canonical_etypes}: is_homogeneous=False")
        return fused_csc_sampling_graph(indptr, src[order], edge_attributes=attributes)
    return fused_csc_sampling_graph(
        indptr,
        src[order],
        torch.tensor([0, *sizes]).cumsum(0),
        kind[order],
        {ntype: i for i, ntype in enumerate(g.ntypes)},
        {etype_tuple_to_str(etype): i for i, etype in enumerate(g.canonical_etypes)},
        edge_attributes=attributes,
    )


def subgraph_of_block(graph: FusedCSCSamplingGraph, block: Block) -> SampledSubgraph:
    """Return a sampled block of :meth:`FusedCSCSamplingGraph.graph` as GraphBolt has it."""
    known = graph.graph()
    csc, eids = {}, {}
    for etype in block.canonical_etypes:
        adjacency = block.relation(etype).csc()
        name = etype_tuple_to_str(etype)
        csc[name] = CSCFormatBase(adjacency.indptr, adjacency.indices)
        ids = block.edges[etype].data[EID][adjacency.eids.long()].long()
        features = known.edges[etype].data
        kept = ORIGINAL_EDGE_ID if ORIGINAL_EDGE_ID in features else _POSITION
        eids[name] = features[kept][ids]
    rows = {ntype: block.srcnodes[ntype].data[NID] for ntype in block.srctypes}
    columns = {ntype: block.dstnodes[ntype].data[NID] for ntype in block.dsttypes}
    if graph.edge_type_to_id is None:
        one = etype_tuple_to_str(_ONE)
        return SampledSubgraph(csc[one], columns[_ONE[2]], rows[_ONE[0]], eids[one])
    return SampledSubgraph(csc, columns, rows, eids)


def _check_labor(replace: bool) -> None:
    if replace:
        raise InvalidInput("layer neighbors are drawn without replacement: replace=False")


def _attribute(known: Mapping[str, torch.Tensor] | None, name: str, what: str) -> torch.Tensor:
    if name not in (known or {}):
        raise NotFound(f"there is no {what} attribute {name!r}; there are {sorted(known or ())}")
    return known[name]  # type: ignore[index]
