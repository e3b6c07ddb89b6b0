"""Reports count what the files hold; plans are near what partitioning takes."""

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.partition import Plan, partition_graph, partition_report, plan


@pytest.fixture
def config(tmp_path):
    """Parts {user 0, 1, game 0} and {user 2, game 1}; two of the five edges are cut::

    user 0, 1 ═▶ game 0      user 1 ─▶ game 1 (cut)      user 2 ─▶ game 1
    user 2 ─▶ user 0 (cut)
    """
    g = dgl.heterograph(
        {
            ("user", "plays", "game"): ([0, 1, 1, 2], [0, 0, 1, 1]),
            ("user", "follows", "user"): ([2], [0]),
        }
    )
    g.nodes["user"].data["train_mask"] = torch.tensor([True, False, True])
    parts = {"user": [0, 0, 1], "game": [0, 1]}
    partition_graph(g, "toy", 2, tmp_path, part_method=lambda g, k: parts)
    return tmp_path / "toy.json"


def test_counts_by_part(config):
    """Halos: part 0 knows user 2 and game 1; part 1 knows user 1 and user 0."""
    found = partition_report(config)
    assert found.counts == {
        "nodes": (3, 2),
        "halo nodes": (2, 2),
        "edges": (3, 2),
        "halo edges": (1, 1),
        "cut edges": (1, 1),
        "train_mask": (1, 1),
    }
    assert (found.cut, found.halo_share) == (2 / 5, 4 / 5)
    assert found.balance["nodes"] == 1.2 and found.balance["train_mask"] == 1.0


@pytest.mark.parametrize("mask", [None, "no_such_feature"])
def test_a_mask_may_be_absent(config, mask):
    assert list(partition_report(config, mask).counts)[-1] == "cut edges"


def test_a_graph_without_edges(tmp_path):
    partition_graph(dgl.graph(([], []), num_nodes=3), "g", 2, tmp_path, part_method="random")
    found = partition_report(tmp_path / "g.json")
    assert found.cut == 0 and found.balance["edges"] == 1


@pytest.mark.parametrize("method", ["metis", "ldg", "random"])
def test_planned_size_is_near_the_real_one(tmp_path, method):
    """Within a factor of 1.5, for a random graph with features."""
    g = dgl.rand_graph(5000, 60_000)
    g.ndata["x"] = torch.zeros(5000, 20)
    g.edata["w"] = torch.zeros(60_000)
    partition_graph(g, "g", 4, tmp_path, part_method=method)
    size = sum(file.stat().st_size for file in tmp_path.rglob("*.npy"))
    planned = plan(g, 4, method)
    assert size / 1.5 < planned.disk < size * 1.5
    sizes = {"num_nodes": 5000, "num_edges": 60_000, "node_bytes": 400_000, "edge_bytes": 240_000}
    assert plan(sizes, 4, method).disk == planned.disk


@pytest.mark.parametrize("kind", [int, float, np.int64, np.uint64])
def test_plans_of_billions_of_edges(kind):
    """In one part: 16 bytes a node, and IDs of its neighbor and its own, 4 or 8 each, an edge."""
    for nodes, edges, each in (
        (10**8, 5 * 10**9, 4 + 8),
        (10**8, 2**31 - 1, 4 + 4),
        (2**31, 5 * 10**9, 8 + 8),
    ):
        found = plan({"num_nodes": kind(nodes), "num_edges": kind(edges)}, 1, "ldg")
        assert found.disk == 16 * nodes + each * edges
    assert plan({"num_nodes": 10**8, "num_edges": 5 * 10**9}, 1, "ldg").memory == 154_000_000_000


def test_plan_warns_of_what_is_short():
    bare = {"seconds": 300.0, "free_memory": 2**30, "free_disk": 2**30, "num_parts": 4}
    short = Plan(memory=2**33, disk=2**32, part_method="metis", **bare)
    assert [text.split(":")[0] for text in short.warnings] == [
        "memory is short",
        "one machine like this cannot hold all parts in memory",
        "disk is short",
    ]
    assert "8.0 GiB needed, 1.0 GiB free" in str(short) and 'part_method="ldg"' in str(short)
    assert "5 minutes" in str(short)
    assert Plan(memory=1, disk=1, part_method="metis", **bare).warnings == []
    silent = Plan(2**60, 2**60, 1.0, None, None, 4, "ldg")
    assert silent.warnings == [] and len(str(silent).splitlines()) == 1
