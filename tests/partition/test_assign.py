"""Assignments: few cut edges, equal loads, and errors that say what to do."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import torch
import zmq
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
import gnnlab.simulate
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.partition import metis, partition_files, partition_graph
from gnnlab.partition.assign import assign
from tests.helpers import examples, wait_until

METHODS = ["metis", "ldg", "random"]
COMMUNITIES, SIZE = 8, 125


@pytest.fixture(scope="module")
def communities() -> dgl.Graph:
    """8 communities of 125 nodes under shuffled IDs; 9 of 10 of the 10,000 edges stay inside.

    Nodes differ in what has to be balanced: 5 % are for training, a tenth has 20 in-edges more.
    """
    rng = np.random.default_rng(1)
    home = rng.permutation(np.repeat(np.arange(COMMUNITIES), SIZE))
    members = [np.flatnonzero(home == c) for c in range(COMMUNITIES)]
    src = rng.integers(0, len(home), 8000)
    inside = rng.random(8000) < 0.9
    dst = np.where(
        inside, [rng.choice(members[home[u]]) for u in src], rng.integers(0, len(home), 8000)
    )
    hubs = np.repeat(rng.permutation(len(home))[:100], 20)
    more = np.array([rng.choice(members[home[v]]) for v in hubs])
    g = dgl.graph((np.concatenate([src, more]), np.concatenate([dst, hubs])), num_nodes=len(home))
    g.ndata["train_mask"] = torch.from_numpy(rng.permutation(len(home)) < 50)
    return g


def cut(g: dgl.Graph, part: np.ndarray) -> float:
    """Share of edges whose ends lie in two parts."""
    src, dst = g.edges()
    return float((part[src] != part[dst]).mean())


def loads(part: np.ndarray, weight: np.ndarray | torch.Tensor) -> np.ndarray:
    """Load of each part over its share: 1 is perfect."""
    sums = np.bincount(part, np.asarray(weight, np.float64))
    return sums / sums.mean()


@pytest.mark.parametrize(
    ("method", "at_most", "is_thinned"),
    [("metis", 0.25, False), ("metis", 0.25, True), ("ldg", 0.35, False)],
)
def test_cuts_far_fewer_edges_than_random(communities, monkeypatch, method, at_most, is_thinned):
    """Four parts can hold two communities each, then about 0.09 are cut; random cuts 0.75. METIS is
    as good on a large graph, which is thinned out."""
    if is_thinned:
        monkeypatch.setattr("gnnlab.partition.assign.THIN_FROM", 0)
        monkeypatch.setattr("gnnlab.partition.assign.THINNED_TO", 6)
    dgl.seed(0)
    part, _ = assign(communities, 4, method)
    assert cut(communities, part) < at_most
    assert 0.7 < cut(communities, assign(communities, 4, "random")[0]) < 0.8
    assert loads(part, np.ones(len(part))).max() <= 1.04


@pytest.mark.parametrize("method", ["metis", "ldg"])
def test_balances_classes_and_in_edges_together(communities, method):
    """Within 10 %: 250 nodes, 12.5 training nodes and 2500 in-edges a part."""
    dgl.seed(0)
    mask, degrees = communities.ndata["train_mask"], communities.in_degrees()
    part, _ = assign(communities, 4, method, balance_ntypes=mask, balance_edges=True)
    assert loads(part, np.ones(len(part))).max() < 1.1
    assert loads(part, degrees).max() < 1.1
    assert np.bincount(part[mask.numpy()]).max() <= 14
    assert cut(communities, part) < 0.5


def test_random_gives_each_part_its_share_of_each_class(communities):
    mask = communities.ndata["train_mask"]
    part, _ = assign(communities, 8, "random", balance_ntypes=mask)
    assert np.bincount(part).tolist() == [125] * 8
    assert set(np.bincount(part[mask.numpy()])) == {6, 7}


@pytest.mark.parametrize("method", METHODS)
def test_balances_node_types_by_default(method):
    users, items = 300, 60
    rng = np.random.default_rng(0)
    g = dgl.heterograph(
        {
            ("user", "buys", "item"): (rng.integers(0, users, 900), rng.integers(0, items, 900)),
            ("user", "knows", "user"): (rng.integers(0, users, 900), rng.integers(0, users, 900)),
        },
        {"user": users, "item": items},
    )
    part, _ = assign(g, 3, method)
    assert g.ntypes == ["item", "user"]  # homogeneous IDs follow this order
    assert max(np.bincount(part[:items])) <= 23 and max(np.bincount(part[items:])) <= 110


@pytest.mark.parametrize("method", METHODS)
def test_seed_decides(method):
    dgl.seed(0)
    g, found = dgl.rand_graph(1000, 10_000), []
    for seed in (3, 3, 4):
        dgl.seed(seed)
        found.append(assign(g, 4, method)[0])
    assert (found[0] == found[1]).all()
    assert method == "metis" or (found[0] != found[2]).any()


@pytest.mark.parametrize("balance_edges", [False, True])
def test_seed_decides_while_other_threads_draw_from_rand(balance_edges):
    """ZeroMQ draws the wait before it connects again; here each is at most 2 ms."""
    dgl.seed(0)
    g, found = dgl.rand_graph(5000, 50_000), []
    with zmq.Context() as context:
        for sockets in (0, 20):
            for _ in range(sockets):
                line = context.socket(zmq.DEALER)
                line.linger, line.reconnect_ivl = 0, 1
                line.connect("ipc:///nothing/listens/here")
            dgl.seed(0)
            found.append(assign(g, 4, balance_edges=balance_edges)[0])
        context.destroy()
    assert (found[0] == found[1]).all()


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (lambda: np.zeros(2**58), "MemoryError"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "-9"),
    ],
)
def test_a_failure_in_the_process_of_metis_is_told(monkeypatch, end, said):
    monkeypatch.setattr("pymetis.part_graph", lambda *_, **__: end())
    with pytest.raises(dgl.DGLError, match=f"10 nodes .*{said}"):
        assign(dgl.rand_graph(10, 20), 2)


def test_a_process_of_metis_that_waits_for_rand_is_replaced(monkeypatch, tmp_path):
    def work(*_, **__):
        if not (tmp_path / "second").exists():
            (tmp_path / "second").touch()
            signal.raise_signal(signal.SIGALRM)
        return SimpleNamespace(vertex_part=np.arange(10) % 2)

    monkeypatch.setattr("pymetis.part_graph", work)
    assert assign(dgl.rand_graph(10, 20), 2)[0].tolist() == [0, 1] * 5


def test_an_interrupt_ends_the_process_of_metis(monkeypatch, tmp_path):
    def work(*_, **__):
        (tmp_path / "pid").write_text(str(os.getpid()))
        while True:  # the parent may not be waiting yet
            time.sleep(1)
            os.kill(os.getppid(), signal.SIGINT)

    monkeypatch.setattr("pymetis.part_graph", work)
    with pytest.raises(KeyboardInterrupt):
        assign(dgl.rand_graph(10, 20), 2)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


@pytest.mark.skipif(sys.platform != "linux", reason="needs prctl")
def test_a_killed_caller_leaves_no_process_of_metis(tmp_path):
    script = f"""
