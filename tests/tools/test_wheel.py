"""The wheel brings the lessons: built, unpacked elsewhere, copied by its command, and begun."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import NO_INDEX, ROOT

pytestmark = pytest.mark.thorough("builds a wheel and begins a lesson")
UNREACHABLE = re.compile(r"could not find a version|retrying|connection|timed out", re.IGNORECASE)


def pip(*words: str) -> None:
    command = [sys.executable, "-m", "pip", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240)
    if run.returncode and UNREACHABLE.search(run.stderr):
        pytest.skip(f"{NO_INDEX}: {run.stderr.strip().splitlines()[-1]}")
    assert run.returncode == 0, run.stderr


def test_from_the_wheel_to_a_korean_lesson(tmp_path: Path) -> None:
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    (wheel,) = tmp_path.glob("gnnlab-*.whl")
    assert wheel.stat().st_size < 20_000_000
    site = tmp_path / "site"  # stands before the checkout on the path
    pip("install", "--quiet", "--no-deps", "--target", str(site), str(wheel))
    env = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, str(site / "bin" / "gnnlab"), "lessons", "레슨", "--lang", "ko"]
    run = subprocess.run(
        [*command, "--no-open"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60
    )
    assert run.returncode == 0 and re.search(r"레슨: \d+ new; .*ko/README", run.stdout), run.stderr
    run = subprocess.run([*command[:2], "--version"], env=env, capture_output=True, text=True)
    assert ("(commit " in run.stdout) == (ROOT / ".git").exists()
    path = tmp_path / "레슨" / "ko" / "01_node_classification.ipynb"
    page = nbformat.read(path, as_version=4)
    begin = [cell for cell in page.cells if cell.cell_type == "code"][:6]
    page.cells = [*begin, nbformat.v4.new_code_cell("dgl.__file__")]
    client = NotebookClient(page, timeout=200, resources={"metadata": {"path": str(path.parent)}})
    client.execute(env=env)
    (where,) = page.cells[-1].outputs
    assert str(site) in where.data["text/plain"]
