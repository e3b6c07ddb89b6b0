"""The helper that plays machines: it counts what the library's simulator counts, and real servers.

The toy graph, cut between 2 and 3; edge IDs on the arrows::

    0 --0--> 1      2 --1--> 1      3 --2--> 1      1 --3--> 3      0 --4--> 2
    machine 0: nodes 0, 1, 2        machine 1: nodes 3, 4
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab import random
from gnnlab.helpers import block_sampler, dist_graph_simulator
from gnnlab.helpers.block_sampler import Graph, NeighborSampler, fold
from gnnlab.helpers.dist_graph_simulator import KINDS, DistGraphSimulator
from gnnlab.simulate import simulate
from tests.helpers import examples, run_script

OWNER = torch.tensor([0, 0, 0, 1, 1])


@pytest.fixture
def toy() -> Graph:
    g = Graph([0, 2, 3, 1, 0], [1, 1, 1, 3, 2], num_nodes=5)
    g.ndata["x"], g.ndata["y"] = torch.arange(10.0).reshape(5, 2), torch.arange(5)
    return g


def test_every_request_of_a_mini_batch_is_counted(toy) -> None:
    cluster = DistGraphSimulator(toy, OWNER)
    g = cluster.graphs[0]
    input_nodes, _, _ = NeighborSampler([-1, -1]).sample(g, [1])
    assert input_nodes.tolist() == [1, 0, 2, 3]
    assert g.ndata["x"][input_nodes].tolist() == toy.ndata["x"][input_nodes].tolist()
    # Layer 2: the in-edges of 1, at home. Layer 1: those of 1, 0, 2, and far away of 3.
    assert cluster.traffic.rows["structure"].tolist() == [[4, 1], [0, 0]]
    assert cluster.traffic.rows["features"].tolist() == [[3, 1], [0, 0]]
    assert cluster.traffic.requests["features"].tolist() == [[1, 1], [0, 0]]
    # An ID and two offsets, one edge and its source; an ID of 8 bytes and a row of two floats.
    assert cluster.traffic.bytes("structure").tolist() == [[0, 16 + 4 + 4], [4, 0]]
    assert cluster.traffic.bytes("features").tolist() == [[0, 8], [8, 0]]
    assert cluster.traffic.remote_share() == 0.25


def test_the_cache_keeps_the_rows_that_a_part_needs_most(toy) -> None:
    cluster = DistGraphSimulator(toy, OWNER, cache_rows=1)
    x = cluster.graphs[0].ndata["x"]
    for expected in (2, 3, 4):  # row 3 travels once, row 4 each time: no edge leads from it
        assert x[[0, 3, 4]].tolist() == toy.ndata["x"][[0, 3, 4]].tolist()
        assert cluster.traffic.rows["features"][0, 1] == expected
    assert cluster.traffic.rows["features"][0, 0] == 3 + 2  # row 0, and row 3 from the cache
    cluster.graphs[0].ndata["y"][[3]]  # each feature has a cache of its own
    assert cluster.traffic.rows["features"][0, 1] == 5
    cluster.end_step()
    x[[3]]
    assert cluster.end_step() == 0  # nobody was asked
    cluster.reset()
    cluster.graphs[0].ndata["x"][[3]]
    assert cluster.traffic.rows["features"][0, 1] == 1


def test_time_is_latency_for_each_round_and_bytes_by_bandwidth(toy) -> None:
    cluster = DistGraphSimulator(toy, OWNER, bandwidth=8e3, latency=0.5)  # a byte in 1 ms
    cluster.graphs[0].ndata["x"][[3, 4]]  # sends two IDs, gets two rows
    assert cluster.end_step(compute=2.0) == pytest.approx(2.0 + 2 * 0.5 + 0.016)
    assert cluster.end_step(compute=2.0) == pytest.approx(2.0)
    # All-reduce of 1000 bytes among two: each sends and receives 500, twice.
    assert cluster.end_step(gradient_bytes=1000) == pytest.approx(2 * (0.5 + 0.5))
    cluster.graphs[1].ndata["x"][[0]]
    assert cluster.end_step(compute=2.0, overlap=True) == pytest.approx(2.0)
    assert cluster.seconds == pytest.approx(3.016 + 2 + 2 + 2)


@examples(25)
@given(data=st.data())
def test_blocks_and_counts_are_those_of_the_library(data) -> None:
    n, machines = data.draw(st.integers(6, 40)), data.draw(st.integers(1, 4))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    src, dst = torch.randint(n, (2, 5 * n))
    owner = torch.cat([torch.arange(machines), torch.randint(machines, (n - machines,))])
    train = torch.randperm(n)[: data.draw(st.integers(machines, n))]
    library, small = dgl.graph((src, dst), num_nodes=n), Graph(src, dst, n)
    library.ndata["x"] = small.ndata["x"] = torch.randn(n, 3)

    def steps(g, rank, share, sample):
        found = []
        for step, seeds in enumerate(share.split(4)):
            input_nodes, _, blocks = sample(g, seeds, step)
            edges = [block.edata["_ID"] for block in blocks]
            found.append((input_nodes, *edges, g.ndata["x"][input_nodes]))
        return found

    def trainer():
        dgl.distributed.initialize()
        g = dgl.distributed.DistGraph("graph")
        share = dgl.distributed.node_split(train, g.get_partition_book())

        def sample(g, seeds, step):
            with random.stream(5, step):
                return dgl.dataloading.NeighborSampler([3, 4]).sample(g, seeds)

        return steps(g, g.rank(), share, sample)

    expected = simulate(library, machines, part_method=lambda g, k: owner).run(trainer)
    cluster = DistGraphSimulator(small, owner)
    for rank, share in enumerate(cluster.node_split(train)):
        found = steps(
            *(cluster.graphs[rank], rank, share),
            lambda g, seeds, step: NeighborSampler([3, 4]).sample(g, seeds, fold(5, step)),
        )
        for mine, theirs in zip(found, expected.returned[rank], strict=True):
            assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    counted = {kind: torch.zeros(machines, machines, dtype=torch.int64) for kind in KINDS}
    for source, target, kind, count in expected.traffic.items():
        if kind in KINDS:
            here = (kind, source, target)
            counted[kind][source, target] = count.rows
            requests, out, back = (
                int(counts[kind][source, target])
                for counts in (
                    cluster.traffic.requests,
                    cluster.traffic.bytes_out,
                    cluster.traffic.bytes_in,
                )
            )
            assert count.requests == requests, here
            # Beside the payload a message has a head; no two bytes of a payload fit into it twice.
            assert 20 * requests <= count.bytes_out - out <= 110 * requests, here
            assert 20 * requests <= count.bytes_in - back <= 110 * requests, here
    for kind in KINDS:
        rows = cluster.traffic.rows[kind].clone().fill_diagonal_(0)
        assert torch.equal(rows, counted[kind])


@settings(deadline=None)
@given(
    n=st.integers(1, 40),
    machines=st.integers(1, 6),
    seed=st.integers(0, 99),
    of_edges=st.booleans(),
)
def test_shares_are_those_of_the_library(n, machines, seed, of_edges) -> None:
    torch.manual_seed(seed)
    owner = torch.randint(machines, (n,))
    owner[-1] = machines - 1
    cluster = DistGraphSimulator(Graph(*torch.randint(n, (2, 3 * n)), n), owner)
    borders = cluster.edge_borders if of_edges else cluster.borders
    book = dgl.distributed.GraphPartitionBook(
        0, {"_N": cluster.borders.tolist()}, {("_N", "_E", "_N"): cluster.edge_borders.tolist()}
    )
    mask = torch.rand(int(borders[-1])) < 0.6
    mine = (cluster.edge_split if of_edges else cluster.node_split)(mask)
    split = dgl.distributed.edge_split if of_edges else dgl.distributed.node_split
    for rank, share in enumerate(mine):
        expected = split(mask, book, rank=rank, num_trainers=machines)
        assert share.tolist() == expected.tolist()


def test_copied_beside_the_sampler_it_works(tmp_path: Path) -> None:
    for helper in (block_sampler, dist_graph_simulator):
        shutil.copy(helper.__file__, tmp_path)
    script = (
        "import doctest, sys; sys.path.insert(0, sys.argv[1]); sys.modules['gnnlab'] = None; "
        "import dist_graph_simulator as d; print(doctest.testmod(d))"
    )
    assert run_script(script, args=[str(tmp_path)]).startswith("TestResults(failed=0, attempted=1")
