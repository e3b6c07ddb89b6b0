"""``dgl.nn.pytorch.conv``: the same names as ``dgl.nn``, and the error that its files import."""

from gnnlab.compat import lazy

_MODULES = {"gnnlab.errors": "DGLError"}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.compat.nn", _MODULES)
