"""The examples run to their end: by hand in one process, and as jobs on two machines.

The machines are played by this computer, and each has a server and a trainer, two in CI. What a job
learns with the same batches is what one process learns.
"""

from __future__ import annotations

import functools
import re
import runpy
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
import torch

from gnnlab.launch import launch
from tests.distributed.cluster import run_job
from tests.helpers import _TOKEN, ROOT, THOROUGH, _left_over, _segments, run_script

EXAMPLES = ROOT / "examples"
GRAPH = "그래프-1 ogb"
TRAINERS = 2 if THOROUGH else 1  # on each machine
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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


@pytest.fixture(scope="module")
def by_hand(folder: Path) -> Callable[[str], str]:
    """``by_hand(name)``: partition the graph of an example, run it, return what it printed."""

    @functools.cache
    def partition(kind: str) -> None:
        arguments = f"--dataset digits --num_parts 2 --kind {kind} --output {folder}/{kind}"
        run_script(EXAMPLES / "partition.py", args=[*arguments.split(), "--graph_name", GRAPH])

    @functools.cache
    def run(name: str) -> str:
        kind = RUNS[name].kind
        partition(kind)
        more = ["--part_config", f"{folder}/{kind}/{GRAPH}.json"]
        if name == "train_dist":
            more += ["--save", f"{folder}/by_hand.pt"]
        script, *arguments = words(name, 1, *more)
        return run_script(Path(script), args=arguments)

    return run


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


LONG = pytest.mark.thorough("one example shows the way")
EXAMPLE = [name if name == "train_dist" else pytest.param(name, marks=LONG) for name in RUNS]


@pytest.mark.parametrize("name", EXAMPLE)
def test_by_hand(name: str, by_hand: Callable[[str], str]) -> None:
    assert accuracy(by_hand(name)) > ACCURATE


@pytest.mark.thorough("it runs by hand above; test_job compares a job with one process")
@pytest.mark.parametrize("name", [name for name in RUNS if name != "train_dist"])
def test_as_a_job(name: str, by_hand: Callable[[str], str], folder: Path) -> None:
    by_hand(name)  # partitions the graph
    script, *arguments = words(name, 2)
    config = folder / RUNS[name].kind / f"{GRAPH}.json"
    found = run_job(Path(script), config, args=arguments)
    assert accuracy(found[0]) > ACCURATE


@pytest.mark.thorough("it runs by hand above; test_job compares a job with one process")
def test_as_a_job_of_the_launcher(
    by_hand: Callable[[str], str], folder: Path, tmp_path: Path
) -> None:
    printed, segments = by_hand("train_dist"), _segments()
    result = launch.run(
        [sys.executable, *words("train_dist", 2 * TRAINERS, "--save", f"{tmp_path}/job.pt")],
        part_config=folder / "plain" / f"{GRAPH}.json",
        num_machines=2,
        num_trainers=TRAINERS,
        extra_envs={_TOKEN: str(tmp_path)},
        log_dir=tmp_path,
    )
    assert result is not None
    found = accuracy(result.logs["trainer-0"])
    assert found > ACCURATE and found == accuracy(printed)  # 20 steps with the same batches
    assert _left_over(str(tmp_path), segments, [result.job]) is None
    one, job = torch.load(folder / "by_hand.pt"), torch.load(tmp_path / "job.pt")
    assert one.keys() == job.keys()
    for key in one:
        torch.testing.assert_close(job[key], one[key], rtol=0, atol=1e-6)


def test_payments(tmp_path: Path) -> None:
    """Each account of both days has a score, higher where fraud is known."""
    printed = run_script(EXAMPLES / "payments.py", args=[str(tmp_path)])
    assert "account: nodes appended: 50" in printed and "of new accounts: 50" in printed
    scores = pd.read_csv(tmp_path / "scores.csv").set_index("key")["fraud"]
    assert sorted(scores.index) == [f"KR{number:06}" for number in range(2050)]
    example = runpy.run_path(str(EXAMPLES / "payments.py"))
    accounts = example["tables"](np.random.default_rng(0), 0, 2000, 12_000)[0]
    known = scores[accounts["account"]].groupby(accounts["fraud"].to_numpy()).mean()
    assert known["yes"] > 1.5 * known["no"]
