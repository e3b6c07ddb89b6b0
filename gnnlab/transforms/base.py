"""What all transforms are: callables that take a graph and return one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from gnnlab.graph.graph import Graph

__all__ = ["BaseTransform", "Compose"]


class BaseTransform(ABC):
    """A callable that takes a graph and returns another; subclass it and define ``__call__``."""

    @abstractmethod
    def __call__(self, g: Graph) -> Graph:
        """Return the changed graph."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Compose(BaseTransform):
    """Apply several transforms in order.

    Parameters
    ----------
    transforms : list of callable
    """

    def __init__(self, transforms: Sequence[Callable[[Graph], Graph]]) -> None:
        self.transforms = list(transforms)

    def __call__(self, g: Graph) -> Graph:
        """Return the graph after all transforms."""
        for step in self.transforms:
            g = step(g)
        return g

    def __repr__(self) -> str:
        inner = ",\n".join(f"  {step!r}" for step in self.transforms)
        return f"Compose([\n{inner}\n])"
