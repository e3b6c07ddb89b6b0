"""An explorer in notebooks: as lessons are stored, and as pages."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter, MarkdownExporter

from tests.helpers import ROOT

sys.path.insert(0, str(ROOT / "notebooks"))

from builder.pages import execute, make_page
from builder.source import read_lesson

WIDGET = "application/vnd.jupyter.widget-view+json"
SOURCE = """# %% slot="explore"
from gnnlab import plot


def times(machines=2):
    parts = {"compute": 8 / machines, "fetch": 1.0}
    return plot.time_parts({"one": {"compute": 8.0}, machines: parts})


plot.explore(times, machines=(1, 8))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cell as a notebook: not run (live.ipynb), and as lessons are stored (static.ipynb)."""
    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "lesson.py").write_text(SOURCE)
    lesson = read_lesson(folder / "lesson.py")
    outputs, warnings = execute(lesson, folder)
    assert warnings == []
    nbformat.write(make_page(lesson, "en", {}), folder / "live.ipynb")
    nbformat.write(make_page(lesson, "en", outputs), folder / "static.ipynb")
    return folder


def output(folder: Path) -> dict[str, Any]:
    page = nbformat.read(folder / "static.ipynb", as_version=4)
    (shown,) = page.cells[0].outputs
    return shown["data"]


def test_lessons_keep_the_picture_and_no_widget(folder: Path) -> None:
    assert set(output(folder)) == {"text/plain", "image/png"}
    assert output(folder)["text/plain"] == "explorer of times: machines = 2"


@pytest.mark.parametrize("with_widget", [False, True])
def test_pages_show_the_picture(folder: Path, with_widget: bool) -> None:
    """Also those of a notebook that a reader has run, in which the widget's number still stands."""
    page = nbformat.read(folder / "static.ipynb", as_version=4)
    if with_widget:
        number = {"version_major": 2, "version_minor": 0, "model_id": "0123456789abcdef"}
        page.cells[0].outputs[0]["data"][WIDGET] = number
    picture = output(folder)["image/png"].replace("\n", "")
    html, _ = HTMLExporter().from_notebook_node(page)
    assert f"data:image/png;base64,{picture}" in html.replace("\n", "")
    _, resources = MarkdownExporter().from_notebook_node(page)
    assert [name.endswith(".png") for name in resources["outputs"]] == [True]
