"""What beginners get wrong: each input, the kind of its error, and a phrase of the remedy."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
import gnnlab.function as fn
from gnnlab import errors
from gnnlab.dataloading import DataLoader, NeighborSampler
from gnnlab.errors import GNNLabError, InvalidInput, NoAttribute, NotFound
from gnnlab.nn import GINConv, GraphConv, SAGEConv
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


def _set(features: Any, value: Any) -> None:
    features["new"] = value


def _nx() -> Any:
    import networkx

    return networkx.path_graph(3)


WRONG: dict[str, tuple[Callable[[Any], Any], type[GNNLabError], str]] = {
    # edges
    "lengths": (lambda w: dgl.graph(([0, 1], [1])), InvalidInput, "of the same length"),
    "networkx graph": (lambda w: dgl.graph(_nx()), InvalidInput, "from_networkx(graph)"),
    "float edges": (lambda w: dgl.graph(([0.5], [1.0])), InvalidInput, ".long()"),
    # features
    "too many rows": (lambda w: _set(w.g.ndata, torch.ones(9, 2)), InvalidInput, "num_nodes="),
    "string labels": (lambda w: _set(w.g.ndata, ["cat"] * N), InvalidInput, "pandas.factorize"),
    "attribute": (lambda w: w.g.ndata.feat, NoAttribute, "['feat'] instead of .feat"),
    "no such feature": (lambda w: w.g.ndata["feature"], NotFound, "'feat'"),
    "unknown ntype": (lambda w: w.typed.nodes["gamer"], NotFound, "Did you mean 'game'?"),
    "which etype": (lambda w: w.typed.in_degrees(), InvalidInput, "etype="),
    # queries and subgraphs
    "no edge": (lambda w: w.g.edge_ids(0, 5), NotFound, "has_edges_between"),
    "mask as IDs": (lambda w: w.g.subgraph(w.mask.long()), InvalidInput, "nonzero().squeeze(1)"),
    # message passing
    "uncalled": (lambda w: w.g.update_all(fn.copy_u, fn.sum), InvalidInput, 'fn.sum("m", "h")'),
    "swapped functions": (
        lambda w: w.g.update_all(fn.sum("m", "h"), fn.copy_u("feat", "m")),
        InvalidInput,
        'such as fn.sum("m", "h")',
    ),
    # samplers
    "fanouts number": (lambda w: NeighborSampler(10), InvalidInput, "write [10]"),
    "seed twice": (lambda w: w.sampler.sample(w.g, [3, 3]), InvalidInput, "torch.unique(seeds)"),
    "seeds without type": (
        lambda w: NeighborSampler([2]).sample(w.typed, [0]), InvalidInput, "which node type"
    ),
    # loaders
    "no sampler": (lambda w: _loader(w, w.g, [0]), InvalidInput, "Derive it from"),
    "swapped graph": (lambda w: _loader(w, w.x, w.g, w.sampler), InvalidInput, "first argument is"),
    # layers
    "swapped arguments": (
        lambda w: SAGEConv(D, 2, "mean")(w.x, w.g), InvalidInput, "first argument"
    ),
    "no list of blocks": (lambda w: w.g[0], NotFound, "where a list of them is expected?"),
    "list of blocks": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks, w.x), InvalidInput, "each layer takes one block"
    ),
    "float64": (lambda w: SAGEConv(D, 2, "mean")(w.g, w.x.double()), InvalidInput, "feat.float()"),
    "bool, sum": (lambda w: GINConv()(w.g, w.x.bool()), InvalidInput, ".float()"),
    "size": (lambda w: SAGEConv(3, 2, "mean")(w.g, w.x), InvalidInput, "size 5, but the layer"),
    "matrix of all nodes": (
        lambda w: SAGEConv(D, 2, "mean")(w.blocks[1], w.x),
        InvalidInput,
        "8 rows, but the block has 3",
    ),
    "one block twice": (
        lambda w: _two_layers(w.blocks[1], w.x[:3]), InvalidInput, "L layers needs L blocks"
    ),
    "isolated nodes": (
        lambda w: GraphConv(D, 2)(dgl.graph(([0], [1])), w.x[:2]), InvalidInput, "add_self_loop"
    ),
    # graphs in parts
    "far layer": (
        lambda w: SAGEConv(D, 2, "mean")(w.far, w.x), InvalidInput, "blocks of a mini-batch"
    ),
    "far in_edges": (lambda w: w.far.in_edges([0]), NoAttribute, "g.edge_subgraph()"),
    "far update_all": (
        lambda w: w.far.update_all(fn.copy_u("feat", "m"), fn.sum("m", "h")),
        NoAttribute,
        "use its blocks",
    ),
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
