"""``dgl.distributed``: what gnnlab.distributed has, and what only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.distributed need no entry.
_MODULES: dict[str, str] = {}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.distributed", _MODULES)
