"""``dgl.dataloading.negative_sampler``: gnnlab's samplers, and the base that programs derive from.

A subclass of DGL's base defines ``_generate(g, eids, canonical_etype)``; gnnlab's own have ``draw``
with a key. Those here have both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gnnlab.compat import lazy
from gnnlab.dataloading import negative_sampler as core
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import EdgeType
from gnnlab.random import fold, next_key

__all__ = ["GlobalUniform", "PerSourceUniform", "Uniform", "_BaseNegativeSampler"]


class _BaseNegativeSampler:
    """Base class: ``_generate`` makes the pairs for edges of one type."""

    def _generate(self, g: Graph, eids: Any, canonical_etype: EdgeType) -> Any:
        raise NotImplementedError(
            f"{type(self).__name__} must define _generate(self, g, eids, canonical_etype), which "
            "returns sources and destinations"
        )

    def __call__(self, g: Graph, eids: Any) -> Any:
        """Return (src, dst), or a dict of them by canonical edge type if ``eids`` is one."""
        if isinstance(eids, Mapping):
            by_type = {g.to_canonical_etype(etype): ids for etype, ids in eids.items()}
            return {etype: self._generate(g, ids, etype) for etype, ids in by_type.items()}
        return self._generate(g, eids, g.to_canonical_etype(None))


class _Generated(_BaseNegativeSampler):
    """One of gnnlab's samplers whose ``_generate`` a subclass may replace, or call."""

    _draws: type[core.NegativeSampler]

    def _generate(self, g: Graph, eids: Any, canonical_etype: EdgeType) -> Any:
        key = fold(next_key(), g.get_etype_id(canonical_etype))
        src, dst = self.draw(g, canonical_etype, eids, key)  # type: ignore[attr-defined]
        return src.to(g.idtype), dst.to(g.idtype)

    def __call__(self, g: Graph, eids: Any) -> Any:
        if type(self)._generate is _Generated._generate:
            return core.NegativeSampler.__call__(self, g, eids)  # type: ignore[arg-type]
        return super().__call__(g, eids)


class Uniform(_Generated, core.Uniform):  # type: ignore[misc]
    """:class:`gnnlab.dataloading.negative_sampler.Uniform`, for programs that derive from it."""


class GlobalUniform(_Generated, core.GlobalUniform):  # type: ignore[misc]
    """:class:`gnnlab.dataloading.negative_sampler.GlobalUniform`, to derive from."""

    def __init__(
        self,
        k: int,
        exclude_self_loops: bool = True,
        replace: bool = False,
        redundancy: float | None = None,  # a pair that is an edge is drawn again
    ) -> None:
        super().__init__(k, exclude_self_loops, replace)


PerSourceUniform = Uniform

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.dataloading.negative_sampler")
