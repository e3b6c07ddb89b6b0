"""Run a program written for DGL as it is: `import dgl` gives it gnnlab.

    gnnlab as-dgl -- python train.py --lr 0.01

All processes that the program starts find gnnlab too: ranks of torchrun, workers, jobs of gnnlab
launch. A folder on PYTHONPATH does that; it has the package dgl and nothing else.
`python -m gnnlab.as_dgl train.py --lr 0.01` is short for the above.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from gnnlab import environment
from gnnlab.tools.cli import command_parser

__all__ = ["FOLDER", "main", "note_on_other_dgl", "run"]

FOLDER = str(Path(__file__).parents[1] / "compat" / "on_path")
"""Folder with the package ``dgl``."""


def note_on_other_dgl() -> str:
    """Return one line on the DGL that is installed and not used; empty if none is.

    Examples
    --------
    >>> from gnnlab.tools.as_dgl import note_on_other_dgl
    >>> note_on_other_dgl()
    ''
    """
    found = PathFinder.find_spec("dgl", [folder for folder in sys.path if folder != FOLDER])
    if found is None or not found.origin:  # nothing, or some folder of that name
        return ""
    package = Path(__file__).parents[1]
    return f"gnnlab: `import dgl` gives gnnlab ({package}), not the DGL of {found.origin}"


def run(command: Sequence[str]) -> int:
    """Replace this process with a command whose processes find gnnlab as ``dgl``.

    Parameters
    ----------
    command : sequence of str
        The program and its arguments.

    Returns
    -------
    int
        Exit status: of the command on Windows, where processes are not replaced; 127 if the
        program does not exist.
    """
    program = shutil.which(command[0])
    if program is None:
        print(f"gnnlab as-dgl: there is no program {command[0]!r}", file=sys.stderr)
        return 127
    if note := note_on_other_dgl():
        print(note, file=sys.stderr)
    folders = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
    path = os.pathsep.join([FOLDER, *(each for each in folders if each != FOLDER)])
    env = {**os.environ, "PYTHONPATH": path, environment.AS_DGL: "1"}
    if os.name == "nt":
        return subprocess.call(list(command), executable=program, env=env)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, list(command), env)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``gnnlab as-dgl``; return its exit status."""
    parser = command_parser("as_dgl", __doc__, 2)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program and its arguments")
    command = parser.parse_args(argv).command
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        parser.error("which program? For example: gnnlab as-dgl -- python train.py")
    return run(command)
