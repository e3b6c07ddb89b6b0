"""Readers change a setting: each lesson runs with its settings at two other values.

``knobs.csv`` names a setting as its cell writes it and two other ways to write it. All settings of
a lesson change at once, so it runs twice. A cell may stop, but then its message must name the
setting; a bare assertion or an error from deep within the library would leave a reader alone.

It takes as long as all lessons twice: ``make test-knobs``.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.helpers import NO_KNOBS, ROOT

LESSONS = sorted(path.name for path in (ROOT / "notebooks" / "en").glob("[0-9]*.ipynb"))
with open(Path(__file__).with_name("knobs.csv"), encoding="utf8", newline="") as file:
    ROWS = list(csv.DictReader(file))


def turned(name: str, which: str) -> tuple[nbformat.NotebookNode, list[str]]:
    """Return a lesson with other settings, and the names of these."""
    page = nbformat.read(ROOT / "notebooks" / "en" / name, as_version=4)
    changed = []
    for row in ROWS:
        if row["lesson"] == name[:2]:
            cells = [c for c in page.cells if c.cell_type == "code" and row["written"] in c.source]
            assert len(cells) == 1, f"{name}: {row['written']!r} is in {len(cells)} cells"
            cells[0].source = cells[0].source.replace(row["written"], row[which], 1)
            changed.append(row["name"])
    return page, changed


@pytest.mark.parametrize("name", LESSONS)
def test_each_setting_is_where_the_table_says(name: str) -> None:
    assert all(turned(name, which)[1] for which in ("other", "another"))


@pytest.mark.skipif("GNNLAB_TEST_KNOBS" not in os.environ, reason=NO_KNOBS)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("which", ["other", "another"])
@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_bears_other_settings(name: str, which: str, tmp_path: Path) -> None:
    page, changed = turned(name, which)
    client = NotebookClient(page, timeout=900, resources={"metadata": {"path": str(tmp_path)}})
    paths = filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])
    try:
        client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    except CellExecutionError as error:
        assert any(each in error.evalue for each in changed), str(error)
