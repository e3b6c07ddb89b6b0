"""``gnnlab COMMAND …``: the command line of all tools."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gnnlab.launch import probe

COMMANDS = {
    "lessons": "copy the lessons into a folder and open them in JupyterLab",
    "assignment": "turn lessons into assignments that nbgrader or otter-grader grade",
    "launch": "start a job on several machines, or on several that this computer plays",
    "copy_files": "give each machine its part of a graph, the scripts and the list of machines",
    "convert_partition": "convert the partition files of DGL or ParMETIS to a partitioned graph",
    "as_dgl": "run a program written for DGL as it is: `import dgl` gives it gnnlab",
    "export": "copy a helper, a single file that depends only on torch, into a project",
    "trace": "show how the processes of a job spent their time",
    "doctor": "check whether a job can run on the machines, before it starts",
}
_PACKAGES = {"launch": "launch", "copy_files": "launch", "doctor": "launch"}
_PACKAGES["convert_partition"] = "compat"
_HELP = """usage: gnnlab COMMAND [OPTIONS]

{commands}

gnnlab COMMAND --help shows the options of a command; gnnlab --version the version.

example:
    gnnlab doctor --ip_config ip_config.txt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line, or the arguments after ``gnnlab``; return the exit status."""
    argv = list(sys.argv[1:] if argv is None else argv)
    name = argv[0].replace("-", "_") if argv else ""
    if name in COMMANDS:
        package = _PACKAGES.get(name, "tools")
        return importlib.import_module(f"gnnlab.{package}.{name}").main(argv[1:])
    if name == "__version":
        commit = _commit()
        print(f"gnnlab {probe.versions()['gnnlab']}" + (commit and f" (commit {commit})"))
        return 0
    commands = "\n".join(f"  {each:19}{what}" for each, what in COMMANDS.items())
    if name in ("", "_h", "__help", "help"):
        print(_HELP.format(commands=commands), end="")
        return 0
    sys.stderr.write(f"gnnlab has no command {argv[0]!r}.\n{_HELP.format(commands=commands)}")
    return 2


def _commit() -> str:
    """Return the commit of git of a checkout, or from which the wheel was built; "" if unknown."""
    package = Path(__file__).resolve().parents[1]
    with suppress(OSError):
        return (package / "_commit").read_text("utf8").strip()  # written by hatch_build.py
    if not (package.parent / ".git").exists():
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(package.parent), "describe", "--always", "--dirty=, changed",
                   "--abbrev=40", "--exclude=*"]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return ""
