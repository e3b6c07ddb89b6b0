"""The page about what a run of the lessons checks: settings that were tried, conditions asserted.

The conditions are the ``assert`` statements of the lessons' code; the settings are those of
``tests/notebooks/knobs.csv``, with which ``make test-knobs`` runs the lessons.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from builder.source import Lesson

KNOBS = Path(__file__).resolve().parents[2] / "tests" / "notebooks" / "knobs.csv"
TOP = """\
# What the lessons check

Written by `notebooks/build.py` from the code of the lessons and from `tests/notebooks/knobs.csv`.

## Settings

Readers may change the settings of a lesson. `make test-knobs` runs each lesson with its settings as
written and with two other values of each; a cell that a value does not suit says so and names it.

| lesson | setting | as written | other values |
|---|---|---|---|
"""
MIDDLE = """
## Conditions

Each run of a lesson checks what its text says about results. A lesson stops at a condition that
does not hold; `AS_IN_TEXT` and the like stand before conditions that only the settings of the text
meet.
"""


def page(lessons: Sequence[Lesson]) -> str:
    """Return the page about these lessons."""
    with KNOBS.open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    text = TOP
    for lesson in lessons:
        for row in rows:
            if row["lesson"] == lesson.name[:2]:
                values = [code(row[each]) for each in ("written", "other", "another")]
                text += f"| {row['lesson']} | {row['name']} | {values[0]} | "
                text += f"{values[1]}, {values[2]} |\n"
    text += MIDDLE
    for lesson in lessons:
        if found := list(conditions(lesson)):
            text += f"\n### {lesson.name[:2]} {lesson.title('en')}\n\n"
            text += "| cell | condition | said where it does not hold |\n|---|---|---|\n"
            text += "".join(f"| {slot} | {code(test)} | {said} |\n" for slot, test, said in found)
    return text


def conditions(lesson: Lesson) -> Iterator[tuple[str, str, str]]:
    """Yield the cell, the code and the message of each assertion, in the order of the lesson."""
    for slot in lesson.slots:
        lines = (slot.code or "").split("\n")
        lines = ["" if line[:1] in ("%", "!") else line for line in lines]
        try:
            nodes = list(ast.walk(ast.parse("\n".join(lines))))
        except SyntaxError:  # a run of the cell says more
            continue
        known = {ast.unparse(n.targets[0]): n for n in nodes if isinstance(n, ast.Assign)}
        found = [node for node in nodes if isinstance(node, ast.Assert)]
        for node in sorted(found, key=lambda each: each.lineno):
            test = ast.unparse(node.test)
            said = "" if node.msg is None else ast.unparse(node.msg)
            message = known[said].value if said in known else node.msg
            if isinstance(message, ast.Constant):
                said = str(message.value)
            elif message is not None:
                said = code(ast.unparse(message))
            yield slot.name, ast.unparse(known.get(test, node.test)), said


def code(text: str) -> str:
    """Return code as it stands in the cell of a table."""
    return f"`{' '.join(text.split())}`".replace("|", "\\|")
