"""The library stays small: few modules at its root, lines within limits, one meaning for a name.

``python -m tests.test_size`` prints the figures. A limit grows only by the lines of a feature.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.helpers import ROOT

PACKAGE = ROOT / "gnnlab"
AT_THE_ROOT = 9
LINES = {"gnnlab without compat": 51_000, "gnnlab/compat": 14_215, "tests": 47_289}
QUOTES = 50
# One thing, implemented for CPUs and for GPUs.
SHARED = {"kernels": {"NodeList"}}


def lines(folder: Path, but: str = "") -> int:
    inside = [path.relative_to(folder) for path in folder.rglob("*.py")]
    files = [folder / path for path in inside if not but or but not in path.parts]
    return sum(path.read_text("utf8").count("\n") for path in files)


def figures() -> dict[str, int]:
    return {
        "gnnlab without compat": lines(PACKAGE, but="compat"),
        "gnnlab/compat": lines(PACKAGE / "compat"),
        "tests": lines(ROOT / "tests"),
    }


def shared_classes() -> dict[str, set[str]]:
    """Package -> names of public classes that two of its modules define."""
    found: dict[str, set[str]] = {}
    for package in sorted(path for path in PACKAGE.iterdir() if path.is_dir()):
        places = defaultdict(set)
        for path in package.rglob("*.py"):
            for node in ast.parse(path.read_text("utf8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].add(path)
        if twice := {name for name, paths in places.items() if len(paths) > 1}:
            found[package.name] = twice
    return found


def prose() -> list[str]:
    """The ``match=`` in tests that quote how an error is said: three ordinary words in a row.

    What an error names (argument, value, file) may be matched; it stays when the words change.
    """
    found = []
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf8"))):
            if isinstance(node, ast.keyword) and node.arg == "match":
                parts = [
                    each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant)
                ]
                text = "".join(part for part in parts if isinstance(part, str))
                found += [f"{path.name}: {text}"] if re.search("[a-z]+ [a-z]+ [a-z]+", text) else []
    return found


def test_few_quotes_of_prose() -> None:
    assert len(found := prose()) <= QUOTES, "\n".join(found)


def test_few_modules_stand_at_the_root() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= AT_THE_ROOT


def test_lines_are_within_their_limits() -> None:
    found = figures()
    assert {name for name, count in found.items() if count > LINES[name]} == set(), found


def test_a_name_has_one_meaning_in_a_package() -> None:
    assert shared_classes() == SHARED


if __name__ == "__main__":
    print(f"modules at the root: {len(list(PACKAGE.glob('*.py')))}")
    for name, count in figures().items():
        print(f"lines of {name}: {count}")
    print(f"quotes of prose: {len(prose())}")
