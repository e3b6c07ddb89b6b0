"""What an error or a warning tells the reader to write exists: arguments and functions.

Read are the texts in ``gnnlab/``. ``name=`` must be a parameter of a public function or class that
raises the error, or that calls what raises it; ``dgl.name(`` must be a function.
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
from tests.helpers import ROOT
from tests.test_public_names import public_names

HERE = ROOT / "gnnlab"
FILES = sorted(HERE.rglob("*.py"))
# An argument in a sentence: edge_dir='out', (etype=…); neither a == b nor an option, --name=value.
ARGUMENT = re.compile(r"(?<![-\w./:{!\[])([a-z]\w+)=(?![=\s])")
FUNCTION = re.compile(r"\b(?:dgl|gnnlab)\.((?:\w+\.)*\w+)\(")
# Right though no signature has them: those of torch, and any name where keywords are passed on.
OTHERS = {
    "allow_zero_in_degree",
    "as_tuple",
    "capturable",
    "dim",
    "dtype",
    "fanout",
    "find_unused_parameters",
    "group",
    "rank",
}
OTHERS |= {"requires_grad", "self_loop", "sharing_strategy", "size", "start_method"}
OTHERS |= {"weights_only", "world_size"}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf8"))


@functools.cache
def functions() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Parameters of all functions by name, and the names that each uses.

    A class has those of its public methods, and its fields.
    """
    takes: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    for path in FILES:
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                continue
            mine, used = takes.setdefault(node.name, set()), uses.setdefault(node.name, set())
            members = node.body if isinstance(node, ast.ClassDef) else [node]
            for part in members:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                    mine.add(part.target.id)
                named = getattr(part, "name", "_")
                if isinstance(part, ast.FunctionDef) and (named[0] != "_" or named[-1] == "_"):
                    given = (*part.args.posonlyargs, *part.args.args, *part.args.kwonlyargs)
                    mine |= {argument.arg for argument in given}
            for part in ast.walk(node):
                if isinstance(part, ast.Name):
                    used.add(part.id)
                elif isinstance(part, ast.Attribute):
                    used.add(part.attr)
    return takes, uses


@functools.cache
def reachable(name: str) -> frozenset[str]:
    """Parameters of a function and of those that call it, directly or through others."""
    takes, uses = functions()
    found, new = {name}, {name}
    while new:
        new = {user for user, used in uses.items() if used & new} - found
        found |= new
    return frozenset().union(*(takes.get(each, set()) for each in found & public()))


@functools.cache
def public() -> set[str]:
    """Functions and classes that users call; in compat, tools, pyg and launch all of them."""
    found = {part for line in public_names() for part in line.partition("(")[0].split(".")}
    for path in FILES:
        if path.relative_to(HERE).parts[0] in ("compat", "pyg", "tools", "launch"):
            found |= {getattr(top, "name", "") for top in tree(path).body}
    return {name for name in found if name[:1] != "_"}


def texts(path: Path) -> Iterator[tuple[str, int, str]]:
    """Function, line and text of what is raised or warned; what is filled in is ``{}``."""
    for top in tree(path).body:
        name = getattr(top, "name", "")
        for line, text in texts_in(top):
            yield name, line, text


def texts_in(top: ast.stmt) -> Iterator[tuple[int, str]]:
    for node in ast.walk(top):
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
    value: Any = (
        gnnlab if hasattr(gnnlab, name.partition(".")[0]) else import_module("gnnlab.compat")
    )
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
    wrong = []
    for function, line, text in texts(path):
        known = reachable(function) | OTHERS
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
