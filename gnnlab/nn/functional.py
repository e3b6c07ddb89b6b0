"""Functions without parameters, under the module name that DGL code imports."""

from gnnlab.ops import edge_softmax

__all__ = ["edge_softmax"]
