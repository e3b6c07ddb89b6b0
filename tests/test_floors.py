"""The house stands: each room imports only from floors below, and no import goes in a circle.

Imports are read from the syntax tree, inside functions too. Exempt are those under
``if TYPE_CHECKING:``. The face, ``gnnlab/__init__.py``, stands on top and may import everything;
so nothing inside may ``import gnnlab`` itself.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.helpers import ROOT, run_script

FLOORS = [
    {"errors"},
    {"helpers"},
    {"kernels", "bars", "drafts", "fork", "ending", "interrupt", "random", "trace"},
    {"function", "ops", "multiprocessing"},
    {"graph"},
    {"sampling", "nn", "transforms"},
    {"dataloading", "data"},
    {"parallel"},
    {"partition"},
    {"distributed"},
    {"simulate", "plot", "tools"},
    {"__main__"},
]


class Import(NamedTuple):
    line: int
    target: str
    on_load: bool  # False inside a function: it runs later, so it cannot close a circle


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
    for node, on_load in _statements(tree.body, True):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            base = node.module or ""
            if node.level:
                above = name.split(".")[: None if is_package else -1]
                above = above[: len(above) - (node.level - 1)]
                base = ".".join([*above, base] if base else above)
            targets = [
                f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base
                for alias in node.names
            ]
        top = name.partition(".")[0]
        found += [Import(node.lineno, t, on_load) for t in targets if t.split(".")[0] == top]
    return found


def _statements(
    body: list[ast.stmt], on_load: bool
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, on_load
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _statements(node.orelse, on_load)
        else:
            later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for _, value in ast.iter_fields(node):
                inner = [v for v in value if isinstance(v, ast.AST)] if type(value) is list else []
                bodies = [v for v in inner if isinstance(v, ast.stmt)]
                for part in inner:
                    if isinstance(part, ast.ExceptHandler | ast.match_case):
                        bodies += part.body
                yield from _statements(bodies, on_load and not later)


def faults(package: Path, floors: list[set[str]]) -> list[str]:
    """Every upward, sideways or circular import of a package, as ``file:line: what is wrong``."""
    modules = modules_of(package)
    level = {room: height for height, rooms in enumerate(floors) for room in rooms}
    room_of = {name: name.split(".")[1] if "." in name else "" for name in modules}
    imports = {name: imports_of(name, modules) for name in modules}
    wrong = [
        f"{path}:1: {room_of[name]!r} has no floor: give it one in tests/test_floors.py"
        for name, path in modules.items()
        if room_of[name] and room_of[name] not in level
    ]
    for name, found in imports.items():
        room = room_of[name]
        for line, target, _ in found if room in level else ():
            if target not in modules:
                wrong.append(f"{modules[name]}:{line}: {target} does not exist")
                continue
            other = room_of[target]
            if other != room and level.get(other, len(floors)) >= level[room]:
                wrong.append(f"{modules[name]}:{line}: {room!r} may not import {target}")
    return wrong + _circles(modules, imports)


def _circles(modules: dict[str, Path], imports: dict[str, list[Import]]) -> list[str]:
    wrong: list[str] = []
    done: set[str] = set()

    def visit(name: str, trail: list[str]) -> None:
        for line, target, on_load in imports[name]:
            if not on_load or target == name or target in done or target not in modules:
                continue
            if target in trail:
                circle = " -> ".join([*trail[trail.index(target) :], target])
                wrong.append(f"{modules[name]}:{line}: circular import {circle}")
            else:
                visit(target, [*trail, target])
        done.add(name)

    done.add(min(modules, key=len))  # the face: whoever imports it is already at fault
    for name in modules:
        if name not in done:
            visit(name, [name])
    return wrong


def test_each_room_imports_only_from_below() -> None:
    assert not faults(ROOT / "gnnlab", FLOORS), "\n".join(faults(ROOT / "gnnlab", FLOORS))


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Two rooms: ``low`` (floor 0) and ``high`` (floor 1); nothing wrong."""
    files = {
        "__init__.py": "from .high import b",
        "low.py": "import os",
        "high/__init__.py": "from gnnlab.high.b import thing",
        "high/a.py": "def late():\n    from .b import thing",
        "high/b.py": "from gnnlab import low\nfrom .a import late",
    }
    for name, source in files.items():
        (tmp_path / "gnnlab" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "gnnlab" / name).write_text(source)
    return tmp_path / "gnnlab"


TWO_FLOORS = [{"low"}, {"high"}]


def test_checker_accepts_a_sound_house(house: Path) -> None:
    assert faults(house, TWO_FLOORS) == []


@pytest.mark.parametrize(
    ("file", "source", "fault"),
    [
        ("low.py", "import gnnlab.high.a", "low.py:1: 'low' may not import gnnlab.high.a"),
        ("low.py", "from gnnlab import high", "low.py:1: 'low' may not import gnnlab.high"),
        ("low.py", "from .high.a import late", "low.py:1: 'low' may not import gnnlab.high.a"),
        ("low.py", "import gnnlab as dgl", "low.py:1: 'low' may not import gnnlab"),
        ("low.py", "from gnnlab import NID", "low.py:1: 'low' may not import gnnlab"),
        (
            "low.py",
            """
            def late():
                try:
                    with open("x"):
                        from . import high
                except OSError:
                    pass
            """,
            "low.py:5: 'low' may not import gnnlab.high",
        ),
        ("high/c.py", "try:\n    x = 1\nexcept OSError:\n    from gnnlab import NID", "c.py:4"),
        (
            "high/c.py",
            "from ..low import x\nfrom .nowhere import y",
            "gnnlab.high.nowhere does not",
        ),
        ("high/a.py", "from .b import late", "circular import gnnlab.high.b -> gnnlab.high.a"),
        ("new.py", "", "'new' has no floor"),
    ],
)
def test_checker_finds(house: Path, file: str, source: str, fault: str) -> None:
    (house / file).write_text(textwrap.dedent(source))
    wrong = faults(house, TWO_FLOORS)
    assert wrong and fault in wrong[0]


def test_checker_exempts_imports_for_types(house: Path) -> None:
    (house / "low.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from gnnlab import high\n"
    )
    assert faults(house, TWO_FLOORS) == []


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
