"""No package uses underscore names of another package: what others need has a public name.

The check reads syntax trees. A use is ``x._name``, ``getattr(x, "_name")`` (also ``setattr``,
``hasattr``, ``delattr``), ``vars(x)["_name"]``, ``vars(x).get("_name")``, the same with
``x.__dict__``, or an import. The type of ``x`` is taken from ``self``, annotations, constructors
and the annotations of functions, properties and attributes; so a subclass that uses or overrides
``_name`` of a base class in another package is found too. Where the type is unknown, the name must
be defined in the same package, or nowhere in gnnlab.

It cannot see the type of elements of containers, of results without annotations and of attributes
set without a class; among those it misses a name that the own package defines for another class as
well. Nor does it see names computed at run time.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.helpers import ROOT

# Underscore names of Python, torch, PyG and pymetis, which some package of gnnlab also defines.
OF_OTHERS = {"_base", "_exit", "_get", "_key", "_make", "_store", "_version"}
NOT_YET: set[str] = set()
_ATTRIBUTE_FUNCTIONS = {"getattr", "setattr", "hasattr", "delattr"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Class:
    package: str
    module: Module
    bases: list[ast.expr]
    names: set[str] = field(default_factory=set)  # underscore names that it defines
    types: dict[str, ast.expr | Class] = field(default_factory=dict)  # attribute -> annotation


@dataclass
class Function:
    module: Module
    returns: ast.expr | None


@dataclass
class Module:
    path: Path
    package: str
    tree: ast.Module
    scope: dict[str, object] = field(default_factory=dict)  # a Class, a Function, or a dotted name


def is_private(name: str) -> bool:
    is_hook = name.startswith(("__", "_repr_"))  # of Python, of notebooks
    return name.startswith("_") and not is_hook and name != "_"


class House:
    """All modules of a package, by dotted name."""

    def __init__(self, root: Path) -> None:
        self.root, self.modules = root, dict[str, Module]()
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            dotted = [root.name, *(parts[:-1] if parts[-1] == "__init__" else parts)]
            tree = ast.parse(path.read_text("utf8"))
            self.modules[".".join(dotted)] = Module(path, (*parts, "")[0], tree)
        self.defined: dict[str, set[str]] = {}  # underscore name -> packages
        for module in self.modules.values():
            self._read_scope(module)
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ClassDef):
                    self._read_class(module, node)

    def _define(self, name: str, package: str) -> None:
        if is_private(name):
            self.defined.setdefault(name, set()).add(package)

    def _read_scope(self, module: Module) -> None:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    module.scope[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.asname:
                        module.scope[alias.asname] = alias.name
            elif isinstance(node, ast.ClassDef):
                module.scope[node.name] = Class(module.package, module, node.bases)
        for node in module.tree.body:
            if isinstance(node, _Function | ast.ClassDef):
                self._define(node.name, module.package)
            if isinstance(node, _Function):
                module.scope[node.name] = Function(module, node.returns)
            for target in targets(node):
                if isinstance(target, ast.Name):
                    self._define(target.id, module.package)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                bound = [word.value for word in node.value.keywords if word.arg == "bound"]
                if bound and isinstance(node.targets[0], ast.Name):
                    module.scope[node.targets[0].id] = bound[0]

    def _read_class(self, module: Module, node: ast.ClassDef) -> None:
        own = module.scope[node.name]
        assert isinstance(own, Class)
        for item in node.body:
            for target in targets(item):
                if isinstance(target, ast.Name):
                    own.names.add(target.id)
                    if target.id == "__slots__":
                        own.names |= {
                            c.value for c in ast.walk(item) if isinstance(c, ast.Constant)
                        }
                    if isinstance(item, ast.AnnAssign):
                        own.types[target.id] = item.annotation
            if not isinstance(item, _Function):
                continue
            own.names.add(item.name)
            if item.returns is not None:
                own.types.setdefault(item.name, item.returns)
            if not item.args.args:
                continue
            me, given = item.args.args[0].arg, annotations(item)
            for each in ast.walk(item):
                for target, value in pairs(each):
                    if not (isinstance(target, ast.Attribute) and is_name(target.value, me)):
                        continue
                    own.names.add(target.attr)
                    if isinstance(each, ast.AnnAssign):
                        own.types.setdefault(target.attr, each.annotation)
                    elif isinstance(value, ast.Name) and value.id in given:
                        own.types.setdefault(target.attr, given[value.id])
                    elif isinstance(value, ast.Call):
                        own.types.setdefault(target.attr, value.func)
        own.names = {name for name in own.names if is_private(str(name))}
        for name in own.names:
            self._define(name, module.package)

    # ------------------------------------------------------------------ types
    def resolve(self, module: Module, node: object) -> object:
        """Return the class, function, or module that an expression or a dotted name means."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(node, ast.BinOp):  # X | None
            return self.resolve(module, node.left) or self.resolve(module, node.right)
        if isinstance(node, ast.Name):
            return self._follow(module, module.scope.get(node.id))
        if isinstance(node, ast.Attribute):
            of = self.resolve(module, node.value)
            return self._follow(of, of.scope.get(node.attr)) if isinstance(of, Module) else None
        return node if isinstance(node, Class | Module) else None

    def _follow(self, module: Module, found: object, depth: int = 0) -> object:
        if isinstance(found, str) and depth < 9:
            if found in self.modules:
                return self.modules[found]
            parent, _, name = found.rpartition(".")
            source = self.modules.get(parent)
            return source and self._follow(source, source.scope.get(name), depth + 1)
        if isinstance(found, ast.Constant | ast.Attribute):
            return self.resolve(module, found)
        if isinstance(found, ast.Name):
            return self.resolve(module, found)
        return found

    def ancestry(self, of: Class, seen: tuple[int, ...] = ()) -> Iterator[Class]:
        if id(of) not in seen:
            yield of
            for base in of.bases:
                base = base.value if isinstance(base, ast.Subscript) else base
                found = self.resolve(of.module, base)
                if isinstance(found, Class):
                    yield from self.ancestry(found, (*seen, id(of)))

    def type_of(self, module: Module, node: ast.expr, env: dict[str, object]) -> object:
        """Return the class of a value, or the module that it is, or None."""
        if isinstance(node, ast.Name):
            if node.id in env:
                return env[node.id]
            found = self.resolve(module, node)
            return found if isinstance(found, Class | Module) else None
        if isinstance(node, ast.Attribute):
            of = self.type_of(module, node.value, env)
            if isinstance(of, Module):
                return self._follow(of, of.scope.get(node.attr))
            for each in self.ancestry(of) if isinstance(of, Class) else ():
                if node.attr in each.types:
                    return self._result(each.module, each.types[node.attr], each)
        if isinstance(node, ast.Call):
            if is_name(node.func, "super"):
                return env.get("super")
            if isinstance(node.func, ast.Attribute):
                found = self.type_of(module, node.func, env)
            else:
                found = self.resolve(module, node.func)
            if isinstance(found, Function):
                return self._result(found.module, found.returns, None)
            return found if isinstance(found, Class) else None
        return None

    def _result(self, module: Module, node: object, own: Class | None) -> object:
        if is_name(node, "Self"):
            return own
        found = self.resolve(module, node)
        if isinstance(found, Function):
            found = self.resolve(found.module, found.returns)
        return found if isinstance(found, Class) else None

    # ------------------------------------------------------------------- uses
    def violations(self) -> list[str]:
        found = []
        for module in self.modules.values():
            for node in ast.walk(module.tree):
                if isinstance(node, ast.ImportFrom):
                    source = self.modules.get(node.module or "")
                    if source is not None and source.package != module.package:
                        found += [(module, node, a.name) for a in node.names if is_private(a.name)]
            self._visit(module, module.tree, {}, None, found)
        top = self.root.parent
        lines = {(m.path.relative_to(top), node.lineno, name) for m, node, name in found}
        return [f"{path.as_posix()}:{line}: {name}" for path, line, name in sorted(lines)]

    def _visit(self, module, node, env, own, found) -> None:  # type: ignore[no-untyped-def]
        if isinstance(node, ast.ClassDef):
            own = module.scope[node.name]
            for name in own.names if isinstance(own, Class) else ():  # overrides of a base's
                for base in list(self.ancestry(own))[1:]:
                    if name in base.names and base.package != module.package:
                        found.append((module, node, name))
        if isinstance(node, _Function | ast.Lambda):
            env = dict(env)
            if isinstance(node, _Function):
                for name, annotation in annotations(node).items():
                    env[name] = self._result(module, annotation, own)
                if own is not None and node.args.args and "super" not in env:
                    env[node.args.args[0].arg] = own
                    env["super"] = own
            for each in ast.walk(node):
                for target, value in pairs(each):
                    if isinstance(target, ast.Name) and value is not None:
                        env[target.id] = self.type_of(module, value, env)
        for of, name in uses(node):
            if self._is_foreign(module, self.type_of(module, of, env), name):
                found.append((module, node, name))
        for child in ast.iter_child_nodes(node):
            self._visit(module, child, env, own, found)

    def _is_foreign(self, module: Module, of: object, name: str) -> bool:
        if isinstance(of, Module):
            return of.package != module.package
        for each in self.ancestry(of) if isinstance(of, Class) else ():
            if name in each.names:
                return each.package != module.package
        packages = self.defined.get(name, set())
        return bool(packages) and module.package not in packages and name not in OF_OTHERS


