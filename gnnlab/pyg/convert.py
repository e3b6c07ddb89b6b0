"""Graphs of PyG as graphs of gnnlab, and back.

``from_pyg`` reads PyG's objects without importing PyG, so ``partition_graph`` accepts them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.construct import graph, heterograph
from gnnlab.graph.core import refuse_block
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import ONE_ETYPE, describe


def is_pyg(value: Any) -> bool:
    """Whether a value is a ``Data`` or a ``HeteroData`` of PyG."""
    return any(c.__module__.startswith("torch_geometric.data") for c in type(value).__mro__) and (
        hasattr(value, "edge_stores")
    )


def from_pyg(
    data: Any, names: Mapping[str, str] | None = None, only: Iterable[str] | None = None
) -> Graph:
    """Make a graph of a ``Data`` or ``HeteroData``.

    The types are those of a ``HeteroData``; for a ``Data``, one of nodes and one of edges. Edge k
    of the graph is column k of ``edge_index``. Feature tensors are shared, not copied. Attributes
    with one row per node or edge, by PyG's own rule, become features; others (a number of classes,
    text, ``edge_label_index``) are left out.

    Parameters
    ----------
    names : dict, optional
        Attribute → name of the feature where they differ, such as ``{"x": "feat", "y": "label"}``.
    only : list of str, optional
        The attributes to take; by default all.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.data import Data
    >>> from gnnlab.pyg import from_pyg
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    >>> g = from_pyg(data)
    >>> g.edges(), g.ndata["x"] is data.x
    ((tensor([0, 1, 2]), tensor([1, 2, 0])), True)
    """
    if not is_pyg(data):
        raise InvalidInput(
            f"from_pyg takes a Data or a HeteroData of PyG; found {type(data).__name__}"
        )
    typed = any(c.__name__ == "HeteroData" for c in type(data).__mro__)
    if typed:
        edges = {store._key: _edges(store, f"data[{store._key}]") for store in data.edge_stores}
        g = heterograph(edges, {store._key: store.num_nodes for store in data.node_stores})
    else:
        g = graph(_edges(data._store, "the Data"), num_nodes=data.num_nodes)
    wanted, names = None if only is None else set(only), names or {}
    for store in data.node_stores:
        found = _features(store, store.is_node_attr, wanted, names)
        g.nodes[store._key if typed else "_N"].data.update(found)
    for store in data.edge_stores:
        found = _features(store, store.is_edge_attr, wanted, names)
        g.edges[store._key if typed else ONE_ETYPE].data.update(found)
    return g


def _edges(store: Any, what: str) -> tuple[torch.Tensor, torch.Tensor]:
    if store._key is None and not {"edge_index", "adj_t", "adj"} & set(store.keys()):
        return torch.arange(0), torch.arange(0)
    if "edge_index" not in store:
        raise InvalidInput(
            f"{what} has no edge_index; found {describe(store.keys())}. Leave out ToSparseTensor, "
            "which replaces it by adj_t"
        )
    index = store["edge_index"]
    index = index.as_tensor() if hasattr(index, "as_tensor") else index  # PyG's EdgeIndex
    if index.ndim != 2 or len(index) != 2:
        raise InvalidInput(f"edge_index must have shape (2, E); found {tuple(index.shape)}")
    return index[0], index[1]


def _features(store: Any, belongs: Any, wanted: Any, names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in store.items():
        if name == "edge_index" or not (wanted is None or name in wanted):
            continue
        if not isinstance(value, torch.Tensor | np.ndarray) or not belongs(name):
            continue
        if store._parent().__cat_dim__(name, value, store) == 0:
            if (new := names.get(name, name)) in found:
                raise InvalidInput(f"two attributes would be the feature {new!r}; see names=")
            found[new] = value
    return found


def to_pyg(g: Graph, names: Mapping[str, str] | None = None) -> Any:
    """Make a ``Data``, or with several types a ``HeteroData``, of a graph.

    Column k of ``edge_index`` is edge k of the graph. Feature tensors are shared, not copied.

    Parameters
    ----------
    names : dict, optional
        Feature → attribute where they differ, such as ``{"feat": "x", "label": "y"}``.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from gnnlab.pyg import to_pyg
    >>> g = dgl.graph(([0, 1, 2], [1, 2, 0]))
    >>> g.ndata["feat"] = torch.eye(3)
    >>> to_pyg(g, {"feat": "x"})
    Data(x=[3, 3], edge_index=[2, 3], num_nodes=3)
    """
    from torch_geometric.data import Data, HeteroData

    if not isinstance(g, Graph):
        raise InvalidInput(
            f"to_pyg takes a Graph; found {type(g).__name__}. A graph in parts goes to "
            "gnnlab.pyg.NeighborLoader as it is"
        )
    refuse_block(g, "to_pyg")

    def attributes(frame: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {(names or {}).get(name, name): frame[name] for name in frame}

    def index(etype: Any) -> torch.Tensor:
        return torch.stack([end.long() for end in g.edges(etype=etype)])

    nodes, edges = g.node_frames(), g.edge_frames
    if list(edges) != [ONE_ETYPE]:
        data = HeteroData()
        for ntype, frame in nodes.items():
            data[ntype].update({**attributes(frame), "num_nodes": g.num_nodes(ntype)})
        for etype, frame in edges.items():
            data[etype].update({"edge_index": index(etype), **attributes(frame)})
        return data
    of_nodes, of_edges = attributes(nodes["_N"]), attributes(edges[ONE_ETYPE])
    if both := sorted(of_nodes.keys() & of_edges.keys()):
        raise InvalidInput(
            f"nodes and edges both have a feature {describe(both)}, and a Data has one attribute "
            "of a name: rename one in the graph first"
        )
    return Data(edge_index=index(ONE_ETYPE), num_nodes=g.num_nodes(), **of_nodes, **of_edges)
