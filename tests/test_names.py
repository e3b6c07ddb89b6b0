"""The names by which DGL's guide, tutorials and examples ask for things, old and new.

That they exist, tests/test_public_names.py tells, which reads ``NAMES``.
"""

from __future__ import annotations

import pickle
from importlib import import_module

import cloudpickle
import pytest

import gnnlab as dgl

NAMES = {
    "gnnlab": """
        graph heterograph to_block in_subgraph edge_subgraph compact_graphs remove_edges
        add_reverse_edges to_bidirected to_simple add_self_loop remove_self_loop as_heterograph
        to_bfloat16 broadcast_nodes NID EID NTYPE ETYPE DGLGraph DGLError AddSelfLoop
        add_nodes add_edges remove_nodes batch unbatch from_scipy from_networkx rand_graph
        node_subgraph out_subgraph node_type_subgraph edge_type_subgraph khop_in_subgraph
        to_homogeneous to_heterogeneous save_graphs load_graphs sum_nodes mean_nodes
        multiprocessing function sampling dataloading distributed nn data seed random
    """,
    "gnnlab.DGLGraph": """
        ndata edata srcdata dstdata nodes edges srcnodes dstnodes num_nodes number_of_nodes
        num_edges number_of_edges num_src_nodes num_dst_nodes number_of_src_nodes
        number_of_dst_nodes in_degrees out_degrees find_edges edge_ids all_edges has_edges_between
        in_edges out_edges successors predecessors apply_edges update_all multi_update_all
        local_scope local_var create_formats_ formats to int long device idtype is_block ntypes
        etypes canonical_etypes srctypes dsttypes get_ntype_id get_etype_id remove_edges subgraph
        edge_subgraph pin_memory_ sample_neighbors adj to_networkx
    """,
    "gnnlab.function": "copy_u copy_e u_mul_e u_add_v u_dot_v v_dot_u mean sum max min",
    "gnnlab.multiprocessing": "Process shared_tensor Queue spawn",
    "gnnlab.sampling": """
        sample_neighbors random_walk PinSAGESampler RandomWalkNeighborSampler NodeDataLoader
        MultiLayerNeighborSampler DistNodeDataLoader DistDataLoader
    """,
    "gnnlab.dataloading": """
        NodeDataLoader EdgeDataLoader DataLoader GraphDataLoader MultiLayerNeighborSampler
        NeighborSampler MultiLayerFullNeighborSampler BlockSampler Sampler
        as_edge_prediction_sampler negative_sampler.Uniform negative_sampler.GlobalUniform
        negative_sampler.PerSourceUniform DistNodeDataLoader DistDataLoader DistEdgeDataLoader
        set_src_lazy_features set_dst_lazy_features
        set_edge_lazy_features
    """,
    "gnnlab.distributed": """
        initialize exit_client DistGraph DistGraphServer DistTensor DistEmbedding SparseAdagrad
        optim.SparseAdagrad optim.SparseAdam node_split edge_split sample_neighbors
        sample_etype_neighbors in_subgraph find_edges DistDataLoader DistNodeDataLoader
        DistEdgeDataLoader partition_graph load_partition
        load_partition_book load_partition_feats GraphPartitionBook PartitionPolicy
    """,
    "gnnlab.distributed.DistGraph": """
        ndata edata nodes edges num_nodes num_edges number_of_nodes number_of_edges rank barrier
        get_partition_book get_node_partition_policy get_edge_partition_policy ntypes etypes
        canonical_etypes get_ntype_id get_etype_id idtype device find_edges in_degrees out_degrees
        edge_subgraph sample_neighbors local_partition
    """,
    "gnnlab.distributed.GraphPartitionBook": """
        partid2nids partid2eids nid2partid eid2partid nid2localnid eid2localeid metadata
        num_partitions map_to_per_ntype map_to_per_etype map_to_homo_nid map_to_homo_eid
    """,
    "gnnlab.nn": """
        SAGEConv GraphConv GATConv RelGraphConv HeteroGraphConv WeightBasis GINConv GINEConv
        SumPooling AvgPooling EdgePredictor
    """,
}


@pytest.mark.parametrize("place", ["gnnlab", "gnnlab.nn", "gnnlab.data", "gnnlab.sampling"])
def test_a_name_that_nobody_has_is_named(place: str) -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = import_module(place).nothing_of_that_name


def test_a_function_that_uses_the_package_can_be_pickled() -> None:
    """Ranks get functions of notebook cells so: cloudpickle takes their globals along."""
    spaces = [{"dgl": dgl}, {"__name__": "__main__", "dgl": dgl}]
    for space in spaces:
        exec("def make(): return dgl.graph(([0], [1])).num_edges()", space)
        assert pickle.loads(cloudpickle.dumps(space["make"]))() == 1
    assert pickle.loads(cloudpickle.dumps(dgl)) is dgl
