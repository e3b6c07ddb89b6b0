"""Seeds of a loader: IDs of one or several types, read from IDs or masks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import as_integers, refuse_mask
from gnnlab.graph.relation import check_ids
from gnnlab.graph.temporal import read_times


class Timed(NamedTuple):
    """Seeds and the time of each, as tensors or as dicts of tensors by type.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> g = dgl.graph(([1, 2], [0, 0]))
    >>> g.edata["t"] = [5, 8]
    >>> sampler = dgl.dataloading.NeighborSampler([-1], time="t")
    >>> input_nodes, output_nodes, blocks = sampler.sample(g, dgl.dataloading.Timed([0, 0], [6, 9]))
    >>> blocks[0].in_degrees()
    tensor([1, 2])
    """

    ids: Any
    times: Any


class Seeds:
    """Seed IDs of one or several types; each type has one range of positions.

    Given ``times``, seeds of the same form, :meth:`take` returns both as :class:`Timed`.
    """

    def __init__(
        self, by_type: dict[str, torch.Tensor], typed: bool, times: Seeds | None = None
    ) -> None:
        self.by_type, self.typed, self.times = by_type, typed, times
        self.offsets = np.cumsum([0, *(len(ids) for ids in by_type.values())])

    def __len__(self) -> int:
        return int(self.offsets[-1])

    def items(self) -> Any:
        """Return the IDs as a tensor, or a list of (type, ID) if they are given by type."""
        if not self.typed:
            return self.by_type[""]
        return [(name, i) for name, ids in self.by_type.items() for i in ids.tolist()]

    def take(self, positions: torch.Tensor) -> Any:
        """Return the seeds at some positions."""
        if self.times is None:
            return self._take(positions)
        return Timed(self._take(positions), self.times.take(positions))

    def _take(self, positions: torch.Tensor) -> Any:
        if not self.typed:
            (ids,) = self.by_type.values()
            return ids[positions.to(ids.device, non_blocking=ids.device.type != "cpu")]
        found = {}
        for (name, ids), start, stop in zip(
            self.by_type.items(), self.offsets, self.offsets[1:], strict=False
        ):
            inside = positions[(positions >= start) & (positions < stop)] - int(start)
            if len(inside):
                found[name] = ids[inside.to(ids.device)]
        return found


def read_indices(graph: Graph, indices: Any, times: Any = None) -> Seeds:
    """Return the seeds of a loader, and their times, from IDs or masks, or a dict by type."""

    def read(value: Any, kind: Any = None) -> torch.Tensor:
        if hasattr(value, "part_policy"):
            value = value[:]  # a distributed mask
        ids = as_integers(value, "seeds", masks=True)
        if ids.dtype is torch.bool:
            _check_mask(graph, ids, kind)
            ids = ids.nonzero().flatten()
        elif ids.ndim == 1 and len(ids) in _sizes(graph, kind):
            refuse_mask(ids, "node or edge", least=1 if ids.dtype.itemsize == 1 else 3)
        if ids.ndim != 1:
            raise InvalidInput(
                f"seeds must be a one-dimensional array of integer IDs; found {ids.dtype} of shape "
                f"{tuple(ids.shape)}"
            )
        ids = ids.long()
        if graph.idtype is torch.int32:  # in which larger IDs would become others
            check_ids(ids, torch.iinfo(torch.int32).max, "node or edge")
        return ids.to(graph.device, graph.idtype)

    typed = isinstance(indices, Mapping)
    given = indices if typed else {"": indices}
    seeds = Seeds({name: read(ids, name or None) for name, ids in given.items()}, typed)
    if times is not None:
        seeds.times = _read_seed_times(seeds, times)
    return seeds


def _read_seed_times(seeds: Seeds, times: Any) -> Seeds:
    by_type = times if isinstance(times, Mapping) else {"": times}
    if set(by_type) != set(seeds.by_type):
        need, found = (", ".join(map(str, x)) or "no types" for x in (seeds.by_type, by_type))
        raise InvalidInput(f"seed_times need the types of the seeds: {need}; found {found}")
    read = {
        name: read_times(by_type[name], len(ids), "seed_times").to(ids.device)
        for name, ids in seeds.by_type.items()
    }
    return Seeds(read, seeds.typed)


def _sizes(graph: Any, kind: Any = None) -> list[int]:
    """Return the numbers of nodes and edges of each type, or of one type."""
    of_nodes = [graph.num_nodes(t) for t in graph.ntypes if kind in (None, t)]
    return of_nodes + [
        graph.num_edges(e) for e in graph.canonical_etypes if kind in (None, e, e[1])
    ]


def _check_mask(graph: Any, mask: torch.Tensor, kind: Any) -> None:
    if (sizes := _sizes(graph, kind)) and mask.shape not in {(size,) for size in sizes}:
        raise InvalidInput(
            f"a mask needs one entry per node, or edge, of a type {tuple(sizes)}; found shape "
            f"{tuple(mask.shape)}"
        )
