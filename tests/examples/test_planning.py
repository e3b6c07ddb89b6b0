"""examples/planning.py against graphs that exist, and docs/planning.md against what it prints."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.data.generate import generate
from gnnlab.dataloading import NeighborSampler, NodeDataLoader
from gnnlab.distributed import partition_graph
from gnnlab.simulate import Network
from tests.helpers import ROOT

MACHINES = 4


@pytest.fixture(scope="module")
def planning() -> ModuleType:
    spec = importlib.util.spec_from_file_location("planning", ROOT / "examples" / "planning.py")
    assert spec and spec.loader
    module = sys.modules["planning"] = importlib.util.module_from_spec(spec)  # for dataclasses
    spec.loader.exec_module(module)
    return module


def count(num_nodes: int, follows: bool) -> tuple[float, float]:
    """Nodes that a seed reads and the remote share, with all of a generated graph in memory."""
    raw = generate(num_nodes, 20 * num_nodes, num_features=1, progress=False)
    ends = torch.from_numpy(raw.src), torch.from_numpy(raw.dst)
    g = dgl.graph((torch.cat(ends), torch.cat(ends[::-1])), num_nodes=num_nodes)
    place = np.random.default_rng(1).random(num_nodes)  # 0 draws the labels
    if follows:
        place = np.argsort(np.argsort(raw.label, kind="stable")) / num_nodes
    owner = torch.from_numpy((place * MACHINES).astype(np.int64))
    train = torch.from_numpy(raw.train_idx)
    how = {"batch_size": 128, "shuffle": True, "seed": 1, "drop_last": True}
    found = []
    for machine in range(MACHINES):
        mine = train[owner[train] == machine]
        for number, (nodes, _, _) in enumerate(
            NodeDataLoader(g, mine, NeighborSampler([10, 10]), **how)
        ):
            if number < 40:
                found.append((len(nodes), int((owner[nodes] != machine).sum())))
    rows, remote = np.mean(found, axis=0)
    return rows / 128, remote / rows


@pytest.mark.parametrize(
    "follows", [pytest.param(False, marks=pytest.mark.thorough("as with the other parts")), True]
)
def test_counts_without_the_graph_are_those_with_it(planning: ModuleType, follows: bool) -> None:
    """Within 3 % of the nodes, of which the sampling errors are 2 %, and 1.5 % of the shares."""
    num_nodes = 25_600
    cut = planning.Cut(planning.Endless(num_nodes), MACHINES, follows)
    found = planning.estimate(cut, 1e-6, Network())
    rows, remote = count(num_nodes, follows)
    assert found.rows == pytest.approx(rows, rel=0.03)
    assert found.remote == pytest.approx(remote, abs=0.015)


@pytest.mark.parametrize(("method", "follows"), [("random", False), ("metis", True)])
def test_size_of_a_part_is_that_of_its_files(
    planning: ModuleType, method: str, follows: bool, tmp_path: Path
) -> None:
    """Within 1 % for random parts; METIS does not find the communities exactly."""
    g = dgl.data.load("products-like", progress=False, num_nodes=25_600, num_edges=512_000)[0]
    partition_graph(g, "g", MACHINES, tmp_path, part_method=method)
    files = sum(path.stat().st_size for path in tmp_path.glob("part*/graph/**/*.npy"))
    features, structure = planning.Cut(planning.Endless(25_600), MACHINES, follows).part_bytes()
    assert features == 400 * 25_600 / MACHINES
    assert structure == pytest.approx(files / MACHINES, rel=0.05 if follows else 0.01)


def test_a_step_of_two_machines_by_hand(planning: ModuleType) -> None:
    """Each asks the other for 2 nodes, which have 3 neighbors, and 1000 rows, and works 5 ms."""
    batch = planning.Batch(np.array([4000, 1000]), np.array([0, 2]), np.array([0, 3]))
    network = Network(bandwidth=8e9, latency=1e-3, per_request=0, per_byte=0, overhead=0)
    asking, work = 2 * 2e-3, 1e-6 * 5000
    sent = (8 * 2 + 8 * 5 + 8 * 1000 + 400 * 1000) / 1e9  # both directions of a link at once
    ring = 2 * (1e-3 + 302_268 / 2 / 1e9)
    copied = planning.SERVE * 1002
    found = planning.step_seconds([batch], 2, 1e-6, network)
    assert found == pytest.approx(asking + work + sent + ring + copied, rel=0.01)


@pytest.mark.thorough("the counts above are those of graphs")
@pytest.mark.parametrize("number", [0, 1])
def test_page_shows_what_its_commands_print(planning: ModuleType, number: int) -> None:
    """Numbers may differ a little between processors."""
    text = (ROOT / "docs" / "planning.md").read_text("utf8")
    commands = re.findall(r"^python3 planning.py --num_nodes ([\d_]+)$", text, re.MULTILINE)
    tables = re.findall(r"^\| quantity .*?\n\n", text, re.MULTILINE | re.DOTALL)
    assert len(commands) == len(tables) == 2
    shown = [line.strip("| ").split(" | ") for line in tables[number].splitlines()[2:] if line]
    found = planning.plan(int(commands[number]))
    assert [(row[0], row[3]) for row in found] == [(row[0], row[3]) for row in shown]
    for row, expected in zip(found, shown, strict=True):
        for one, other in zip(row[1:3], expected[1:3], strict=True):
            last = 1.1 * 10 ** -len(other.partition(".")[2])  # a unit of the last digit
            found_number, shown_number = float(one.strip("%")), float(other.strip("%"))
            assert found_number == pytest.approx(shown_number, rel=0.03, abs=last), row
