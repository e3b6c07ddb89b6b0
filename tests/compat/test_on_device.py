"""Transforms and walks of compat give on a GPU what they give on the CPU; layers: test_nn.py."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.compat import sampling, transforms
from tests.test_on_device import NUM_NODES, Case, compare, float64, graph

pytestmark = pytest.mark.gpu
__all__ = ["float64", "graph"]  # fixtures


def points(g: dgl.Graph) -> torch.Tensor:
    """No two are as far from a third: which of them a GPU would take first is not known."""
    return 1.3 ** torch.arange(NUM_NODES, dtype=torch.float64, device=g.device)[:, None]


def applied(name: str, *args: Any, **kwargs: Any) -> Case:
    return lambda g: getattr(transforms, name)(*args, **kwargs)(g)


def called(name: str, *args: Any, **kwargs: Any) -> Case:
    """The result of a function of a graph; numbers become tensors."""

    def run(g: dgl.Graph) -> Any:
        found = getattr(transforms, name)(g, *args, **kwargs)
        numbers = isinstance(found, float) or (
            isinstance(found, list) and isinstance(found[0], float)
        )
        return torch.tensor(found, device=g.device) if numbers else found

    return run


def labeled(name: str) -> Case:
    return lambda g: torch.tensor(
        getattr(transforms, name)(g, torch.arange(NUM_NODES, device=g.device) % 3), device=g.device
    )


def acyclic(g: dgl.Graph) -> dgl.Graph:
    """The edges that lead to a larger ID."""
    src, dst = g.edges()
    kept = dgl.graph((src[src < dst], dst[src < dst]), num_nodes=NUM_NODES)
    kept.ndata["x"] = g.ndata["x"]
    return kept


def propagated(name: str, *args: Any) -> Case:
    """Node features after messages in the order of a traversal; it changes the graph in place."""

    def run(g: dgl.Graph) -> Any:
        g = acyclic(g)
        getattr(transforms, name)(
            g, *args, dgl.function.copy_u("x", "m"), dgl.function.sum("m", "x")
        )
        return g

    return run


TRANSFORMS: dict[str, Case] = {
    name: applied(name) for name in ("NodeShuffle", "ToLevi", "GCNNorm", "RowFeatNormalizer")
}
TRANSFORMS |= {
    "AddEdge": applied("AddEdge", 0.2),
    "AddMetaPaths": applied("AddMetaPaths", {"twice": [("_N", "_E", "_N")] * 2}),
    "DropEdge": applied("DropEdge", 0.5),
    "DropNode": applied("DropNode", 0.5),
    "FeatMask": applied("FeatMask", 0.5, ["x"], ["e"]),
    "GDC": applied("GDC", [0.5, 0.3, 0.2], eps=0.01),
    "HeatKernel": applied("HeatKernel", eps=0.01),
    "KHopGraph": applied("KHopGraph", 2),
    "LapPE": lambda g: transforms.LapPE(2)(dgl.to_bidirected(g)),
    "LaplacianPE": lambda g: transforms.LaplacianPE(2)(dgl.to_bidirected(g)),
    "LineGraph": applied("LineGraph"),
    "PPR": applied("PPR", eps=0.01),
    "RandomWalkPE": applied("RandomWalkPE", 3),
    "SIGNDiffusion": applied("SIGNDiffusion", 2, "x"),
    "SVDPE": applied("SVDPE", 2, random_flip=False),
    "adj_product_graph": lambda g: transforms.adj_product_graph(*weighted(g), "w"),
    "adj_sum_graph": lambda g: transforms.adj_sum_graph(weighted(g), "w"),
    "khop_adj": called("khop_adj", 2),
    "khop_graph": called("khop_graph", 2),
    "knn_graph": lambda g: transforms.knn_graph(points(g), 3),
    "segmented_knn_graph": lambda g: transforms.segmented_knn_graph(points(g), 2, [4, 5]),
    "radius_graph": lambda g: transforms.radius_graph(g.ndata["x"], 2.0),
    "lap_pe": lambda g: transforms.lap_pe(dgl.to_bidirected(g), 2),
    "laplacian_pe": lambda g: transforms.laplacian_pe(dgl.to_bidirected(g), 2),
    "laplacian_lambda_max": lambda g: called("laplacian_lambda_max")(dgl.to_bidirected(g)),
    "random_walk_pe": called("random_walk_pe", 3),
    "svd_pe": called("svd_pe", 2, random_flip=False),
    "double_radius_node_labeling": called("double_radius_node_labeling", 0, 1),
    "line_graph": called("line_graph"),
    "metapath_reachable_graph": called("metapath_reachable_graph", ["_E", "_E"]),
    "norm_by_dst": called("norm_by_dst"),
    "shortest_dist": called("shortest_dist", return_paths=True),
    "slice_batch": lambda g: transforms.slice_batch(dgl.batch([g, g]), 1),
    "topological_nodes_generator": lambda g: transforms.topological_nodes_generator(acyclic(g)),
    "prop_nodes_topo": propagated("prop_nodes_topo"),
    "prop_nodes_bfs": propagated("prop_nodes_bfs", 0),
    "prop_edges_dfs": propagated("prop_edges_dfs", 0),
    "prop_nodes": propagated("prop_nodes", [[4, 5], [6]]),
    "prop_edges": propagated("prop_edges", [[0, 1], [2]]),
}
TRANSFORMS |= {
    name: called(name, 1)
    for name in (
        *("bfs_edges_generator", "bfs_nodes_generator", "dfs_edges_generator"),
        "dfs_labeled_edges_generator",
    )
}
TRANSFORMS |= {
    name: labeled(name)
    for name in (
        *("adjusted_homophily", "edge_homophily", "edge_label_informativeness"),
        *("linkx_homophily", "node_homophily"),
    )
}


def weighted(g: dgl.Graph) -> tuple[dgl.Graph, dgl.Graph]:
    """Two graphs without double edges whose edges have a weight."""
    g = dgl.to_simple(g, copy_ndata=False)
    g.edata["w"] = torch.arange(g.num_edges(), device=g.device) + 1.0
    return g, g


def test_no_transform_is_left_out() -> None:
    offered = {name: inspect.unwrap(getattr(transforms, name)) for name in dir(transforms)}
    places = {name: getattr(value, "__module__", "") for name, value in offered.items()}
    ours = "gnnlab.compat.transforms."
    assert {name for name, place in places.items() if place.startswith(ours)} == TRANSFORMS.keys()


WALKS: dict[str, Case] = {
    "node2vec_random_walk": lambda g: sampling.node2vec_random_walk(g, [4, 1], 0.5, 2.0, 5),
    "pack_traces": lambda g: sampling.pack_traces(*sampling.random_walk(g, [4, 1], length=5)),
}


@pytest.mark.parametrize("case", [*TRANSFORMS.values(), *WALKS.values()], ids=[*TRANSFORMS, *WALKS])
def test_as_on_the_cpu(case: Case, graph: dgl.Graph, float64: None) -> None:
    compare(case, graph)
