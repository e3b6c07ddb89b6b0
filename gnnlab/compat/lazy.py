"""Attributes of compat's packages: names from a table of modules, otherwise those of gnnlab.

A package of compat, such as ``gnnlab.compat.nn``, has all names of the package that it extends,
``gnnlab.nn``, and those that only DGL has. Each module is imported when one of its names
is first used.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from gnnlab.compat.accepted import adapted
from gnnlab.errors import takes_graph

PATHS = {
    "nn.pytorch": "nn",
    "nn.functional": "ops",
    "nn.softmax": "ops",
    "_ffi": "",
    **dict.fromkeys(["batch", "convert", "generators", "heterograph", "merge", "readout"], ""),
    **dict.fromkeys(["propagate", "subgraph", "traversal", "view", "homophily"], ""),
    **dict.fromkeys(["frame", "init", "udf"], ""),
    **dict.fromkeys(["label_informativeness", "core"], ""),
    "distributed.partition": "distributed",
    "graphbolt.impl": "graphbolt",
    "sparse.sparse_matrix": "sparse",
    "transform": "transforms",
    "dataloading.dist_dataloader": "distributed.dist_dataloader",
    "distributed.dist_context": "distributed",
    "distributed.dist_graph": "distributed",
    "distributed.dist_tensor": "distributed",
    "distributed.nn": "distributed",
    "distributed.pytorch": "distributed",  # that is distributed.nn.pytorch
}
# DGL has a file for each layer, sampler and so on; here the package has the names of all.
_FILES = {
    "nn.conv": """
        agnnconv appnpconv atomicconv cfconv chebconv densechebconv densegraphconv densesageconv
        dotgatconv edgeconv edgegatconv egatconv egnnconv gatconv gatedgcnconv gatedgraphconv
        gatv2conv gcn2conv ginconv gineconv gmmconv graphconv hgtconv nnconv pnaconv relgraphconv
        sageconv sgconv tagconv
    """,
    "nn": """
        gt biased_mha degree_encoder graphormer path_encoder spatial_encoder
        link edgepred transe transr network_emb
    """,  # those of dgl.nn.gt and dgl.nn.link too
    "data": """
        bitcoinotc fraud gdelt gindt gnn_benchmark karate knowledge_graph minigc ppi qm7b reddit sbm
        tree wikics
    """,
    "dataloading": """
        base cluster_gcn dataloader graphsaint labor_sampler neighbor_sampler shadow spot_target
    """,
    "sampling": "labor negative neighbor node2vec_randomwalk pinsage randomwalks",
    "transforms": "functional module",
    "utils": "checks data internal shared_mem",
}
PATHS |= {f"{package}.{file}": package for package, fs in _FILES.items() for file in fs.split()}
"""Path of a module in DGL → its path here, for it and all below it; both without ``dgl.``."""

_NO_MODULES = {"graph"}  # gnnlab has a package of this name, DGL a function


def target(name: str) -> str | None:
    """Return the module that ``import NAME``, of ``dgl`` or below it, gives, or None.

    Examples
    --------
    >>> from gnnlab.compat.lazy import target
    >>> target("dgl.nn.pytorch.conv"), target("dgl.function")
    ('gnnlab.compat.nn.conv', 'gnnlab.function')
    """
    path = name.removeprefix("dgl").removeprefix(".")
    while known := max(
        (old for old in PATHS if f"{path}.".startswith(f"{old}.")), key=len, default=""
    ):
        path = (PATHS[known] + path[len(known) :]).removeprefix(".")
    if path in _NO_MODULES:
        return None
    for package in ("gnnlab.compat", "gnnlab"):
        found = f"{package}.{path}".rstrip(".")
        try:
            if importlib.util.find_spec(found):
                return found
        except ModuleNotFoundError:  # a parent is no package
            pass
    return None


def attributes(
    package: str, base: str, modules: Mapping[str, str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module of compat, named ``package``.

    It has the names of ``base``, which may be empty, and those in ``modules``: module → names,
    separated by spaces, of which ``"name=other"`` is the module's ``other`` under another name.

    Examples
    --------
    >>> from gnnlab.compat import lazy
    >>> get, names = lazy.attributes("gnnlab.compat.nn", "gnnlab.nn", {"gnnlab.ops": "gspmm"})
    >>> get("gspmm").__module__, get("SAGEConv").__module__
    ('gnnlab.ops.spmm', 'gnnlab.nn.sageconv')
    """
    table = {
        name: (module, original or name)
        for module, names in (modules or {}).items()
        for name, _, original in (entry.partition("=") for entry in names.split())
    }
    space = vars(sys.modules[package]) if package in sys.modules else {}
    space.setdefault("__path__", [])  # DGL has submodules there: gnnlab.compat.as_dgl finds them

    def get(name: str) -> Any:
        if name == "__all__":  # from dgl.nn import *
            return [each for each in names() if not each.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in table:
            module, original = table[name]
            value = getattr(importlib.import_module(module), original)
        else:
            value = getattr(importlib.import_module(base), name, None) if base else None
            path = f"dgl{package.removeprefix('gnnlab.compat')}.{name}"
            is_function = value is not None and not isinstance(value, ModuleType)
            if not is_function and (found := target(path)):
                return importlib.import_module(found)  # what `import` gives
            if value is None and not base:
                raise AttributeError(f"{package} has no {name!r}; it has {', '.join(names())}")
            if value is None:
                known = advice().get(path)
                words = f"{base} has none of that name"
                raise AttributeError(f"{path} is missing: {known or words}", name=name)
        space[name] = value = takes_graph(adapted(value), package)
        return value

    def names() -> list[str]:
        own = {name for name, value in space.items() if not isinstance(value, ModuleType)}
        return sorted({*own, *table, *(_offered(base) if base else ())} - {"annotations"})

    return get, names


def advice() -> dict[str, str]:
    """Return what to use instead of names that are missing."""
    lines = Path(__file__).with_name("instead.txt").read_text("utf8").splitlines()
    return dict(line.split(": ", 1) for line in lines)


def _offered(base: str) -> Iterable[str]:
    module = importlib.import_module(base)
    return getattr(module, "__all__", None) or dir(module)


class Face(ModuleType):
    """Class of a package that has functions named like modules of DGL: the function is kept.

    Python sets an imported module as an attribute of its package: after ``import dgl.heterograph``,
    ``dgl.heterograph`` would be the module.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in vars(self)["_FUNCTIONS"]):
            super().__setattr__(name, value)

    def __reduce__(self) -> Any:
        # cloudpickle knows ModuleType, not its subclasses; functions that use dgl refer to it.
        return importlib.import_module, (self.__name__,)
