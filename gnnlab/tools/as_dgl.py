"""Run a program written for DGL as it is: `import dgl` gives it gnnlab.

    gnnlab as-dgl -- python train.py --lr 0.01

All processes that the program starts find gnnlab too: ranks of torchrun, workers, jobs of gnnlab
launch. A folder on PYTHONPATH does that; it has the package dgl and nothing else.
`python -m gnnlab.as_dgl train.py --lr 0.01` is short for the above. With --check, it says which
names of dgl a program uses that are missing, and what to use instead; the program does not run.
With --wheel, it writes a package dgl that gives gnnlab, for pip and libraries that require dgl.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path

from gnnlab.errors import InvalidInput, writing
from gnnlab.launch import environment
from gnnlab.system.command import command_parser

FOLDER = str(Path(__file__).parents[1] / "compat" / "on_path")
"""Folder with the package ``dgl``."""


def note_on_other_dgl() -> str:
    """Return one line on the DGL that is installed and not used; empty if none is."""
    found = PathFinder.find_spec("dgl", [folder for folder in sys.path if folder != FOLDER])
    if found is None or not found.origin:  # nothing, or some folder of that name
        return ""
    if b"import gnnlab.compat.as_dgl" in Path(found.origin).read_bytes():  # from write_wheel
        return ""
    package = Path(__file__).parents[1]
    return f"gnnlab: `import dgl` gives gnnlab ({package}), not the DGL of {found.origin}"


def run(command: Sequence[str]) -> int:
    """Replace this process with a command whose processes find gnnlab as ``dgl``.

    It returns an exit status: that of the command on Windows, where processes are not replaced; 127
    if the program does not exist.
    """
    program = shutil.which(command[0])
    if program is None:
        print(f"gnnlab as-dgl: no program {command[0]!r} (a script: python FILE)", file=sys.stderr)
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


def write_wheel(folder: str | os.PathLike[str], version: str = "2.1.0") -> Path:
    """Write a wheel of a package named ``dgl`` that gives gnnlab, and return its path.

    The folder is made if it does not exist; pip and other packages see the version.
    """
    if not re.fullmatch(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)?", version):
        raise InvalidInput(f"version is one such as 2.1.0; found {version!r}")
    if note := note_on_other_dgl():
        raise InvalidInput(
            f"{note.rpartition('not ')[2]} is installed here, and the wheel would replace it: "
            "pip uninstall dgl, or use another environment"
        )
    info = f"dgl-{version}.dist-info"
    files = {
        "dgl/__init__.py": Path(FOLDER, "dgl", "__init__.py").read_bytes(),
        f"{info}/METADATA": (
            f"Metadata-Version: 2.1\nName: dgl\nVersion: {version}\n"
            "Summary: import dgl gives gnnlab, which must be installed too\n"
        ).encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: gnnlab\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    lines = [f"{info}/RECORD,,"]
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
        lines.append(f"{name},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = "\n".join([*lines, ""]).encode()
    path = Path(folder, f"dgl-{version}-py3-none-any.whl")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(path, "w") as wheel:
            for name, content in files.items():
                wheel.writestr(zipfile.ZipInfo(name), content)  # dated 1980: the same every time
    return path


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``gnnlab as-dgl``; return its exit status."""
    parser = command_parser("as_dgl", __doc__, 2)
    parser.add_argument(
        "--check", metavar="PATH", help="a program, a notebook or a folder: are its names here?"
    )
    parser.add_argument("--wheel", metavar="DIR", help="write a wheel named dgl to this folder")
    parser.add_argument("--version", default="2.1.0", help="its version (2.1.0)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="program and its arguments")
    options = parser.parse_args(argv)
    try:
        if options.check is not None:
            check = importlib.import_module("gnnlab.compat.check")  # which stands on this package
            text, is_complete = check.report(Path(options.check))
            print(text)
            return 0 if is_complete else 1
        if options.wheel is not None:
            path = write_wheel(options.wheel, options.version)
            print(f"{path} gives gnnlab as dgl {options.version}: pip install {path}")
            return 0
    except InvalidInput as error:
        parser.error(str(error))
    command = options.command[options.command[:1] == ["--"] :]
    if not command:
        parser.error("which program? For example: gnnlab as-dgl -- python train.py")
    return run(command)
