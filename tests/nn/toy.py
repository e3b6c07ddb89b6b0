"""A small graph and a block, fixed parameters, and the dense matrices that layers are held to.

The toy graph (edge IDs in parentheses); node 2 has three in-edges, node 0 has one::

    0 ──(0)──> 1 <──(6)── 3          node 1: from 0, 3
    0 ──(1)──> 2 <──(3)── 3          node 2: from 0, 1, 3
    1 ──(2)──> 2 ──(4)──> 0          node 0: from 2
    1 ──(5)──> 3                     node 3: from 1

The toy block computes nodes 0 and 1 from nodes 0 … 3::

    2 ──(0)──> 0      0 ──(1)──> 1      3 ──(2)──> 1      1 ──(3)──> 1

Expected tensors beside ``DGL 2.1`` in the tests and those of ``dgl.json`` were computed by it on
this graph and this block, with features ``ramp(4, size)`` and parameters set by ``fill``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import gnnlab as dgl

# By layer and case: on the graph, on the graph with EDGE_WEIGHT, on the block.
OF_DGL: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("dgl.json").read_text())
EDGE_WEIGHT = torch.tensor([1.0, 2.0, 0.5, 1.0, 2.0, 1.0, 0.5])


def toy_graph() -> dgl.Graph:
    return dgl.graph(([0, 0, 1, 3, 2, 1, 3], [1, 2, 2, 2, 0, 3, 1]))


def toy_block() -> dgl.Block:
    return dgl.to_block(dgl.graph(([2, 0, 3, 1], [0, 1, 1, 1])), [0, 1])


def ramp(*shape: int, start: int = 0) -> Tensor:
    """Values -0.5 … 0.5 in steps of 0.1, well mixed and the same everywhere."""
    steps = torch.arange(math.prod(shape)) * 7 + 3 * start
    return ((steps % 11 - 5) / 10).reshape(shape)


def fill(layer: nn.Module) -> nn.Module:
    """Set every parameter to a ramp, in the order of their names."""
    with torch.no_grad():
        for start, (_, parameter) in enumerate(sorted(layer.named_parameters())):
            parameter.copy_(ramp(*parameter.shape, start=start))
    return layer


def random_graph(num_nodes: int = 9, num_edges: int = 25, seed: int = 0) -> dgl.Graph:
    """A graph with parallel edges; its last node has no in-edge."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(num_nodes, (num_edges,), generator=generator)
    dst = torch.randint(num_nodes - 1, (num_edges,), generator=generator)
    return dgl.graph((src, dst), num_nodes=num_nodes)


def random_block(num_nodes: int = 9, num_edges: int = 25, seed: int = 0) -> dgl.Block:
    """A block whose last destination has no in-edge."""
    graph = random_graph(num_nodes, num_edges, seed)
    src, dst = graph.edges()
    inside = dst < num_nodes // 2
    frontier = dgl.graph((src[inside], dst[inside]), num_nodes=num_nodes)
    return dgl.to_block(frontier, [*range(num_nodes // 2), num_nodes - 1])


def adjacency(graph: dgl.Graph, edge_weight: Tensor | None = None) -> Tensor:
    """The matrix A with A[v, u] = sum of the weights of the edges u -> v, in float64."""
    src, dst = graph.edges()
    if edge_weight is None:
        edge_weight = torch.ones(len(src))
    matrix = torch.zeros(graph.num_dst_nodes(), graph.num_src_nodes(), dtype=torch.float64)
    return matrix.index_put((dst.long(), src.long()), edge_weight.double(), accumulate=True)


def mean_adjacency(graph: dgl.Graph, edge_weight: Tensor | None = None) -> Tensor:
    """The matrix whose product with the rows is the mean over in-edges (0 without any)."""
    degrees = adjacency(graph).sum(1, keepdim=True)
    return adjacency(graph, edge_weight) / degrees.clamp(min=1)


def assert_close(found: Tensor, expected: Tensor | list) -> None:
    if not isinstance(expected, Tensor):
        expected = torch.tensor(expected)
    torch.testing.assert_close(found, expected.to(found.dtype), atol=1e-5, rtol=1e-5)
