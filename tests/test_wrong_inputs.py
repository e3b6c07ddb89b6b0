"""What beginners get wrong: each input, the kind of its error, and a phrase of the remedy."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import gnnlab as dgl
import gnnlab.function as fn
from gnnlab import errors
from gnnlab.dataloading import DataLoader, NeighborSampler
from gnnlab.errors import (
    GNNLabError,
    InvalidInput,
    NoAttribute,
    NotFound,
    OutOfRange,
    PartitionError,
)
from gnnlab.nn import GATConv, GINConv, GraphConv, HeteroGraphConv, RelGraphConv, SAGEConv
from gnnlab.simulate import Network, Simulation
from tests.helpers import run_script

N, D = 8, 5


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A ring of 8 nodes with two edges into each, alone, typed, in blocks and in two parts."""
    ring = torch.arange(N)
    g = dgl.graph((torch.cat([ring, ring]), torch.cat([(ring + 1) % N, (ring + 2) % N])))
    x = torch.ones(N, D)
    g.ndata["feat"], g.edata["w"] = x, torch.ones(2 * N)
    typed = dgl.heterograph(
        {
            ("user", "follows", "user"): ([0, 1, 2], [1, 2, 0]),
            ("user", "plays", "game"): ([0, 1, 2], [0, 0, 1]),
        }
    )
    folder = Path(tmp_path_factory.mktemp("ring"))
    dgl.distributed.partition_graph(g, "ring", 2, folder, part_method="random")
    dgl.distributed.initialize()
    far = dgl.distributed.DistGraph("ring", part_config=folder / "ring.json")
    blocks = NeighborSampler([2, 2]).sample(g, [0])[2]
    mask = torch.zeros(N, dtype=torch.bool)
    mask[[1, 5]] = True
    return SimpleNamespace(
        g=g,
        x=x,
        typed=typed,
        far=far,
        blocks=blocks,
        mask=mask,
        sampler=NeighborSampler([2]),
        config=folder / "ring.json",
    )


def _loader(w: Any, *args: Any, **options: Any) -> Any:
    return next(iter(DataLoader(*(args or (w.g, range(N), w.sampler)), **options)))


def _prob(w: Any, value: float) -> Any:
    weights = torch.ones(2 * N)
    weights[3] = value
    return dgl.sampling.sample_neighbors(w.g, range(N), 1, prob=weights)


def _set(features: Any, value: Any) -> None:
    features["new"] = value


def _nx() -> Any:
    import networkx

    return networkx.path_graph(3)


