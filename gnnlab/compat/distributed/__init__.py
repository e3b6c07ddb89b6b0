"""``dgl.distributed``: what gnnlab.distributed has, and what only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.distributed need no entry.
_MODULES = {
    "gnnlab.distributed": "NodeEmbedding=DistEmbedding",
    "gnnlab.compat.distributed.dist_dataloader": "DistDataLoader DistEdgeDataLoader "
    "DistNodeDataLoader EdgeCollator NodeCollator",
    "gnnlab.compat.distributed.graph_partition_book": "EdgePartitionPolicy NodePartitionPolicy "
    "RangePartitionBook dgl_partition_to_graphbolt",
    "gnnlab.compat.distributed.role": "is_initialized",
    "gnnlab.compat.distributed.rpc": "DistConnectError Request Response get_machine_id "
    "get_num_client get_num_machines get_num_server get_num_server_per_client=get_num_server "
    "get_rank recv_response register_service remote_call send_request",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.distributed", _MODULES)
