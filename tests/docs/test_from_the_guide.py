"""docs/from_the_guide.md: each place in a lesson exists, and its code has the names beside it.

A line of docs/from_the_guide.csv describes code of DGL's guide, by its section: the names of gnnlab
that take its place, and where, as ``LESSON:CELL`` or as a file. Lines without a place are titles.

After a change of the list, or of a heading in a lesson, this writes the tables of all three pages:
``python -m tests.docs.test_from_the_guide``
"""

from __future__ import annotations

import csv
import functools
import importlib
import itertools
import json
import re
from typing import Any, NamedTuple

import pytest

from tests.helpers import ROOT

LANGS = ("en", "ko", "zh")
BEGIN, END = "<!-- tables: begin -->\n", "<!-- tables: end -->\n"
HEADS = {
    "en": "| in the guide | here | names |",
    "ko": "| 가이드의 코드 | gnnlab에서는 | 이름 |",
    "zh": "| 指南中的代码 | 本项目中的位置 | 名称 |",
}
MARKS = {"en": "", "ko": "(영어)", "zh": "（英文）"}  # of pages that are in English only
RENEW = "python -m tests.docs.test_from_the_guide"


class Place(NamedTuple):
    """Where something is done: the text of a link, its target, and the code there."""

    label: str
    target: str
    code: str


def rows() -> list[dict[str, str]]:
    with (ROOT / "docs/from_the_guide.csv").open(encoding="utf8") as file:
        return list(csv.DictReader(file))


LINES = [row for row in rows() if row["where"]]


@functools.cache
def cells(lesson: str, lang: str) -> tuple[str, list[dict[str, Any]]]:
    (path,) = (ROOT / "notebooks" / lang).glob(f"{lesson}_*.ipynb")
    return path.name, json.loads(path.read_text("utf8"))["cells"]


def find(where: str, lang: str) -> Place:
    """Return the place ``LESSON:CELL``, linked by the heading above it, or a file."""
    lesson, _, wanted = where.partition(":")
    if not wanted:
        return Place(f"`{where}`", f"../{where}", (ROOT / where).read_text("utf8"))
    name, found = cells(lesson, lang)
    heading = ""
    for cell in found:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
            *_, heading = heading, *re.findall(r"^#+ (.*)", prose, re.MULTILINE)
        if cell["id"] == wanted:
            # As Sphinx and GitHub name the anchors of headings.
            anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            return Place(f"{lesson} {heading}", f"../notebooks/{lang}/{name}#{anchor}", text)
    raise AssertionError(f"lesson {lesson} has no cell {wanted}")


def tables(lang: str) -> str:
    parts = []
    for _, group in itertools.groupby(rows(), lambda row: row["part"]):
        title, *lines = group
        number = title["part"] + " " if title["part"][0].isdigit() else ""
        parts.append(f"## {number}{title[lang]}\n\n{HEADS[lang]}\n|---|---|---|")
        for row in lines:
            places = [find(where, lang) for where in row["where"].split()]
            marks = [MARKS[lang] * place.target.endswith(".md") for place in places]
            links = dict.fromkeys(
                f"[{place.label}]({place.target}){mark}"
                for place, mark in zip(places, marks, strict=True)
            )
            names = ", ".join(f"`{name}`" for name in row["names"].split())
            parts[-1] += f"\n| {row[lang]} | {'<br>'.join(links)} | {names} |"
    return "\n\n".join(parts) + "\n\n"


def page(lang: str) -> tuple[Any, str]:
    """Return the path of a page, and its text with tables as they should be."""
    path = ROOT / "docs" / f"from_the_guide{'' if lang == 'en' else '.' + lang}.md"
    text = path.read_text("utf8")
    return path, f"{text.partition(BEGIN)[0]}{BEGIN}\n{tables(lang)}{END}"


@pytest.mark.parametrize("lang", LANGS)
def test_the_tables_are_those_of_the_list(lang: str) -> None:
    path, text = page(lang)
    assert path.read_text("utf8") == text, f"the list or a lesson has changed: {RENEW}"


@pytest.mark.parametrize("row", LINES, ids=lambda row: f"{row['part']}-{row['where']}")
def test_the_code_there_has_the_names(row: dict[str, str]) -> None:
    code = "\n".join(find(where, "en").code for where in row["where"].split())
    for name in row["names"].split():
        assert exists(name), name
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", code), name


def exists(name: str) -> bool:
    value = importlib.import_module("gnnlab")
    for part in name.split("."):
        if not hasattr(value, part):
            try:
                importlib.import_module(f"{value.__name__}.{part}")
            except ImportError:
                return False
        value = getattr(value, part)
    return True


def test_a_line_has_as_many_fields_as_columns() -> None:
    """A comma in a text that has no quotes would move the rest into the next languages."""
    assert [row for row in rows() if None in row or None in row.values()] == []


def test_all_sections_are_there() -> None:
    parts = [f"6.{i}" for i in range(1, 9)] + ["7"] + [f"7.{i}" for i in range(1, 5)] + ["M"]
    assert list(dict.fromkeys(row["part"] for row in LINES)) == parts


if __name__ == "__main__":
    for each in LANGS:
        where, text = page(each)
        where.write_text(text, "utf8")
