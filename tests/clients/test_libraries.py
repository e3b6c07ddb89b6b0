"""DGL-LifeSci, MatGL and ALIGNN, unchanged, on gnnlab: the same figures as with DGL 2.1.

Each program in ``programs`` trains models of one library on data that it makes, from weights that
are the same everywhere; ``figures.json`` has what it writes with DGL 2.1.0 and torch 2.2.1. They
run in an environment of their own, which ``LIBRARIES_VENV`` names; `make test-clients` makes it.

To make ``figures.json`` again, in an environment VENV of Python 3.11: ``pip install torch==2.2.1
dgl==2.1.0 torchdata==0.7.1 'numpy<2' 'scipy<1.14' 'pandas<2.3' 'pydantic<2.12' 'setuptools<81'
pyyaml psutil packaging`` and what ``install.sh`` installs besides gnnlab; then ``python -m
tests.clients.test_libraries VENV/bin/python``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAMS = ("molecules", "potentials", "crystals")
PYTHON = Path(os.environ.get("LIBRARIES_VENV", ""), "bin", "python").absolute()

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not PYTHON.exists(),
        reason=f"there is no {PYTHON}: make test-clients installs the libraries",
    ),
]


def figures(folder: Path, name: str, *python: str) -> Any:
    """Run a program and return the figures that it writes."""
    done = subprocess.run(
        [*python, str(HERE / "programs" / f"{name}.py"), "figures.json"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1", "DGLBACKEND": "pytorch"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return json.loads((folder / "figures.json").read_text())


def flat(value: Any) -> Iterator[float]:
    """The numbers in nested dicts and lists, dicts in the order of their keys."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list):
        for each in value:
            yield from flat(each)
    else:
        yield value


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_library_computes_what_it_computes_with_dgl(tmp_path: Path, name: str) -> None:
    expected = json.loads((HERE / "figures.json").read_text())[name]
    found = figures(tmp_path, name, str(PYTHON), "-m", "gnnlab.as_dgl")
    assert found.keys() == expected.keys()
    for model, sets in expected.items():
        assert found[model].keys() == sets.keys()
        for what, numbers in sets.items():
            ours, theirs = list(flat(found[model][what])), list(flat(numbers))
            largest = max(map(abs, theirs))
            assert largest > 0 and ours == pytest.approx(theirs, abs=2e-5 * largest), (model, what)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        made = {name: figures(Path(scratch), name, sys.argv[1]) for name in PROGRAMS}
    lines = (f"{json.dumps(name)}: {json.dumps(of)}" for name, of in made.items())
    (HERE / "figures.json").write_text("{" + ",\n".join(lines) + "}\n")
