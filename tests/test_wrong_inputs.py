"""What beginners get wrong: each input, the kind of its error, and a phrase of the remedy."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

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
from gnnlab.nn import GATConv, GINConv, GraphConv, HeteroGraphConv, SAGEConv
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
    "edge index": (
        lambda w: dgl.graph(torch.ones(2, 4).long()), InvalidInput, "(edges[0], edges[1"
    ),
    "edge table": (lambda w: dgl.graph(pd.DataFrame([[0, 1]])), InvalidInput, "iloc[:, 0"),
    "networkx graph": (lambda w: dgl.graph(_nx()), InvalidInput, "from_networkx(graph)"),
    "names of nodes": (lambda w: dgl.graph((["a"], ["b"])), InvalidInput, "pandas.factorize"),
    "float edges": (lambda w: dgl.graph(([0.5], [1.0])), InvalidInput, ".long()"),
    "num_nodes": (lambda w: dgl.graph(([0], [5]), num_nodes=3), OutOfRange, "from 0 to 2"),
    # features
    "too many rows": (lambda w: _set(w.g.ndata, torch.ones(9, 2)), InvalidInput, "num_nodes="),
    "string labels": (lambda w: _set(w.g.ndata, ["cat"] * N), InvalidInput, "pandas.factorize"),
    "object array": (
        lambda w: _set(w.g.ndata, np.array([[1, None]] * N, object)), InvalidInput, ".astype("
    ),
    "nothing": (lambda w: _set(w.g.ndata, None), InvalidInput, "a list of numbers"),
    "attribute": (lambda w: w.g.ndata.feat, NoAttribute, "['feat'] instead of .feat"),
    "no such feature": (lambda w: w.g.ndata["feature"], NotFound, "'feat'"),
    "bare tensor, types": (lambda w: _set(w.typed.ndata, torch.ones(3)), InvalidInput, "{type: "),
    "unknown ntype": (lambda w: w.typed.nodes["gamer"], NotFound, "Did you mean 'game'?"),
    "unknown etype": (lambda w: w.typed["play"], NotFound, "Did you mean 'plays'?"),
    "which etype": (lambda w: w.typed.in_degrees(), InvalidInput, "etype="),
    # queries and subgraphs
    "no edge": (lambda w: w.g.edge_ids(0, 5), NotFound, "has_edges_between"),
    "u and v": (lambda w: w.g.edge_ids([0, 1, 2], [1, 2]), InvalidInput, "pair up"),
    "unknown IDs": (lambda w: w.g.find_edges([99]), OutOfRange, "from 0 to 15"),
    "short mask": (lambda w: w.g.subgraph(w.mask[:3]), InvalidInput, "one entry per node, 8"),
    "mask as IDs": (lambda w: w.g.subgraph(w.mask.long()), InvalidInput, "nonzero().squeeze(1)"),
    # message passing
    "uncalled": (lambda w: w.g.update_all(fn.copy_u, fn.sum), InvalidInput, 'fn.sum("m", "h")'),
    "swapped functions": (
        lambda w: w.g.update_all(fn.sum("m", "h"), fn.copy_u("feat", "m")),
        InvalidInput,
        'such as fn.sum("m", "h")',
    ),
    # samplers
    "fanout 2.5": (lambda w: NeighborSampler([2.5]), InvalidInput, "found 2.5"),
    "no fanout": (lambda w: NeighborSampler([]), InvalidInput, "one entry per layer"),
    "fanouts text": (lambda w: NeighborSampler("10,10"), InvalidInput, "[10, 10]"),
    "fanouts number": (lambda w: NeighborSampler(10), InvalidInput, "write [10]"),
    "fanout lacks types": (
        lambda w: NeighborSampler([{"plays": 2}]).sample(w.typed, {"game": [0]}),
        InvalidInput,
        "lack ('user', 'follows', 'user'); a fanout of 0",
    ),
    "seed twice": (lambda w: w.sampler.sample(w.g, [3, 3]), InvalidInput, "torch.unique(seeds)"),
    "seeds without type": (
        lambda w: NeighborSampler([2]).sample(w.typed, [0]), InvalidInput, "which node type"
    ),
    "NaN weight": (lambda w: _prob(w, float("nan")), InvalidInput, "weight of edge 3 is nan"),
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
    "shuffle": (lambda w: _loader(w, shuffle="True"), InvalidInput, "True or False; found 'True'"),
    "loader mask": (
        lambda w: _loader(w, w.g, w.mask.long(), w.sampler), InvalidInput, "nonzero().squeeze(1)"
    ),
    "loader unknown ID": (lambda w: _loader(w, w.g, [99], w.sampler), OutOfRange, "nodes 0 to 7"),
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
    "list of blocks": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks, w.x), InvalidInput, "each layer takes one block"
    ),
    "float64": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.double()), InvalidInput, "feat.float()"),
    "bool, sum": (lambda w: GINConv()(w.g, w.x.bool()), InvalidInput, ".float()"),
    "one dimension": (
        lambda w: SAGEConv(1, 2, "mean")(w.g, w.x[:, 0]), InvalidInput, "unsqueeze(1)"
    ),
    "numpy": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.numpy()), InvalidInput, "torch.as_tensor("),
    "dict": (lambda w: GraphConv(D, 2)(w.g, {"_N": w.x}), InvalidInput, "HeteroGraphConv"),
    "size": (lambda w: SAGEConv(3, 2, "mean")(w.g, w.x), InvalidInput, "size 5, but the layer"),
    "matrix of all nodes": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks[1], w.x),
        InvalidInput,
        "8 rows, but the block has 3",
    ),
    "one block twice": (
        lambda w: _two_layers(w.blocks[1], w.x[:3]), InvalidInput, "L layers needs L blocks"
    ),
    "destination rows": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks[0], w.x[:3]), InvalidInput, "blocks[0].srcdata"
    ),
    "isolated nodes": (
        lambda w: GraphConv(D, 2)(dgl.graph(([0], [1])), w.x[:2]), InvalidInput, "add_self_loop"
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
    "message of numbers": (lambda w: fn.copy_u(1, "m"), InvalidInput, "names of features"),
    "no heads": (lambda w: GATConv(D, 2, 0), InvalidInput, "at least 1"),
    "batch of nothing": (lambda w: dgl.batch(None), InvalidInput, "needs a graph; found NoneType"),
    "batch of lists": (lambda w: dgl.batch([[w.g, w.g]]), InvalidInput, "a list of 2 graphs: take"),
    "list of graphs": (lambda w: dgl.sum_nodes([w.g], "feat"), InvalidInput, "dgl.batch(graphs)"),
    "networkx, reverse": (lambda w: dgl.reverse(_nx()), InvalidInput, "dgl.from_networkx(graph)"),
    "far reverse": (lambda w: dgl.reverse(w.far), InvalidInput, "on many machines"),
    "find_edges": (
        lambda w: dgl.distributed.find_edges(w.g, [0]), InvalidInput, "g.find_edges(edges)"
    ),
    # numbers, devices and types
    "num_nodes text": (lambda w: dgl.graph(([0], [1]), num_nodes="5"), InvalidInput, "found '5'"),
    "top k": (lambda w: dgl.topk_nodes(w.g, "feat", -1), InvalidInput, "at least 0; found -1"),
    "layers": (
        lambda w: dgl.dataloading.MultiLayerFullNeighborSampler([2]), InvalidInput, "whole number"
    ),
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
    "transform class": (lambda w: dgl.Compose([dgl.AddSelfLoop]), InvalidInput, "list of trans"),
    "activation text": (
        lambda w: SAGEConv(D, 2, "mean", activation="relu"), InvalidInput, "found 'relu'"
    ),
    "list of layers": (lambda w: HeteroGraphConv([]), InvalidInput, "dict of layers by edge type"),
    "rows without type": (
        lambda w: HeteroGraphConv({"_E": GraphConv(D, 2)})(w.g, w.x), InvalidInput, "{'user': x}"
    ),
    "one graph": (
        lambda w: dgl.dataloading.GraphDataLoader(w.g), InvalidInput, "of its nodes or edges use"
    ),
    "no book": (
        lambda w: dgl.distributed.node_split(w.mask, w.g), InvalidInput, "g.get_partition_book()"
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
    "far comparison": (lambda w: w.far.ndata["feat"] > 0, InvalidInput, "tensor[:]"),
    "far relu": (lambda w: torch.relu(w.far.ndata["feat"]), InvalidInput, "tensor[ids]"),
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


CODES = {
    "edge_ends_differ": lambda: dgl.graph(([0, 1], [1])),
    "no_graph": lambda: dgl.reverse("g"),
    "not_whole_number": lambda: dgl.rand_graph("3", 4),
    "unknown_choice": lambda: GraphConv(2, 2, norm="sym"),
}


@pytest.mark.parametrize("code", CODES)
def test_mistakes_that_programs_tell_apart(code: str) -> None:
    with pytest.raises(GNNLabError) as error:
        CODES[code]()
    assert error.value.code == code


# ------------------------------------------------------------------------ warnings
def _holes() -> dgl.Graph:
    g = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    g.ndata["x"], g.ndata["ok"] = torch.ones(4, D), torch.ones(4, D)
    g.ndata["x"][2, 1], g.ndata["x"][3] = float("nan"), float("inf")
    return g


@pytest.fixture
def warned(recwarn: pytest.WarningsRecorder) -> pytest.WarningsRecorder:
    warnings.simplefilter("always")
    return recwarn


def take(warned: pytest.WarningsRecorder) -> list[str]:
    """The warnings since the last call."""
    messages = [str(each.message) for each in warned]
    warned.clear()
    return messages


def test_a_loader_warns_of_nan_once(warned: pytest.WarningsRecorder) -> None:
    g = _holes()

    def read(name: str) -> list[str]:
        for _, _, blocks in DataLoader(g, range(4), NeighborSampler([1]), batch_size=2):
            _ = blocks[0].srcdata[name]
        return take(warned)

    assert read("ok") == []
    (message,) = read("x")
    assert "node feature 'x'" in message and "in 2 of 4 rows (the first is row 2)" in message
    assert read("x") == []


def test_of_large_features_the_rows_that_are_read_are_looked_at(
    warned: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gnnlab.dataloading.features.AT_ONCE", 3)
    g = _holes()
    g.ndata["large"] = g.ndata["x"]  # a name of its own: the warning comes once for each
    for _, _, blocks in DataLoader(g, [0, 3], NeighborSampler([1]), batch_size=1):
        _ = blocks[0].srcdata["large"]
    (message,) = take(warned)
    assert "in 1 of 2 rows (the first is row 3)" in message


def test_a_layer_on_a_whole_graph_warns_of_nan_once(warned: pytest.WarningsRecorder) -> None:
    g = _holes()
    x, layer = g.ndata["x"], GraphConv(D, 2)
    layer(g, x)
    (message,) = take(warned)
    assert "in 2 of 4 rows (the first is row 2)" in message and "nan_to_num" in message
    layer(g, x)
    layer(g, g.ndata["ok"])
    assert take(warned) == []


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


def test_a_layer_warns_of_edge_weights_that_are_nan(warned: pytest.WarningsRecorder) -> None:
    g = _holes()
    GraphConv(D, 2)(g, g.ndata["ok"], edge_weight=torch.tensor([1, float("nan"), 1, 1]))
    (message,) = take(warned)
    assert "the edge weights hold NaN or infinity in 1 of 4 rows (the first is row 1)" in message


def test_large_numbers_are_not_infinite(warned: pytest.WarningsRecorder) -> None:
    g = dgl.graph(([0, 1], [1, 0]))
    GraphConv(1, 1)(g, torch.full((2, 1), 3e38))
    assert take(warned) == []


def test_an_epoch_without_mini_batches_is_announced(
    world: SimpleNamespace, warned: pytest.WarningsRecorder
) -> None:
    loader = DataLoader(world.g, range(5), world.sampler, batch_size=6, drop_last=True)
    (message,) = take(warned)
    assert list(loader) == [] and "5 seeds and batch_size is 6" in message
    DataLoader(world.g, [], world.sampler)
    (message,) = take(warned)
    assert "no seeds" in message
    DataLoader(world.g, range(6), world.sampler, batch_size=6, drop_last=True)
    assert take(warned) == []


# ------------------------------------------------------------ what must go on to work
def test_parts_without_nodes_are_announced(warned: pytest.WarningsRecorder, tmp_path: Path) -> None:
    dgl.distributed.partition_graph(dgl.rand_graph(3, 6), "few", 4, tmp_path, part_method="random")
    (message,) = take(warned)
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
