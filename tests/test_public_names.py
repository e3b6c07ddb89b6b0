"""The public names of gnnlab and their signatures are those in public_names.txt, exactly.

Walked are the face, the modules and names that it offers, those of public_names.txt that no
``__all__`` has, for DGL's programs ask for them there, and the members of each class. Annotations,
and defaults other than numbers, texts, None and tuples of those, are left out: Python's versions
print them in different ways.

After a change that is meant: ``python -m tests.test_public_names``. It first adds what a package
imports for its users to its ``__all__``, and writes the tables of docs/dgl*.md, too.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import gnnlab
from tests.helpers import ROOT

KNOWN = Path(__file__).with_name("public_names.txt")
RENEW = "python -m tests.test_public_names"
ASKED = [re.split(r"[( ]", line)[0] for line in KNOWN.read_text("utf8").splitlines()]
OPERATORS = {"__call__", "__getitem__", "__setitem__", "__iter__", "__len__"}
MOVABLE = {"gnnlab.kernels", "gnnlab.tools"}  # no API: loops over arrays, and a command
ELSEWHERE = {"gnnlab.compat", "gnnlab.pyg"}  # tests/compat; tests/pyg/test_convert.py


def public_names() -> list[str]:
    """One line for each name, sorted: ``place.name(parameters)``, or ``place.name`` for data."""
    seen: dict[int, str] = {}
    modules = [import_module(place) for place in ("gnnlab", "gnnlab.helpers", "gnnlab.errors")]
    lines = {line for m in modules for line in _of_module(m.__name__, m, seen)}
    return sorted(lines | {f"gnnlab.data.DATASETS[{name!r}]" for name in gnnlab.data.DATASETS})


def _of_module(place: str, module: types.ModuleType, seen: dict[int, str]) -> Iterator[str]:
    yield place
    if place in MOVABLE | ELSEWHERE or id(module) in seen:
        return
    seen[id(module)] = place
    offered = {*getattr(module, "__all__", ())}
    offered |= {name for name in _asked(place) if hasattr(module, name)}
    if module is gnnlab:
        offered |= {*gnnlab._LAZY, *gnnlab._SUBMODULES}
    inner = {}
    values = {name: getattr(module, name) for name in sorted(offered)}
    if module is gnnlab:  # where pytest's doctests put the package of that name
        values["graph"] = import_module("gnnlab.graph.construct").graph
    # A class is described under its own name; under others it "is" that one.
    for name in sorted(values, key=lambda name: getattr(values[name], "__name__", name) != name):
        value = values[name]
        if isinstance(value, types.ModuleType):
            inner[name] = value  # afterwards: a class is described where it is nearest to the face
        else:
            yield from _of_value(f"{place}.{name}", value, seen)
    for name, value in inner.items():
        if value.__name__.startswith("gnnlab."):
            yield from _of_module(f"{place}.{name}", value, seen)


def _asked(place: str) -> set[str]:
    within = [path.removeprefix(place + ".") for path in ASKED if path.startswith(place + ".")]
    return {path.split(".")[0] for path in within}


def _of_value(place: str, value: Any, seen: dict[int, str]) -> Iterator[str]:
    if callable(value) and not (getattr(value, "__module__", "") or "").startswith("gnnlab"):
        return  # torch's, or Python's, under our name
    if not isinstance(value, type):
        yield place + (_parameters(value, 0) if callable(value) else "")
    elif id(value) in seen:
        yield f"{place} is {seen[id(value)]}"
    else:
        seen[id(value)] = place
        ours = [base for base in value.__mro__ if base.__module__.startswith("gnnlab")]
        members = {name: member for base in reversed(ours) for name, member in vars(base).items()}
        make = members.get("__init__") or members.get("__new__")
        yield place + (_parameters(make, 1) if make else "(…)")
        for name, member in members.items():
            where = getattr(getattr(member, "fget", member), "__module__", "") or ""
            if where.startswith("gnnlab.compat"):
                continue  # bound to the class by another test of this process
            if not name.startswith("_") or name in OPERATORS:
                yield f"{place}.{name}{_of_member(member)}"


def _of_member(member: Any) -> str:
    if isinstance(member, classmethod | staticmethod):
        return _parameters(member.__func__, isinstance(member, classmethod))
    return _parameters(member, 1) if inspect.isfunction(member) else ""


def _parameters(function: Any, skip: int) -> str:
    """Write parameters as in a call, without the first ``skip``."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(…)"
    parameters = [
        each.replace(annotation=each.empty, default=_default(each.default))
        for each in list(signature.parameters.values())[skip:]
    ]
    return str(inspect.Signature(parameters))


class _Other:
    def __repr__(self) -> str:
        return "…"


def _default(value: Any) -> Any:
    """The default, or what stands for one that versions or machines would write differently."""
    plain = (int, float, str, type(None))
    whole = type(value) in (bool, *plain) or (
        type(value) is tuple and all(type(item) in (bool, *plain) for item in value)
    )
    return value if whole or value is inspect.Parameter.empty else _Other()


def compare(known: list[str], found: list[str]) -> str:
    """What vanished, changed and is new, and how to accept it; nothing where both are the same."""
    before, after = ({line.partition("(")[0]: line for line in lines} for lines in (known, found))
    both = before.keys() & after.keys()
    kinds = {
        "vanished": [before[name] for name in sorted(before.keys() - after.keys())],
        "changed": [
            f"{before[n]}\n      now {after[n]}" for n in sorted(both) if before[n] != after[n]
        ],
        "new": [after[name] for name in sorted(after.keys() - before.keys())],
    }
    text = "".join(f"\n{kind}:\n  " + "\n  ".join(x) for kind, x in kinds.items() if x)
    return text and f"{text}\nIf that is meant: {RENEW}"


def test_public_names_and_signatures_are_kept() -> None:
    difference = compare(KNOWN.read_text("utf8").splitlines(), public_names())
    assert not difference, difference


def test_comparison_says_what_is_different() -> None:
    assert compare(["a.f(x)", "a.g(y=1)"], ["a.f(x)", "a.g(y=1)"]) == ""
    difference = compare(["a.f(x)", "a.g(y=1)"], ["a.g(y=2)", "a.h"])
    for part in ("vanished:\n  a.f(x)", "changed:\n  a.g(y=1)\n      now a.g(y=2)", "new:\n  a.h"):
        assert part in difference
    assert difference.endswith(RENEW)


def renew() -> None:
    """Write all lists in which a public name stands."""
    packages = [p for p in ROOT.glob("gnnlab/*/__init__.py") if "__all__" in p.read_text("utf8")]
    ruff = ["ruff", "check", "--quiet", "--preview", "--fix", "--select", "F401,RUF022"]
    subprocess.run([sys.executable, "-m", *ruff, *packages], check=True)
    KNOWN.write_text("\n".join(public_names()) + "\n", "utf8")
    for pages in ("tests.compat.test_layout_names", "tests.compat.test_nn"):
        subprocess.run([sys.executable, "-m", pages], cwd=ROOT, check=True)


if __name__ == "__main__":
    renew()
