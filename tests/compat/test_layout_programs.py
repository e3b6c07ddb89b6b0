"""Programs in the style of code for DGL run unchanged, and learn what they assert.

One process runs all of them, as ``python -m gnnlab.as_dgl`` starts it: most of the time of a
program would be its imports.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.compat.test_layout_processes import REPLACE
from tests.helpers import THOROUGH, run_script

FOLDER = Path(__file__).with_name("programs")
SHORT = ["gcn", "gin", "trees"]
LONG = ["deepwalk", "rgcn", "sage", "sparse"]
LONG += ["bolt_disk", "bolt_link", "bolt_node", "bolt_typed"]
PROGRAMS = [*SHORT, *LONG]
OF_PROCESSES = "bolt_ddp"
AGAIN = pytest.mark.thorough("as the others; their layers and loaders are in the tests beside this")

RUN_ALL = """
import contextlib, io, json, runpy, sys, traceback

folder, *names = sys.argv[1:]
sys.path.insert(0, folder)
results = {}
for name in names:
    sys.argv = [f"{folder}/{name}.py"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except Exception:
            printed.write(traceback.format_exc())
            results[name] = ["failed", printed.getvalue()]
        else:
            results[name] = ["learned", printed.getvalue()]
print(json.dumps(results))
"""


def run_programs(folder: Path, names: list[str]) -> dict[str, list[str]]:
    """Whether each program failed or learned, and what it printed."""
    runner = folder / "run_all.py"
    runner.write_text(RUN_ALL)
    words = ["-m", "gnnlab.as_dgl", str(runner), str(FOLDER), *names]
    env = {"COMMUNITIES": str(folder), "DGL_DOWNLOAD_DIR": str(folder), "OMP_NUM_THREADS": "1"}
    printed = run_script(REPLACE, args=words, env=env, timeout=280, fresh=True)
    return json.loads(printed.splitlines()[-1])  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_programs(tmp_path_factory.mktemp("programs"), PROGRAMS if THOROUGH else SHORT)


@pytest.mark.parametrize("name", [*SHORT, *(pytest.param(name, marks=AGAIN) for name in LONG)])
def test_a_program_runs_unchanged_and_learns(name: str, results: dict[str, list[str]]) -> None:
    state, printed = results[name]
    print(printed)
    assert state == "learned", printed


@AGAIN
def test_a_program_of_two_processes(tmp_path: Path) -> None:
    words = ["-m", "gnnlab.as_dgl", str(FOLDER / f"{OF_PROCESSES}.py")]
    env = {"COMMUNITIES": str(tmp_path), "OMP_NUM_THREADS": "1"}
    printed = run_script(REPLACE, args=words, env=env, timeout=200, fresh=True)
    assert "test accuracy" in printed


def test_programs_know_nothing_of_gnnlab() -> None:
    found = sorted(path.stem for path in FOLDER.glob("*.py"))
    assert found == sorted([*PROGRAMS, OF_PROCESSES, "communities"])
    for path in FOLDER.glob("*.py"):
        assert "import gnnlab" not in path.read_text("utf8")
