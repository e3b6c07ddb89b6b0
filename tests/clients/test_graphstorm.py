"""GraphStorm 0.5.1, unchanged, on gnnlab: examples/graphstorm on two machines, by its own launcher.

It runs in an environment of its own, which ``GRAPHSTORM_VENV`` names; `make test-clients` makes it.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from tests.helpers import ROOT, free_port
from tests.launch.machines import Cluster, cluster

EXAMPLE = ROOT / "examples" / "graphstorm"
PYTHON = Path(os.environ.get("GRAPHSTORM_VENV", ""), "bin", "python").absolute()

pytestmark = [
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not PYTHON.exists(), reason=f"there is no {PYTHON}: make test-clients installs GraphStorm"
    ),
]


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("machines")) as made:
        yield made


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("graphstorm")
    python(folder, str(EXAMPLE / "make_data.py"), "data")
    python(
        *(folder, "-m", "gnnlab.as_dgl", "-m", "graphstorm.gconstruct.construct_graph"),
        *("--conf-file", "data/graph.json", "--output-dir", "graph", "--graph-name", "papers"),
        *("--num-parts", "2", "--add-reverse-edges"),
    )
    return folder


def python(folder: Path, *words: str, **env: str) -> str:
    """Run Python of GraphStorm's environment, and return its output, also that of jobs."""
    with tempfile.TemporaryDirectory() as scratch:  # torchrun leaves a folder there
        done = subprocess.run(
            [PYTHON, *words],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": scratch, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


Job = Callable[..., str]


@pytest.fixture(scope="module")
def job(machines: Cluster, workspace: Path) -> Job:
    """``job("gs_node_classification", "nodes.yaml", …)`` runs a command of GraphStorm."""

    def run(command: str, config: str, *words: str) -> str:
        lines = [f"{machine.address} {free_port()}\n" for machine in machines.machines]
        (workspace / "ip_config.txt").write_text("".join(lines))
        return python(
            *(workspace, "-m", "gnnlab.as_dgl", "-m", f"graphstorm.run.{command}"),
            *("--workspace", str(workspace), "--ssh-port", str(machines.port)),
            *("--ip-config", "ip_config.txt", "--part-config", "graph/papers.json"),
            *("--num-trainers", "1", "--num-servers", "1", "--cf", str(EXAMPLE / config), *words),
            PATH=f"{machines.folder / 'bin'}:{os.environ['PATH']}",
        )

    return run


def best(output: str, metric: str) -> float:
    return float(re.findall(rf"best_test_score: {{'{metric}': ([0-9.]+)}}", output)[-1])


def test_nodes_are_classified_saved_restored_and_predicted(job: Job, workspace: Path) -> None:
    output = job("gs_node_classification", "nodes.yaml", "--save-model-path", "nodes")
    assert best(output, "accuracy") > 0.7  # a guess: 0.25
    saved = workspace / "nodes" / "epoch-3"
    rows = [torch.load(file) for file in sorted((saved / "author").glob("sparse_emb_*.pt"))]
    assert sum(map(len, rows)) == 800 and len(rows) == 2  # authors have no features; two trainers
    restored = ("--restore-model-path", "nodes/epoch-3")
    output = job("gs_node_classification", "nodes.yaml", *restored, "--num-epochs", "1")
    assert best(output, "accuracy") > 0.8
    words = *restored, "--save-prediction-path", "predicted"
    job("gs_node_classification", "nodes.yaml", "--inference", *words)
    script = (
        "import numpy as np, pandas as pd, pathlib\n"
        "files = list(pathlib.Path('predicted').rglob('*.parquet'))\n"
        "found = pd.concat(map(pd.read_parquet, files))\n"
        "papers = pd.read_parquet('data/papers.parquet').set_index('id')\n"
        "classes = np.stack(found['pred'].to_numpy()).argmax(1)  # of the probabilities\n"
        "right = classes == papers.label[found['nid']].to_numpy()\n"
        "print(len(found), right.mean())"
    )
    count, right = python(workspace, "-c", script).split()[-2:]
    assert int(count) >= 200 and float(right) > 0.7


def test_two_trainers_of_one_machine(workspace: Path) -> None:
    """A graph in one part needs neither addresses nor ssh."""
    python(
        *(workspace, "-m", "gnnlab.as_dgl", "-m", "graphstorm.gconstruct.construct_graph"),
        *("--conf-file", "data/graph.json", "--output-dir", "whole", "--graph-name", "papers"),
        *("--num-parts", "1", "--add-reverse-edges"),
    )
    output = python(
        *(workspace, "-m", "gnnlab.as_dgl", "-m", "graphstorm.run.gs_node_classification"),
        *("--workspace", str(workspace), "--part-config", "whole/papers.json"),
        *("--num-trainers", "2", "--num-servers", "1", "--cf", str(EXAMPLE / "nodes.yaml")),
    )
    assert best(output, "accuracy") > 0.7  # a guess: 0.25


def test_edges_are_classified_and_predicted(job: Job, workspace: Path) -> None:
    output = job("gs_edge_classification", "edges.yaml", "--save-model-path", "edges")
    assert best(output, "accuracy") > 0.7  # a guess: 0.25
    words = ("--restore-model-path", "edges/epoch-2", "--save-prediction-path", "edges_predicted")
    one_order = ("--extra-envs", "PYTHONHASHSEED=0")  # of the node types, a set
    job("gs_edge_classification", "edges.yaml", "--inference", *words, *one_order)
    assert list((workspace / "edges_predicted").rglob("pred.predict-*"))


def test_links_are_predicted(job: Job, workspace: Path) -> None:
    output = job("gs_link_prediction", "links.yaml", "--save-model-path", "links")
    assert best(output, "mrr") > 0.25  # a guess among 51: 0.09
    words = ("--restore-model-path", "links/epoch-2", "--save-embed-path", "embeddings")
    job("gs_link_prediction", "links.yaml", "--inference", *words)
    assert list((workspace / "embeddings").rglob("*embed*"))


def test_ogb_finds_its_data_sets(workspace: Path) -> None:
    code = "from ogb.nodeproppred import DglNodePropPredDataset as d; print(d.__name__)"
    assert "DglNodePropPredDataset" in python(workspace, "-m", "gnnlab.as_dgl", "-c", code)
