"""The graph, its features, messages on it, and graphs derived from it.

``gnnlab.graph`` names both this package and the function that makes a graph; ``gnnlab/__init__.py``
replaces the attribute by the function. Tools that import modules one by one (such as pytest's
doctests) set it to the package again, so the package is callable, too.
"""

import importlib
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from gnnlab.graph.construct import graph

        return graph(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)  # pickle knows plain modules only


sys.modules[__name__].__class__ = _CallablePackage
