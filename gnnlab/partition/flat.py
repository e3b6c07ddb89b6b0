"""A part as a graph with one node type and one edge type, under homogeneous IDs.

DGL's ``load_partition`` returns a part in this form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, ETYPE, NID, NTYPE, ONE_ETYPE
from gnnlab.graph.relation import Relation, narrow

if TYPE_CHECKING:
    from gnnlab.partition.part import Part

__all__ = ["flat_graph"]


def flat_graph(part: Part) -> Graph:
    """See :meth:`gnnlab.partition.part.Part.graph`."""
    book = part.book
    nodes = [
        (book.map_to_homo_nid(part.new_nids(ntype), ntype), each.orig_ids, each.num_inner)
        for ntype, each in part.nodes.items()
    ]
    edges = [
        (book.map_to_homo_eid(part.new_eids(etype), etype), each.orig_ids, each.num_inner)
        for etype, each in part.edges.items()
    ]
    ndata, node_order = _columns(nodes, NID, NTYPE, "inner_node")
    edata, edge_order = _columns(edges, EID, ETYPE, "inner_edge")
    ndata["part_id"] = book.nid2partid(ndata[NID])
    total = len(node_order)
    if book.is_homogeneous:
        del ndata[NTYPE], edata[ETYPE]
        relation = part.relation(book.canonical_etypes[0])
    else:
        position = torch.empty_like(node_order)
        position[node_order] = torch.arange(total)
        counts = [len(each.orig_ids) for each in part.nodes.values()]
        place = dict(zip(part.nodes, position.split(counts), strict=True))
        ends = []
        for u, name, v in part.edges:
            src, dst = part.relation((u, name, v)).coo()
            ends.append((place[u][src], place[v][dst]))
        src, dst = (torch.cat(side)[edge_order] for side in zip(*ends, strict=True))
        relation = Relation(total, total, (narrow(src, total), narrow(dst, total)))
    return Graph(
        {"_N": total},
        {ONE_ETYPE: relation},
        {"_N": Frame(total, ndata)},
        {ONE_ETYPE: Frame(relation.num_edges, edata, what="edge")},
    )


def _columns(
    kinds: list[tuple[torch.Tensor, torch.Tensor, int]], own_id: str, type_id: str, inner: str
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Stack types and sort: inner ones first, each half by homogeneous ID."""
    ids = torch.cat([homogeneous for homogeneous, _, _ in kinds])
    belongs = torch.cat([torch.arange(len(new)) < count for new, _, count in kinds])
    order = torch.argsort(ids, stable=True)
    order = torch.cat([order[belongs[order]], order[~belongs[order]]])
    counts = torch.tensor([len(new) for new, _, _ in kinds])
    kind = torch.repeat_interleave(torch.arange(len(kinds), dtype=torch.int32), counts)
    old = torch.cat([old.long() for _, old, _ in kinds])
    columns = {inner: belongs.to(torch.uint8), "orig_id": old, own_id: ids, type_id: kind}
    return {name: column[order] for name, column in columns.items()}, order
