"""The examples run to their end: by hand in one process, and as jobs on two machines.

The machines are played by this computer, and each has a server and two trainers. What a job learns
with the same batches is what one process learns.
"""

from __future__ import annotations

import re
import runpy
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from gnnlab.tools import launch
from tests.helpers import _TOKEN, ROOT, _left_over, _segments, run_script

EXAMPLES = ROOT / "examples"
GRAPH = "그래프-1 ogb"
ACCURATE = 0.9  # by far more than guessing, on each of the graphs


class Run(NamedTuple):
    """How an example is run: the kind of its graph, and arguments.

    Where a batch is that of a trainer, those of a job are as much smaller as there are trainers.
    """

    kind: str
    arguments: str
    batch_size: int


RUNS = {
    "train_dist": Run("plain", "--num-epochs 10 --batch-size 60", 60),
    "train_dist_transductive": Run("plain", "--num_epochs 4 --batch_size {}", 40),
    "train_dist_link": Run("links", "--num_epochs 2 --batch_size {}", 1000),
    "train_dist_hetero": Run("typed", "--num_epochs 4 --batch_size {}", 40),
}


def words(name: str, trainers: int, *more: str) -> list[str]:
    """The command line of an example."""
    arguments = RUNS[name].arguments.format(RUNS[name].batch_size // trainers)
    common = f"--graph_name '{GRAPH}' --ip_config ip_config.txt --num_gpus -1 {arguments}"
    return [str(EXAMPLES / f"{name}.py"), *shlex.split(common), *more]


def accuracy(output: str) -> float:
    """The last one that was printed."""
    return float(re.findall(r"test accuracy (\d\.\d+)", output)[-1])


@pytest.fixture(scope="module")
def by_hand(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A folder with the graphs in two parts, and what each example printed."""
    folder = tmp_path_factory.mktemp("examples")
    scripts = []
    for kind in ("plain", "links", "typed"):
        arguments = f"--dataset digits --num_parts 2 --kind {kind} --output {folder}/{kind}"
        more = [*arguments.split(), "--graph_name", GRAPH]
        scripts.append([str(EXAMPLES / "partition.py"), *more])
    for name, (kind, *_) in RUNS.items():
        more = ["--part_config", f"{folder}/{kind}/{GRAPH}.json"]
        if name == "train_dist":
            more += ["--save", f"{folder}/by_hand.pt"]
        scripts.append(words(name, 1, *more))
    printed = {
        Path(script).stem: run_script(Path(script), args=arguments)
        for script, *arguments in scripts
    }
    return folder, printed


@pytest.mark.parametrize("name", [*RUNS, "partition"])
def test_names_of_options_take_dashes(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options are read up to --help, which lists both spellings of each."""
    common = ["--num-parts=3"] if name == "partition" else ["--num-epochs", "2", "--batch-size=9"]
    monkeypatch.setattr(sys, "argv", [name, "--graph-name", "a-b", *common, "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert ended.value.code == 0
    found = set(re.findall(r"--[a-z_-]+", capsys.readouterr().out))
    assert "--graph-name" in found
    for option in found:
        assert {option.replace("_", "-"), "--" + option[2:].replace("-", "_")} <= found


@pytest.mark.thorough("the jobs below do the same")
@pytest.mark.parametrize("name", RUNS)
def test_by_hand(name: str, by_hand: tuple[Path, dict[str, str]]) -> None:
    assert accuracy(by_hand[1][name]) > ACCURATE


LONG = pytest.mark.thorough("jobs of one example show the way; by hand, each of them runs")


@pytest.mark.parametrize(
    "name", [name if name == "train_dist" else pytest.param(name, marks=LONG) for name in RUNS]
)
def test_as_a_job(name: str, by_hand: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    folder, printed = by_hand
    more = ["--save", f"{tmp_path}/job.pt"] if name == "train_dist" else []
    segments = _segments()
    result = launch.run(
        [sys.executable, *words(name, 4, *more)],
        part_config=folder / RUNS[name].kind / f"{GRAPH}.json",
        num_machines=2,
        num_trainers=2,
        extra_envs={_TOKEN: str(tmp_path)},
        log_dir=tmp_path,
    )
    assert result is not None
    found = accuracy(result.logs["trainer-0"])
    assert found > ACCURATE
    assert _left_over(str(tmp_path), segments, [result.job]) is None
    if name == "train_dist":  # 20 steps with the same batches
        assert found == accuracy(printed[name])
        one, four = torch.load(folder / "by_hand.pt"), torch.load(tmp_path / "job.pt")
        assert one.keys() == four.keys()
        for key in one:
            torch.testing.assert_close(four[key], one[key], rtol=0, atol=1e-6)
