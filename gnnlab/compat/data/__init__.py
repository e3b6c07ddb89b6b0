"""``dgl.data``: the data sets of gnnlab, and the base classes and data sets that only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.data need no entry.
_MODULES: dict[str, str] = {}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.data", _MODULES)
