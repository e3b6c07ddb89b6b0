"""``dgl.transforms``: transforms as objects, and the functions that DGL has there too."""

from gnnlab.compat import lazy

_MODULES = {
    "gnnlab.compat.partition": "metis_partition metis_partition_assignment "
    "partition_graph_with_halo",
    "gnnlab": "add_edges add_nodes add_reverse_edges add_self_loop compact_graphs remove_edges "
    "remove_nodes remove_self_loop reorder_graph reverse to_bfloat16 to_bidirected to_block "
    "to_double to_float to_half to_simple",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.transforms", _MODULES)
