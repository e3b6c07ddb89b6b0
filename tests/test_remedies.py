"""What an error or a warning tells the reader to write exists: arguments, functions and commands.

Read are the texts in ``gnnlab/``. ``name=`` must be a parameter of a function or class of the same
package, or of one that imports it (its users read the error, too); ``dgl.name(`` must be a function,
and ``gnnlab name`` a command.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import gnnlab
from gnnlab.tools import cli
from tests.helpers import ROOT

HERE = ROOT / "gnnlab"
FILES = sorted(HERE.rglob("*.py"))
# An argument in a sentence: edge_dir='out', (etype=…); neither a == b nor an option, --name=value.
ARGUMENT = re.compile(r"(?<![-\w./:{!\[])([a-z]\w+)=(?![=\s])")
FUNCTION = re.compile(r"\b(?:dgl|gnnlab)\.((?:\w+\.)*\w+)\(")
COMMAND = re.compile(r"`gnnlab ([a-z_]+)|\brun gnnlab ([a-z_]+)")
# Parameters of others' functions.
OTHERS = {"torch": "dtype as_tuple weights_only sharing_strategy start_method requires_grad dim"}


def package(path: Path) -> str:
    parts = path.relative_to(HERE).with_suffix("").parts
    return parts[0]


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf8"))


@functools.cache
def parameters() -> dict[str, set[str]]:
    """Parameters of all functions, and fields of classes, by package."""
    found: dict[str, set[str]] = {}
    for path in FILES:
        names = found.setdefault(package(path), set())
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.arguments):
                names |= {a.arg for a in (*node.posonlyargs, *node.args, *node.kwonlyargs)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return found


@functools.cache
def importers() -> dict[str, set[str]]:
    """Packages by one that they import, directly or through others."""
    uses: dict[str, set[str]] = {package(path): set() for path in FILES}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gnnlab."):
                uses[package(path)].add(node.module.split(".")[1])
            elif isinstance(node, ast.ImportFrom) and node.module == "gnnlab":
                uses[package(path)] |= {alias.name for alias in node.names}
    for _ in uses:
        for mine in uses.values():
            mine |= {name for each in mine for name in uses.get(each, ())}
    return {name: {user for user in uses if name in uses[user]} | {name} for name in uses}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of what is raised or warned; what is filled in is ``{}``."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            given = node.exc.args
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warn"):
            given = node.args
        else:
            continue
        for argument in given:
            for part in ast.walk(argument):
                if isinstance(part, ast.JoinedStr):
                    whole = "".join(
                        str(v.value) if isinstance(v, ast.Constant) else "{}" for v in part.values
                    )
                    yield node.lineno, whole
                elif isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield node.lineno, part.value


def exists(name: str) -> bool:
    value: Any = gnnlab
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = import_module(f"gnnlab.{name.rpartition('.')[0]}")
                value = getattr(value, name.rpartition(".")[2])
            except (ImportError, AttributeError):
                return False
            break
    return callable(value)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HERE)))
def test_remedies_exist(path: Path) -> None:
    """Checked are files with such texts; each name is looked up where its reader would."""
    users = importers()[package(path)]
    known = {name for user in users for name in parameters()[user]}
    known |= {name for names in OTHERS.values() for name in names.split()}
    wrong = []
    for line, text in texts(path):
        wrong += [f"line {line}: {n}=" for n in ARGUMENT.findall(text) if n not in known]
        wrong += [f"line {line}: dgl.{n}()" for n in FUNCTION.findall(text) if not exists(n)]
    assert not wrong


def test_a_remedy_that_does_not_exist_is_found() -> None:
    assert ARGUMENT.findall("use part_method='ldg', (etype=…); --gpus=2, a==b, {x=}") == [
        "part_method",
        "etype",
    ]
    assert FUNCTION.findall("call dgl.add_self_loop(g) or gnnlab.nn.Lost()") == [
        "add_self_loop",
        "nn.Lost",
    ]
    assert exists("add_self_loop") and exists("distributed.initialize") and not exists("nn.Lost")
