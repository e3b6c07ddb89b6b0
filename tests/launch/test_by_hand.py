"""The variables with which servers, samplers and trainers start without a launcher."""

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
from tests.helpers import ROOT, free_port

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
