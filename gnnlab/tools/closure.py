"""What a module of gnnlab needs of gnnlab, read from its imports; and its text without gnnlab.

Imports are read from the syntax tree, those inside functions too. Exempt are those under
``if TYPE_CHECKING:``, which never run.
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.tools.probe import versions

__all__ = ["Files", "collect", "module_name", "modules"]

ROOT = Path(__file__).resolve().parents[1]
_IMPORTERS = "import_module", "needed"  # functions that import what they are given by name


@dataclass
class Files:
    """Files that work without gnnlab.

    Attributes
    ----------
    texts : dict
        Path in the new package → text.
    packages : set of str
        What they import besides the standard library, by the name of the import.
    """

    texts: dict[str, str] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)


@functools.cache
def modules() -> dict[str, Path]:
    """Return the file of each module of gnnlab, by its full name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = (ROOT.name, *path.relative_to(ROOT).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def module_name(name: str) -> str:
    """Return the full name of a module that is given without "gnnlab."."""
    return f"{ROOT.name}.{name}"


def collect(names: Iterable[str]) -> Files:
    """Collect modules and all that they import, rewritten to import each other.

    Parameters
    ----------
    names : iterable of str
        Modules, without "gnnlab.".

    Examples
    --------
    >>> from gnnlab.tools.closure import collect
    >>> files = collect(["kernels.rng"])
    >>> sorted(files.texts), sorted(files.packages)
    (['LICENSE.gnnlab', '__init__.py', 'kernels/__init__.py', 'kernels/jit.py', 'kernels/rng.py'],
     ['numba', 'numpy'])
    """
    waiting = [module_name(name) for name in names]
    sources: dict[str, str] = {}
    files = Files()
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        if name == ROOT.name:
            raise InvalidInput("all of gnnlab cannot be copied; name a module of it")
        sources[name] = modules()[name].read_text("utf8")
        needed, packages = _needs(sources[name])
        waiting += needed
        files.packages |= packages
    for name, source in sources.items():
        files.texts[_place(name)] = _origin(name) + _relative(source, name)
    for path in list(files.texts):
        for folder in Path(path).parents:
            place = (folder / "__init__.py").as_posix()
            files.texts.setdefault(place, f'{_notice()}"""Helpers copied from gnnlab."""\n')
    files.texts["LICENSE.gnnlab"] = _license()
    return files


def _place(name: str) -> str:
    """Path of a module in the new package, relative to it.

    A name of the standard library gets an underscore: a script that lies beside it must not find it
    in place of ``import random``.
    """
    path = modules()[name].relative_to(ROOT)
    if path.parts[0].removesuffix(".py") in sys.stdlib_module_names:
        path = Path(_new_name(path.parts[0].removesuffix(".py")) + ".py")
    return path.as_posix()


def _new_name(name: str) -> str:
    return f"{name}_" if name in sys.stdlib_module_names else name


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from _imports(node)


def _needs(source: str) -> tuple[set[str], set[str]]:
    """Return the modules of gnnlab that a source imports, and the other packages."""
    tree = ast.parse(source)
    needed, packages, names = set(), set(), {}
    for node in _imports(tree):
        for alias in node.names:
            module = node.module if isinstance(node, ast.ImportFrom) else alias.name
            target = f"{module}.{alias.name}"
            target = target if target in modules() else str(module)
            if target in modules():
                needed.add(target)
                names[alias.asname or alias.name] = target
            else:
                packages.add(target.partition(".")[0])
    for part in ast.walk(tree):  # kernels.csc: a module of a package that was imported
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            target = f"{names.get(part.value.id)}.{part.attr}"
            if target in modules():
                needed.add(target)
        if isinstance(part, ast.Call) and ast.unparse(part.func).endswith(_IMPORTERS):
            packages |= {
                str(argument.value).partition(".")[0]
                for argument in part.args
                if isinstance(argument, ast.Constant)
            }
    return needed, packages - set(sys.stdlib_module_names)


def _relative(source: str, name: str) -> str:
    """Return a source whose imports of gnnlab are relative, so that the package may be anywhere."""
    dots = "." * (len(Path(_place(name)).parts))
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for node in sorted(_imports(ast.parse(source)), key=lambda node: -node.lineno):
        module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        if str(module).partition(".")[0] != ROOT.name:
            continue
        if isinstance(node, ast.Import):
            raise GNNLabError(f"{name}: write 'from … import' instead of import {module}")
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        source = source[:begin] + _rewrite(source[begin:end], node, dots) + source[end:]
    return source


def _rewrite(text: str, node: ast.ImportFrom, dots: str) -> str:
    first, *rest = str(node.module).split(".")[1:] or [""]
    text = text.replace(str(node.module), dots + ".".join([_new_name(first), *rest]), 1)
    if not first:
        for alias in node.names:
            new = _new_name(alias.name)
            if new != alias.name:
                kept = "" if alias.asname else f" as {alias.name}"
                text = re.sub(
                    rf"\b{alias.name}\b(?! *,? *as {alias.name})", new + kept, text, count=1
                )
    return text


def _notice() -> str:
    return (
        f"# Copied from gnnlab {versions()['gnnlab']} by gnnlab export; Apache-2.0, see "
        "LICENSE.gnnlab.\n# To compare with a newer gnnlab: gnnlab export --update FOLDER\n"
    )


def _origin(name: str) -> str:
    path = modules()[name].relative_to(ROOT.parent).as_posix()
    return (
        f"# Origin: {path} of gnnlab {versions()['gnnlab']}, Apache-2.0 (LICENSE.gnnlab). Imports "
        "were made\n# relative; examples in docstrings are those of gnnlab. To compare with a "
        "newer gnnlab:\n# gnnlab export --update FOLDER\n"
    )


def _license() -> str:
    if (ROOT.parent / "pyproject.toml").is_file():  # not installed, but a copy of the sources
        return (ROOT.parent / "LICENSE").read_text("utf8")
    for file in importlib.metadata.files("gnnlab") or []:
        if file.name == "LICENSE":
            return file.read_text("utf8")
    raise GNNLabError("this gnnlab has lost its LICENSE file; install it again")
