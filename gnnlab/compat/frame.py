"""``dgl.frame``: features of one type, and how a feature is described."""

from gnnlab.compat.methods import Scheme
from gnnlab.graph.frame import Frame

__all__ = ["Frame", "Scheme"]
