"""Readers run a cell again, or go back: each code cell of each lesson runs twice without an error.

It takes twice as long as the lessons themselves, so CI does it with those that keep most state;
`make test ALL=1` does it with all. nbval runs the English lessons once and compares
their outputs; here the Korean and the Chinese ones take turns, whose code cells are the same but
for declared words.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT
from tests.lesson_kernels import forked

sys.path.insert(0, str(ROOT / "notebooks"))

from builder import words

NAMES = sorted(path.name for path in (ROOT / "notebooks" / "en").glob("*.ipynb"))

# Lessons whose cells assign most names again and change most objects, and those of this run.
MOST_STATE = ("03", "06")
TWICE = [n for n in NAMES if n.startswith(MOST_STATE) or not os.environ.get("CI")]
# Lessons of which any cell runs again after all cells below it did.
BACK = {"01", "02", "03", "05", "06", "07", "08", "09", "10", "11", "12"}


def run_cells_twice(path: Path, folder: Path) -> None:
    """Run a lesson in a folder, each code cell twice in a row; some, then from the end back."""
    page = nbformat.read(path, as_version=4)
    cells = [cell for cell in page.cells if cell.cell_type == "code"]
    order = [cell for cell in cells for _ in range(2)]
    if path.name[:2] in BACK:
        order = [*cells, *reversed(cells)]
    page.cells = [nbformat.from_dict(dict(cell)) for cell in order]
    for number, cell in enumerate(page.cells):
        cell["id"] = f"{cell['id']}-{number}"
    client = NotebookClient(page, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.create_kernel_manager().shutdown_wait_time = 60.0
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    with forked():
        client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    assert all(cell.execution_count == n for n, cell in enumerate(page.cells, 1))


def code_cells(lang: str, name: str) -> list[nbformat.NotebookNode]:
    page = nbformat.read(ROOT / "notebooks" / lang / name, as_version=4)
    return [cell for cell in page.cells if cell.cell_type == "code"]


def test_every_lesson_is_there() -> None:
    assert [name[:2] for name in NAMES] == [f"{n:02}" for n in range(1, 13)]


@pytest.mark.parametrize("lang", ["ko", "zh"])
@pytest.mark.parametrize("name", NAMES)
def test_code_cells_and_outputs_are_the_english_ones(name: str, lang: str) -> None:
    said = words.read_words(ROOT / "notebooks" / "src" / "words", name.removesuffix(".ipynb"))
    cells, english = code_cells(lang, name), code_cells("en", name)
    assert len(cells) >= 15
    if not said:
        assert cells == english
        return
    assert [cell.source for cell in cells] == [
        words.translate(cell.source, lang, said) for cell in english
    ]
    assert [(cell.id, cell.metadata) for cell in cells] == [
        (cell.id, cell.metadata) for cell in english
    ]
    for cell, model in zip(cells, english, strict=True):
        assert [sorted(out.get("data", ())) for out in cell.outputs] == [
            sorted(out.get("data", ())) for out in model.outputs
        ], cell.id
        if "nbval-ignore-output" not in cell.metadata.get("tags", ()):
            assert numbers(cell) == numbers(model), cell.id


def numbers(cell: nbformat.NotebookNode) -> list[str]:
    text = "".join(out.get("text", "") for out in cell.outputs)
    return sorted(re.findall(r"\d+(?:[.,]\d+)*", text))


@pytest.mark.thorough("takes minutes; the lessons themselves are run once by nbval")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TWICE)
def test_cells_run_twice(name: str, tmp_path: Path) -> None:
    lang = "ko" if NAMES.index(name) % 2 else "zh"
    # A folder like many readers' own: Korean letters and a space.
    folder = tmp_path / "수업 자료" / lang
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / lang / name, folder)
    run_cells_twice(folder / name, folder)
