"""Opening parts with the functions of DGL's API."""

from __future__ import annotations

import os

import torch

from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.partition.book import GraphPartitionBook
from gnnlab.partition.files import read_config
from gnnlab.partition.part import Part, open_part

Features = dict[str, torch.Tensor]
Path = str | os.PathLike[str]


def load_partition(
    part_config: Path, part_id: int, load_feats: bool = True
) -> tuple[Graph, Features, Features, GraphPartitionBook, str, list[str], list[EdgeType]]:
    """Open one part of a partitioned graph.

    Parameters
    ----------
    part_config : path
        The JSON file that ``partition_graph`` wrote.
    load_feats : bool
        Whether to open the features; else both dictionaries are empty.

    Returns
    -------
    g : Graph
        With one node type and one edge type; see :meth:`gnnlab.partition.Part.graph`.
    node_feats : dict
        "type/name" → features of the nodes that the part owns.
    edge_feats : dict
        "source:relation:destination/name" → features of the edges that the part owns.
    book : GraphPartitionBook
    graph_name : str
    ntypes : list of str
    etypes : list of tuple

    Examples
    --------
    >>> import gnnlab as dgl, tempfile
    >>> from gnnlab.partition import load_partition, partition_graph
    >>> folder = tempfile.mkdtemp()
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> partition_graph(g, "ring", 2, folder, part_method="random")  # doctest: +ELLIPSIS
    ring: ...
    >>> part, _, _, book, name, _, _ = load_partition(f"{folder}/ring.json", 0)
    >>> name, int(part.ndata["inner_node"].sum()) == len(book.partid2nids(0))
    ('ring', True)
    """
    part = open_part(part_config, part_id, load_feats=load_feats)
    nodes, edges = _features(part)
    book = part.book
    return part.graph(), nodes, edges, book, part.graph_name, book.ntypes, book.canonical_etypes


def load_partition_book(
    part_config: Path, part_id: int
) -> tuple[GraphPartitionBook, str, dict[str, int], dict[EdgeType, int]]:
    """Read the partition book of a graph; only the JSON file is needed.

    Parameters
    ----------
    part_id : int
        Becomes ``book.partid``.

    Returns
    -------
    book : GraphPartitionBook
    graph_name : str
    ntypes, etypes : dict
        Node type and canonical edge type → type ID.
    """
    config = read_config(part_config)
    book = config.book(part_id)
    ntypes = {ntype: i for i, ntype in enumerate(book.ntypes)}
    return book, config.graph_name, ntypes, {t: i for i, t in enumerate(book.canonical_etypes)}


def load_partition_feats(
    part_config: Path, part_id: int, load_nodes: bool = True, load_edges: bool = True
) -> tuple[Features | None, Features | None]:
    """Open the features of one part, keyed as in :func:`load_partition`.

    Parameters
    ----------
    load_nodes, load_edges : bool
        If False, the result has None instead.
    """
    nodes, edges = _features(open_part(part_config, part_id))
    return nodes if load_nodes else None, edges if load_edges else None


def _features(part: Part) -> tuple[Features, Features]:
    nodes = {f"{t}/{name}": x for t, each in part.nodes.items() for name, x in each.data.items()}
    edges = {(":".join(t), name): x for t, e in part.edges.items() for name, x in e.data.items()}
    return nodes, {"/".join(names): x for names, x in edges.items()}
