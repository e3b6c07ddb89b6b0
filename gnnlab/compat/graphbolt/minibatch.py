"""Mini-batches of GraphBolt: seeds, sampled layers, features.

Layers that the library has sampled keep its blocks, and ``minibatch.blocks`` returns these. The
arrays of such a layer are made when they are first read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from gnnlab.compat.base import BadArgument, BadType
from gnnlab.compat.functions import create_block
from gnnlab.graph.block import Block
from gnnlab.graph.names import EID, NID, ONE_ETYPE


def etype_tuple_to_str(c_etype: tuple[str, str, str]) -> str:
    """Return ``"user:likes:item"`` for ``("user", "likes", "item")``."""
    if not isinstance(c_etype, tuple) or len(c_etype) != 3:
        raise BadArgument(f"an edge type is a triple of names; found {c_etype!r}")
    return ":".join(c_etype)


def etype_str_to_tuple(c_etype: Any) -> tuple[str, str, str]:
    """Return ``("user", "likes", "item")`` for ``"user:likes:item"``."""
    names = c_etype if isinstance(c_etype, tuple) else tuple(str(c_etype).split(":"))
    if len(names) != 3:
        raise BadArgument(f"an edge type is written 'source:relation:target'; found {c_etype!r}")
    return names


def seed_type_str_to_ntypes(seed_type: str, seed_size: int) -> list[str]:
    """Return the node type of each column of seeds: of an edge type, or ``"user:item:item"``."""
    names = seed_type.split(":")
    if seed_size == 2 and len(names) == 3:
        return [names[0], names[2]]
    if len(names) != seed_size:
        raise BadArgument(f"seeds of {seed_type!r} have {len(names)} columns; found {seed_size}")
    return names


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply ``change`` to what stands in dicts, lists and tuples, and return these anew."""
    if isinstance(value, Mapping):
        return {name: mapped(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(each, change) for each in value)
    return change(value)


def moved(value: Any, device: Any, non_blocking: bool = False) -> Any:
    """Move tensors, and what has them, to a device."""

    def move(each: Any) -> Any:
        if isinstance(each, torch.Tensor | Batch):
            return each.to(device, non_blocking=non_blocking)
        return each.to(device) if hasattr(each, "to") else each

    return mapped(value, move)


class Batch:
    """What has tensors in its :attr:`FIELDS` and other attributes, or in dicts and lists there."""

    FIELDS: tuple[str, ...] = ()
    SHOWN: tuple[str, ...] = ()
    _NAME, _INDENT, _END = "", 0, 0

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        """Move all tensors to a device, and return this object."""
        vars(self).update(moved(vars(self), device, non_blocking))
        return self

    def pin_memory(self) -> Any:
        """Move the tensors to pinned memory, and return this object."""
        for name in self.FIELDS:
            pinned = mapped(getattr(self, name), lambda x: x if x is None else x.pin_memory())
            setattr(self, name, pinned)
        return self

    def __repr__(self) -> str:
        lines = []
        for name in self.SHOWN or self.FIELDS:
            pad = "\n" + " " * (self._INDENT + len(name) + 1)
            lines.append(f"{name}={str(getattr(self, name)).replace(chr(10), pad)},\n")
        return f"{self._NAME}({(' ' * self._INDENT).join(lines)}{' ' * self._END})"


class CSCFormatBase(Batch):
    """In-edges of each column: column v has the rows ``indices[indptr[v]:indptr[v + 1]]``."""

    FIELDS = "indptr", "indices"
    _NAME, _INDENT = "CSCFormatBase", 14

    def __init__(self, indptr: torch.Tensor, indices: torch.Tensor) -> None:
        self.indptr, self.indices = indptr, indices
        if indptr.numel() and int(indptr[-1]) != len(indices):
            raise BadArgument(f"indptr ends at {int(indptr[-1])}, not at {len(indices)} indices")

    def columns(self) -> torch.Tensor:
        """Column of each edge, shape (E,)."""
        return expand_indptr(self.indptr, torch.int64)


class SampledSubgraph(Batch):
    """The edges of one layer, numbered within it, and IDs in the graph; dicts by type if typed."""

    FIELDS = (
        *("sampled_csc", "original_row_node_ids", "original_edge_ids"),
        "original_column_node_ids",
    )
    _NAME, _INDENT = "SampledSubgraphImpl", 19

    def __init__(
        self,
        sampled_csc: Any,
        original_column_node_ids: Any = None,
        original_row_node_ids: Any = None,
        original_edge_ids: Any = None,
    ) -> None:
        if isinstance(sampled_csc, dict):
            for etype in sampled_csc:
                etype_str_to_tuple(etype)
        self.sampled_csc, self.original_edge_ids = sampled_csc, original_edge_ids
        self.original_column_node_ids = original_column_node_ids
        self.original_row_node_ids = original_row_node_ids

    @classmethod
    def of_block(cls, block: Block, is_typed: bool, idtype: torch.dtype) -> SampledSubgraph:
        """Make the layer of a block, whose rows are then numbered as ``idtype``."""
        made = cls.__new__(cls)
        vars(made).update(kept_block=block, made_as=(is_typed, idtype))
        return made

    def __getattr__(self, name: str) -> Any:
        if name not in self.FIELDS or "made_as" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        is_typed, idtype = vars(self).pop("made_as")
        block = vars(self)["kept_block"]
        csc, eids = {}, {}
        for etype in block.canonical_etypes:
            adjacency, key = block.relation(etype).csc(), ":".join(etype)
            csc[key] = CSCFormatBase(adjacency.indptr, adjacency.indices.to(idtype))
            eids[key] = block.edges[etype].data[EID]
        rows = {ntype: frame[NID] for ntype, frame in block.src_frames.items()}
        columns = {ntype: frame[NID] for ntype, frame in block.dst_frames.items()}
        for field, found in zip(self.FIELDS, (csc, rows, eids, columns), strict=True):
            vars(self)[field] = found if is_typed else next(iter(found.values()))
        return vars(self)[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if "made_as" in vars(self):
            getattr(self, self.FIELDS[0])  # makes all fields
        if name in self.FIELDS and vars(self).get(name) is not value:
            vars(self).pop("kept_block", None)
        super().__setattr__(name, value)

    def block(self) -> Block:
        """Return the layer as a block of DGL, with IDs of nodes and edges as features."""
        if "kept_block" not in vars(self):
            vars(self)["kept_block"] = self._new_block()
        return vars(self)["kept_block"]  # type: ignore[no-any-return]

    def _new_block(self) -> Block:
        edges, eids, rows, columns = (
            (x or {}) if isinstance(self.sampled_csc, dict) else {} if x is None else {one: x}
            for one, x in (
                (":".join(ONE_ETYPE), self.sampled_csc),
                (":".join(ONE_ETYPE), self.original_edge_ids),
                (ONE_ETYPE[0], self.original_row_node_ids),
                (ONE_ETYPE[0], self.original_column_node_ids),
            )
        )
        relations: dict[Any, Any] = {
            etype_str_to_tuple(key): ("csc", (csc.indptr.long(), csc.indices.long(), []))
            for key, csc in edges.items()
        }
        num_src, num_dst = ({n: len(ids) for n, ids in side.items()} for side in (rows, columns))
        made = create_block(relations, num_src, num_dst)
        for frames, side in (made.src_frames, rows), (made.dst_frames, columns):
            for ntype, ids in side.items():
                frames[ntype][NID] = ids
        for key, ids in eids.items():
            if ids is not None:
                made.edge_frames[etype_str_to_tuple(key)][EID] = ids
        return made

    def exclude_edges(self, edges: Any, *_: Any, **options: Any) -> SampledSubgraph:
        """Return the layer without some edges: pairs (K, 2) of IDs in the graph, or by type."""
        csc, ids = self.sampled_csc, self.original_edge_ids
        if isinstance(csc, dict) != isinstance(edges, dict):
            raise BadArgument("edges by type are needed for a layer with types, and only for it")
        if isinstance(csc, dict):
            csc, ids = dict(csc), dict(ids or {})
            for etype in csc.keys() & edges.keys():
                csc[etype], ids[etype] = self._without(etype, edges[etype])
            ids = {etype: left for etype, left in ids.items() if left is not None} or None
        else:
            csc, ids = self._without("", edges)
        return type(self)(csc, self.original_column_node_ids, self.original_row_node_ids, ids)

    def _without(self, etype: str, pairs: torch.Tensor) -> tuple[CSCFormatBase, Any]:
        source, _, target = etype_str_to_tuple(etype) if etype else ("", "", "")

        def own(values: Any, name: str) -> Any:
            return values.get(name) if isinstance(values, dict) else values

        csc, ids = own(self.sampled_csc, etype), own(self.original_edge_ids, etype)
        ends = []
        for local, known, ntype in (
            (csc.indices, self.original_row_node_ids, source),
            (csc.columns(), self.original_column_node_ids, target),
        ):
            nodes = own(known, ntype)
            ends.append(local.long() if nodes is None else nodes[local.long()].long())
        rows, columns = ends
        width = 1 + max([int(x.max()) for x in (columns, pairs[:, 1]) if len(x)], default=0)
        is_kept = ~torch.isin(rows * width + columns, pairs[:, 0] * width + pairs[:, 1])
        before = torch.nn.functional.pad(torch.cumsum(is_kept, 0), (1, 0))
        csc = CSCFormatBase(before[csc.indptr], csc.indices[is_kept])
        return csc, None if ids is None else ids[is_kept]


def add_reverse_edges(edges: Any, reverse_etypes_mapping: Mapping[str, str] | None = None) -> Any:
    """Return edges (K, 2) with each of them also the other way; by type, as the type named."""
    if isinstance(edges, torch.Tensor):
        if edges.dim() != 2 or edges.shape[1] != 2:
            raise BadArgument(f"edges have shape (K, 2); found {tuple(edges.shape)}")
        return torch.cat([edges, edges.flip(1)])
    found = dict(edges)
    for etype, back in (reverse_etypes_mapping or {}).items():
        if etype in edges:
            others = [found[back]] if back in found else []
            found[back] = torch.cat([*others, edges[etype].flip(1)])
    return found


# ----------------------------------------------------------------------------------- numbering
def isin(elements: torch.Tensor, test_elements: torch.Tensor) -> torch.Tensor:
    """Return for each element of a vector whether it is in another vector."""
    if elements.dim() != 1 or test_elements.dim() != 1:
        raise BadArgument(f"vectors are needed; found {elements.shape}, {test_elements.shape}")
    return torch.isin(elements, test_elements)


def index_select(tensor: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    """Return rows of a tensor."""
    return tensor[index.long()]


def expand_indptr(
    indptr: torch.Tensor,
    dtype: torch.dtype | None = None,
    node_ids: torch.Tensor | None = None,
    output_size: int | None = None,
) -> torch.Tensor:
    """Return the group of each edge, or the entry of ``node_ids`` at it."""
    if node_ids is None and dtype is None:
        raise BadArgument("dtype, or node_ids, is needed")
    if node_ids is None:
        node_ids = torch.arange(len(indptr) - 1, dtype=dtype, device=indptr.device)
    return torch.repeat_interleave(node_ids, torch.diff(indptr), output_size=output_size)


def unique_and_compact(nodes: Any, *_: Any) -> tuple[Any, Any]:
    """Number the nodes of a list of tensors, or of lists by type, in the order of first appearance.

    Returns the distinct nodes, and the tensors with the new numbers.
    """
    return _numbered(nodes, _distinct)


def _distinct(nodes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    rows = None if nodes.dim() == 1 else 0  # pairs of a node and a time
    known, at = torch.unique(nodes, return_inverse=True, dim=rows)
    first = torch.full((len(known),), len(nodes), device=nodes.device)
    first.scatter_reduce_(0, at, torch.arange(len(nodes), device=nodes.device), "amin")
    order = torch.argsort(first)
    numbers = torch.argsort(order)[at]
    return known[order], numbers.to(known.dtype) if rows is None else numbers


def _numbered(nodes: Any, number: Callable[[Any], Any]) -> tuple[Any, Any]:
    if isinstance(nodes, dict):
        pairs = {ntype: _numbered(each, number) for ntype, each in nodes.items()}
        return {n: pair[0] for n, pair in pairs.items()}, {n: pair[1] for n, pair in pairs.items()}
    found, at = number(torch.cat(list(nodes)))
    return found, list(at.split([len(each) for each in nodes]))


def unique_and_compact_csc_formats(
    csc_formats: Any, unique_dst_nodes: Any, *_: Any
) -> tuple[Any, Any]:
    """Number the rows of sampled edges, which are IDs in the graph, after the columns' nodes.

    Returns the nodes of the rows, and the edges with rows numbered as they stand there; by type if
    the edges and the nodes are.
    """
    return _compacted(csc_formats, unique_dst_nodes, _distinct)


def compact_csc_format(csc_formats: Any, dst_nodes: Any, *_: Any) -> tuple[Any, Any]:
    """As :func:`unique_and_compact_csc_formats`, but each row has a number of its own."""
    return _compacted(
        csc_formats, dst_nodes, lambda ids: (ids, torch.arange(len(ids), device=ids.device))
    )


def _compacted(csc_formats: Any, dst_nodes: Any, number: Callable[[Any], Any]) -> tuple[Any, Any]:
    is_typed = isinstance(csc_formats, dict)
    if is_typed != isinstance(dst_nodes, dict):
        raise BadArgument("nodes by type are needed for edges by type, and only for them")
    if not is_typed:
        nodes, (_, rows) = _numbered([dst_nodes, csc_formats.indices], number)
        return nodes, CSCFormatBase(csc_formats.indptr, rows)
    parts = {ntype: [ids] for ntype, ids in dst_nodes.items()}
    for key, csc in csc_formats.items():
        parts.setdefault(etype_str_to_tuple(key)[0], [csc.indices[:0]]).append(csc.indices)
    nodes, numbers = _numbered(parts, number)
    rest = {ntype: iter(each[1:]) for ntype, each in numbers.items()}
    return nodes, {
        key: CSCFormatBase(csc.indptr, next(rest[etype_str_to_tuple(key)[0]]))
        for key, csc in csc_formats.items()
    }


class MiniBatch(Batch):
    """What the stages of a pipeline read and fill."""

    seeds: Any  # nodes (N,) or edges (N, 2), or a dict of them by type
    labels: Any  # one for each seed
    indexes: Any  # which query a seed belongs to, as negative pairs to a positive one
    compacted_seeds: Any  # edges as positions of their nodes among the nodes of the last layer
    input_nodes: Any  # whose features the first layer reads; a dict if typed
    sampled_subgraphs: Any  # a SampledSubgraph for each layer, first layer first
    node_features: Any  # by name, or by (node type, name): a row for each input node
    edge_features: Any  # for each layer, by name or (edge type, name): a row for each edge
    FIELDS = (
        *("seeds", "sampled_subgraphs", "node_features", "labels", "input_nodes", "indexes"),
        *("edge_features", "compacted_seeds"),
    )
    SHOWN = (*FIELDS, "blocks")
    _NAME, _INDENT, _END = "MiniBatch", 10, 7
    #: Key of the epoch and number of the batch, which name its stream of random numbers.
    task: tuple[int, int] | None = None

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - set(self.FIELDS):
            raise BadType(f"a MiniBatch has no {sorted(unknown)}; it has {', '.join(self.FIELDS)}")
        vars(self).update({**dict.fromkeys(self.FIELDS), **values})

    def node_ids(self) -> Any:
        """Return the input nodes."""
        return self.input_nodes

    def num_layers(self) -> int:
        """Number of sampled layers."""
        return len(self.sampled_subgraphs or ())

    def edge_ids(self, layer_id: int) -> Any:
        """Return the edge IDs of a layer."""
        return self.sampled_subgraphs[layer_id].original_edge_ids

    def set_node_features(self, node_features: dict[Any, torch.Tensor]) -> None:
        """Set :attr:`node_features`."""
        self.node_features = node_features

    def set_edge_features(self, edge_features: list[dict[Any, torch.Tensor]]) -> None:
        """Set :attr:`edge_features`."""
        self.edge_features = edge_features

    def compute_blocks(self) -> list[Block] | None:
        """Return the layers as blocks of DGL, with IDs of nodes and edges as features."""
        if not self.sampled_subgraphs:
            return None
        return [layer.block() for layer in self.sampled_subgraphs]

    blocks = property(compute_blocks)

    def to_pyg_data(self) -> Any:
        """Return a ``torch_geometric.data.Data``; it needs a graph without types.

        ``x`` is the one feature of the input nodes, ``n_id`` (N,) their IDs, seeds first,
        ``edge_index`` (2, E) the edges of all layers without duplicates, ``y`` the labels, and
        ``batch_size`` the number of seeds.
        """
        from torch_geometric.data import Data

        features = list((self.node_features or {}).values())
        layers = self.sampled_subgraphs or []
        if isinstance(self.input_nodes, dict) or len(features) > 1:
            raise BadArgument("to_pyg_data() takes one node feature, of a graph without types")
        edges = [layer.sampled_csc for layer in layers]
        pairs = [torch.stack([csc.indices.long(), csc.columns()]) for csc in edges]
        return Data(
            x=features[0] if features else None,
            edge_index=torch.unique(torch.cat(pairs, 1), dim=1) if pairs else None,
            y=self.labels,
            batch_size=None if self.seeds is None else len(self.seeds),
            n_id=self.input_nodes,
        )