def is_name(node: object, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def annotations(function: _Function) -> dict[str, ast.expr]:
    args = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {arg.arg: arg.annotation for arg in args if arg.annotation is not None}


def targets(node: ast.AST) -> list[ast.expr]:
    return [target for target, _ in pairs(node)]


def pairs(node: ast.AST) -> list[tuple[ast.expr, ast.expr | None]]:
    """Targets of an assignment, each with its value."""
    if isinstance(node, ast.AnnAssign):
        return [(node.target, node.value)]
    if not isinstance(node, ast.Assign):
        return []
    found: list[tuple[ast.expr, ast.expr | None]] = []
    for target in node.targets:
        if not isinstance(target, ast.Tuple):
            found.append((target, node.value))
            continue
        same = isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts)
        values = node.value.elts if same else [None] * len(target.elts)  # type: ignore[attr-defined]
        found += zip(target.elts, values, strict=True)
    return found


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
    found = House(ROOT / "gnnlab").violations()
    assert [each for each in found if each.partition(":")[0] not in NOT_YET] == []


BASE = """
    _TABLE = {}
    class Base:
        _limit: int = 1
        def __init__(self): self._held = {}
        def _step(self): ...
    def make() -> "Base": ...
"""


@pytest.mark.parametrize(
    "text",
    [
        "from house.base import _TABLE",
        "from house import base\nbase._TABLE",
        "def f(x): return x._held",
        "def f(x): return getattr(x, '_held')",
        "def f(x): return vars(x)['_held']",
        "def f(x): return x.__dict__.pop('_held')",
        "def f(x): x._held = 1",
        "class Mine:\n  _held = 1\nfrom house.base import Base\ndef f(x: Base | None): x._held",
        "class Mine:\n  _held = 1\nfrom house.base import make\ndef f():\n  x = make()\n  x._held",
        "from house.base import Base\nclass Mine(Base):\n  def go(self): self._step()",
        "from house.base import Base\nclass Mine(Base):\n  def go(self): super()._step()",
        "from house.base import Base\nclass Mine(Base):\n  def _step(self): ...",
        "from house.base import Base\nclass Mine(Base):\n  def __init__(self): self._held = 1",
        "from house.base import Base\nclass Mine:\n  _held = 1\n  def __init__(self, b: Base):\n"
        "    self.b = b\n  def go(self): self.b._held",
    ],
)
def test_violations(text: str, tmp_path: Path) -> None:
    for room, content in ("base", textwrap.dedent(BASE)), ("user", text):
        (tmp_path / "house" / room).mkdir(parents=True)
        (tmp_path / "house" / room / "__init__.py").write_text(content)
    (found,) = House(tmp_path / "house").violations()
    assert found.startswith("house/user/__init__.py:")