WRONG: dict[str, tuple[Callable[[Any], Any], type[GNNLabError], str]] = {
    # edges
    "lengths": (lambda w: dgl.graph(([0, 1], [1])), InvalidInput, "of the same length"),
    "adjacency": (lambda w: dgl.graph(torch.eye(3)), InvalidInput, "A.nonzero(as_tuple=True)"),
    "numpy adjacency": (lambda w: dgl.graph(np.eye(3)), InvalidInput, "A.nonzero()"),
    "edge index": (
        lambda w: dgl.graph(torch.ones(2, 4).long()), InvalidInput, "(edges[0], edges[1"
    ),
    "edge table": (lambda w: dgl.graph(pd.DataFrame([[0, 1]])), InvalidInput, "iloc[:, 0"),
    "edge rows": (lambda w: dgl.graph(np.ones((4, 2), int)), InvalidInput, "edges[:, 0]"),
    "one triple": (lambda w: dgl.graph([(0, 1), (1, 2), (1, 2, 3)]), InvalidInput, "of pairs"),
    "tuple of pairs": (lambda w: dgl.graph(((0, 1),) * 3), InvalidInput, "list of pairs"),
    "pairs of names": (lambda w: dgl.graph([("a", "b"), ("b", "c")]), InvalidInput, "factorize"),
    "pairs of floats": (lambda w: dgl.graph([(0.5, 1)] * 3), InvalidInput, "pairs of integers"),
    "negative pair": (lambda w: dgl.graph([(0, 1), (-1, 2)]), OutOfRange, "node -1 does not"),
    "networkx graph": (lambda w: dgl.graph(_nx()), InvalidInput, "from_networkx(graph)"),
    "names of nodes": (lambda w: dgl.graph((["a"], ["b"])), InvalidInput, "pandas.factorize"),
    "float edges": (lambda w: dgl.graph(([0.5], [1.0])), InvalidInput, ".long()"),
    "negative edges": (lambda w: dgl.graph(([-1], [1])), OutOfRange, "node -1 does not exist"),
    "num_nodes": (lambda w: dgl.graph(([0], [5]), num_nodes=3), OutOfRange, "from 0 to 2"),
    "nx attributes": (lambda w: dgl.from_networkx(_nx(), ["x"]), NotFound, "lack 'x'"),
    "no triple": (lambda w: dgl.heterograph({"a": ([0], [0])}), InvalidInput, "triple of names"),
    # features
    "too many rows": (lambda w: _set(w.g.ndata, torch.ones(9, 2)), InvalidInput, "num_nodes="),
    "too few edge rows": (lambda w: _set(w.g.edata, torch.ones(9)), InvalidInput, "16 rows"),
    "one number": (lambda w: _set(w.g.ndata, 1.0), InvalidInput, "8 rows"),
    "string labels": (lambda w: _set(w.g.ndata, ["cat"] * N), InvalidInput, "pandas.factorize"),
    "string array": (
        lambda w: _set(w.g.ndata, np.array(["1"] * N)), InvalidInput, "asarray(values"
    ),
    "string column": (
        lambda w: _set(w.g.ndata, pd.Series(["a"] * N)), InvalidInput, "pandas.factorize"
    ),
    "object array": (
        lambda w: _set(w.g.ndata, np.array([[1, None]] * N, object)), InvalidInput, ".astype("
    ),
    "mixed columns": (
        lambda w: _set(w.g.ndata, pd.DataFrame({"a": [1] * N, "b": ["x"] * N})),
        InvalidInput,
        "found text",
    ),
    "ragged rows": (lambda w: _set(w.g.ndata, [[1], [1, 2]]), InvalidInput, "one length"),
    "nothing": (lambda w: _set(w.g.ndata, None), InvalidInput, "a list of numbers"),
    "attribute": (lambda w: w.g.ndata.feat, NoAttribute, "['feat'] instead of .feat"),
    "typed attribute": (lambda w: w.typed.ndata.feat, NoAttribute, "['feat'] instead of .feat"),
    "no such feature": (lambda w: w.g.ndata["feature"], NotFound, "'feat'"),
    "bare tensor, types": (lambda w: _set(w.typed.ndata, torch.ones(3)), InvalidInput, "{type: "),
    "unknown ntype": (lambda w: w.typed.nodes["gamer"], NotFound, "Did you mean 'game'?"),
    "unknown etype": (lambda w: w.typed["play"], NotFound, "Did you mean 'plays'?"),
    "unknown triple": (
        lambda w: w.typed["user", "play", "game"], NotFound, "mean ('user', 'plays', 'game')?"
    ),
    "which etype": (lambda w: w.typed.in_degrees(), InvalidInput, "etype="),
    # queries and subgraphs
    "no edge": (lambda w: w.g.edge_ids(0, 5), NotFound, "has_edges_between"),
    "u and v": (lambda w: w.g.edge_ids([0, 1, 2], [1, 2]), InvalidInput, "pair up"),
    "float IDs": (lambda w: w.g.in_degrees([0.5]), InvalidInput, ".long()"),
    "negative IDs": (lambda w: w.g.subgraph([-1]), OutOfRange, "from 0 to 7"),
    "unknown IDs": (lambda w: w.g.find_edges([99]), OutOfRange, "from 0 to 15"),
    "string IDs": (lambda w: w.g.in_degrees(["a"]), InvalidInput, "found text"),
    "short mask": (lambda w: w.g.subgraph(w.mask[:3]), InvalidInput, "one entry per node, 8"),
    "mask as IDs": (lambda w: w.g.subgraph(w.mask.long()), InvalidInput, "nonzero().squeeze(1)"),
    "uint8 mask": (lambda w: w.g.subgraph(w.mask.byte()), InvalidInput, "mask.bool()"),
    "in_subgraph": (lambda w: dgl.in_subgraph(w.g, w.mask.int()), InvalidInput, "like a mask"),
    "out_subgraph": (lambda w: dgl.out_subgraph(w.g, w.mask.int()), InvalidInput, "like a mask"),
    "to_block": (lambda w: dgl.to_block(w.g, w.mask.long()), InvalidInput, "like a mask"),
    "far in_subgraph": (lambda w: w.far.in_subgraph(w.mask.int()), InvalidInput, "like a mask"),
    # message passing
    "uncalled": (lambda w: w.g.update_all(fn.copy_u, fn.sum), InvalidInput, 'fn.sum("m", "h")'),
    "uncalled message": (
        lambda w: w.g.update_all(fn.u_mul_e, fn.sum("m", "h")), InvalidInput, "must be called"
    ),
    "swapped functions": (
        lambda w: w.g.update_all(fn.sum("m", "h"), fn.copy_u("feat", "m")),
        InvalidInput,
        'such as fn.sum("m", "h")',
    ),
    "names of functions": (lambda w: w.g.update_all("copy_u", "sum"), InvalidInput, "fn.sum("),
    "uncalled, edges": (lambda w: w.g.apply_edges(fn.u_dot_v), InvalidInput, "must be called"),
    "message names": (
        lambda w: w.g.update_all(fn.copy_u("feat", "m"), fn.sum("n", "h")),
        InvalidInput,
        "give both the same name",
    ),
    # samplers
    "fanout 2.5": (lambda w: NeighborSampler([2.5]), InvalidInput, "found 2.5"),
    "fanout -2": (lambda w: NeighborSampler([-2]), InvalidInput, "−1 (None) for all"),
    "no fanout": (lambda w: NeighborSampler([]), InvalidInput, "one entry per layer"),
    "fanout text": (lambda w: NeighborSampler(["10"]), InvalidInput, "found '10'"),
    "fanouts text": (lambda w: NeighborSampler("10,10"), InvalidInput, "[10, 10]"),
    "fanouts number": (lambda w: NeighborSampler(10), InvalidInput, "write [10]"),
    "fanout dict": (lambda w: NeighborSampler([{"plays": 2.5}]), InvalidInput, "found 2.5"),
    "fanout lacks types": (
        lambda w: NeighborSampler([{"plays": 2}]).sample(w.typed, {"game": [0]}),
        InvalidInput,
        "lack ('user', 'follows', 'user'); a fanout of 0",
    ),
    "fanout, no such type": (
        lambda w: NeighborSampler([{"play": 2}]).sample(w.typed, {"game": [0]}),
        NotFound,
        "Did you mean 'plays'?",
    ),
    "mask, sample_neighbors": (
        lambda w: dgl.sampling.sample_neighbors(w.g, w.mask.long(), 2), InvalidInput, "like a mask"
    ),
    "far mask": (lambda w: w.far.sample_neighbors(w.mask.long(), 2), InvalidInput, "like a mask"),
    "mask, sampler": (lambda w: w.sampler.sample(w.g, w.mask.int()), InvalidInput, "like a mask"),
    "part of a mask": (
        lambda w: w.sampler.sample(w.g, [0, 1, 0, 0]), InvalidInput, "nonzero().squeeze(1)"
    ),
    "seed twice": (lambda w: w.sampler.sample(w.g, [3, 3]), InvalidInput, "torch.unique(seeds)"),
    "seeds without type": (
        lambda w: NeighborSampler([2]).sample(w.typed, [0]), InvalidInput, "which node type"
    ),
    "NaN weight": (lambda w: _prob(w, float("nan")), InvalidInput, "weight of edge 3 is nan"),
    "negative weight": (lambda w: _prob(w, -1.0), InvalidInput, "not negative"),
    "infinite weight": (lambda w: _prob(w, float("inf")), InvalidInput, "must be finite"),
    "no such weight": (
        lambda w: NeighborSampler([2], prob="p").sample(w.g, [0]), NotFound, "'w'"
    ),
    # loaders
    "sampler class": (
        lambda w: _loader(w, w.g, [0], NeighborSampler), InvalidInput, "the class Nei"
    ),
    "no sampler": (lambda w: _loader(w, w.g, [0]), InvalidInput, "Derive it from"),
    "swapped graph": (lambda w: _loader(w, w.x, w.g, w.sampler), InvalidInput, "first argument is"),
    "batch_size 0": (lambda w: _loader(w, batch_size=0), InvalidInput, "at least 1; found 0"),
    "batch_size -1": (lambda w: _loader(w, batch_size=-1), InvalidInput, "at least 1"),
    "batch_size 2.5": (lambda w: _loader(w, batch_size=2.5), InvalidInput, "whole number"),
    "num_workers -1": (lambda w: _loader(w, num_workers=-1), InvalidInput, "at least 0"),
    "prefetch": (lambda w: _loader(w, prefetch="2"), InvalidInput, "whole number"),
    "shuffle": (lambda w: _loader(w, shuffle="True"), InvalidInput, "True or False; found 'True'"),
    "drop_last": (lambda w: _loader(w, drop_last="no"), InvalidInput, "drop_last must be"),
    "loader mask": (
        lambda w: _loader(w, w.g, w.mask.long(), w.sampler), InvalidInput, "nonzero().squeeze(1)"
    ),
    "loader uint8 mask": (
        lambda w: _loader(w, w.g, w.mask.byte().numpy(), w.sampler), InvalidInput, "like a mask"
    ),
    "loader typed mask": (
        lambda w: _loader(w, w.typed, {"user": [0, 1, 1]}, w.sampler), InvalidInput, "like a mask"
    ),
    "loader float IDs": (lambda w: _loader(w, w.g, [0.5], w.sampler), InvalidInput, ".long()"),
    "loader string IDs": (lambda w: _loader(w, w.g, ["a"], w.sampler), InvalidInput, "found text"),
    "loader unknown ID": (lambda w: _loader(w, w.g, [99], w.sampler), OutOfRange, "nodes 0 to 7"),
    "loader negative ID": (lambda w: _loader(w, w.g, [-1], w.sampler), OutOfRange, "nodes 0 to 7"),
    "loader unknown type": (
        lambda w: _loader(w, w.typed, {"gamer": [0]}, w.sampler), NotFound, "mean 'game'"
    ),
    "edge sampler class": (
        lambda w: dgl.dataloading.as_edge_prediction_sampler(NeighborSampler),
        InvalidInput,
        "make a sampler of it",
    ),
    # layers
    "swapped arguments": (
        lambda w: SAGEConv(D, 2, "mean")(w.x, w.g), InvalidInput, "first argument"
    ),
    "a class as graph": (
        lambda w: GraphConv(D, 2)(dgl.DGLGraph, w.x), InvalidInput, "found the class Graph"
    ),
    "no list of blocks": (lambda w: w.g[0], NotFound, "where a list of them is expected?"),
    "class of negatives": (
        lambda w: dgl.dataloading.as_edge_prediction_sampler(
            w.sampler, negative_sampler=dgl.dataloading.negative_sampler.Uniform
        ),
        InvalidInput,
        "for instance gnnlab.dataloading.negative_sampler.Uniform(5)",
    ),
    "swapped, GraphConv": (lambda w: GraphConv(D, 2)(w.x, w.g), InvalidInput, "first argument"),
    "list of blocks": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks, w.x), InvalidInput, "each layer takes one block"
    ),
    "float64": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.double()), InvalidInput, "feat.float()"),
    "float64, GraphConv": (lambda w: GraphConv(D, 2)(w.g, w.x.double()), InvalidInput, ".float()"),
    "float64, GATConv": (lambda w: GATConv(D, 2, 2)(w.g, w.x.double()), InvalidInput, ".float()"),
    "float64, RelGraphConv": (
        lambda w: RelGraphConv(D, 2, 1)(w.g, w.x.double(), torch.zeros(2 * N).long()),
        InvalidInput,
        ".float()",
    ),
    "integers": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.long()), InvalidInput, "feat.float()"),
    "bool": (lambda w: GraphConv(D, 2)(w.g, w.x.bool()), InvalidInput, "feat.float()"),
    "bool, sum": (lambda w: GINConv()(w.g, w.x.bool()), InvalidInput, ".float()"),
    "one dimension": (
        lambda w: SAGEConv(1, 2, "mean")(w.g, w.x[:, 0]), InvalidInput, "unsqueeze(1)"
    ),
    "one dimension, GAT": (
        lambda w: GATConv(1, 2, 2)(w.g, w.x[:, 0]), InvalidInput, "unsqueeze(1)"
    ),
    "numpy": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.numpy()), InvalidInput, "torch.as_tensor("),
    "numpy, GraphConv": (lambda w: GraphConv(D, 2)(w.g, w.x.numpy()), InvalidInput, "as_tensor("),
    "dict": (lambda w: GraphConv(D, 2)(w.g, {"_N": w.x}), InvalidInput, "HeteroGraphConv"),
    "size": (lambda w: SAGEConv(3, 2, "mean")(w.g, w.x), InvalidInput, "size 5, but the layer"),
    "matrix of all nodes": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks[1], w.x),
        InvalidInput,
        "8 rows, but the block has 3",
    ),
    "matrix of all nodes, GraphConv": (
        lambda w: GraphConv(D, 2)(w.blocks[1], w.x), InvalidInput, "x[input_nodes]"
    ),
    "one block twice": (
        lambda w: _two_layers(w.blocks[1], w.x[:3]), InvalidInput, "L layers needs L blocks"
    ),
    "destination rows": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks[0], w.x[:3]), InvalidInput, "blocks[0].srcdata"
    ),
    "edge weights": (
        lambda w: GraphConv(D, 2)(w.g, w.x, edge_weight=torch.ones(3)), InvalidInput, "16 edges"
    ),
    "isolated nodes": (
        lambda w: GraphConv(D, 2)(dgl.graph(([0], [1])), w.x[:2]), InvalidInput, "add_self_loop"
    ),
    "isolated nodes, GAT": (
        lambda w: GATConv(D, 2, 2)(dgl.graph(([0], [1])), w.x[:2]), InvalidInput, "add_self_loop"
    ),
    "typed graph": (lambda w: GraphConv(D, 2)(w.typed, w.x), InvalidInput, "which edge type"),
    "no rows of a type": (
        lambda w: HeteroGraphConv({"plays": GraphConv(D, 2), "follows": GraphConv(D, 2)})(
            w.typed, {"user": torch.ones(3, D)}
        ),
        NotFound,
        "destination type 'game'",
    ),
    "no module": (
        lambda w: HeteroGraphConv({"plays": GraphConv(D, 2)})(
            w.typed, {"user": torch.ones(3, D), "game": torch.ones(2, D)}
        ),
        NotFound,
        "add one",
    ),
    # no graph, no name
    "reversed text": (lambda w: dgl.reverse("g"), InvalidInput, "needs a graph; found str"),
    "block of nothing": (lambda w: dgl.to_block(None), InvalidInput, "needs a graph"),
    "message of numbers": (lambda w: fn.copy_u(1, "m"), InvalidInput, "names of features"),
    "no heads": (lambda w: GATConv(D, 2, 0), InvalidInput, "at least 1"),
    "batch of nothing": (lambda w: dgl.batch(None), InvalidInput, "needs a graph; found NoneType"),
    "batch of lists": (lambda w: dgl.batch([[w.g, w.g]]), InvalidInput, "a list of 2 graphs: take"),
    "list of graphs": (lambda w: dgl.sum_nodes([w.g], "feat"), InvalidInput, "dgl.batch(graphs)"),
    "networkx, reverse": (lambda w: dgl.reverse(_nx()), InvalidInput, "dgl.from_networkx(graph)"),
    "a class, operator": (
        lambda w: dgl.ops.copy_u_sum(dgl.DGLGraph, w.x), InvalidInput, "found the class Graph"
    ),
    "by keyword": (lambda w: dgl.sum_nodes(graph=1, feat="h"), InvalidInput, "found int"),
    "far reverse": (lambda w: dgl.reverse(w.far), InvalidInput, "on many machines"),
    "sampler of nothing": (lambda w: w.sampler.sample(None, [0]), InvalidInput, "needs a graph"),
    "plan of nothing": (lambda w: dgl.partition.plan(None, 2), InvalidInput, "needs a graph"),
    "find_edges": (
        lambda w: dgl.distributed.find_edges(w.g, [0]), InvalidInput, "g.find_edges(edges)"
    ),
    # numbers, devices and types
    "num_nodes text": (lambda w: dgl.graph(([0], [1]), num_nodes="5"), InvalidInput, "found '5'"),
    "num_nodes 2.5": (lambda w: dgl.graph(([0], [1]), num_nodes=2.5), InvalidInput, "whole number"),
    "random nodes": (lambda w: dgl.rand_graph("3", 4), InvalidInput, "num_nodes must be a whole"),
    "new nodes": (lambda w: dgl.add_nodes(w.g, "2"), InvalidInput, "of new nodes must be a whole"),
    "hops": (lambda w: dgl.khop_in_subgraph(w.g, [0], "1"), InvalidInput, "hops, must be a whole"),
    "top k": (lambda w: dgl.topk_nodes(w.g, "feat", -1), InvalidInput, "at least 0; found -1"),
    "top column": (lambda w: dgl.topk_nodes(w.g, "feat", 1, sortby=9), OutOfRange, "5 columns"),
    "negatives": (
        lambda w: dgl.sampling.global_uniform_negative_sampling(w.g, "3"), InvalidInput, "whole"
    ),
    "layers": (
        lambda w: dgl.dataloading.MultiLayerFullNeighborSampler([2]), InvalidInput, "whole number"
    ),
    "heads": (lambda w: GATConv(D, 2, "2"), InvalidInput, "num_heads must be a whole number"),
    "in_feats": (lambda w: GraphConv("5", 2), InvalidInput, "in_feats must be a whole number"),
    "parts of a plan": (lambda w: dgl.partition.plan(w.g, 0), InvalidInput, "at least 1; found 0"),
    "sizes of a plan": (
        lambda w: dgl.partition.plan({"num_nodes": 3}, 2), InvalidInput, "lack num_edges"
    ),
    "part": (
        lambda w: dgl.distributed.load_partition(w.config, "0"), OutOfRange, "part '0' does not"
    ),
    "config": (
        lambda w: dgl.distributed.load_partition(None, 0), PartitionError, "the path of the JSON"
    ),
    "device": (lambda w: w.g.to("gpu"), InvalidInput, "found 'gpu'"),
    "bandwidth": (lambda w: Network(bandwidth="1G"), InvalidInput, "must be a number; found '1G'"),
    "slowdown": (lambda w: Simulation(w.g, 2, slowdown=2.0), InvalidInput, "found 2.0"),
    "types": (lambda w: dgl.heterograph([([0], [1])]), InvalidInput, "data_dict is a dict by type"),
    "counts": (
        lambda w: dgl.heterograph({("a", "b", "c"): ([0], [1])}, 5), InvalidInput, "num_nodes_dict"
    ),
    "no networkx": (lambda w: dgl.from_networkx(w.g), InvalidInput, "a graph of networkx; found G"),
    "sparse feature": (
        lambda w: _set(w.g.ndata, torch.eye(N).to_sparse()), InvalidInput, "x.to_dense()"
    ),
    "number as name": (
        lambda w: w.g.ndata.__setitem__(5, w.x), InvalidInput, "name of a feature is a text"
    ),
    "broadcast": (lambda w: dgl.broadcast_nodes(w.g, None), InvalidInput, "expected a tensor"),
    "transform class": (lambda w: dgl.Compose([dgl.AddSelfLoop]), InvalidInput, "list of trans"),
    "activation text": (
        lambda w: SAGEConv(D, 2, "mean", activation="relu"), InvalidInput, "found 'relu'"
    ),
    "activation class": (
        lambda w: GraphConv(D, 2, activation=nn.ReLU), InvalidInput, "such as torch.relu"
    ),
    "list of layers": (lambda w: HeteroGraphConv([]), InvalidInput, "dict of layers by edge type"),
    "rows without type": (
        lambda w: HeteroGraphConv({"_E": GraphConv(D, 2)})(w.g, w.x), InvalidInput, "{'user': x}"
    ),
    "logits": (
        lambda w: dgl.ops.edge_softmax(w.g, [1.0] * 16), InvalidInput, "logits are a tensor"
    ),
    "one graph": (
        lambda w: dgl.dataloading.GraphDataLoader(w.g), InvalidInput, "of its nodes or edges use"
    ),
    "no book": (
        lambda w: dgl.distributed.node_split(w.mask, w.g), InvalidInput, "g.get_partition_book()"
    ),
    "far text": (
        lambda w: w.far.ndata["feat"].__setitem__([0], "a"), InvalidInput, "expected "
    ),
    # graphs in parts
    "far layer": (
        lambda w: SAGEConv(D, 2, "mean")(w.far, w.x), InvalidInput, "blocks of a mini-batch"
    ),
    "far features": (
        lambda w: SAGEConv(D, 2, "mean")(w.g, w.far.ndata["feat"]), InvalidInput, "x[input_nodes]"
    ),
    "far in_edges": (lambda w: w.far.in_edges([0]), NoAttribute, "g.edge_subgraph()"),
    "far update_all": (
        lambda w: w.far.update_all(fn.copy_u("feat", "m"), fn.sum("m", "h")),
        NoAttribute,
        "use its blocks",
    ),
    "far apply_edges": (lambda w: w.far.apply_edges(fn.u_dot_v), NoAttribute, "g.local_partition"),
    "far attribute": (lambda w: w.far.ndata.feat, NoAttribute, "['feat'] instead of .feat"),
    "far sum": (lambda w: w.far.ndata["feat"] + 1, InvalidInput, "tensor[ids]"),
    "sum with far": (lambda w: w.x + w.far.ndata["feat"], InvalidInput, "tensor[ids]"),
    "number times far": (lambda w: 2 * w.far.ndata["feat"], InvalidInput, "tensor[:]"),
    "far comparison": (lambda w: w.far.ndata["feat"] > 0, InvalidInput, "tensor[:]"),
    "far equality": (lambda w: w.far.ndata["feat"] == 0, InvalidInput, "tensor[:]"),
    "far relu": (lambda w: torch.relu(w.far.ndata["feat"]), InvalidInput, "tensor[ids]"),
    "far linear": (lambda w: nn.Linear(D, 2)(w.far.ndata["feat"]), InvalidInput, "tensor[ids]"),
    "far mean": (lambda w: w.far.ndata["feat"].mean(), NoAttribute, ".mean needs an ordinary"),
    "far rows": (lambda w: _set(w.far.ndata, torch.ones(9)), InvalidInput, "num_nodes="),
}  # fmt: skip


