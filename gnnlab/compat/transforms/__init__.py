"""``dgl.transforms``: transforms as objects, and the functions that DGL has there too.

A transform is called with a graph and returns one. Those that only compute a feature write it into
the graph that they are given and return that; the others leave it as it is. Modules: ``structure``
changes nodes and types, ``augment`` is random, ``diffusion`` weighs and scales, ``position``
encodes positions; ``paths``, ``points``, ``homophily`` and ``traversal`` have functions.
"""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.transforms need no entry.
_MODULES = {
    "gnnlab.compat.partition": "metis_partition metis_partition_assignment "
    "partition_graph_with_halo",
    "gnnlab.compat.transforms.augment": "AddEdge DropEdge DropNode FeatMask NodeShuffle",
    "gnnlab.compat.transforms.diffusion": "GCNNorm GDC HeatKernel PPR RowFeatNormalizer "
    "SIGNDiffusion",
    "gnnlab.compat.transforms.homophily": "adjusted_homophily edge_homophily "
    "edge_label_informativeness linkx_homophily node_homophily",
    "gnnlab.compat.transforms.paths": "adj_product_graph adj_sum_graph khop_adj khop_graph "
    "line_graph metapath_reachable_graph norm_by_dst shortest_dist slice_batch",
    "gnnlab.compat.transforms.points": "knn_graph radius_graph segmented_knn_graph",
    "gnnlab.compat.transforms.position": "LapPE LaplacianPE RandomWalkPE SVDPE "
    "double_radius_node_labeling lap_pe laplacian_lambda_max laplacian_pe random_walk_pe svd_pe",
    "gnnlab.compat.transforms.structure": "AddMetaPaths KHopGraph LineGraph ToLevi",
    "gnnlab.compat.transforms.traversal": "bfs_edges_generator bfs_nodes_generator "
    "dfs_edges_generator dfs_labeled_edges_generator prop_edges prop_edges_dfs prop_nodes "
    "prop_nodes_bfs prop_nodes_topo topological_nodes_generator",
    "gnnlab": "add_edges add_nodes add_reverse_edges add_self_loop compact_graphs remove_edges "
    "remove_nodes remove_self_loop reorder_graph reverse to_bfloat16 to_bidirected to_block "
    "to_double to_float to_half to_simple",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.transforms", _MODULES)
