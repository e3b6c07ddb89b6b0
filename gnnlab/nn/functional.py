"""Functions without parameters, under the name by which DGL code imports them."""

from gnnlab.ops import edge_softmax

__all__ = ["edge_softmax"]