def functions_of_graphs(offered: dict[str, Any]) -> dict[str, Any]:
    """Those that are annotated to take a graph first."""
    return {
        name: function
        for name, function in offered.items()
        if isinstance(function, FunctionType)
        and next(iter(function.__annotations__.values()), None) in errors._GRAPHS
    }


def refuse(functions: dict[str, Any], wrong: Any) -> None:
    for name, function in functions.items():
        with pytest.raises(InvalidInput, match=f"{function.__name__} needs a graph; found"):
            function(wrong)
        assert pickle.loads(pickle.dumps(function)) is function, name


@pytest.mark.parametrize("wrong", [None, "g", torch.ones(2), dgl.DGLGraph, 3], ids=str)
def test_functions_of_graphs_refuse_anything_else(wrong: Any) -> None:
    places = (dgl, dgl.sampling, dgl.transforms, dgl.dataloading)
    offered = {n: getattr(p, n) for p in places for n in (dgl._LAZY if p is dgl else p.__all__)}
    functions = functions_of_graphs(offered)
    assert len(functions) > 50
    refuse(functions, wrong)


def test_transforms_of_users_may_take_what_they_like() -> None:
    class Read(dgl.BaseTransform):
        def __call__(self, g: Any) -> Any:
            return dgl.graph(g)

    assert dgl.Compose([Read(), dgl.AddSelfLoop()])(([0], [1])).num_edges() == 3


