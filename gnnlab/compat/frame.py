"""``dgl.frame``: features of one type, how a feature is described, and its first rows."""

from gnnlab.compat.init import zero_initializer
from gnnlab.compat.methods import Scheme
from gnnlab.graph.frame import Frame

__all__ = ["Frame", "Scheme", "zero_initializer"]
