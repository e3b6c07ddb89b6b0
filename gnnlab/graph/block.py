"""Blocks: the bipartite graphs of a mini-batch.

To compute the new features of a few nodes, a layer needs their neighbors and no other node. A block
holds just that: *destination* nodes on the right, whose features are computed, and *source* nodes
on the left, from which messages come. The destinations are also the first sources, because a layer
usually reads a node's own old features, too. (DGL calls it a message-flow graph, MFG.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gnnlab import kernels
from gnnlab.errors import InvalidInput
from gnnlab.graph.core import refuse_block
from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import node_dict, read_ids
from gnnlab.graph.names import EdgeType, listing
from gnnlab.graph.relation import Relation
from gnnlab.graph.subgraph import frame_of


class Block(Graph):
    """A bipartite graph from source nodes to destination nodes.

    Samplers and :func:`to_block` return blocks.

    ``srcdata[NID]`` and ``dstdata[NID]`` hold original node IDs, ``edata[EID]`` original edge IDs.
    """

    is_block = True
    #: Results of layers, which the blocks of one pass over all nodes share.
    kept_results: dict[Any, Any] | None = None

    def __init__(
        self,
        num_src: Mapping[str, int],
        num_dst: Mapping[str, int],
        relations: Mapping[EdgeType, Relation],
        src_frames: Mapping[str, Frame] | None = None,
        dst_frames: Mapping[str, Frame] | None = None,
        edge_frames: Mapping[EdgeType, Frame] | None = None,
        idtype: torch.dtype = torch.int64,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(num_src, relations, None, edge_frames, idtype, device)
        self._ntypes = list(dict.fromkeys((*num_src, *num_dst)))
        self.src_frames = self._frames(num_src, src_frames, "node")
        self.dst_frames = self._frames(num_dst, dst_frames, "node")

    def derive(self, *args: Any, **kwargs: Any) -> Any:
        """Not possible for a block. Raises InvalidInput."""
        raise InvalidInput(
            "a block cannot be transformed like a graph; transform the frontier before to_block()"
        )

    @property
    def ntypes(self) -> list[str]:
        """Node types of the source side, then of the destination side."""
        return [*self.src_frames, *self.dst_frames]

    @property
    def is_homogeneous(self) -> bool:
        """Whether there is one source type, one destination type and one edge type."""
        return len(self.src_frames) == len(self.dst_frames) == len(self.relations) == 1

    def num_nodes(self, ntype: str | None = None) -> int:
        """Number of source and destination nodes together; of one side as ``SRC/…``, ``DST/…``."""
        sides = (self.src_frames, self.dst_frames)
        if ntype is None:
            return sum(frame.num_rows for side in sides for frame in side.values())
        self.resolve_ntype(ntype)  # an unknown name is an error
        found = [side[ntype] for side in sides if ntype in side] or [self._sides()[ntype]]
        return sum(frame.num_rows for frame in found)

    number_of_nodes = num_nodes

    @property  # type: ignore[misc]
    def ndata(self) -> Any:
        """Not defined: a block has two sides. Raises InvalidInput."""
        raise InvalidInput("a block has two sides: use block.srcdata or block.dstdata")

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        drawing = ""
        num_src, num_dst = self.num_src_nodes(), self.num_dst_nodes()
        if self.is_homogeneous and num_src + num_dst <= cells.MOST_NODES:
            (relation,) = self.relations.values()
            edges = zip(*(side.tolist() for side in relation.coo()), strict=True)
            drawing = cells.bipartite(num_src, num_dst, edges)
        return self._html({"srctype": self.src_frames, "dsttype": self.dst_frames}, drawing)

    def __repr__(self) -> str:
        if self.is_homogeneous:
            return (
                f"Block(num_src_nodes={self.num_src_nodes()}, "
                f"num_dst_nodes={self.num_dst_nodes()}, num_edges={self.num_edges()})"
            )
        src, dst = (
            listing((f"{name!r}: {frame.num_rows}" for name, frame in frames.items()), 20)
            for frames in (self.src_frames, self.dst_frames)
        )
        return (
            f"Block(num_src_nodes={src},\n      num_dst_nodes={dst},\n      {self._repr_edges()})"
        )


def to_block(
    g: Graph, dst_nodes: Any = None, include_dst_in_src: bool = True, src_nodes: Any = None
) -> Block:
    """Turn a frontier, a graph on all nodes with the sampled edges, into a block.

    Parameters
    ----------
    g : Graph
        The frontier.
    dst_nodes : IDs or dict of IDs by node type, optional
        The destinations in the order wanted, distinct. They must include the destination of every
        edge. By default all nodes with an in-edge, ascending.
    include_dst_in_src : bool
        Make the destinations the first sources.
    src_nodes : IDs or dict of IDs by node type, optional
        The distinct sources in the order wanted, instead of that of first appearance. They must
        include the source of every edge and, with ``include_dst_in_src``, begin with destinations.

    Returns
    -------
    Block
        Edges in the order of ``g``; ``edata[EID]`` holds their IDs in ``g``. Features follow.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([1, 2, 7], [2, 3, 3]))
    >>> block = dgl.to_block(g, [3, 2])
    >>> block.srcdata[dgl.NID], block.edges()
    (tensor([3, 2, 1, 7]), (tensor([2, 1, 3]), tensor([1, 0, 0])))
    """
    refuse_block(g, "to_block")
    wanted = None if dst_nodes is None else node_dict(g, dst_nodes)
    given = None if src_nodes is None else node_dict(g, src_nodes)
    dst_ids = {ntype: _destinations(g, ntype, wanted) for ntype in g.ntypes}
    src_ids, relations = _number(g, dst_ids, include_dst_in_src, given)
    edge_frames = {
        etype: frame_of(g, g.edge_frames[etype], torch.arange(r.num_edges, device=g.device))
        for etype, r in relations.items()
    }
    return Block(
        {ntype: len(ids) for ntype, ids in src_ids.items()},
        {ntype: len(ids) for ntype, ids in dst_ids.items()},
        relations,
        {ntype: frame_of(g, g.node_frames()[ntype], ids) for ntype, ids in src_ids.items()},
        {ntype: frame_of(g, g.node_frames()[ntype], ids) for ntype, ids in dst_ids.items()},
        edge_frames,
        g.idtype,
        g.device,
    )


def _destinations(g: Graph, ntype: str, wanted: dict[str, Any] | None) -> torch.Tensor:
    if wanted is not None:
        return _read(g, wanted, ntype)
    empty = torch.empty(0, dtype=torch.int64, device=g.device)
    ends = [r.coo()[1] for etype, r in g.relations.items() if etype[2] == ntype]
    return torch.unique(torch.cat([empty, *ends]))


def _read(g: Graph, given: dict[str, Any], ntype: str) -> torch.Tensor:
    return read_ids(given.get(ntype, []), g.num_nodes(ntype), "node", g.device, distinct=True)


def _number(
    g: Graph, dst_ids: Mapping[str, torch.Tensor], include_dst: bool, given: dict[str, Any] | None
) -> tuple[dict[str, torch.Tensor], dict[EdgeType, Relation]]:
    """Number destinations and sources from 0, in one pass over the edges."""
    device = g.device
    dst: dict[EdgeType, torch.Tensor] = {}
    src: dict[EdgeType, torch.Tensor] = {}
    src_ids: dict[str, torch.Tensor] = {}
    for ntype in g.ntypes:
        incoming = {e: r for e, r in g.relations.items() if e[2] == ntype}
        with kernels.node_list(g.num_nodes(ntype), device) as nodes:
            nodes.start(dst_ids[ntype])
            for etype, relation in incoming.items():
                dst[etype] = nodes.find(relation.coo()[1])
                _check_covered(dst[etype], relation.coo()[1], ntype, "dst_nodes")
        first = dst_ids[ntype] if include_dst else dst_ids[ntype][:0]
        if given is not None:
            wanted = _read(g, given, ntype)
            if not torch.equal(wanted[: len(first)].long(), first.long()):
                raise InvalidInput(
                    f"src_nodes of type {ntype!r} must begin with the destinations: put dst_nodes "
                    "before the other sources, or pass include_dst_in_src=False"
                )
            first = wanted
        with kernels.node_list(g.num_nodes(ntype), device) as nodes:
            nodes.start(first)
            for etype, relation in g.relations.items():
                if etype[0] == ntype and given is None:
                    src[etype] = nodes.add(relation.coo()[0])
                elif etype[0] == ntype:
                    src[etype] = nodes.find(relation.coo()[0])
                    _check_covered(src[etype], relation.coo()[0], ntype, "src_nodes")
            src_ids[ntype] = nodes.ids.clone()
    relations = {
        etype: Relation(len(src_ids[etype[0]]), len(dst_ids[etype[2]]), (src[etype], dst[etype]))
        for etype in g.relations
    }
    return src_ids, relations


def _check_covered(local: torch.Tensor, ends: torch.Tensor, ntype: str, argument: str) -> None:
    missing = local < 0
    if bool(missing.any()):
        verb, end = ("starts", "source") if argument == "src_nodes" else ("ends", "destination")
        raise InvalidInput(
            f"an edge {verb} at node {int(ends[missing][0])} of type {ntype!r}, which is not among "
            f"{argument}; {argument} must include the {end} of every edge of the frontier"
        )
