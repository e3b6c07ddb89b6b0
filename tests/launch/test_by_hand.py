"""Servers, samplers and trainers start without a launcher, by the variables that docs/clusters.md
describes and `gnnlab launch --dry-run` prints.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
from pathlib import Path

import pytest

import gnnlab as dgl
from gnnlab.launch import environment, launch
from gnnlab.launch.certificates import Authority
from tests.helpers import ROOT, free_port, run_processes

WORD = re.compile(r"`([A-Z][A-Z_]+)(?:=\w+)?`")


def contract() -> set[str]:
    """Names of the variables in the table of docs/clusters.md."""
    text = (ROOT / "docs" / "clusters.md").read_text("utf8")
    table = text.partition("## Any other scheduler")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for row in rows for name in WORD.findall(row)}


def printed(folder: Path) -> list[dict[str, str]]:
    """Variables of each server and each machine's trainers, as a dry run prints them."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        launch.run(
            "python3 train_dist.py",
            part_config=folder / "data" / "digits.json",
            ip_config="ip_config.txt",
            workspace=folder,
            num_samplers=1,
            dry_run=True,
        )
    processes = []
    for line in said.getvalue().splitlines():
        words = [word.partition("=") for word in shlex.split(line, comments=True)]
        variables = {name: value for name, equals, value in words if equals and name.isupper()}
        if environment.ROLE in variables:
            processes.append(variables)
    return processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace of two machines, whose addresses are of this computer."""
    g = dgl.data.load("digits").graph
    dgl.distributed.partition_graph(g, "digits", 2, tmp_path / "data")
    shutil.copy(ROOT / "examples" / "train_dist.py", tmp_path)
    (tmp_path / "ip_config.txt").write_text(f"127.0.0.1 {free_port()}\n127.0.0.1 {free_port()}\n")
    return tmp_path


def test_the_table_has_what_a_dry_run_prints(folder: Path) -> None:
    names = {name for variables in printed(folder) for name in variables}
    own = {name for name in names if name.startswith(("DGL_", "GNNLAB_"))}
    assert {environment.ROLE, environment.SERVER_ID, environment.KEYS} <= own
    unread = {environment.NUM_CLIENTS, environment.GRAPH_FORMAT}
    assert own - unread == {n for n in contract() if n.startswith(("DGL_", "GNNLAB_"))}
    assert {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= contract()


@pytest.mark.thorough("jobs of launch have these variables, which the test above compares")
def test_a_job_starts_by_hand(folder: Path) -> None:
    processes = printed(folder)
    authority = Authority()
    port = str(free_port())
    roles, environments = [], []
    for variables in processes:
        role, machine = variables[environment.ROLE], int(variables[environment.MACHINE])
        variables[environment.KEYS] = authority.issue(role, machine).to_json()
        if role == "client":  # one trainer a machine
            variables |= {"RANK": str(machine), "WORLD_SIZE": "2", "LOCAL_RANK": "0"}
            variables |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        roles.append(role)
        environments.append(variables)
    assert roles == ["server", "client"] * 2
    assert set().union(*environments) >= contract()
    args = ["--graph_name", "digits", "--batch_size", "60", "--num_epochs", "2"]
    script = folder / "train_dist.py"
    said = run_processes(script, environments, args, timeout=180)
    config = str(folder / "data" / "digits.json")
    alone = run_processes(script, [{}], [*args, "--part_config", config], timeout=180)
    shown = r"epoch +\d+  loss ([\d.]+)|accuracy ([\d.]+)"
    found, wanted = (
        [float(loss or share) for loss, share in re.findall(shown, text)]
        for text in (said[1], alone[0])
    )
    assert len(wanted) == 4
    assert found == pytest.approx(wanted, abs=2e-3)
