"""``dgl.nn.pytorch.conv``: the same names as ``dgl.nn``."""

from gnnlab.compat import lazy

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.compat.nn")
