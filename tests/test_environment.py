"""The variables that processes of a job exchange, in one list."""

from __future__ import annotations

import re

import pytest

from gnnlab.errors import InvalidInput
from gnnlab.launch import environment
from gnnlab.launch.backends.local import loopback_hosts
from gnnlab.launch.job_spec import Command, JobSpec
from tests.helpers import ROOT

VARIABLES = [value for name, value in vars(environment).items() if name.isupper()]
VARIABLES.remove(environment.EVENTS)  # a file
# Read by users' programs and by gnnlab outside of jobs, or no variable.
OTHERS = {"GNNLAB_DATA_DIR", "GNNLAB_DATA_URL", "DGL_DOWNLOAD_DIR", "DGL_REPO", "DGL_FILES"}
OTHERS |= {"GNNLAB_FAST_GPU"}


def test_the_list_names_all_variables() -> None:
    named = set()
    for path in (ROOT / "gnnlab").rglob("*.py"):
        named |= set(re.findall(r"\b(?:DGL|GNNLAB)_[A-Z_]+[A-Z]\b", path.read_text("utf8")))
    assert named - OTHERS == set(VARIABLES)


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "²"])
def test_numbers(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNNLAB_CACHE_BYTES", "12")
    assert environment.number(environment.CACHE_BYTES) == 12
    monkeypatch.setenv("GNNLAB_CACHE_BYTES", text)
    with pytest.raises(InvalidInput, match=r"GNNLAB_CACHE_BYTES.*0.*'"):
        environment.number(environment.CACHE_BYTES)


def test_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GNNLAB_TIMEOUT", raising=False)
    assert environment.seconds(environment.TIMEOUT, 300.0) == 300
    for text in ("0", "inf", "soon"):
        monkeypatch.setenv("GNNLAB_TIMEOUT", text)
        with pytest.raises(InvalidInput, match=f"GNNLAB_TIMEOUT.*'{text}'"):
            environment.seconds(environment.TIMEOUT, 300.0)


def test_the_table_for_other_schedulers_has_what_processes_of_a_job_get() -> None:
    """In docs/clusters.md; two variables are for users' scripts."""
    text = (ROOT / "docs" / "clusters.md").read_text("utf8")
    table = text.partition("## Any other scheduler")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`([A-Z][A-Z_]+)(?:=\w+)?`", row)}
    job = JobSpec(
        Command.read("python x.py"), loopback_hosts(1), "g.json", "", 1, 1, 1, 1, None, "csc",
        "tls", 60.0, 3.0, {},
    )  # fmt: skip
    (server,), (trainer,) = job.servers(0, [[1]]), job.trainers(0, [[1]], 2)
    own = {n for n in server["env"] | trainer["env"] if n.startswith(("DGL_", "GNNLAB_"))}
    own -= {environment.NUM_CLIENTS, environment.GRAPH_FORMAT}
    assert own == {n for n in documented if n.startswith(("DGL_", "GNNLAB_"))}
    assert {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= documented & {*trainer["env"]}