def _two_layers(block: Any, x: torch.Tensor) -> torch.Tensor:
    h = SAGEConv(D, 4, "mean")(block, x)
    return SAGEConv(4, 2, "mean")(block, h)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_names_a_remedy(name: str, world: SimpleNamespace) -> None:
    attempt, kind, remedy = WRONG[name]
    with pytest.raises(kind) as error:
        attempt(world)
    assert remedy in str(error.value)
    assert error.value.__cause__ is None


# ------------------------------------------------------------------------ warnings
def _holes() -> dgl.Graph:
    g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    g.ndata["x"], g.ndata["ok"] = torch.ones(4, D), torch.ones(4, D)
    g.ndata["x"][2, 1], g.ndata["x"][3] = float("nan"), float("inf")
    return g


@pytest.fixture
def warned() -> Iterator[list[str]]:
    """The warnings so far."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        messages = _Messages(found)
        yield messages


class _Messages(list[str]):
    def __init__(self, found: list[Any]) -> None:
        self._found = found

    def take(self) -> list[str]:
        messages = [str(each.message) for each in self._found]
        self._found.clear()
        return messages


def test_a_loader_warns_of_nan_once(warned: _Messages) -> None:
    g = _holes()

    def read(name: str) -> list[str]:
        for _, _, blocks in DataLoader(g, range(4), NeighborSampler([1]), batch_size=2):
            _ = blocks[0].srcdata[name]
        return warned.take()

    assert read("ok") == []
    (message,) = read("x")
    assert "node feature 'x'" in message and "in 2 of 4 rows (the first is row 2)" in message
    assert read("x") == []


def test_of_large_features_the_rows_that_are_read_are_looked_at(
    warned: _Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnnlab.dataloading.features.AT_ONCE", 3)
    g = _holes()
    g.ndata["large"] = g.ndata["x"]  # a name of its own: the warning comes once for each
    for _, _, blocks in DataLoader(g, [0, 3], NeighborSampler([1]), batch_size=1):
        _ = blocks[0].srcdata["large"]
    (message,) = warned.take()
    assert "in 1 of 2 rows (the first is row 3)" in message


def test_a_layer_on_a_whole_graph_warns_of_nan_once(warned: _Messages) -> None:
    g = _holes()
    x, layer = g.ndata["x"], GraphConv(D, 2)
    layer(g, x)
    (message,) = warned.take()
    assert "in 2 of 4 rows (the first is row 2)" in message and "nan_to_num" in message
    layer(g, x)
    layer(g, g.ndata["ok"])
    assert warned.take() == []


def test_layers_on_blocks_warn_of_nan_once_and_not_in_evaluation() -> None:
    """Once for all mini-batches of a process, which is therefore a fresh one."""
    printed = run_script(
        """
        import warnings
        import torch
        import gnnlab as dgl
        from gnnlab.nn import GraphConv, HeteroGraphConv, SAGEConv

        def say(call):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                with torch.no_grad():
                    call()
                assert not found
                call()
                call()
            print(*(str(each.message).partition(":")[0] for each in found), sep="; ")

        ring, x = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0])), torch.ones(4, 5)
        holes, weights = x.index_fill(0, torch.tensor([1]), torch.nan), torch.full((4,), torch.nan)
        block, layer = dgl.to_block(ring, [0, 1, 2, 3]), GraphConv(5, 2)
        say(lambda: layer(block, holes.clone()))
        sage = SAGEConv(5, 2, "mean")
        say(lambda: sage(block, x, edge_weight=weights.clone()))
        say(lambda: sage(ring, x, edge_weight=weights))
        ends = [0, 1, 2, 3], [1, 2, 3, 0]
        typed = dgl.heterograph({("user", "plays", "game"): ends, ("game", "by", "user"): ends})
        convs = HeteroGraphConv({name: SAGEConv(5, 2, "mean") for name in typed.etypes})
        for g in typed, dgl.to_block(typed, {"user": [0, 1, 2, 3], "game": [0, 1, 2, 3]}):
            rows = {"user": holes.clone(), "game": x}
            say(lambda: convs(g, rows))
        """
    )
    several = "hold NaN or infinity in 1 of 4 rows (the first is row 1)"
    assert printed.splitlines() == [
        f"the features of a mini-batch {several}",
        "the edge weights of a mini-batch hold NaN or infinity in 4 of 4 rows (the first is row 0)",
        "the edge weights hold NaN or infinity in 4 of 4 rows (the first is row 0)",
        f"the features of 'user' nodes {several}",
        f"the features of 'user' nodes of a mini-batch {several}",
    ]


def test_a_layer_warns_of_edge_weights_that_are_nan(warned: _Messages) -> None:
    g = _holes()
    GraphConv(D, 2)(g, g.ndata["ok"], edge_weight=torch.tensor([1, float("nan"), 1, 1]))
    (message,) = warned.take()
    assert "the edge weights hold NaN or infinity in 1 of 4 rows (the first is row 1)" in message


def test_large_numbers_are_not_infinite(warned: _Messages) -> None:
    g = dgl.graph(([0, 1], [1, 0]))
    GraphConv(1, 1)(g, torch.full((2, 1), 3e38))
    assert warned.take() == []


def test_an_epoch_without_mini_batches_is_announced(
    world: SimpleNamespace, warned: _Messages
) -> None:
    loader = DataLoader(world.g, range(5), world.sampler, batch_size=6, drop_last=True)
    (message,) = warned.take()
    assert list(loader) == [] and "5 seeds and batch_size is 6" in message
    DataLoader(world.g, [], world.sampler)
    (message,) = warned.take()
    assert "no seeds" in message
    DataLoader(world.g, range(6), world.sampler, batch_size=6, drop_last=True)
    assert warned.take() == []


# ------------------------------------------------------------ what must go on to work
def test_parts_without_nodes_are_announced(warned: _Messages, tmp_path: Path) -> None:
    dgl.distributed.partition_graph(dgl.rand_graph(3, 6), "few", 4, tmp_path, part_method="random")
    (message,) = warned.take()
    assert "1 of 4 parts" in message and "only 3 nodes" in message


def test_ids_that_only_look_like_a_mask() -> None:
    pair = dgl.graph(([0, 1], [1, 0]))
    assert pair.subgraph([0, 1]).num_nodes() == 2
    g = dgl.graph(([0, 0, 1], [1, 1, 2]))
    assert g.edge_ids([0, 0, 1], [1, 1, 2]).tolist() == [0, 0, 2]
    assert g.in_degrees([0, 1, 1]).tolist() == [0, 2, 2]


def test_all_rows_of_a_distributed_tensor(world: SimpleNamespace) -> None:
    assert np.asarray(world.far.ndata["feat"]).shape == (N, D)
    g = world.g.local_var()
    g.ndata["far"] = world.far.ndata["feat"]
    assert torch.equal(g.ndata["far"], world.x)


def test_autocast_converts_features() -> None:
    g = dgl.graph(([0, 1], [1, 0]))
    with torch.autocast("cpu", torch.bfloat16):
        out = SAGEConv(D, 2, "mean")(g, torch.ones(2, D, dtype=torch.bfloat16))
    assert out.shape == (2, 2)
