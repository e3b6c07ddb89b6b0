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


SEARCHES = ("bfs_edge", "bfs_node", "dfs_edge", "dfs_labeled_edge")
MEASURES = """adjusted_homophily edge_homophily edge_label_informativeness linkx_homophily
    node_homophily"""
APPLIED: dict[str, Any] = dict.fromkeys(("NodeShuffle", "ToLevi", "GCNNorm", "LineGraph"), ())
APPLIED |= {"RowFeatNormalizer": (), "AddEdge": (0.2,), "DropEdge": (0.5,), "DropNode": (0.5,)}
APPLIED |= {"AddMetaPaths": ({"twice": [("_N", "_E", "_N")] * 2},), "KHopGraph": (2,)}
APPLIED |= {"FeatMask": (0.5, ["x"], ["e"]), "RandomWalkPE": (3,), "SIGNDiffusion": (2, "x")}
CALLED: dict[str, Any] = {"khop_adj": (2,), "khop_graph": (2,), "random_walk_pe": (3,)}
CALLED |= {"double_radius_node_labeling": (0, 1), "metapath_reachable_graph": (["_E", "_E"],)}
CALLED |= {"line_graph": (), "norm_by_dst": (), "shortest_dist": (None, True)}
CALLED |= dict.fromkeys([f"{kind}s_generator" for kind in SEARCHES], (1,))
TRANSFORMS: dict[str, Case] = {name: applied(name, *args) for name, args in APPLIED.items()}
TRANSFORMS |= {name: called(name, *args) for name, args in CALLED.items()}
TRANSFORMS |= {name: labeled(name) for name in MEASURES.split()}
TRANSFORMS |= {
    "GDC": applied("GDC", [0.5, 0.3, 0.2], eps=0.01),
    "HeatKernel": applied("HeatKernel", eps=0.01),
    "PPR": applied("PPR", eps=0.01),
    "LapPE": lambda g: transforms.LapPE(2)(dgl.to_bidirected(g)),
    "LaplacianPE": lambda g: transforms.LaplacianPE(2)(dgl.to_bidirected(g)),
    "SVDPE": applied("SVDPE", 2, random_flip=False),
    "adj_product_graph": lambda g: transforms.adj_product_graph(*weighted(g), "w"),
    "adj_sum_graph": lambda g: transforms.adj_sum_graph(weighted(g), "w"),
    "knn_graph": lambda g: transforms.knn_graph(points(g), 3),
    "segmented_knn_graph": lambda g: transforms.segmented_knn_graph(points(g), 2, [4, 5]),
    "radius_graph": lambda g: transforms.radius_graph(g.ndata["x"], 2.0),
    "lap_pe": lambda g: transforms.lap_pe(dgl.to_bidirected(g), 2),
    "laplacian_pe": lambda g: transforms.laplacian_pe(dgl.to_bidirected(g), 2),
    "laplacian_lambda_max": lambda g: called("laplacian_lambda_max")(dgl.to_bidirected(g)),
    "svd_pe": called("svd_pe", 2, random_flip=False),
    "slice_batch": lambda g: transforms.slice_batch(dgl.batch([g, g]), 1),
    "topological_nodes_generator": lambda g: transforms.topological_nodes_generator(acyclic(g)),
    "prop_nodes_topo": propagated("prop_nodes_topo"),
    "prop_nodes_bfs": propagated("prop_nodes_bfs", 0),
    "prop_edges_dfs": propagated("prop_edges_dfs", 0),
    "prop_nodes": propagated("prop_nodes", [[4, 5], [6]]),
    "prop_edges": propagated("prop_edges", [[0, 1], [2]]),
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
