"""A part as a graph with one node type and one edge type, under homogeneous IDs.

DGL's ``load_partition`` returns a part in this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch

from gnnlab.graph.frame import Frame
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, ETYPE, NID, NTYPE, ONE_ETYPE, EdgeType
from gnnlab.graph.relation import Relation, narrow
from gnnlab.partition.book import GraphPartitionBook


class LocalIDs(NamedTuple):
    """The local nodes, or edges, of one type; those that the part owns come first."""

    new: torch.Tensor  # type-wise IDs
    original: torch.Tensor  # IDs in the user's graph
    num_owned: int


def homogeneous_graph(
    book: GraphPartitionBook,
    nodes: Mapping[str, LocalIDs],
    edges: Mapping[EdgeType, LocalIDs],
    relations: Mapping[EdgeType, Relation],
) -> Graph:
    """Stack the types of a part; see :meth:`gnnlab.partition.Part.graph`.

    Parameters
    ----------
    book : GraphPartitionBook
    nodes, edges : dict
        Type → LocalIDs, in the order of type IDs.
    relations : dict
        Edge type → structure over local IDs.
    """
    new_nodes = [book.map_to_homo_nid(ids.new, ntype) for ntype, ids in nodes.items()]
    new_edges = [book.map_to_homo_eid(ids.new, etype) for etype, ids in edges.items()]
    ndata, node_order = _columns(new_nodes, [*nodes.values()], NID, NTYPE, "inner_node")
    edata, edge_order = _columns(new_edges, [*edges.values()], EID, ETYPE, "inner_edge")
    ndata["part_id"] = book.nid2partid(ndata[NID])
    total = len(node_order)
    if book.is_homogeneous:
        del ndata[NTYPE], edata[ETYPE]
        (relation,) = relations.values()
    else:
        positions = torch.empty_like(node_order)
        positions[node_order] = torch.arange(total)
        of_type = dict(zip(nodes, positions.split([*map(len, new_nodes)]), strict=True))
        ends = []
        for (u, _, v), each in relations.items():
            src, dst = each.coo()
            ends.append((of_type[u][src], of_type[v][dst]))
        src, dst = (torch.cat(side)[edge_order] for side in zip(*ends, strict=True))
        relation = Relation(total, total, (narrow(src, total), narrow(dst, total)))
    return Graph(
        {"_N": total},
        {ONE_ETYPE: relation},
        {"_N": Frame(total, ndata)},
        {ONE_ETYPE: Frame(relation.num_edges, edata, what="edge")},
    )


def _columns(
    new: list[torch.Tensor], kinds: list[LocalIDs], own_id: str, type_id: str, inner: str
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Stack types and sort: owned ones first, each half by homogeneous ID."""
    ids = torch.cat(new)
    owned = torch.cat([torch.arange(len(each.new)) < each.num_owned for each in kinds])
    order = torch.argsort(ids, stable=True)
    order = torch.cat([order[owned[order]], order[~owned[order]]])
    counts = torch.tensor([*map(len, new)])
    kind = torch.repeat_interleave(torch.arange(len(kinds), dtype=torch.int32), counts)
    original = torch.cat([each.original.long() for each in kinds])
    columns = {inner: owned.to(torch.uint8), "orig_id": original, own_id: ids, type_id: kind}
    return {name: column[order] for name, column in columns.items()}, order