import os, time, pathlib
import pymetis
import gnnlab as dgl
from gnnlab.partition.assign import assign

def work(*_, **__):
    pathlib.Path({str(tmp_path / "draft")!r}).write_text(str(os.getpid()))
    os.rename({str(tmp_path / "draft")!r}, {str(tmp_path / "pid")!r})
    time.sleep(60)

pymetis.part_graph = work
assign(dgl.rand_graph(10, 20), 2)
"""
    with subprocess.Popen([sys.executable, "-c", script]) as caller:
        wait_until("METIS", (tmp_path / "pid").exists)
        caller.kill()
    child = int((tmp_path / "pid").read_text())
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(child)  # a zombie until init takes it
        wait_until("its end", lambda: process.status() == psutil.STATUS_ZOMBIE, 30)  # not 60


def test_metis_can_mind_the_copies_instead_of_the_edges(communities):
    """The volume is how many (node, other part with a neighbor of it) there are.

    With two parts to a community both have a choice: 2,269 at most against 2,330 at least.
    """

    def volume(objtype: str) -> int:
        part, _ = assign(communities, 16, objtype=objtype)
        src, dst = (end.numpy() for end in communities.edges())
        pairs = np.concatenate([src * 16 + part[dst], dst * 16 + part[src]])
        return len(np.setdiff1d(pairs, np.arange(len(part)) * 16 + part))

    assert volume("vol") < volume("cut")


@pytest.mark.parametrize("method", [*METHODS, lambda g, k: np.arange(g.num_nodes()) % k])
def test_trainers_share_a_part(communities, method):
    part, trainer = assign(communities, 3, method, num_trainers_per_machine=4)
    assert (trainer // 4 == part).all() and part.dtype == trainer.dtype == np.int32
    assert loads(trainer, np.ones(len(part))).max() < 1.07
    assert assign(communities, 3, method)[1].max() == 2


# Four nodes; the last one is of another type.


TYPED = {("u", "r", "v"): ([0, 1, 2], [0, 0, 0])}


@pytest.mark.parametrize(
    "answer",
    [
        [1, 0, 1, 0],
        torch.tensor([1, 0, 1, 0]),
        np.array([True, False, True, False]),
        {"v": [0], "u": torch.tensor([1, 0, 1], dtype=torch.int32)},
    ],
)
def test_a_function_may_decide(answer):
    part, trainer = assign(dgl.heterograph(TYPED), 2, lambda g, num_parts: answer)
    assert part.tolist() == [1, 0, 1, 0] and part.dtype == np.int32
    assert trainer is part


@pytest.mark.parametrize(
    ("answer", "error", "named"),
    [
        ([0, 1, 0], InvalidInput, r"\(3,\).*\(4,\)"),
        ([[0, 1, 0, 1]], InvalidInput, r"\(1, 4\)"),
        ([0.0, 1.0, 0.0, 1.0], InvalidInput, "float64"),
        ("0101", InvalidInput, "one integer a node"),
        ([0, 1, 2, 0], InvalidInput, "node 2 .* part 2;.* 0 to 1"),
        ([0, -1, 0, 0], InvalidInput, "node 1 .* part -1"),
        ({"u": [0, 1, 0]}, InvalidInput, "'v'"),
        ({"u": [0, 1, 0], "v": [0], "w": []}, NotFound, "'w'"),
        ({"u": [0, 1, 0], "v": [0, 1]}, InvalidInput, "'v'"),
    ],
)
def test_what_a_function_decides_is_checked(answer, error, named):
    with pytest.raises(error, match=named):
        assign(dgl.heterograph(TYPED), 2, lambda g, num_parts: answer)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"num_parts": 0}, "num_parts .* 0"),
        ({"num_trainers_per_machine": 1.5}, "num_trainers_per_machine .* 1.5"),
        ({"part_method": "spectral"}, "'spectral'.*'metis', 'ldg'"),
        ({"objtype": "edges"}, "objtype"),
        ({"balance_ntypes": [1, 2]}, r"balance_ntypes .*\(2,\)"),
        ({"balance_ntypes": torch.arange(4.0)}, "float32"),
        ({"balance_ntypes": {"w": [1]}}, "'w'"),
        ({"balance_ntypes": {"u": [1]}}, r"balance_ntypes\['u'\]"),
    ],
)
def test_wrong_arguments_are_named(arguments, named):
    with pytest.raises((InvalidInput, NotFound), match=named):
        assign(dgl.heterograph(TYPED), **{"num_parts": 2, "part_method": "ldg", **arguments})


def test_too_many_classes_are_refused():
    g = dgl.rand_graph(100, 10)
    with pytest.raises(InvalidInput, match=r"100 distinct values.* 64"):
        assign(g, 2, balance_ntypes=torch.arange(100))
    many = {(f"n{i}", "r", f"n{i + 1}"): ([0], [0]) for i in range(70)}
    g = dgl.heterograph(many)
    with pytest.raises(InvalidInput, match="71 distinct values"):
        assign(g, 2, "random")
    part, _ = assign(g, 2, "random", balance_ntypes=torch.zeros(71, dtype=torch.int64))
    assert abs(2 * part.sum() - 71) == 1


@pytest.fixture
def no_pymetis(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    metis.default_method.cache_clear()
    yield
    metis.default_method.cache_clear()


def test_without_pymetis_ldg_is_the_default_and_metis_an_error(no_pymetis, tmp_path, capsys):
    g = dgl.rand_graph(10, 20)
    with pytest.warns(UserWarning, match="pymetis") as warned:
        for name in "ab":
            partition_graph(g, name, 2, tmp_path)
        assert len(assign(g, 2)[0]) == 10
        assert dgl.partition.plan(g, 2).part_method == "ldg"
    assert len(warned) == 1 and warned[0].filename == __file__
    assert capsys.readouterr().out.count("2 parts (ldg)") == 2
    for cut in (
        lambda method: partition_graph(g, "a", 2, tmp_path, part_method=method),
        lambda method: dgl.simulate.simulate(g, 2, part_method=method),
    ):
        with pytest.raises(InvalidInput, match='part_method="ldg"'):
            cut("metis")
        cut("ldg")


def test_a_pymetis_that_hides_metis_is_named(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda path: object())
    with pytest.raises(dgl.DGLError, match="METIS"):
        assign(dgl.rand_graph(10, 20), 2, balance_edges=True)
    monkeypatch.undo()
    for options in ({}, {"part_method": "ldg", "balance_edges": True}):
        assert len(assign(dgl.rand_graph(10, 20), 2, **options)[0]) == 10


def both_ways(src, dst, num_nodes=None):
    return dgl.graph(([*src, *dst], [*dst, *src]), num_nodes=num_nodes)


def clique(*nodes):
    return [u for u in nodes for v in nodes if u != v], [v for u in nodes for v in nodes if u != v]


TOYS = {
    "a clique": (dgl.graph(clique(*range(6))), 3),
    "a path": (both_ways([0, 1], [1, 2]), 2),
    "two cliques, isolated nodes": (
        both_ways(*map(list.__add__, clique(*range(10)), clique(*range(10, 20))), num_nodes=25),
        16,
    ),
    "a star": (both_ways([0] * 9, range(1, 10)), 5),
    "self-loops": (dgl.graph((range(10), range(10))), 4),
    "no edges": (dgl.graph(([], []), num_nodes=10), 7),
    "pieces": (both_ways(range(0, 40, 2), range(1, 40, 2)), 16),
    "few nodes a part": (both_ways(range(299), range(1, 300)), 200),
}


@pytest.mark.parametrize("method", METHODS)
def test_no_part_is_empty_if_there_are_nodes_enough(method, capfd, recwarn):
    for name, (g, num_parts) in TOYS.items():
        for options in ({}, {"balance_edges": True}, {"num_trainers_per_machine": 2}):
            dgl.seed(0)
            part, _ = assign(g, num_parts, method, **options)
            sizes, share = np.bincount(part, minlength=num_parts), g.num_nodes() / num_parts
            assert min(sizes) > 0 and max(sizes) < share + 2, (name, options, sizes)
    assert capfd.readouterr() == ("", "") and not recwarn.list


@pytest.mark.parametrize("method", METHODS)
def test_classes_smaller_than_the_number_of_parts_do_not_spoil_the_balance(method, communities):
    """A type of one node, a mask of one or five, a class for each node, one in-edge of all."""
    src, dst = communities.edges()
    typed = {("a", "r", "a"): (src, dst), ("hub", "of", "a"): (np.zeros(700, int), np.arange(700))}
    cases = [
        (dgl.heterograph(typed), {}),
        (communities, {"balance_ntypes": np.arange(1000) == 3}),
        (communities, {"balance_ntypes": np.arange(1000) < 5}),
        (dgl.rand_graph(64, 300), {"balance_ntypes": np.arange(64)}),
        (dgl.graph((np.arange(1, 1000), np.zeros(999, int))), {"balance_edges": True}),
    ]
    for g, options in cases:
        dgl.seed(0)
        part, _ = assign(g, 4, method, **options)
        assert loads(part, np.ones(len(part))).max() < 1.1, options
        if g is communities and method != "random":
            assert cut(g, part) < 0.25


def test_parts_without_nodes_are_told(tmp_path):
    g = dgl.rand_graph(5, 9)
    edges = [tmp_path / "src.npy", tmp_path / "dst.npy"]
    for path, ends in zip(edges, g.edges(order="eid"), strict=True):
        np.save(path, ends)
    parts = [0, 2, 0, 2, 2]
    for num_parts, method, why in (
        (3, parts, "1 of 3 .* part 1"),
        *((7, method, "2 of 7 .* 5 nodes") for method in METHODS),
    ):
        with pytest.warns(UserWarning, match=why) as warned:
            how = method if isinstance(method, str) else lambda g, k: parts
            partition_graph(g, "g", num_parts, tmp_path, part_method=how)
            if method != "metis":
                partition_files(tuple(edges), 5, "f", num_parts, tmp_path, part_method=method)
        assert {each.filename for each in warned} == {__file__}


@examples(150)
@given(st.data())
def test_any_graph_any_number_of_parts(data):
    """No edges, no nodes, fewer nodes than parts, self-loops, repeated edges: all get an answer."""
    num_nodes = data.draw(st.integers(0, 12))
    ends = st.lists(st.integers(0, num_nodes - 1), max_size=20) if num_nodes else st.just([])
    src, dst = data.draw(ends), data.draw(ends)
    count = min(len(src), len(dst))
    g = dgl.graph((src[:count], dst[:count]), num_nodes=num_nodes)
    num_parts, trainers = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3))
    part, trainer = assign(
        g,
        num_parts,
        data.draw(st.sampled_from(METHODS)),
        balance_edges=data.draw(st.booleans()),
        num_trainers_per_machine=trainers,
    )
    assert len(set(part.tolist())) == min(num_parts, num_nodes)
    assert part.shape == trainer.shape == (num_nodes,)
    assert ((part >= 0) & (part < num_parts) & (trainer // trainers == part)).all()
