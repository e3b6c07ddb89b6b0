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
from types import ModuleType
from typing import Any

from gnnlab.errors import takes_graph

__all__ = ["Face", "attributes"]


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
        elif importlib.util.find_spec(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")  # which sets the attribute
        elif base:
            value = getattr(importlib.import_module(base), name)
        else:
            raise AttributeError(f"{package} has no {name!r}; it has {', '.join(names())}")
        space[name] = value = takes_graph(value, package)
        return value

    def names() -> list[str]:
        own = {name for name, value in space.items() if not isinstance(value, ModuleType)}
        return sorted({*own, *table, *(_offered(base) if base else ())} - {"annotations"})

    return get, names


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
