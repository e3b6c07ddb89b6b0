"""No package uses underscore names of another package: what others need has a public name.

The check reads syntax trees. A use is ``x._name``, ``getattr(x, "_name")`` (also ``setattr``,
``hasattr``, ``delattr``), ``vars(x)["_name"]``, ``vars(x).get("_name")``, the same with
``x.__dict__``, or an import. Where ``x`` is ``self``, the classes from which it derives are
searched; a subclass may not override ``_name`` of a class of another package either. Of any other
``x`` the type is unknown: then the name must be defined in the same package, or nowhere in gnnlab.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.helpers import ROOT

# Underscore names of Python, torch, PyG and pymetis, which some package of gnnlab also defines.
OF_OTHERS = {"_base", "_exit", "_get", "_key", "_make", "_store", "_version"}
_ATTRIBUTE_FUNCTIONS = {"getattr", "setattr", "hasattr", "delattr"}


class Class(NamedTuple):
    module: str
    bases: list[ast.expr]
    names: set[str]  # underscore names that it defines


def is_private(name: str) -> bool:
    is_hook = name.startswith(("__", "_repr_"))  # of Python, of notebooks
    return name.startswith("_") and not is_hook and name != "_"


def package(dotted: str) -> str:
    return [*dotted.split("."), ""][1]


class House:
    """All modules of a package, and their classes, by dotted name."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.trees: dict[str, tuple[Path, ast.Module]] = {}
        self.scopes: dict[str, dict[str, str]] = {}  # module -> name -> dotted name
        self.classes: dict[str, Class] = {}
        self.defined: dict[str, set[str]] = {}  # underscore name -> packages
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root.parent).with_suffix("").parts
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.trees[name] = path, ast.parse(path.read_text("utf8"))
        for name, (_, tree) in self.trees.items():
            self._read(name, tree)

    def _read(self, module: str, tree: ast.Module) -> None:
        scope = self.scopes[module] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                scope.update({a.asname or a.name: f"{node.module}.{a.name}" for a in node.names})
            elif isinstance(node, ast.Import):
                scope.update({a.asname: a.name for a in node.names if a.asname})
            elif isinstance(node, ast.ClassDef):
                scope[node.name] = f"{module}.{node.name}"
                names = {name for each in ast.walk(node) for name in definitions(each)}
                self.classes[scope[node.name]] = Class(module, node.bases, names)
            for name in definitions(node):
                self.defined.setdefault(name, set()).add(package(module))

    def resolve(self, module: str, node: ast.expr) -> str:
        """Return the dotted name of the module or class that an expression means, or ""."""
        if isinstance(node, ast.Subscript):
            return self.resolve(module, node.value)
        if isinstance(node, ast.Name):
            found = self.scopes[module].get(node.id, "")
        elif isinstance(node, ast.Attribute) and (of := self.resolve(module, node.value)):
            found = f"{of}.{node.attr}"
        else:
            return ""
        for _ in range(9):  # a name that a package has imported
            if found in self.trees or found in self.classes:
                return found
            parent, _, name = found.rpartition(".")
            found = self.scopes.get(parent, {}).get(name, "")
        return ""

    def ancestry(self, dotted: str) -> Iterator[Class]:
        if dotted in self.classes:
            yield (found := self.classes[dotted])
            for base in found.bases:
                if (above := self.resolve(found.module, base)) != dotted:
                    yield from self.ancestry(above)

    def violations(self) -> list[str]:
        lines: list[tuple[str, int, str]] = []
        for module, (path, tree) in self.trees.items():
            found = [(node.lineno, name) for node, name in self._visit(module, tree, "")]
            place = path.relative_to(self.root.parent).as_posix()
            lines += sorted({(place, line, name) for line, name in found})
        return [f"{place}:{line}: {name}" for place, line, name in lines]

    def _visit(self, module: str, node: ast.AST, own: str) -> Iterator[tuple[ast.AST, str]]:
        if isinstance(node, ast.ImportFrom) and node.module in self.trees:
            is_foreign = package(node.module) != package(module)
            yield from ((node, a.name) for a in node.names if is_foreign and is_private(a.name))
        if isinstance(node, ast.ClassDef):
            own = f"{module}.{node.name}"
            mine, *above = self.ancestry(own)
            for base in above:
                if package(base.module) != package(module):
                    yield from ((node, name) for name in mine.names & base.names)
        for of, name in uses(node):
            if self._is_foreign(module, of, name, own):
                yield node, name
        for child in ast.iter_child_nodes(node):
            yield from self._visit(module, child, own)

    def _is_foreign(self, module: str, of: ast.expr, name: str, own: str) -> bool:
        is_super = isinstance(of, ast.Call) and is_name(of.func, "super")
        found = own if is_super or is_name(of, "self") else self.resolve(module, of)
        if found in self.trees:
            return package(found) != package(module)
        for each in list(self.ancestry(found))[is_super:]:
            if name in each.names:
                return package(each.module) != package(module)
        packages = self.defined.get(name, set())
        return bool(packages) and package(module) not in packages and name not in OF_OTHERS


def is_name(node: object, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def definitions(node: ast.AST) -> set[str]:
    """Underscore names that a node defines in its module, or in its class."""
    found: set[str] = set()
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        found = {node.name}
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        found = {node.id}
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        found = {node.attr} if is_name(node.value, "self") else set()
    elif isinstance(node, ast.Assign) and is_name(node.targets[0], "__slots__"):
        found = {str(c.value) for c in ast.walk(node.value) if isinstance(c, ast.Constant)}
    return {name for name in found if is_private(name)}


def uses(node: ast.AST) -> list[tuple[ast.expr, str]]:
    """Objects whose underscore attribute a node reads or sets, and its name."""
    if isinstance(node, ast.Attribute) and is_private(node.attr):
        return [(node.value, node.attr)]
    words: list[ast.expr] = []
    holder: ast.expr | None = None
    if isinstance(node, ast.Call):
        words = node.args
        if isinstance(node.func, ast.Name) and node.func.id in _ATTRIBUTE_FUNCTIONS and node.args:
            holder = node.args[0]
        elif isinstance(node.func, ast.Attribute):
            holder = attributes_of(node.func.value)
    elif isinstance(node, ast.Subscript):
        words, holder = [node.slice], attributes_of(node.value)
    if holder is None:
        return []
    constants = [word.value for word in words if isinstance(word, ast.Constant)]
    return [(holder, text) for text in constants if isinstance(text, str) and is_private(text)]


def attributes_of(node: ast.expr) -> ast.expr | None:
    """x of vars(x) and x.__dict__."""
    if isinstance(node, ast.Call) and is_name(node.func, "vars") and node.args:
        return node.args[0]
    return node.value if isinstance(node, ast.Attribute) and node.attr == "__dict__" else None


def test_no_package_uses_underscore_names_of_another() -> None:
    assert House(ROOT / "gnnlab").violations() == []
