"""The first page of each language: what gnnlab is, for whom, how to start, the path of the lessons.

What it is, the lessons' contents, the first program and what to read next are those of the README;
the words of ``front.csv`` stand around them. A lesson's picture is a stored output of its notebook,
so figures with words speak the reader's language.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PICTURES = {  # number of a lesson → the cell whose picture stands for it
    "01": "blocks-code",
    "02": "judge-draw",
    "03": "frontier-draw",
    "04": "toy-code",
    "05": "look-draw",
    "06": "roles-code",
    "07": "timeline-code",
    "08": "number-draw",
    "09": "tree-code",
    "10": "choices-draw",
    "11": "toy-code",
    "12": "drift-code",
}
READERS = ("student", "teacher", "dgl", "large")
GROUPS = ("01", "05", "09")  # each begins with this lesson
ROW = re.compile(r"^\| \[[^\]]*\]\(([^)]*/(\d\d)_[^)]*)\) \| (.*) \|$", re.MULTILINE)


def write(lang: str, folder: Path, move: Callable[[str], str], clone: str) -> None:
    """Write ``index.md`` and its pictures.

    ``move`` makes links of the README lead from the page; ``clone`` is the command that clones the
    repository, empty as long as it has no address.
    """
    with (HERE / "front.csv").open(encoding="utf8", newline="") as file:
        words = {row["key"]: row[lang] for row in csv.DictReader(file)}
    text = (ROOT / ("README.md" if lang == "en" else f"README.{lang}.md")).read_text("utf8")
    top, _, program, lessons, following, rights = text.split("\n## ")
    _, _, what, _, picture = top.strip().split("\n\n")
    rows = {number: (target, said) for target, number, said in ROW.findall(lessons)}
    if list(rows) != list(PICTURES):
        raise ValueError(f"README ({lang}) has lessons {', '.join(rows)}; correct PICTURES")
    heading, about = lessons.split("\n\n")[:2]
    clone, make = clone or f"cd gnnlab  # {words['clone']}", f"make lab LESSON_LANG={lang}"
    begin = f"[{words['begin']}]({rows['01'][0]})"
    parts = [
        "---\nhide-toc: true\n---\n\n# gnnlab",
        box("front-what", what),
        box("front-buttons", begin, f"[{words['path']}](notebooks/{lang}/README.md)"),
        f"{picture}\n\n## {words['whom']}",
        box("cards", *(box("card", f"**{words[f'{r}.title']}**", words[r]) for r in READERS)),
        f"## {words['start']}\n\n{words['needs']}",
        f"```sh\n{clone}\n{make}  # {words['opens']}\n```",
        f"{words['other']}\n\n## {heading}\n\n{about}",
    ]
    for first, end in zip(GROUPS, (*GROUPS[1:], "99"), strict=True):
        group = [number for number in rows if first <= number < end]
        cards = [lesson(number, *rows[number], folder) for number in group]
        parts += [f"### {words[first]}", box("cards", *cards)]
    parts += [f"## {each.strip()}" for each in (program, following, rights)]
    (folder / "index.md").write_text(move("\n\n".join(parts)) + "\n", "utf8")


def box(kind: str, *parts: str) -> str:
    """Return parts of a page in a ``div`` of a class; parts may have boxes within."""
    fence = ":" * max([2, *map(len, re.findall("^:+", "\n".join(parts), re.MULTILINE))]) + ":"
    return "\n\n".join([f"{fence}{{container}} {kind}", *parts, fence])


def lesson(number: str, target: str, said: str, folder: Path) -> str:
    """Return the card of a lesson, whose picture is written into the folder."""
    cells = json.loads((ROOT / target).read_text("utf8"))["cells"]
    cell = next(each for each in cells if each["id"] == PICTURES[number])
    outputs = (each.get("data", {}) for each in cell["outputs"])
    packed = next(each["image/png"] for each in outputs if "image/png" in each)
    (folder / "pictures").mkdir(exist_ok=True)
    (folder / "pictures" / f"{number}.png").write_bytes(base64.b64decode(packed))
    # The address of a picture of this page begins with a dot: move leaves it alone.
    link = f"{number} [{title(ROOT / target)}]({target})"
    return box("card", f"![](./pictures/{number}.png)", link, said)


def title(path: Path) -> str:
    """Return the heading of a notebook."""
    return "".join(json.loads(path.read_text("utf8"))["cells"][0]["source"]).partition("\n")[0][2:]
