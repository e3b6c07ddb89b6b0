"""Each package imports only from levels below its own, and no imports form a cycle.

Imports are read from the syntax tree: those inside functions and those for types alone
(``if TYPE_CHECKING:``) count as well, since a reader follows all of them. ``gnnlab/__init__.py``
is above all levels and may import everything; so nothing inside may ``import gnnlab`` itself.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.helpers import ROOT, run_script

LEVELS = [
    {"errors"},
    {"system", "helpers", "launch.environment", "launch.certificates", "launch.ip_config"},
    {"kernels", "random", "trace", "launch.first_failure", "launch.probe"},
    {"graph.relation"},  # arrays and counts, which operators take where others take a graph
    {"function", "ops", "multiprocessing"},
    {"graph"},
    {"sampling", "nn", "transforms", "pyg.convert"},
    {"dataloading", "data"},
    {"parallel"},
    {"partition"},
    {"distributed"},
    {"launch", "simulate", "plot", "pyg"},
    {"tools", "exercises"},
    {"compat"},
    {"__main__", "as_dgl"},
]


class Import(NamedTuple):
    line: int
    target: str


def modules_of(package: Path) -> dict[str, Path]:
    """Dotted name -> file, for every module of a package."""
    names = {}
    for path in sorted(package.rglob("*.py")):
        parts = (package.name, *path.relative_to(package).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imports_of(name: str, modules: dict[str, Path]) -> list[Import]:
    """What one module imports from its own package."""
    tree = ast.parse(modules[name].read_text("utf8"))
    is_package = modules[name].name == "__init__.py"
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = name.split(".")[: None if is_package else -1]
                above = above[: len(above) - (node.level - 1)]
                base = ".".join([*above, base] if base else above)
            targets = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base
                for alias in node.names
            ]
        else:
            continue
        found += [Import(node.lineno, t) for t in targets if t.split(".")[0] == name.split(".")[0]]
    return sorted(found)


def faults(root: Path, levels: list[set[str]]) -> list[str]:
    """Every upward, sideways or circular import of a package, as ``file:line: what is wrong``."""
    modules = modules_of(root)
    level = {name: height for height, names in enumerate(levels) for name in names}
    package_of = {name: _package(name, level) for name in modules}
    imports = {name: imports_of(name, modules) for name in modules}
    wrong = [
        f"{path}:1: {package_of[name]!r} has no level: give it one in tests/test_levels.py"
        for name, path in modules.items()
        if package_of[name] and package_of[name] not in level
    ]
    for name, found in imports.items():
        package = package_of[name]
        for line, target in found if package in level else ():
            if target not in modules:
                wrong.append(f"{modules[name]}:{line}: {target} does not exist")
                continue
            other = package_of[target]
            if other != package and level.get(other, len(levels)) >= level[package]:
                wrong.append(f"{modules[name]}:{line}: {package!r} may not import {target}")
    return wrong + _circles(modules, imports)


def _package(name: str, level: Mapping[str, int]) -> str:
    """The package that a module belongs to, or itself if it has a level of its own."""
    inner = name.partition(".")[2]
    return inner if inner in level else inner.partition(".")[0]


def _circles(modules: dict[str, Path], imports: dict[str, list[Import]]) -> list[str]:
    wrong: list[str] = []
    done = {min(modules, key=len)}  # the face: whoever imports it is already at fault
    followed = {
        name: [each for each in found if each.target in modules and each.target != name]
        for name, found in imports.items()
    }

    def visit(name: str, trail: list[str]) -> None:
        for line, target in followed[name]:
            if target in done:
                continue
            if target in trail:
                circle = " -> ".join([*trail[trail.index(target) :], target])
                wrong.append(f"{modules[name]}:{line}: circular import {circle}")
            else:
                visit(target, [*trail, target])
        done.add(name)

    for name in modules:
        if name not in done:
            visit(name, [name])
    return wrong


def test_each_package_imports_only_from_below() -> None:
    wrong = faults(ROOT / "gnnlab", LEVELS)
    assert not wrong, "\n".join(wrong)


def test_importing_changes_nothing() -> None:
    """No slow library, thread, environment variable, socket, or CUDA context comes with it."""
    printed = run_script(
        """
        import os, sys, threading
        import torch

        opened = []
        sys.addaudithook(lambda event, args: opened.append(event) if "socket." in event else None)
        before, loaded = dict(os.environ), set(sys.modules)
        tasks = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc") else 0

        import gnnlab

        slow = {"numba", "pandas", "matplotlib", "pooch", "scipy", "networkx", "IPython", "tqdm"}
        print("slow", sorted(slow & (set(sys.modules) - loaded)))
        print("environment", dict(os.environ) == before)
        print("python threads", threading.active_count())
        same = not tasks or len(os.listdir("/proc/self/task")) == tasks
        print("system threads", same)
        print("sockets", opened)
        print("cuda", torch.cuda.is_initialized())
        """,
        fresh=True,
    )
    assert printed.splitlines() == [
        "slow []",
        "environment True",
        "python threads 1",
        "system threads True",
        "sockets []",
        "cuda False",
    ]
