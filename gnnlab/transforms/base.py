"""What all transforms are: callables that take a graph and return one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from gnnlab.errors import InvalidInput, takes_graph
from gnnlab.graph.graph import Graph


class BaseTransform(ABC):
    """A callable that takes a graph and returns another; subclass it and define ``__call__``."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("gnnlab."):  # those of users may take what they like
            cls.__call__ = takes_graph(cls.__call__)  # type: ignore[method-assign]

    @abstractmethod
    def __call__(self, g: Graph) -> Graph:
        """Return the changed graph."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Compose(BaseTransform):
    """Apply several transforms, callables, in order."""

    def __init__(self, transforms: Sequence[Callable[[Any], Any]]) -> None:
        given = transforms if isinstance(transforms, Sequence) else [transforms]
        if wrong := [each for each in given if isinstance(each, type) or not callable(each)]:
            raise InvalidInput(
                "Compose takes a list of transforms, such as [dgl.AddSelfLoop()]; found "
                f"{wrong[0]!r}"
            )
        self.transforms = list(given)

    def __call__(self, g: Any) -> Any:
        """Return the graph after all transforms."""
        for step in self.transforms:
            g = step(g)
        return g

    def __repr__(self) -> str:
        inner = ",\n".join(f"  {step!r}" for step in self.transforms)
        return f"Compose([\n{inner}\n])"
