"""DGL's module layout and old names over gnnlab, for programs that were written for DGL.

``import gnnlab.compat as dgl`` has all names of gnnlab, and those of DGL that gnnlab has given
another name or left out. ``import gnnlab.compat.as_dgl`` makes ``import dgl`` and ``import
dgl.nn.pytorch.conv`` work; ``python -m gnnlab.as_dgl script.py`` runs a program as it is.
docs/dgl.md lists what there is and what differs.

Graphs then have the methods that only DGL has (``methods.py``). No class of gnnlab changes, and
gnnlab itself never imports this package.
"""

import sys

from gnnlab.compat import lazy, transforms
from gnnlab.compat.methods import DGLGraph

__version__ = "2.3.0"
"""Release of DGL whose names are here; programs compare it. gnnlab's is gnnlab.__version__."""

# Module → names. Those of gnnlab need no entry.
_MODULES = {
    "gnnlab.compat.base": "base_initializer=zero_initializer dgl_warning is_all zero_initializer",
    "gnnlab.compat.dglfile": "load_graphs",
    "gnnlab.compat.functions": "bipartite block_to_graph broadcast_edges broadcast_nodes "
    "create_block hetero_from_relations merge rand_bipartite rand_graph",
    "gnnlab.compat.utils": "apply_each=recursive_apply",
    "gnnlab.compat.methods": "Scheme",
    "gnnlab.graph.frame": "Frame",
    "gnnlab.graph.message_passing": "EdgeBatch NodeBatch",
    "gnnlab.sampling": "global_uniform_negative_sampling",
}
# What only DGL has among the transforms is in dgl, too.
_MODULES |= {m: ns for m, ns in transforms._MODULES.items() if m.startswith("gnnlab.compat")}
DGLHeteroGraph = DGLGraph
# Functions with the name of a module of DGL.
_FUNCTIONS = {"batch", "graph", "heterograph", "merge"}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab", _MODULES)
sys.modules[__name__].__class__ = lazy.Face
