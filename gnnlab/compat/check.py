"""Which names of ``dgl`` a program uses, and whether they are here; the program is read, not run.

``gnnlab as-dgl --check PATH`` prints it. Methods of objects, such as those of graphs, are not seen:
only imports, and attributes of what was imported.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from gnnlab.compat.lazy import advice, target
from gnnlab.errors import InvalidInput, no_such_file, reading


class _Reader(ast.NodeVisitor):
    """Collects names of ``dgl`` with their lines; ``known`` has what local names stand for."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.found: list[tuple[str, int]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            if each.name.split(".")[0] == "dgl":
                self.found.append((each.name, node.lineno))
                self.known[each.asname or "dgl"] = each.name if each.asname else "dgl"

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level == 0 and (node.module or "").split(".")[0] == "dgl":
            for each in node.names:
                name = node.module if each.name == "*" else f"{node.module}.{each.name}"
                self.found.append((str(name), node.lineno))
                self.known[each.asname or each.name] = str(name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.known:
            self.found.append((".".join([self.known[inner.id], *parts]), node.lineno))
        else:
            self.generic_visit(node)


def uses(path: Path) -> list[tuple[str, str]]:
    """Return the names of ``dgl`` in a program, a notebook or a folder, and where each stands."""
    if not path.exists():
        raise InvalidInput(no_such_file(path))
    files = [path]
    if path.is_dir():
        inside = (each for each in path.rglob("*") if each.suffix in (".py", ".ipynb"))
        files = sorted(f for f in inside if not re.search(r"(^|/)\.\w", str(f.relative_to(path))))
    if not files:
        raise InvalidInput(f"{path} has no program (*.py) and no notebook (*.ipynb)")
    found = []
    for file in files:
        reader = _Reader()
        trees = list(_trees(file))
        for _, tree in trees:  # imports may stand below functions that use them
            reader.visit(tree)
        reader.found.clear()
        for cell, tree in trees:
            reader.visit(tree)
            found += [(name, f"{file}:{cell}{line}") for name, line in reader.found]
            reader.found.clear()
    return list(dict.fromkeys(found))


def _trees(file: Path) -> Iterator[tuple[str, ast.AST]]:
    with reading(file, InvalidInput):
        text = file.read_text("utf8")
    parts = [("", text)]
    if file.suffix == ".ipynb":
        try:
            cells = json.loads(text)["cells"]
            sources = [
                (f"cell {number}:", "".join(cell["source"]))
                for number, cell in enumerate(cells, 1)
                if cell["cell_type"] == "code"
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{file} is not a notebook") from error
        parts = [(cell, re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", each)) for cell, each in sources]
    for cell, source in parts:
        try:
            yield cell, ast.parse(source)
        except (SyntaxError, ValueError) as error:
            line = getattr(error, "lineno", "")
            raise InvalidInput(f"{file}:{cell}{line} does not parse: {error}") from error


def is_there(name: str) -> bool:
    """Whether a name such as ``dgl.nn.SAGEConv`` exists here.

    Examples
    --------
    >>> from gnnlab.compat.check import is_there
    >>> is_there("dgl.nn.pytorch.conv.SAGEConv"), is_there("dgl.nn.NoConv")
    (True, False)
    """
    parts = name.split(".")
    cut = max(i for i in range(1, len(parts) + 1) if target(".".join(parts[:i])))
    value: Any = importlib.import_module(str(target(".".join(parts[:cut]))))
    for part in parts[cut:]:
        if not isinstance(value, ModuleType | type):
            return True  # an attribute of an object, which may have any
        if not hasattr(value, part):
            return False
        value = getattr(value, part)
    return True


def report(path: Path) -> tuple[str, bool]:
    """Return what ``--check`` prints of a path, and whether nothing is missing."""
    found, known = uses(path), advice()
    there = {name: is_there(name) for name in sorted({name for name, _ in found})}
    lines = [
        f"{place}: {name} is missing" + (f": {known[name]}" if name in known else "")
        for name, place in found
        if not there[name]
    ]
    present = [name for name, is_here in there.items() if is_here]
    lines.append(f"there: {', '.join(present) or 'nothing'}")
    lines.append(f"{len(there)} names of dgl, {len(there) - len(present)} of them missing")
    return "\n".join(lines), len(present) == len(there)
