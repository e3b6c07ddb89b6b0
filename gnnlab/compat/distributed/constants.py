"""Constants of ``dgl.distributed.constants``."""

from gnnlab.graph.names import ONE_ETYPE

DEFAULT_ETYPE = ONE_ETYPE

DEFAULT_NTYPE = "_N"
"""Node type of a graph with one node type that was given no name."""

MAX_QUEUE_SIZE = 20 * 1024**3
"""Bytes; `initialize` accepts it and has no use for it."""

SERVER_EXIT = "server_exit"
