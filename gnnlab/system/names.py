"""Errors about names that a package lacks: where else the name is, in gnnlab or gnnlab.compat.

The places are found in the text of the source files: importing all packages takes seconds, and
those above the package that lacks the name may not be imported by it.
"""

from __future__ import annotations

import re
from pathlib import Path

from gnnlab.errors import NoAttribute

_ROOT = Path(__file__).parents[1]
_INTERNAL = {"compat", "errors", "system"}


def no_attribute(package: str, name: str) -> NoAttribute:
    """Return the error that ``package``, such as ``"gnnlab.nn"``, raises for a name it lacks."""
    if not name.startswith("_") and (found := places(name)):
        return NoAttribute(f"{package} has no {name!r}; it is {' or '.join(found)}")
    hint = f"dir({package}) lists what it has"
    if (_ROOT / "compat" / package.removeprefix("gnnlab").removeprefix(".")).is_dir():
        hint += f"; {package.replace('gnnlab', 'gnnlab.compat', 1)} has more of DGL's names"
    return NoAttribute(f"{package} has no {name!r}; {hint}")


def places(name: str) -> list[str]:
    """Return the full names under which packages of gnnlab have a name; else those of compat."""
    offered = re.compile(rf'^__all__ = \[[^]]*"{re.escape(name)}"', re.MULTILINE)
    in_face = re.compile(rf'^_MODULES = {{[^}}]*[" ]{re.escape(name)}[" ]', re.MULTILINE)
    found = [f"gnnlab.{name}"] if _has(_ROOT / "__init__.py", in_face) else []
    for path in sorted({*_ROOT.glob("[a-z]*.py"), *_ROOT.glob("*/__init__.py")}):
        package = path.parent.name if path.name == "__init__.py" else path.stem
        if package not in _INTERNAL and _has(path, offered):
            found.append(f"gnnlab.{package}.{name}")
    return found or _in_compat(name)


def _in_compat(name: str) -> list[str]:
    """A package of compat offers what its files define, a module what it defines."""
    word = re.escape(name)
    defined = re.compile(rf"^(?:(?:class|def) {word}\b|{word} = )", re.MULTILINE)
    files = sorted((_ROOT / "compat").rglob("*.py"))
    packages = [p.relative_to(_ROOT / "compat").parts[0] for p in files if _has(p, defined)]
    packages = [each.removesuffix(".py") for each in packages]
    return [f"gnnlab.compat.{package}.{name}" for package in dict.fromkeys(packages)]


def _has(path: Path, pattern: re.Pattern[str]) -> bool:
    return pattern.search(path.read_text("utf8")) is not None
