"""gnnlab: graph neural networks from one device to many machines.

gnnlab implements DGL's API on current PyTorch: ``import gnnlab as dgl`` runs course code. Importing
it starts no thread, sets no environment variable and loads neither torch nor a compiler.
"""

from gnnlab.system import interrupt  # noqa: F401 (first: what follows takes seconds to load)

# isort: split
import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gnnlab.errors import (
    DGLError,
    GNNLabError,
    InvalidInput,
    NoAttribute,
    NotFound,
    OutOfRange,
    PartitionError,
    takes_graph,
)
from gnnlab.system.names import no_attribute

if TYPE_CHECKING:
    from gnnlab.graph.block import Block, to_block
    from gnnlab.graph.construct import graph, heterograph, rand_graph
    from gnnlab.graph.graph import Graph
    from gnnlab.graph.names import ALL, EID, ETYPE, NID, NTYPE
    from gnnlab.graph.neighbor import sample_neighbors
    from gnnlab.graph.subgraph import (
        edge_subgraph,
        edge_type_subgraph,
        in_subgraph,
        node_subgraph,
        node_type_subgraph,
        out_subgraph,
    )
    from gnnlab.random import seed

    DGLGraph = Graph
    DGLBlock = Block

__version__ = "0.1.0"

# Each module is imported when one of its names is first used: torch alone takes a second or two,
# which the commands, such as the launcher, do without.
_MODULES = {
    "gnnlab.dataloading": "set_dst_lazy_features set_edge_lazy_features "
    "set_node_lazy_features set_src_lazy_features",
    "gnnlab.graph.block": "Block to_block",
    "gnnlab.graph.construct": "graph heterograph rand_graph",
    "gnnlab.graph.graph": "Graph",
    "gnnlab.graph.names": "ALL EID ETYPE NID NTYPE",
    "gnnlab.graph.subgraph": "edge_subgraph edge_type_subgraph in_subgraph node_subgraph "
    "node_type_subgraph out_subgraph",
    "gnnlab.random": "seed",
    "gnnlab.sampling": "sample_neighbors",
    "gnnlab.graph.batch": "batch broadcast_edges broadcast_nodes unbatch",
    "gnnlab.graph.cast": "to_bfloat16 to_double to_float to_half",
    "gnnlab.graph.compact": "compact_graphs khop_in_subgraph khop_out_subgraph reorder_graph",
    "gnnlab.graph.convert": "bipartite_from_networkx bipartite_from_scipy from_networkx from_scipy",
    "gnnlab.graph.edit": "add_edges add_nodes append remove_edges remove_nodes",
    "gnnlab.graph.homogeneous": "as_heterograph as_immutable_graph to_heterogeneous to_homogeneous",
    "gnnlab.graph.io": "load_graphs save_graphs",
    "gnnlab.graph.readout": "max_edges max_nodes mean_edges mean_nodes readout_edges "
    "readout_nodes softmax_edges softmax_nodes sum_edges sum_nodes topk_edges topk_nodes",
    "gnnlab.graph.to_networkx": "to_networkx",
    "gnnlab.graph.simple": "to_bidirected to_simple",
    "gnnlab.graph.transform": "add_reverse_edges add_self_loop remove_self_loop reverse",
    "gnnlab.transforms": "AddReverse AddSelfLoop BaseTransform Compose RemoveSelfLoop ToSimple",
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names.split()}
_ALIASES = {"DGLBlock": "Block", "DGLGraph": "Graph"}
_SUBMODULES = [
    *("compat", "data", "dataloading", "distributed", "exercises", "function", "helpers"),
    *("kernels", "launch", "multiprocessing", "nn", "ops", "parallel", "partition", "plot", "pyg"),
    *("sampling", "simulate", "tools", "trace", "transforms"),
]


def __getattr__(name: str) -> Any:
    known = _ALIASES.get(name, name)
    if known in _LAZY:
        value = getattr(importlib.import_module(_LAZY[known]), known)
        globals()[name] = value = takes_graph(value, "gnnlab")
        return value
    if name in _SUBMODULES or name == "random":
        return importlib.import_module(f"gnnlab.{name}")
    raise no_attribute("gnnlab", name)


# DGL's guide has these names in ``sampling``; gnnlab has them in ``dataloading``.
_IN_SAMPLING = [
    *("DistDataLoader", "DistEdgeDataLoader", "DistNodeDataLoader"),
    *("MultiLayerNeighborSampler", "NodeDataLoader"),
]


class _Face(ModuleType):
    """Python sets each imported submodule as an attribute of its package; two are special."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "sampling":
            value.ELSEWHERE.update(dict.fromkeys(_IN_SAMPLING, "gnnlab.dataloading"))
        if name != "graph" or not isinstance(value, ModuleType):  # gnnlab.graph is the function
            super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        # cloudpickle knows ModuleType, not its subclasses; functions that use gnnlab refer to it.
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _Face


def __dir__() -> list[str]:
    return sorted({*globals(), *_ALIASES, *_LAZY, *_SUBMODULES})


__all__ = [
    "ALL",
    "EID",
    "ETYPE",
    "NID",
    "NTYPE",
    "Block",
    "DGLBlock",
    "DGLError",
    "DGLGraph",
    "GNNLabError",
    "Graph",
    "InvalidInput",
    "NoAttribute",
    "NotFound",
    "OutOfRange",
    "PartitionError",
    "edge_subgraph",
    "edge_type_subgraph",
    "graph",
    "heterograph",
    "in_subgraph",
    "node_subgraph",
    "node_type_subgraph",
    "out_subgraph",
    "rand_graph",
    "sample_neighbors",
    "seed",
    "to_block",
]
