"""Each public function gives, for any IDs, features, masks and names, a right result or an error.

The functions are read from the package. A value is made for each parameter by its name; then one
parameter at a time gets what users give by mistake: duplicates, nothing, masks of all dtypes, a
wrong length, unusual dtypes, unknown names, one type of a typed graph left out. The result must
equal that of the valid IDs, or the error name the argument. What tests/arguments.py lacks fails.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.dataloading import DataLoader, EdgePredictionSampler, Sampler, negative_sampler
from gnnlab.distributed import DistGraph, DistTensor
from gnnlab.errors import GNNLabError
from tests.arguments import (
    COMPAT,
    EDGES,
    EXEMPT,
    EXTRA,
    FOLLOWS,
    NODES,
    PLAIN,
    SKIP,
    SPECIAL,
    USERS,
    VALUES,
    WATCHED,
    Edges,
    Name,
    Nodes,
    Rows,
    Types,
    one,
    rows,
    typed,
)
from tests.test_public_names import public_names


def functions() -> Iterator[tuple[str, Any]]:
    """Name and value of each public function, class and method."""
    modules = [importlib.import_module(f"gnnlab.compat.{place}") for place in COMPAT.split()]
    for line in public_names():
        if match := re.fullmatch(r"gnnlab\.([\w.]+)\((.*)\)", line):
            value: Any = dgl
            for part in match[1].split("."):
                value = getattr(value, part)
            yield match[1], value
    for place, module in zip(COMPAT.split(), modules, strict=True):
        for name, value in vars(module).items():
            if getattr(value, "__module__", "") == module.__name__ and name[0] != "_":
                yield f"compat.{place}.{name}", value
                for method in ("forward", "sample"):
                    if inspect.isclass(value) and method in vars(value):
                        yield f"compat.{place}.{name}.{method}", vars(value)[method]


def parameters(value: Any) -> list[inspect.Parameter]:
    try:
        found = list(inspect.signature(value).parameters.values())
    except ValueError:  # a class of exceptions
        return []
    return [p for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


# ------------------------------------------------------------------------------- calls
class World:
    """A graph of one kind, fresh for each call: "one" type, "typed", a block, or in parts."""

    def __init__(self, kind: str, folder: Any) -> None:
        self.kind, self.folder, self.typed = kind, folder, kind.startswith("typed")
        self.fresh()

    def fresh(self) -> None:
        torch.default_generator.manual_seed(0)
        dgl.seed(0)
        found = start(self.kind, self.folder)
        self.graph = found if isinstance(found, DistGraph) else found.clone()

    def embedding(self) -> Any:
        return dgl.distributed.DistEmbedding(USERS, 2, "e", part_policy=policy(self.graph))


def policy(g: Any) -> Any:
    return g.get_node_partition_policy(g.ntypes[-1])


@functools.cache
def start(kind: str, folder: Any) -> Any:
    g = typed() if kind.startswith("typed") else one()
    if kind.endswith("block"):
        return dgl.to_block(g)
    if not kind.endswith("parts"):
        return g
    name = kind.replace(" ", "-")
    dgl.distributed.partition_graph(g, name, 2, folder, part_method=halves)
    dgl.distributed.initialize()
    return DistGraph(name, part_config=folder / f"{name}.json")


def halves(g: Any, num_parts: int) -> Any:
    parts = {t: torch.arange(g.num_nodes(t)) * 2 // g.num_nodes(t) for t in g.ntypes}
    return parts if len(parts) > 1 else next(iter(parts.values()))


FLAT = {name: value for names, value in VALUES.items() for name in names.split()}
PUBLIC = {**dict(functions()), **{f"EXTRA.{each.__name__}": each for each in EXTRA}}


@functools.cache
def given(path: str, name: str) -> Any:
    """What the tables have for a parameter; KeyError if nothing."""
    for pattern, values in SPECIAL.items():
        if fnmatch(path, pattern) and name in values:
            return values[name]
    return FLAT[name]


def is_given(path: str, name: str) -> bool:
    try:
        given(path, name)
    except KeyError:
        return False
    return True


def matches(text: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(text, pattern) for pattern in patterns)


class Call:
    """A public function with arguments made for a world."""

    def __init__(self, path: str, value: Any, w: World) -> None:
        self.path, self.w, self.value = path, w, value
        self.signature = {p.name: p for p in parameters(value)}
        self.has_type = bool({"ntype", "etype"} & self.signature.keys())

    def names(self) -> list[str]:
        """Parameters to be tested."""
        found = [
            n for n in self.signature if is_given(self.path, n) and not matches(n, PLAIN.split())
        ]
        return [n for n in found if isinstance(given(self.path, n), Nodes | Edges | Rows | Name)]

    def argument(self, name: str) -> Any:
        value = given(self.path, name)
        if isinstance(value, Nodes | Edges):
            whole = self.w.typed and not self.has_type
            return {value.key: list(value), **value.more} if whole else list(value)
        if isinstance(value, Rows):
            return rows(value)
        if isinstance(value, Name):
            return str(value)
        return value(self.w) if callable(value) else value

    def owner(self) -> tuple[Any, ...]:
        """The object of a method."""
        owner = self.path.rpartition(".")[0]
        if not inspect.isclass(PUBLIC.get(owner)):
            return ()
        if issubclass(PUBLIC[owner], dgl.Graph | DistGraph):
            return (self.w.graph,)
        if is_given(self.path, "self"):
            return (given(self.path, "self")(self.w),)
        return (Call(owner, PUBLIC[owner], self.w).run({}),)

    def run(self, changed: Mapping[str, Any]) -> Any:
        owner = self.owner()
        types = {"ntype", "etype"} if self.w.typed else set()
        arguments = {
            name: changed[name] if name in changed else self.argument(name)
            for name, p in list(self.signature.items())[len(owner) :]
            if name in changed or p.default is p.empty or name in types
        }
        return self.value(*owner, **arguments)

    def __call__(self, changed: Mapping[str, Any]) -> tuple[str, Any]:
        """("result", value), ("error", text), or ("fault", text) for an error that is not ours."""
        self.w.fresh()
        try:
            result = self.used(self.run(changed))
            return "result", (plain(result), plain(self.w.graph))
        except GNNLabError as error:
            return "error", str(error)
        except Exception as error:
            return "fault", f"{type(error).__name__}: {error}"

    def used(self, result: Any) -> Any:
        """What an object that was made does with the graph."""
        g, typed = self.w.graph, self.w.typed
        nodes, edges = ({e.key: e, **e.more} if typed else list(e) for e in (NODES, EDGES))
        if isinstance(result, dgl.BaseTransform):
            return result(g)
        if isinstance(result, Sampler):
            seeds = edges if isinstance(result, EdgePredictionSampler) else nodes
            return DataLoader(g, seeds, result, batch_size=FOLLOWS)
        if isinstance(result, negative_sampler.NegativeSampler):
            return result(g, edges)
        return result


def plain(value: Any) -> Any:
    """Numbers, texts and tuples; lists are rows of a tensor."""
    if isinstance(value, dgl.Graph):
        frames = [dict(f) for f in (value.srcdata, value.dstdata, value.edata)]
        sizes = {t: value.num_src_nodes(t) for t in value.srctypes}
        return plain((sizes, {e: value.edges(etype=e) for e in value.canonical_etypes}, *frames))
    if isinstance(value, DistGraph):
        return "DistGraph"
    if isinstance(value, DistTensor):
        value = value[torch.arange(len(value))]
    if hasattr(value, "toarray"):
        value = value.toarray()
    if isinstance(value, np.ndarray | torch.Tensor):
        value = torch.as_tensor(value).detach()
        value = value.to_dense() if value.is_sparse or value.is_sparse_csr else value
        value = value.real if value.is_complex() else value
        return value.double().round(decimals=3).nan_to_num(-77).tolist()
    if isinstance(value, str | type(None)):
        return value
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, Mapping):
        return tuple((str(k), plain(v)) for k, v in value.items())
    return tuple(plain(v) for v in value) if isinstance(value, Iterable) else type(value).__name__


def joined(many: list[Any]) -> Any:
    """Rows of several results, one after the other."""
    if all(isinstance(each, list) for each in many):
        return [row for each in many for row in each]
    if all(isinstance(each, tuple) and len(each) == len(many[0]) for each in many):
        return tuple(joined(list(column)) for column in zip(*many, strict=True))
    return many[0]


# ------------------------------------------------------------------------------- mistakes
MASKS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16]
Mistake = tuple[str, Any, list[Any]]  # what it is, the value, and the results that would be right


def wrong_ids(ids: Any, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    base, ids, bound = give(list(ids)), list(ids), ids.bound
    each = [give([i])[1] for i in (*ids, ids[0])]
    repeated = give([*ids, ids[0]])
    yield "duplicates", [*ids, ids[0]], [base[1], (joined([r[0] for r in each]), base[1][1])]
    mask = torch.zeros(bound, dtype=torch.bool)
    mask[ids] = True
    yield "bool mask", mask, [base[1]]
    for dtype in MASKS:  # where IDs may be repeated, those of the usual dtypes are IDs
        may = repeated[0] == "result" != base and dtype in (torch.int32, torch.int64)
        as_ids = [give(mask.long().tolist())[1]] if may and repeated != base else []
        yield f"mask of {dtype}", mask.to(dtype), [base[1], *as_ids]
    for size in (bound - 1, bound + 1):
        yield f"mask of length {size - bound:+}", torch.ones(size).bool(), []
    yield "IDs of torch.uint16", torch.tensor(ids).to(torch.uint16), [base[1]]
    for dtype in (torch.complex64, torch.float32):
        yield f"IDs of {dtype}", torch.tensor(ids).to(dtype), []
    nothing = give(torch.empty(0, dtype=torch.int64))[1]
    for empty in ([], torch.empty(0), np.array([])):
        yield f"nothing, a {type(empty).__name__}", empty, [nothing]
    yield "no such ID", [bound], []
    yield "negative ID", [-1], []
    yield "text", ["a"], []


def wrong_rows(shape: Rows, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    good = rows(shape)
    base = give(good)[1]
    for label, bad in ("fewer", good[:-1]), ("more", torch.cat([good, good[:1]])), ("no", good[:0]):
        yield f"{label} rows", bad, []
    yield "a number", good.flatten()[0], []
    for dtype in (torch.uint16, torch.int64, torch.complex64):
        yield f"rows of {dtype}", good.to(dtype), [base]
    if isinstance(shape, Types):
        yield "unknown type", good + 90, []


def wrong_names(name: Name, give: Callable[[Any], Any]) -> Iterator[Mistake]:
    for bad in ("no such", 7, ["no such"]):
        yield repr(bad), bad, []


def mistakes(call: Call, name: str) -> Iterator[Mistake]:
    kind = given(call.path, name)
    if isinstance(kind, Rows | Name):
        make = wrong_rows if isinstance(kind, Rows) else wrong_names
        yield from make(kind, lambda value: call({name: value}))  # type: ignore[operator]
        return
    whole = isinstance(call.argument(name), dict)

    def typed(ids: Any) -> Any:
        return {kind.key: ids, **kind.more} if whole else ids

    for label, bad, right in wrong_ids(kind, lambda ids: call({name: typed(ids)})):
        yield label, typed(bad), right
    if whole:
        only = {kind.key: list(kind)}
        yield "one type", only, [call({name: {**only, **{key: [] for key in kind.more}}})[1]]
        yield "unknown type", {"nope": [0]}, []
        yield "no type", list(kind), []


def faults(path: str, value: Any, w: World) -> Iterator[tuple[str, str]]:
    """("function parameter: mistake", what happened) for each mistake that does harm."""
    call = Call(path, value, w)
    for name in call.names():
        kind, found = call({name: call.argument(name)})
        if kind == "fault":
            yield f"{path} {name}: valid", found
        if kind != "result":
            continue  # an error: the function does not take this kind of graph
        words = {name, *getattr(given(path, name), "words", ())}
        for label, bad, right in mistakes(call, name):
            kind, found = call({name: bad})
            if kind == "error":
                texts = [
                    *words,
                    *(repr(each) for each in (bad if isinstance(bad, list) else [bad])),
                ]
                good = any(text in found.lower() for text in texts)
            else:
                good = kind == "result" and found in right
            if not good:
                yield f"{path} {name}: {label}", "a wrong result" if kind == "result" else found


def worlds(path: str) -> list[str]:
    """Kinds of graphs to call a function with."""
    if any(part in path for part in ("DistTensor", "DistEmb", "Book", "Policy")):
        return ["parts"]
    if path.startswith("distributed") or "DistN" in path or "DistE" in path:
        return ["parts", "typed parts"]
    if path.startswith("Block."):
        both_sides = path == "Block.has_nodes"  # counts those of both
        return ["one", "typed", *(() if both_sides else ("typed block",))]
    if path.startswith(("nn", "compat.nn", "ops")):
        return ["block" if path.startswith("ops") or "Conv" in path else "one"]
    return ["one", "typed"]


def one_name_each() -> list[str]:
    """Each function under one name."""
    names = {inspect.unwrap(PUBLIC[path]): path for path in reversed(PUBLIC)}
    return [path for path in names.values() if not matches(path, SKIP)][::-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tmp_path_factory.mktemp("parts")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", [p for p in one_name_each() if not p.startswith("compat.")])
def test_wrong_arguments(path: str, folder: Any) -> None:
    check(path, folder)


def check(path: str, folder: Any) -> None:
    """Neither wrong results, nor errors that are not ours or do not name the argument."""
    unknown = [
        p.name
        for p in parameters(PUBLIC[path])
        if {*WATCHED.split()} & {*p.name.split("_")} and not is_given(path, p.name)
        if not matches(p.name, PLAIN.split())
    ]
    assert not unknown, f"say in the tables what {unknown} are"
    found = dict(x for w in worlds(path) for x in faults(path, PUBLIC[path], World(w, folder)))
    wrong = {k: v for k, v in found.items() if not matches(k, EXEMPT)}
    assert not wrong, "\n".join(f"{mistake}: {what[:200]}" for mistake, what in wrong.items())
