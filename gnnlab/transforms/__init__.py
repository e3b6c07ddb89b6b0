"""Graph transforms: objects that can be passed to data sets and composed, and functions.

A transform is called with a graph and returns one. Those that only compute a feature write it into
the graph that they are given and return that; the others leave it as it is. Modules: ``structure``
changes edges and types, ``augment`` is random, ``diffusion`` weighs and scales, ``position``
encodes positions; ``functional``, ``points``, ``homophily`` and ``traversal`` have functions.

Examples
--------
>>> import gnnlab as dgl
>>> prepare = dgl.Compose([dgl.AddReverse(), dgl.ToSimple(), dgl.AddSelfLoop()])
>>> prepare(dgl.graph(([0, 0], [1, 1]))).num_edges()
4
"""

from gnnlab.errors import takes_graph
from gnnlab.transforms.augment import AddEdge, DropEdge, DropNode, FeatMask, NodeShuffle
from gnnlab.transforms.base import BaseTransform, Compose
from gnnlab.transforms.diffusion import (
    GDC,
    PPR,
    GCNNorm,
    HeatKernel,
    RowFeatNormalizer,
    SIGNDiffusion,
)
from gnnlab.transforms.functional import (
    adj_product_graph,
    adj_sum_graph,
    khop_adj,
    khop_graph,
    line_graph,
    metapath_reachable_graph,
    norm_by_dst,
    shortest_dist,
    slice_batch,
)
from gnnlab.transforms.homophily import (
    adjusted_homophily,
    edge_homophily,
    edge_label_informativeness,
    linkx_homophily,
    node_homophily,
)
from gnnlab.transforms.points import knn_graph, radius_graph, segmented_knn_graph
from gnnlab.transforms.position import (
    SVDPE,
    LaplacianPE,
    LapPE,
    RandomWalkPE,
    double_radius_node_labeling,
    lap_pe,
    laplacian_lambda_max,
    laplacian_pe,
    random_walk_pe,
    svd_pe,
)
from gnnlab.transforms.structure import (
    AddMetaPaths,
    AddReverse,
    AddSelfLoop,
    KHopGraph,
    LineGraph,
    RemoveSelfLoop,
    ToLevi,
    ToSimple,
)
from gnnlab.transforms.traversal import (
    bfs_edges_generator,
    bfs_nodes_generator,
    dfs_edges_generator,
    dfs_labeled_edges_generator,
    prop_edges,
    prop_edges_dfs,
    prop_nodes,
    prop_nodes_bfs,
    prop_nodes_topo,
    topological_nodes_generator,
)

__all__ = [
    "GDC",
    "PPR",
    "SVDPE",
    "AddEdge",
    "AddMetaPaths",
    "AddReverse",
    "AddSelfLoop",
    "BaseTransform",
    "Compose",
    "DropEdge",
    "DropNode",
    "FeatMask",
    "GCNNorm",
    "HeatKernel",
    "KHopGraph",
    "LapPE",
    "LaplacianPE",
    "LineGraph",
    "NodeShuffle",
    "RandomWalkPE",
    "RemoveSelfLoop",
    "RowFeatNormalizer",
    "SIGNDiffusion",
    "ToLevi",
    "ToSimple",
    "adj_product_graph",
    "adj_sum_graph",
    "adjusted_homophily",
    "bfs_edges_generator",
    "bfs_nodes_generator",
    "dfs_edges_generator",
    "dfs_labeled_edges_generator",
    "double_radius_node_labeling",
    "edge_homophily",
    "edge_label_informativeness",
    "khop_adj",
    "khop_graph",
    "knn_graph",
    "lap_pe",
    "laplacian_lambda_max",
    "laplacian_pe",
    "line_graph",
    "linkx_homophily",
    "metapath_reachable_graph",
    "node_homophily",
    "norm_by_dst",
    "prop_edges",
    "prop_edges_dfs",
    "prop_nodes",
    "prop_nodes_bfs",
    "prop_nodes_topo",
    "radius_graph",
    "random_walk_pe",
    "segmented_knn_graph",
    "shortest_dist",
    "slice_batch",
    "svd_pe",
    "topological_nodes_generator",
]

globals().update({name: takes_graph(globals()[name], __name__) for name in __all__})
