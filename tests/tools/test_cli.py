"""``gnnlab COMMAND`` and ``python -m gnnlab COMMAND``."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from gnnlab.tools import cli
from tests.helpers import ROOT


@pytest.mark.parametrize("command", [*cli.COMMANDS, "copy-files"])
def test_each_command_helps_with_an_example(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([command, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "example" in said and f"gnnlab {command.replace('-', '_')}" in said


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert all(command in said for command in cli.COMMANDS)


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["lunch"]) == 2
    out, err = capsys.readouterr()
    assert not out and "'lunch'" in err and "launch" in err


def test_as_a_module_and_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gnnlab", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["project"]
    assert done.stdout == f"gnnlab {project['version']}\n"
    assert project["scripts"]["gnnlab"] == "gnnlab.tools.cli:main"
