"""Notebooks: made from a lesson and the outputs of one run, read back, told from edited ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from builder import online
from builder.source import LANGS, Lesson, digest
from gnnlab import plot

ROOT = Path(__file__).resolve().parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"
Page = dict[str, Any]
Outputs = dict[str, list[dict[str, Any]]]


def make_page(lesson: Lesson, lang: str, outputs: Outputs, folder: str = "") -> Page:
    """The notebook of a lesson in one language; no outputs at all means that it was not run.

    ``folder`` is the notebook's, for links to it; by default the language. The title is followed by
    these links and by a folded cell that installs gnnlab where it is missing.
    """
    cells: list[Page] = []
    for slot in lesson.slots:
        if slot.code is None:
            cells.append(new_markdown_cell(slot.say(lang), id=slot.name))
            continue
        cell = new_code_cell(slot.code, id=slot.name)
        if slot.tags:
            cell["metadata"]["tags"] = slot.tags
        if slot.folded or "folded" in slot.tags:
            cell["metadata"]["jupyter"] = {"source_hidden": True}
        if outputs:
            cell["execution_count"] = sum(done["cell_type"] == "code" for done in cells) + 1
            cell["outputs"] = [] if slot.folded else outputs.get(slot.name, [])
            for i, out in enumerate(cell["outputs"]):
                if "execution_count" in out:  # the run had one cell more, which installs gnnlab
                    number = {"execution_count": cell["execution_count"]}
                    cell["outputs"][i] = NotebookNode(out | number)
        cells.append(cell)
    if lesson.slots[0].code is None:
        where = f"notebooks/{folder or lang}/{lesson.name}.ipynb"
        if elsewhere := online.links(where, lang):
            title, *text = cells[0]["source"].split("\n", 1)
            cells[0]["source"] = "\n".join([title, "", elsewhere, *text])
        hidden = {"jupyter": {"source_hidden": True}, "tags": ["remove-cell"]}
        cells.insert(1, new_code_cell(online.install(), id="install-gnnlab", metadata=hidden))
    metadata = {
        "kernelspec": {
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
            "name": "python3",
        },
        "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
        "gnnlab": {
            "lang": lang,
            "code": lesson.code if outputs else None,
            "cells": digest(cells),
        },
    }
    return new_notebook(cells=cells, metadata=metadata)


def read_page(path: Path) -> Page | None:
    """A notebook that `make_page` made; None for any other file."""
    try:
        page = nbformat.read(path, as_version=4)
    except (OSError, ValueError):
        return None
    return page if "gnnlab" in page["metadata"] else None


def is_edited(page: Page) -> bool:
    """Whether cells changed since the notebook was made."""
    return digest(page["cells"]) != page["metadata"]["gnnlab"]["cells"]


def stored_outputs(lesson: Lesson, paths: list[Path]) -> Outputs:
    """Outputs of exactly this code, from the first notebook that nobody has edited."""
    for path in paths:
        page = read_page(path)
        if page and page["metadata"]["gnnlab"]["code"] == lesson.code and not is_edited(page):
            return {c["id"]: c["outputs"] for c in page["cells"] if c["cell_type"] == "code"}
    return {}


def execute(lesson: Lesson, folder: Path) -> tuple[Outputs, list[str]]:
    """Run a lesson in a fresh kernel.

    Returns
    -------
    outputs
        Outputs of each cell. Widgets, which only a running kernel can draw, are left out, as is
        what has no other form: progress bars.
    warnings
        What cells wrote to stderr; it does not stay in the outputs. Figures without their font.
    """
    page = make_page(lesson, "en", {})
    client = NotebookClient(
        page,
        timeout=600,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    )
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    client.execute(env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))})
    outputs: Outputs = {}
    warnings = []
    for cell in page["cells"]:
        if cell["cell_type"] != "code":
            continue
        outputs[cell["id"]] = []
        for out in cell["outputs"]:
            if out.get("name") == "stderr":
                warnings.append(f"{lesson.name}: {cell['id']} wrote to stderr: {out['text']}")
                continue
            shown = out.get("data", {})
            if shown.pop(WIDGET, None) is None or set(shown) - {"text/plain"}:
                outputs[cell["id"]].append(out)
    return outputs, warnings + lacks_font(lesson.name, folder.name, outputs)


def lacks_font(name: str, lang: str, outputs: Outputs) -> list[str]:
    """Return a warning if there are figures, and no font has the letters of their language."""
    shown = [out for found in outputs.values() for out in found]
    has_figure = any("image/png" in out.get("data", {}) for out in shown)
    if lang not in LANGS[1:] or not has_figure:
        return []
    drawn = plot.language(lang)
    plot.language("en")
    if drawn == lang:
        return []
    return [
        f"{lang}/{name}: its figures were drawn in English, since no font with the letters of "
        f"{lang!r} is installed (Debian, Ubuntu: apt install fonts-noto-cjk); execute it again"
    ]


RUN = {"outputs", "execution_count"}  # what a run adds to a cell


def changed_cells(page: Page, wanted: Page) -> list[str]:
    """Names of the cells in which a notebook differs from what it should be.

    Outputs count if the other has any: those of an edited notebook are not taken over.
    """
    left_out = set() if any(cell.get("outputs") for cell in wanted["cells"]) else RUN
    found, wish = (
        {
            cell.get("id", "without id"): digest({k: cell[k] for k in cell if k not in left_out})
            for cell in book["cells"]
        }
        for book in (page, wanted)
    )
    return [name for name in wish | found if found.get(name) != wish.get(name)]
