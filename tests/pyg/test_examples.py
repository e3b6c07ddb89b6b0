"""The examples for PyG's users run, and learn far more than guessing."""

import re
from pathlib import Path

import pytest

pytest.importorskip("torch_geometric", reason="needs torch-geometric: make test-clients")
from tests.helpers import ROOT, run_script

EXAMPLES = ROOT / "examples"


def accuracy(script: str, *args: str) -> float:
    printed = run_script(EXAMPLES / "pyg" / script, args=args, timeout=250)
    return float(re.findall(r"test accuracy (\d\.\d+)", printed)[-1])


@pytest.mark.parametrize(
    "words",
    [
        "node_classification.py",
        pytest.param(
            "node_classification.py --conv gat",
            marks=pytest.mark.thorough("as with the other layer"),
        ),
        pytest.param("typed.py", marks=pytest.mark.thorough("test_sampler has typed graphs")),
        "link_prediction.py",
    ],
)
def test_on_one_machine(words: str) -> None:
    script, *args = words.split()
    assert accuracy(script, *args) > 0.8


@pytest.mark.parametrize(
    "words",
    [
        "--model sage",
        pytest.param("--model gat", marks=pytest.mark.thorough("as with the other model")),
        pytest.param("--task links", marks=pytest.mark.thorough("as on one machine")),
    ],
)
def test_on_a_graph_in_parts(words: str, tmp_path: Path) -> None:
    run_script(
        EXAMPLES / "partition.py",
        args=["--dataset", "digits", "--num_parts", "2", "--output", str(tmp_path)],
    )
    options = ["--graph_name", "digits", "--part_config", str(tmp_path / "digits.json")]
    assert accuracy("many_machines.py", *options, *words.split()) > 0.8
