"""How numba is loaded, and where it keeps compiled code."""

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
import numpy as np
from gnnlab.kernels import halo
halo.mark_outside(np.array([4, 2]), 0, 3, np.zeros(9, np.bool_))
print(halo.__file__)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which files stand where folders for compiled code would be: so also for root."""
    folder = tmp_path_factory.mktemp("read-only")
    ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
    shutil.copytree(ROOT / "gnnlab", folder / "gnnlab", ignore=ignored)
    (folder / "gnnlab/kernels/__pycache__").touch()
    return folder


NO_HOME = """
import pwd

def getpwuid(uid):
    raise KeyError(uid)

pwd.getpwuid = getpwuid
"""


def run(package: Path, temporary: Path, home: str | None = os.devnull) -> str:
    """Compile a kernel in a fresh interpreter; return what it wrote to stderr."""
    inherited = {
        n: v for n, v in os.environ.items() if not n.startswith(("NUMBA", "XDG", "PYTEST"))
    }
    env = inherited | {"TMPDIR": str(temporary), "PYTHONPATH": str(package)}
    env.pop("HOME", None)
    if home is not None:
        env["HOME"] = home
    source = SOURCE if home is not None else NO_HOME + SOURCE
    done = subprocess.run(
        [sys.executable, "-P", "-c", source],
        env=env,
        cwd=temporary,
        capture_output=True,
        text=True,
        timeout=120,
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


def test_without_a_home_folder_code_is_kept_beside_the_source(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__", "*.nb?")
    shutil.copytree(ROOT / "gnnlab", tmp_path / "package/gnnlab", ignore=ignored)
    (tmp_path / "temporary").mkdir()
    assert run(tmp_path / "package", tmp_path / "temporary", home=None) == ""
    assert not list((tmp_path / "temporary").iterdir())
    assert list((tmp_path / "package/gnnlab/kernels/__pycache__").glob("*.nbi"))


START = """
import gc, sys
import numpy as np
from gnnlab.kernels import jit, rng
assert gc.isenabled() and gc.get_freeze_count() == 0
assert "numba.np.arraymath" in sys.modules and "scipy.linalg" not in sys.modules
product = jit.njit(lambda a, b: a @ b)
assert (product(np.eye(2), np.full((2, 2), 3.0)) == 3).all()
assert "scipy.linalg.cython_blas" in sys.modules
"""


def test_numba_starts_without_scipy_and_the_collector() -> None:
    """The collector is as before; a matrix product imports what it needs."""
    subprocess.run([sys.executable, "-c", START], cwd=ROOT, check=True, timeout=120)
