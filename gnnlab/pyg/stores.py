"""Stores: how PyG's loaders read features and edges that are not in a ``Data``.

PyG's remote backend is a pair (feature store, graph store). These two read a graph, or a graph in
parts; rows of several features are then fetched in one round trip to each machine.

References
----------
PyG's documentation, "Scaling Up GNNs via Remote Backends".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch_geometric.data as pyg
from torch_geometric.data.graph_store import EdgeLayout

from gnnlab.distributed.graph import DistGraph
from gnnlab.errors import InvalidInput, NotFound, check_graph
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.frame import Frame, as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import ONE_ETYPE, describe


def is_typed(g: Graph | DistGraph) -> bool:
    """Whether PyG sees the graph as a ``HeteroData``: it has types, or a type with a name."""
    return list(g.edge_frames) != [ONE_ETYPE]


class FeatureStore(pyg.FeatureStore):
    """The features of a graph as a feature store of PyG.

    The group of a node feature is its node type, that of an edge feature its edge type; on a graph
    without types both are None, and an edge feature is found where no node feature has its name.

    Parameters
    ----------
    names : list of str, optional
        Node features that mini-batches have; by default all. On a graph in parts, each costs bytes.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from gnnlab.pyg import FeatureStore
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> g.ndata["x"] = torch.arange(3.0)
    >>> store = FeatureStore(g)
    >>> store[None, "x", torch.tensor([2, 0])]
    tensor([2., 0.])
    """

    def __init__(self, g: Graph | DistGraph, names: Sequence[str] | None = None) -> None:
        check_graph(g, type(self).__name__)
        super().__init__()
        self.graph, self.names = g, names

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors of this process whose rows mini-batches have."""
        frames = [*self.graph.node_frames().values(), *self.graph.edge_frames.values()]
        return [
            frame[name]
            for frame in frames
            if isinstance(frame, Frame)
            for name in frame
            if frame.what == "edge" or self.names is None or name in self.names
        ]

    def frame(self, attr: Any) -> Any:
        """Return the frame (of a node type or an edge type) that holds an attribute."""
        nodes, edges = self.graph.node_frames(), self.graph.edge_frames
        if not is_typed(self.graph):
            (of_nodes,), (of_edges,) = nodes.values(), edges.values()
            is_edge = attr.group_name == ONE_ETYPE or attr.attr_name not in of_nodes
            return of_edges if is_edge and attr.attr_name in of_edges else of_nodes
        frames: dict[Any, Any] = {**nodes, **edges}
        if attr.group_name not in frames:
            raise NotFound(f"no type {attr.group_name!r}; there are {describe(frames)}")
        return frames[attr.group_name]

    def _get_tensor(self, attr: Any) -> torch.Tensor:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[Any]) -> list[torch.Tensor]:
        wanted = [(attr.attr_name, self.frame(attr), attr.index) for attr in attrs]
        if isinstance(self.graph, DistGraph):
            found = self.graph.client.pull_many(
                [(frame.policy, frame[name].name, _rows(i, frame)) for name, frame, i in wanted]
            )
        else:
            found = [
                frame[name] if i is None else frame.gather(name, _rows(i, frame))
                for name, frame, i in wanted
            ]
        return [x[0] if isinstance(a.index, int) else x for x, a in zip(found, attrs, strict=True)]

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...]:
        return tuple(self.frame(attr)[attr.attr_name].shape)

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        frame, value = self.frame(attr), as_tensor(tensor)
        if attr.index is None:
            frame[attr.attr_name] = value
        else:
            frame[attr.attr_name][_rows(attr.index, frame)] = value
        return True

    def _remove_tensor(self, attr: Any) -> bool:
        del self.frame(attr)[attr.attr_name]
        return True

    def get_all_tensor_attrs(self) -> list[Any]:
        """Return the node features, which PyG's loaders read for each mini-batch."""
        typed = is_typed(self.graph)
        return [
            pyg.TensorAttr(group_name=ntype if typed else None, attr_name=name)
            for ntype, frame in self.graph.node_frames().items()
            for name in frame
            if self.names is None or name in self.names
        ]


def _rows(index: Any, frame: Any) -> torch.Tensor:
    if index is None or isinstance(index, slice):
        return torch.arange(frame.num_rows)[index or slice(None)]
    ids = torch.as_tensor(index).reshape(-1)
    return ids.nonzero().flatten() if ids.dtype is torch.bool else ids.long()


class GraphStore(pyg.GraphStore):
    """The edges of a graph as a graph store of PyG, which cannot be changed.

    The edges of a graph in parts are in no one place: only the sampler reads them.
    """

    def __init__(self, g: Graph | DistGraph) -> None:
        check_graph(g, type(self).__name__)
        super().__init__()
        self.graph = g

    def get_all_edge_attrs(self) -> list[Any]:
        """Return type, layout and size of the edges of each type."""
        g, layout = self.graph, EdgeLayout.COO
        typed, sizes = is_typed(g), {e: tuple(map(g.num_nodes, e[::2])) for e in g.canonical_etypes}
        return [pyg.EdgeAttr(e if typed else None, layout, size=size) for e, size in sizes.items()]

    def _get_edge_index(self, edge_attr: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
        if edge_attr.layout != EdgeLayout.COO:
            return None  # PyG makes other layouts of it
        if isinstance(self.graph, DistGraph):
            raise InvalidInput(
                "the edges of a DistGraph are never in one place: take a mini-batch with "
                "gnnlab.pyg.NeighborLoader, or some edges with g.find_edges(ids)"
            )
        src, dst = self.graph.edges(etype=edge_attr.edge_type)
        return src.long(), dst.long()

    def _put_edge_index(self, *_: Any) -> bool:
        raise InvalidInput(
            "the edges of this store cannot be changed: make another graph, for example with "
            "gnnlab.add_edges, and a store of it"
        )

    _remove_edge_index = _put_edge_index


def graph_of_stores(features: Any, edges: Any, weight_attr: str | None = None) -> Graph:
    """Make a graph of the edges of a graph store, and of their weights alone of the features."""
    rows, cols, _ = edges.coo()
    attrs = edges.get_all_edge_attrs()
    ends = {attrs[0].edge_type: (rows, cols)}
    if isinstance(rows, dict):
        ends = {etype: (row, cols[etype]) for etype, row in rows.items()}
    sizes: dict[Any, int] = {}
    for attr in features.get_all_tensor_attrs():
        if not isinstance(attr.group_name, tuple):
            size = features.get_tensor_size(attr)
            sizes[attr.group_name] = max(sizes.get(attr.group_name, 0), size[0] if size else 0)
    for attr in attrs:
        given = attr.size or [int(end.max()) + 1 if len(end) else 0 for end in ends[attr.edge_type]]
        ntypes = attr.edge_type[::2] if attr.edge_type else (None, None)
        for ntype, size in zip(ntypes, given, strict=True):
            sizes[ntype] = max(sizes.get(ntype, 0), size or 0)
    typed = None not in ends
    g = heterograph(ends, sizes) if typed else graph(ends[None], num_nodes=sizes[None])
    if weight_attr is not None:
        for etype, frame in g.edge_frames.items():
            group = etype if typed else None
            frame[weight_attr] = features.get_tensor(group, attr_name=weight_attr, index=None)
    return g.cpu()
