"""Graph transforms: objects that can be passed to data sets and composed.

A transform is called with a graph and returns one; the graph that it is given stays as it is.
DGL's other transforms, and its functions of the same kind, are in ``gnnlab.compat.transforms``.

Examples
--------
>>> import gnnlab as dgl
>>> prepare = dgl.Compose([dgl.AddReverse(), dgl.ToSimple(), dgl.AddSelfLoop()])
>>> prepare(dgl.graph(([0, 0], [1, 1]))).num_edges()
4
"""

from typing import Any

from gnnlab.system.names import no_attribute
from gnnlab.transforms.base import BaseTransform, Compose
from gnnlab.transforms.structure import AddReverse, AddSelfLoop, RemoveSelfLoop, ToSimple

__all__ = ["AddReverse", "AddSelfLoop", "BaseTransform", "Compose", "RemoveSelfLoop", "ToSimple"]


def __getattr__(name: str) -> Any:
    raise no_attribute(__name__, name)
