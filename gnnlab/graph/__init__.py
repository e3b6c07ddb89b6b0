"""Floor 2: the graph, its features, messages on it, and graphs derived from it.

``gnnlab.graph`` is two things: this package, and the function that makes a graph, which
``gnnlab/__init__.py`` puts in its place. Tools that import modules one by one (such as doctests of
pytest) put the package back, so the package can be called, too.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from gnnlab.graph.construct import graph

        return graph(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
