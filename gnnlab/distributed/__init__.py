"""One graph on many machines.

``initialize`` joins the job, ``DistGraph`` opens a partitioned graph, and its features are
``DistTensor``. In standalone mode one process holds all parts: the same program runs in a notebook.
"""

from gnnlab.distributed import optim, policies
from gnnlab.distributed.context import exit_client
from gnnlab.distributed.dataloader import DistDataLoader, DistEdgeDataLoader, DistNodeDataLoader
from gnnlab.distributed.embedding import DistEmbedding
from gnnlab.distributed.graph import DistGraph
from gnnlab.distributed.inclusion import inclusion_probabilities
from gnnlab.distributed.inference import full_neighbor_inference, original_order
from gnnlab.distributed.job_checkpoint import load_checkpoint, save_checkpoint, should_stop
from gnnlab.distributed.optim import SparseAdagrad, SparseAdam
from gnnlab.distributed.queries import find_edges
from gnnlab.distributed.sampling import in_subgraph, sample_etype_neighbors, sample_neighbors
from gnnlab.distributed.split import edge_split, node_split
from gnnlab.distributed.startup import DistGraphServer, initialize
from gnnlab.distributed.tensor import DistTensor
from gnnlab.errors import takes_graph
from gnnlab.partition import (
    GraphPartitionBook,
    PartitionPolicy,
    load_partition,
    load_partition_book,
    load_partition_feats,
    partition_graph,
)

__all__ = [
    "DistDataLoader",
    "DistEdgeDataLoader",
    "DistEmbedding",
    "DistGraph",
    "DistGraphServer",
    "DistNodeDataLoader",
    "DistTensor",
    "GraphPartitionBook",
    "PartitionPolicy",
    "SparseAdagrad",
    "SparseAdam",
    "edge_split",
    "exit_client",
    "find_edges",
    "full_neighbor_inference",
    "in_subgraph",
    "inclusion_probabilities",
    "initialize",
    "load_checkpoint",
    "load_partition",
    "load_partition_book",
    "load_partition_feats",
    "node_split",
    "optim",
    "original_order",
    "partition_graph",
    "policies",
    "sample_etype_neighbors",
    "sample_neighbors",
    "save_checkpoint",
    "should_stop",
]

globals().update(
    {
        name: takes_graph(globals()[name], __name__)
        for name in ("find_edges", "in_subgraph", "sample_etype_neighbors", "sample_neighbors")
    }
)
