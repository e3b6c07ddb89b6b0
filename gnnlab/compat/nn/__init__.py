"""``dgl.nn`` and ``dgl.nn.pytorch``: the layers of gnnlab and those that only DGL has."""

import sys

from gnnlab.compat import lazy

# Module → layers. Those of gnnlab.nn need no entry.
_MODULES: dict[str, str] = {}

pytorch = sys.modules[__name__]
__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.nn", _MODULES)
