"""Reports count what the files hold; plans are near what partitioning takes."""

from __future__ import annotations

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


def test_text_names_what_it_counts(config):
    lines = str(partition_report(config)).splitlines()
    assert lines[0] == "toy: 2 parts (custom), halo of 1 hop"
    assert lines[1].split("  ")[-1] == "train_mask" and len({len(line) for line in lines[1:5]}) == 1
    assert "40.0% of the edges are cut; 0.80 halo nodes per node" in lines[5]


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


def test_planned_edge_ids_take_eight_bytes_from_two_to_the_31_edges():
    sizes = [{"num_nodes": 10**6, "num_edges": 2**31 - less} for less in (1, 0)]
    narrow, wide = (plan(of, 1).disk for of in sizes)  # one part: no edges between parts
    assert wide - narrow == pytest.approx(4 * 2**31, rel=1e-6)


@pytest.mark.parametrize("kind", [int, float, np.int64, np.uint64])
def test_plans_of_billions_of_edges(kind):
    """5 billion edges, node IDs of 4 and edge IDs of 8 bytes: 16 bytes a node and 12 an edge."""
    found = plan({"num_nodes": kind(10**8), "num_edges": kind(5 * 10**9)}, 1, "ldg")
    assert (found.disk, found.memory) == (61_600_000_000, 154_000_000_000)
    narrow = plan({"num_nodes": np.int32(10**8), "num_edges": np.int32(2**31 - 1)}, 1, "random")
    assert narrow.disk == 16 * 10**8 + 8 * (2**31 - 1)
    wide = plan({"num_nodes": kind(2**31), "num_edges": kind(5 * 10**9)}, 1, "ldg")
    assert wide.disk == 16 * 2**31 + 16 * 5 * 10**9


def test_plan_warns_of_what_is_short():
    bare = {"seconds": 300.0, "free_memory": 2**30, "free_disk": 2**30, "num_parts": 4}
    short = Plan(memory=2**33, disk=2**32, part_method="metis", **bare)
    assert [text.split(":")[0] for text in short.warnings] == ["memory is short", "disk is short"]
    assert "8.0 GiB needed, 1.0 GiB free" in str(short) and 'part_method="ldg"' in str(short)
    assert "5 minutes" in str(short)
    assert Plan(memory=1, disk=1, part_method="metis", **bare).warnings == []
    silent = Plan(2**60, 2**60, 1.0, None, None, 4, "ldg")
    assert silent.warnings == [] and len(str(silent).splitlines()) == 1


def test_plan_looks_at_the_disk_of_a_folder_to_come(tmp_path):
    assert plan(dgl.rand_graph(10, 10), 2, out_path=tmp_path / "not" / "yet").free_disk > 0
