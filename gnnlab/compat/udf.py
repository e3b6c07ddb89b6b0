"""``dgl.udf``: the arguments of user-defined message and reduce functions."""

from gnnlab.graph.message_passing import EdgeBatch, NodeBatch

__all__ = ["EdgeBatch", "NodeBatch"]
