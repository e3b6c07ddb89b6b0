"""The names of DGL in names.txt exist, differ or are missing as it says; docs/dgl.md shows them.

A line of names.txt is one of these, below the chapter of DGL's user guide that it belongs to::

    dgl.ops: gspmm gsddmm             exist
    missing dgl.ops: gather_mm        do not
    differs dgl.DGLGraph.adj: how     exists, and differs from DGL on purpose
    why dgl.graphbolt: what to do     about a missing name

After a change: ``python -m tests.compat.test_layout_names`` sorts the names anew by whether they
exist, and writes the tables of docs/dgl.md.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import warnings
from dataclasses import dataclass, field
from pathlib import Path

from tests.helpers import ROOT, run_script

NAMES = Path(__file__).with_name("names.txt")
PAGE = ROOT / "docs/dgl.md"
INSTEAD = ROOT / "gnnlab/compat/instead.txt"  # for `gnnlab as-dgl --check`
BEGIN, END = "<!-- names: begin -->\n", "<!-- names: end -->\n"
RENEW = "python -m tests.compat.test_layout_names"

# Reads full names, one on a line; prints those that do not exist, as JSON.
LOOK = """
import importlib, json, sys
import gnnlab.compat.as_dgl

def exists(path):
    parts = path.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            value = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        try:
            for part in parts[cut:]:
                classes = getattr(value, "__mro__", ())
                declared = any(part in vars(c).get("__annotations__", ()) for c in classes)
                value = None if declared else getattr(value, part)
            return True
        except AttributeError:
            continue
    return False

with open(sys.argv[1]) as file:
    print(json.dumps([path for path in file.read().split() if not exists(path)]))
"""


@dataclass
class Chapter:
    """Names of a chapter: all of them by place, those that are missing, notes by full name."""

    title: str
    places: dict[str, list[str]] = field(default_factory=dict)
    missing: set[str] = field(default_factory=set)
    differs: dict[str, str] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def paths(self) -> list[str]:
        return [f"{place}.{name}" for place, names in self.places.items() for name in names]


def read(text: str) -> list[Chapter]:
    chapters: list[Chapter] = []
    for line in text.splitlines():
        if line.startswith("# "):
            chapters.append(Chapter(line[2:]))
        elif line.strip():
            kind, place, rest = re.fullmatch(r"(?:(\w+) )?([\w.]+): (.+)", line).groups()  # type: ignore[union-attr]
            chapter = chapters[-1]
            if kind in ("differs", "why"):
                getattr(chapter, kind)[place] = rest
                continue
            chapter.places.setdefault(place, []).extend(rest.split())
            if kind == "missing":
                chapter.missing |= {f"{place}.{name}" for name in rest.split()}
    return chapters


def write(chapters: list[Chapter]) -> str:
    lines = []
    for chapter in chapters:
        lines.append(f"# {chapter.title}")
        for place, names in chapter.places.items():
            for kind, is_missing in (("", False), ("missing ", True)):
                group = [n for n in names if (f"{place}.{n}" in chapter.missing) == is_missing]
                if group:
                    lines.append(f"{kind}{place}: {' '.join(group)}")
        lines += [f"differs {path}: {text}" for path, text in chapter.differs.items()]
        lines += [f"why {path}: {text}" for path, text in chapter.why.items()]
        lines.append("")
    return "\n".join(lines)


def tables(chapters: list[Chapter]) -> str:
    """The part of docs/dgl.md that is generated."""
    rows, parts = [], []
    for chapter in chapters:
        paths, missing = chapter.paths(), chapter.missing
        counts = (len(paths), len(paths) - len(missing), len(chapter.differs), len(missing))
        rows.append(f"| {chapter.title} | {' | '.join(map(str, counts))} |")
        text = f"### {chapter.title}\n\n"
        for path, note in chapter.differs.items():
            text += f"- `{_short(path)}` differs: {note}\n"
        for note in dict.fromkeys(chapter.why.values()):
            same = [f"`{_short(path)}`" for path, why in chapter.why.items() if why == note]
            text += f"- {', '.join(same)} {'are' if same[1:] else 'is'} missing: {note}\n"
        for place, names in chapter.places.items():
            rest = [n for n in names if (p := f"{place}.{n}") in missing and p not in chapter.why]
            if rest:
                text += f"- Missing in `{place}`: {', '.join(f'`{name}`' for name in rest)}\n"
        parts.append(text if text.count("\n") > 2 else text + "- All names exist.\n")
    head = "| chapter of DGL's guide | names | exist | of these, differ | missing |\n"
    return head + "|---|---|---|---|---|\n" + "\n".join(rows) + "\n\n" + "\n".join(parts)


def reasons(chapters: list[Chapter]) -> str:
    return "".join(f"{path}: {text}\n" for each in chapters for path, text in each.why.items())


def _short(path: str) -> str:
    return path.removeprefix("dgl.") if path.startswith("dgl.DGLGraph.") else path


def missing_names(folder: Path, chapters: list[Chapter]) -> set[str]:
    listed = folder / "names.txt"
    listed.write_text("\n".join(path for chapter in chapters for path in chapter.paths()))
    return set(json.loads(run_script(LOOK, args=[str(listed)])))


def test_names_are_there_or_missing_as_listed(tmp_path: Path) -> None:
    chapters = read(NAMES.read_text("utf8"))
    found = missing_names(tmp_path, chapters)
    listed = {path for chapter in chapters for path in chapter.missing}
    assert sorted(found - listed) == [], f"these are gone: {RENEW}"
    if listed - found:  # the page promises less than there is
        warnings.warn(f"these exist now: {sorted(listed - found)}; {RENEW}", stacklevel=1)


def test_notes_are_about_listed_names() -> None:
    for chapter in read(NAMES.read_text("utf8")):
        paths = chapter.paths()
        assert len(set(paths)) == len(paths)
        assert set(chapter.differs) <= set(paths) - chapter.missing
        assert set(chapter.why) <= chapter.missing
    text = NAMES.read_text("utf8")
    assert write(read(text)) == text


def test_the_page_shows_the_list() -> None:
    page = PAGE.read_text("utf8")
    shown = page.partition(BEGIN)[2].partition(END)[0]
    assert shown == tables(read(NAMES.read_text("utf8"))), RENEW
    assert INSTEAD.read_text("utf8") == reasons(read(NAMES.read_text("utf8"))), RENEW


def _renew() -> None:
    chapters = read(NAMES.read_text("utf8"))
    paths = "\n".join(path for chapter in chapters for path in chapter.paths())
    command = [sys.executable, "-c", textwrap.dedent(LOOK), "/dev/stdin"]
    done = subprocess.run(command, input=paths, capture_output=True, text=True, check=True)
    gone = set(json.loads(done.stdout))
    for chapter in chapters:
        chapter.missing = gone & set(chapter.paths())
        chapter.why = {path: text for path, text in chapter.why.items() if path in gone}
    NAMES.write_text(write(chapters), "utf8")
    INSTEAD.write_text(reasons(chapters), "utf8")
    head, _, rest = PAGE.read_text("utf8").partition(BEGIN)
    tail = rest.partition(END)[2]
    PAGE.write_text(head + BEGIN + tables(chapters) + END + tail, "utf8")


if __name__ == "__main__":
    _renew()
