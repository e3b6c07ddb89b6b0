"""A mini-batch on its way through a pipeline, and the sampled layers in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch

from gnnlab.compat.functions import create_block
from gnnlab.errors import InvalidInput
from gnnlab.graph.block import Block
from gnnlab.graph.names import EID, NID

__all__ = ["CSCFormatBase", "MiniBatch", "SampledSubgraph", "SampledSubgraphImpl"]
__all__ += ["add_reverse_edges", "etype_str_to_tuple", "etype_tuple_to_str", "unique_and_compact"]
__all__ += ["compact_csc_format", "unique_and_compact_csc_formats"]


def etype_tuple_to_str(c_etype: tuple[str, str, str]) -> str:
    """Return ``"user:likes:item"`` for ``("user", "likes", "item")``."""
    if not isinstance(c_etype, tuple) or len(c_etype) != 3:
        raise InvalidInput(f"an edge type is a triple of names; found {c_etype!r}")
    return ":".join(c_etype)


def etype_str_to_tuple(c_etype: str) -> tuple[str, str, str]:
    """Return ``("user", "likes", "item")`` for ``"user:likes:item"``."""
    names = tuple(c_etype.split(":"))
    if len(names) != 3:
        raise InvalidInput(f"an edge type is written 'source:relation:target'; found {c_etype!r}")
    return names


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Apply ``change`` to what stands in dicts, lists and tuples, and return these anew."""
    if isinstance(value, Mapping):
        return {name: mapped(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mapped(each, change) for each in value)
    return change(value)


def _moved(value: Any, device: Any, non_blocking: bool) -> Any:
    def move(each: Any) -> Any:
        if isinstance(each, torch.Tensor):
            return each.to(device, non_blocking=non_blocking)
        return each.to(device) if hasattr(each, "to") else each

    return mapped(value, move)


class _Movable:
    """What has tensors in its fields, in dicts, lists and tuples of them."""

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        """Return a copy whose tensors are on a device."""
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        moved = {name: _moved(getattr(self, name), device, non_blocking) for name in names}
        return replace(self, **moved)  # type: ignore[type-var]

    def pin_memory(self) -> Any:
        """Return a copy whose tensors are in pinned memory."""
        names = [each.name for each in fields(self)]  # type: ignore[arg-type]
        pinned = {name: mapped(getattr(self, name), _pinned) for name in names}
        return replace(self, **pinned)  # type: ignore[type-var]

    def is_pinned(self) -> bool:
        """Whether all tensors are in pinned memory."""
        found: list[bool] = []

        def look(each: Any) -> None:
            if isinstance(each, torch.Tensor | _Movable):
                found.append(each.is_pinned())

        for each in fields(self):  # type: ignore[arg-type]
            mapped(getattr(self, each.name), look)
        return bool(found) and all(found)


def _pinned(each: Any) -> Any:
    return each.pin_memory() if isinstance(each, torch.Tensor | _Movable) else each


@dataclass
class CSCFormatBase(_Movable):
    """In-edges of each column: column v has the rows ``indices[indptr[v]:indptr[v + 1]]``.

    Attributes
    ----------
    indptr, indices : torch.Tensor
        Shapes (columns + 1,) and (E,).
    """

    indptr: torch.Tensor
    indices: torch.Tensor

    def __post_init__(self) -> None:
        if self.indptr.numel() and int(self.indptr[-1]) != len(self.indices):
            raise InvalidInput(
                f"indptr ends at {int(self.indptr[-1])}, but there are {len(self.indices)} indices"
            )

    def columns(self) -> torch.Tensor:
        """Column of each edge, shape (E,)."""
        numbers = torch.arange(len(self.indptr) - 1, device=self.indptr.device)
        return torch.repeat_interleave(numbers, torch.diff(self.indptr))


@dataclass
class SampledSubgraph(_Movable):
    """The edges of one layer. Each attribute is a dict by type where the graph has types.

    Attributes
    ----------
    sampled_csc : CSCFormatBase, or dict by edge type
        Columns and rows are numbered within the layer.
    original_column_node_ids, original_row_node_ids, original_edge_ids : tensor or dict, optional
        Their IDs in the graph.
    """

    sampled_csc: Any
    original_column_node_ids: Any = None
    original_row_node_ids: Any = None
    original_edge_ids: Any = None

    def exclude_edges(self, edges: Any, **options: Any) -> SampledSubgraph:
        """Return the layer without some edges.

        Parameters
        ----------
        edges : torch.Tensor, or dict by edge type
            Shape (K, 2): source and destination of each, by their IDs in the graph.
        """
        if not isinstance(self.sampled_csc, dict):
            found = self._without("", edges)
            return replace(self, sampled_csc=found[0], original_edge_ids=found[1])
        csc, ids = dict(self.sampled_csc), dict(self.original_edge_ids or {})
        for etype, pairs in edges.items():
            if etype in csc:
                csc[etype], left = self._without(etype, pairs)
                if etype in ids:
                    ids[etype] = left
        return replace(self, sampled_csc=csc, original_edge_ids=ids or None)

    def _without(self, etype: str, pairs: torch.Tensor) -> tuple[CSCFormatBase, Any]:
        csc = self.sampled_csc[etype] if etype else self.sampled_csc
        ids = self.original_edge_ids
        ids = ids.get(etype) if etype and ids else ids
        source, _, target = etype_str_to_tuple(etype) if etype else ("", "", "")
        rows = _of_type(self.original_row_node_ids, source, csc.indices)
        columns = _of_type(self.original_column_node_ids, target, csc.columns())
        width = 1 + max([int(x.max()) for x in (columns, pairs[:, 1]) if len(x)], default=0)
        is_kept = ~torch.isin(rows * width + columns, pairs[:, 0] * width + pairs[:, 1])
        before = torch.nn.functional.pad(torch.cumsum(is_kept, 0), (1, 0))
        csc = CSCFormatBase(before[csc.indptr], csc.indices[is_kept])
        return csc, None if ids is None else ids[is_kept]


SampledSubgraphImpl = SampledSubgraph


def _of_type(ids: Any, ntype: str, local: torch.Tensor) -> torch.Tensor:
    """Return the IDs in the graph of nodes of a layer."""
    ids = ids.get(ntype) if isinstance(ids, dict) else ids
    return local if ids is None else ids[local.long()]


def add_reverse_edges(edges: Any, reverse_etypes_mapping: Mapping[str, str] | None = None) -> Any:
    """Return edges (K, 2) with each of them also the other way; by type, as the type named."""
    if isinstance(edges, torch.Tensor):
        return torch.cat([edges, edges.flip(1)])
    found = dict(edges)
    for etype, back in (reverse_etypes_mapping or {}).items():
        if etype in edges:
            others = [found[back]] if back in found else []
            found[back] = torch.cat([*others, edges[etype].flip(1)])
    return found


def unique_and_compact(nodes: Any, *_: Any) -> tuple[Any, Any]:
    """Number the nodes of some tensors together, in the order in which they first appear.

    Parameters
    ----------
    nodes : list of torch.Tensor, or dict by node type of such lists

    Returns
    -------
    tuple
        The distinct nodes, and the tensors with the new numbers; dicts for a dict.

    Examples
    --------
    >>> import gnnlab.compat.graphbolt as gb, torch
    >>> gb.unique_and_compact([torch.tensor([7, 3]), torch.tensor([3, 5])])
    (tensor([7, 3, 5]), [tensor([0, 1]), tensor([1, 2])])
    """
    if isinstance(nodes, dict):
        pairs = {ntype: unique_and_compact(each) for ntype, each in nodes.items()}
        return {n: pair[0] for n, pair in pairs.items()}, {n: pair[1] for n, pair in pairs.items()}
    together = torch.cat(list(nodes))
    known, at = torch.unique(together, return_inverse=True)
    first = torch.full((len(known),), len(together), device=together.device)
    first.scatter_reduce_(0, at, torch.arange(len(together), device=together.device), "amin")
    order = torch.argsort(first)
    new = torch.empty_like(order)
    new[order] = torch.arange(len(order), device=order.device)
    return known[order], list(new[at].split([len(each) for each in nodes]))


def unique_and_compact_csc_formats(
    csc_formats: Any, unique_dst_nodes: Any, *_: Any
) -> tuple[Any, Any]:
    """Number the rows of sampled edges; the columns' nodes come first.

    Parameters
    ----------
    csc_formats : CSCFormatBase, or dict by edge type
        Rows are IDs in the graph.
    unique_dst_nodes : torch.Tensor, or dict by node type
        Nodes of the columns.

    Returns
    -------
    tuple
        The nodes of the rows, and the edges with rows numbered as they stand there.
    """
    if not isinstance(csc_formats, dict):
        nodes, (_, rows) = unique_and_compact([unique_dst_nodes, csc_formats.indices])
        return nodes, CSCFormatBase(csc_formats.indptr, rows)
    parts = {ntype: [ids] for ntype, ids in unique_dst_nodes.items()}
    for etype, csc in csc_formats.items():
        ntype = etype_str_to_tuple(etype)[0]
        parts.setdefault(ntype, [csc.indices[:0]]).append(csc.indices)
    nodes, numbers = unique_and_compact(parts)
    rest = {ntype: iter(each[1:]) for ntype, each in numbers.items()}
    found = {
        etype: CSCFormatBase(csc.indptr, next(rest[etype_str_to_tuple(etype)[0]]))
        for etype, csc in csc_formats.items()
    }
    return nodes, found


def compact_csc_format(csc_formats: Any, dst_nodes: Any, *_: Any) -> tuple[Any, Any]:
    """As :func:`unique_and_compact_csc_formats`, but each row has a number of its own."""

    def own(nodes: torch.Tensor, parts: list[torch.Tensor]) -> tuple[torch.Tensor, list[Any]]:
        count, numbers = len(nodes), []
        for part in parts:
            numbers.append(torch.arange(count, count + len(part), device=part.device))
            count += len(part)
        return torch.cat([nodes, *parts]), numbers

    if not isinstance(csc_formats, dict):
        nodes, (rows,) = own(dst_nodes, [csc_formats.indices])
        return nodes, CSCFormatBase(csc_formats.indptr, rows)
    found, all_nodes = {}, dict(dst_nodes)
    for etype, csc in csc_formats.items():
        ntype = etype_str_to_tuple(etype)[0]
        before = all_nodes.get(ntype, csc.indices[:0])
        all_nodes[ntype], (rows,) = own(before, [csc.indices])
        found[etype] = CSCFormatBase(csc.indptr, rows)
    return all_nodes, found


@dataclass
class MiniBatch(_Movable):
    """What the stages of a pipeline read and fill.

    Attributes
    ----------
    seeds : tensor (N,) of nodes or (N, 2) of edges, or dict of them by type
    labels, indexes : tensor or dict, optional
        A label for each seed, and which query it belongs to, as negative pairs to a positive one.
    compacted_seeds : tensor or dict
        Edges of ``seeds`` as positions of their nodes among the output nodes of the last layer.
    input_nodes : tensor, or dict by node type
        Nodes whose features the first layer reads.
    sampled_subgraphs : list of SampledSubgraph
        One for each layer, first layer first.
    node_features : dict
        By name, or by (node type, name): a row for each input node.
    edge_features : list of dict
        For each layer, by name or by (edge type, name): a row for each edge.
    """

    seeds: Any = None
    labels: Any = None
    indexes: Any = None
    sampled_subgraphs: list[SampledSubgraph] | None = None
    input_nodes: Any = None
    node_features: dict[Any, torch.Tensor] | None = None
    edge_features: list[dict[Any, torch.Tensor]] | None = None
    compacted_seeds: Any = None
    _blocks: list[Block] | None = None
    #: Key of the epoch and number of the batch, which name its stream of random numbers.
    _task: tuple[int, int] | None = field(default=None, repr=False)

    def node_ids(self) -> Any:
        """Return the input nodes."""
        return self.input_nodes

    def num_layers(self) -> int:
        """Number of sampled layers."""
        return len(self.sampled_subgraphs or ())

    def edge_ids(self, layer_id: int) -> Any:
        """Return the edge IDs of a layer."""
        return (self.sampled_subgraphs or [])[layer_id].original_edge_ids

    def set_node_features(self, node_features: dict[Any, torch.Tensor]) -> None:
        """Set :attr:`node_features`."""
        self.node_features = node_features

    def set_edge_features(self, edge_features: list[dict[Any, torch.Tensor]]) -> None:
        """Set :attr:`edge_features`."""
        self.edge_features = edge_features

    @property
    def blocks(self) -> list[Block]:
        """The layers as blocks of DGL, with the IDs of their nodes and edges as features."""
        if self._blocks is None:
            self._blocks = self.compute_blocks()
        return self._blocks

    def compute_blocks(self) -> list[Block]:
        """Make :attr:`blocks`."""
        return [_block(layer) for layer in self.sampled_subgraphs or ()]

    def to_pyg_data(self) -> Any:
        """Return the mini-batch as a ``Data`` of PyG, for graphs without types and node tasks."""
        from torch_geometric.data import Data

        if isinstance(self.sampled_subgraphs[0].sampled_csc, dict):  # type: ignore[index]
            raise InvalidInput("to_pyg_data is for graphs without types")
        parts = [
            torch.stack([layer.sampled_csc.indices, layer.sampled_csc.columns()])
            for layer in self.sampled_subgraphs or ()
        ]
        features = list((self.node_features or {}).values())
        return Data(
            x=torch.cat(features, 1) if features else None,
            edge_index=torch.unique(torch.cat(parts, 1), dim=1),
            y=self.labels,
            batch_size=len(self.seeds),
            n_id=self.node_ids(),
        )

    def __repr__(self) -> str:
        lines = []
        for each in sorted(part.name for part in fields(self)):
            if not each.startswith("_"):
                value = repr(getattr(self, each)).replace("\n", "\n" + " " * (len(each) + 11))
                lines.append(f"{each}={value},")
        return "MiniBatch(" + ("\n" + " " * 10).join(lines) + f"\n{' ' * 9})"


def _block(layer: SampledSubgraph) -> Block:
    rows, columns = layer.original_row_node_ids, layer.original_column_node_ids
    ids = layer.original_edge_ids
    if isinstance(layer.sampled_csc, dict):
        edges: dict[Any, Any] = {
            etype_str_to_tuple(etype): ("csc", (csc.indptr, csc.indices, []))
            for etype, csc in layer.sampled_csc.items()
        }
        num_src, num_dst = ({n: len(x) for n, x in side.items()} for side in (rows, columns))
        block = create_block(edges, num_src, num_dst)
        for ntype in block.srctypes:
            block.srcnodes[ntype].data[NID] = rows[ntype]
        for ntype in block.dsttypes:
            block.dstnodes[ntype].data[NID] = columns[ntype]
        for etype, each in (ids or {}).items():
            block.edges[etype_str_to_tuple(etype)].data[EID] = each
        return block
    csc = layer.sampled_csc
    block = create_block(("csc", (csc.indptr, csc.indices, [])), len(rows), len(columns))
    block.srcdata[NID], block.dstdata[NID] = rows, columns
    if ids is not None:
        block.edata[EID] = ids
    return block
