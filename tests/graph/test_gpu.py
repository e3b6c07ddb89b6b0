"""Graphs on a GPU give what they give on the CPU."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch

import gnnlab as dgl
from tests.accelerator import GPU, NAME, plugged
from tests.graph.samples import same, toy, typed

pytestmark = pytest.mark.gpu


BOTH = [
    lambda g: g.reverse(copy_edata=True),
    lambda g: dgl.to_simple(g, copy_edata=True),
    lambda g: dgl.add_nodes(g, 2, ntype=g.ntypes[0]),
    lambda g: dgl.remove_nodes(g, [0], g.ntypes[0], store_ids=True),
    lambda g: dgl.compact_graphs(g),
    lambda g: dgl.to_homogeneous(g),
    lambda g: dgl.unbatch(dgl.batch([g, g]))[1],
    lambda g: g.subgraph({g.ntypes[0]: [0, 2]}),
    lambda g: dgl.khop_in_subgraph(g, {g.ntypes[0]: [0]}, 2)[0],
    lambda g: dgl.in_subgraph(g, {g.ntypes[0]: [1]}),
    lambda g: dgl.AddReverse(copy_edata=True)(g),
    lambda g: dgl.AddSelfLoop(new_etypes=True)(g),
    lambda g: g.int(),
]
ONE_TYPE = [
    dgl.to_bidirected,
    dgl.add_self_loop,
    dgl.remove_self_loop,
    dgl.add_reverse_edges,
    lambda g: dgl.reorder_graph(g, "rcmk"),
    lambda g: dgl.add_edges(g, [0, 5], [1, 1]),
    lambda g: dgl.to_heterogeneous(
        dgl.to_homogeneous(g), g.ntypes, g.etypes, metagraph=g.metagraph()
    ),
]


@pytest.mark.parametrize("change", [*BOTH, *ONE_TYPE])
def test_results_are_those_of_the_cpu(change: Any) -> None:
    for g in (toy(), *([typed()] if change in BOTH else [])):
        there = change(g.to(GPU))
        assert there.device.type == GPU
        assert same(there.to("cpu"), change(g))


def test_deferred_features_have_arrived_when_they_are_read() -> None:
    g = dgl.rand_graph(100_000, 1)
    g.ndata["x"] = torch.rand(100_000, 64)
    there = g.to(GPU).subgraph(torch.arange(100_000, device=GPU))
    assert torch.equal(there.to("cpu").ndata["x"], g.ndata["x"])


def test_answers_are_those_of_the_cpu(tmp_path: Any) -> None:
    here, there = toy(), toy().to(GPU)
    for ask in (
        lambda g: g.in_degrees(),
        lambda g: g.edge_ids([0, 2], [1, 0]),
        lambda g: g.has_edges_between([0, 1], [1, 0]),
        lambda g: g.in_edges([1, 2], "eid"),
        lambda g: g.edges(order="srcdst", form="eid"),
    ):
        assert ask(there).device.type == GPU
        assert torch.equal(ask(there).cpu(), ask(here))
    dgl.save_graphs(tmp_path / "g", there)
    assert same(dgl.load_graphs(tmp_path / "g")[0][0], here)


def test_a_graph_that_is_read_elsewhere_knows_where_it_is() -> None:
    for g in (toy(), typed(), dgl.to_block(toy().in_subgraph([1]))):
        file = io.BytesIO()
        torch.save(g.to(GPU), file)
        for map_location, place in (("cpu", "cpu"), (None, GPU)):
            file.seek(0)
            read = torch.load(file, map_location, weights_only=False)
            assert read.device.type == place
            assert read.edges(etype=g.canonical_etypes[0])[0].device.type == place
            kind = g.srctypes[0]
            rows, expected = read.srcnodes[kind].data, g.srcnodes[kind].data["x"]
            rows["new"] = torch.ones(len(expected), device=place)
            assert torch.equal(rows["x"].cpu(), expected)


class Plug:
    """Before the arguments that follow it, a rank has the pretend device."""

    def __reduce__(self) -> Any:
        return (plug, ())


def plug() -> None:
    if GPU == NAME:
        KEPT.append(plugged())
        KEPT[0].__enter__()


KEPT: list[Any] = []  # a context that is freed ends


def _move(rank: int, world_size: int, _: None, g: dgl.Graph) -> tuple[str, dgl.Graph]:
    return g.ndata["x"].device.type, g.reverse()


def test_a_graph_travels_to_a_rank_and_back() -> None:
    ((there, back),) = dgl.parallel.launch_processes(_move, 1, Plug(), toy().to(GPU))
    assert there == back.device.type == GPU
    assert same(back.to("cpu"), toy().reverse())
