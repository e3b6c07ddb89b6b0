"""Kernels compile where neither the package nor the home folder can be written."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT

SOURCE = """
import torch
from gnnlab.kernels import relabel
with relabel.NodeList(9) as nodes:
    nodes.start(torch.tensor([4, 2]))
print(relabel.__file__)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which files stand where folders for compiled code would be: so also for root."""
    folder = tmp_path_factory.mktemp("read-only")
    ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
    shutil.copytree(ROOT / "gnnlab", folder / "gnnlab", ignore=ignored)
    (folder / "gnnlab/kernels/__pycache__").touch()
    return folder


def run(package: Path, temporary: Path) -> str:
    """Compile a kernel in a fresh interpreter; return what it wrote to stderr."""
    inherited = {
        n: v for n, v in os.environ.items() if not n.startswith(("NUMBA", "XDG", "PYTEST"))
    }
    env = inherited | {"HOME": os.devnull, "TMPDIR": str(temporary), "PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", SOURCE], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(package))
    return done.stderr


def test_compiled_code_goes_to_a_private_folder(package: Path, tmp_path: Path) -> None:
    warned = run(package, tmp_path)
    (folder,) = tmp_path.iterdir()
    assert f"compiled kernels are kept in {folder}" in warned and warned.count("Warning") == 1
    assert folder.name == f"gnnlab-kernels-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.rglob("*.nb[ic]"))
    assert run(package, tmp_path) == ""
    assert list(tmp_path.iterdir()) == [folder]


def test_a_folder_that_others_may_write_to_is_left_alone(package: Path, tmp_path: Path) -> None:
    open_to_all = tmp_path / f"gnnlab-kernels-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    warned = run(package, tmp_path)
    assert not list(open_to_all.iterdir())
    (other,) = set(tmp_path.iterdir()) - {open_to_all}
    assert str(other) in warned and stat.S_IMODE(other.stat().st_mode) == 0o700
