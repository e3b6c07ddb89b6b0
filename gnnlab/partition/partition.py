"""partition_graph: from a graph in memory to the files of its parts.

References
----------
DGL user guide, chapter 7.1, "Preprocessing for Distributed Training".
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput, whole_number
from gnnlab.graph.core import refuse_block
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EID, NID, EdgeType
from gnnlab.kernels.dtypes import check_stored
from gnnlab.partition.assign import assign, warn_of_empty
from gnnlab.partition.build import RenumberedGraph, assemble_part, renumber_graph, split_by_type
from gnnlab.partition.estimate import plan
from gnnlab.partition.files import edge_folder, file_name, make_config, node_folder
from gnnlab.partition.metis import default_method
from gnnlab.partition.report import partition_report
from gnnlab.partition.writer import PartitionWriter
from gnnlab.pyg.convert import from_pyg, is_pyg
from gnnlab.system.bars import progress_bar

# Features that each part gets anyway; those of an older partition are not copied.
_RESERVED = {NID, EID, "inner_node", "inner_edge"}


def partition_graph(
    g: Graph,
    graph_name: str,
    num_parts: int,
    out_path: str | os.PathLike[str],
    num_hops: int = 1,
    part_method: str | Callable[[Graph, int], Any] | None = None,
    reshuffle: bool = True,
    balance_ntypes: Any = None,
    balance_edges: bool = False,
    return_mapping: bool = False,
    num_trainers_per_machine: int = 1,
    objtype: str = "cut",
    **unknown: Any,
) -> Any:
    """Cut a graph into parts and write them to files.

    Each node, and with it each of its in-edges, belongs to one part. A part also holds copies of
    the structure around it: the halo. Nodes and edges get new IDs, of which each part owns a range.

    Parameters
    ----------
    g : Graph
        One or several types, with features; or a ``Data`` or ``HeteroData`` of PyG. Not modified.
    graph_name : str
        Part of file names: 1 to 100 bytes, no path separators or control characters, no first dot.
    num_parts : int
        K ≥ 1, usually the number of machines.
    out_path : path
        Folder for ``<graph_name>.json`` and ``part0/``, ``part1/`` ….
    num_hops : int
        Reach of the halo. With 1, a part holds all edges that touch its nodes; with h, all edges
        that touch a node within h − 1 steps of them, in either direction.
    part_method : str or callable, optional
        "metis", "ldg", "random", or a function (g, num_parts) → part of each node: integers of
        shape (N,), the types in the order of ``g.ntypes``, or a dictionary by type. By default
        "metis", or "ldg" where pymetis is not installed. The parts depend on :func:`gnnlab.seed`.
    reshuffle : bool
        Must be True: without new IDs a part cannot own a range.
    balance_ntypes : dict or torch.Tensor, optional
        A class for each node, such as the train mask; each is spread evenly over the parts, except
        classes of fewer nodes than parts. By default, the node types.
    balance_edges : bool
        Whether to balance in-edges too; "random" ignores it.
    return_mapping : bool
        Whether to return the old ID of each new one.
    num_trainers_per_machine : int
        With more than one, parts are divided among trainers and nodes get a feature "trainer_id".
    objtype : str
        What METIS minimizes: "cut" (edges between parts) or "vol" (halo nodes).
    **unknown
        Ignored; a warning names them.

    Returns
    -------
    None, or with ``return_mapping`` a tuple (node map, edge map)
        Tensors of int64, shapes (N,) and (E,): entry i is the old ID of new ID i. Dictionaries by
        node type and canonical edge type where the graph has several.

    Raises
    ------
    PartitionError
        The files cannot be written; an older result is kept.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile
    >>> from gnnlab.partition import partition_graph
    >>> g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> nodes, edges = partition_graph(
    ...     g, "ring", 2, tempfile.mkdtemp(), part_method=lambda g, k: [0, 1, 0, 1],
    ...     return_mapping=True,
    ... )  # doctest: +ELLIPSIS
    ring: ...
    >>> nodes, edges
    (tensor([0, 2, 1, 3]), tensor([3, 1, 0, 2]))
    """
    g = from_pyg(g) if is_pyg(g) else g
    _check_arguments(g, num_parts, num_hops, reshuffle)
    if unknown:
        names = ", ".join(sorted(unknown))
        warnings.warn(f"partition_graph has no use for: {names}. Is the name right?", stacklevel=2)
    g = g.cpu()
    part_method = default_method() if part_method is None else part_method
    method = part_method if isinstance(part_method, str) else "custom"
    for text in plan(g, num_parts, method, num_hops, out_path).warnings:
        warnings.warn(text, stacklevel=2)
    with PartitionWriter(out_path, graph_name, num_parts) as writer:
        part_of, trainer_of = assign(
            g,
            num_parts,
            part_method,
            balance_ntypes=balance_ntypes,
            balance_edges=balance_edges,
            objtype=objtype,
            num_trainers_per_machine=num_trainers_per_machine,
        )
        warn_of_empty(part_of, num_parts)
        renumbered = renumber_graph(g, part_of, num_parts)
        trainers = (
            split_by_type(g, trainer_of.astype(np.int64)) if num_trainers_per_machine > 1 else None
        )
        frames = g.node_frames(), g.edge_frames
        for part_id in parts_progress(num_parts):
            write_part(writer, frames, renumbered, part_id, num_hops, trainers)
        config = writer.commit(make_config(graph_name, renumbered.book, method, num_hops))
    print(partition_report(config, mask=None).summary)
    if not return_mapping:
        return None
    node_map, edge_map = (
        {name: torch.from_numpy(each.old).long() for name, each in kind.items()}
        for kind in (renumbered.nodes, renumbered.edges)
    )
    if g.is_homogeneous:
        return next(iter(node_map.values())), next(iter(edge_map.values()))
    return node_map, edge_map


def write_part(
    writer: PartitionWriter,
    frames: tuple[Mapping[str, Mapping[str, Any]], Mapping[EdgeType, Mapping[str, Any]]],
    graph: RenumberedGraph,
    part_id: int,
    num_hops: int,
    trainers: dict[str, np.ndarray] | None = None,
) -> None:
    """Write a part: structure, node features and edge features."""
    nodes, edges = assemble_part(graph, part_id, num_hops)
    trainer_of = {}  # of the nodes that the part owns
    for ntype, arrays in nodes.items():
        lo, hi = graph.book.node_ranges[ntype][part_id : part_id + 2]
        rows = graph.nodes[ntype].old[lo:hi]
        if trainers is not None:
            trainer_of[ntype] = trainers[ntype][rows]
        _save(writer, node_folder(part_id, "graph", ntype), arrays)
        folder = node_folder(part_id, "node_data", ntype)
        _save_features(writer, folder, frames[0].get(ntype, {}), rows, trainer_of.get(ntype))
    for etype, arrays in edges.items():
        owned, trainer = graph.owned_edges(etype, part_id), None
        if trainers is not None:  # an edge belongs to the trainer of its destination
            trainer = np.repeat(trainer_of[etype[2]], np.diff(owned.indptr))
        _save(writer, edge_folder(part_id, "graph", etype), arrays)
        folder = edge_folder(part_id, "edge_data", etype)
        _save_features(writer, folder, frames[1].get(etype, {}), owned.old, trainer)


def _save(
    writer: PartitionWriter, folder: str, columns: Mapping[str, Any], rows: Any = None
) -> None:
    for name, values in columns.items():
        writer.save(f"{folder}/{file_name(name)}.npy", values, rows)


def _save_features(
    writer: PartitionWriter,
    folder: str,
    frame: Mapping[str, Any],
    rows: np.ndarray,
    trainer: np.ndarray | None,
) -> None:
    """Save some rows of features, and the trainer of each row if there are several a part."""
    left_out = _RESERVED if trainer is None else {*_RESERVED, "trainer_id"}
    if trainer is not None:
        _save(writer, folder, {"trainer_id": trainer})
    for name in frame:
        if name not in left_out:
            _save(writer, folder, {name: frame[name]}, torch.from_numpy(rows))


def _check_arguments(g: Graph, num_parts: int, num_hops: int, reshuffle: bool) -> None:
    refuse_block(g, "partition_graph")
    whole_number(num_parts, "num_parts", 1)
    whole_number(num_hops, "num_hops", 1)
    if not reshuffle:
        raise InvalidInput(
            "reshuffle=False is not supported: a part owns a range of new IDs; "
            "return_mapping=True gives the old ones"
        )
    if not g.canonical_etypes:
        raise InvalidInput("the graph has no edge types; there is nothing to cut")
    check_type_names([*g.ntypes, *g.etypes])
    for frame in (*g.node_frames().values(), *g.edge_frames.values()):
        for name, values in frame.items():  # before the work, not when they are written
            check_stored(values.dtype, f"feature {name!r}")


def check_type_names(names: Iterable[str]) -> None:
    """Refuse names with characters that separate names in the files of a partition."""
    for name in names:
        if ":" in name or "~" in name:
            raise InvalidInput(
                f"type name {name!r}: ':' and '~' separate names in the files of a partition; "
                "rename the type"
            )


def parts_progress(num_parts: int, show: bool = True) -> Any:
    """Count parts with a bar, when writing them takes longer than a second."""
    return progress_bar(range(num_parts), show, desc="writing parts", unit="part")
