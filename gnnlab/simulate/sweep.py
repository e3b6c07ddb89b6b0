"""What if there were more machines, another network, another way to cut?

``what_if`` runs a function for all combinations of some choices. A choice is an option of
:func:`~gnnlab.simulate.simulate`, such as ``machines``, ``part_method`` or ``features``, or an
argument of the function, such as a fanout. Combinations that differ in the network or the
processors alone are one run.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.simulate.result import Result
from gnnlab.simulate.simulation import simulate

__all__ = ["Case", "Sweep", "sweep", "what_if"]

_OPTIONS = set(inspect.signature(simulate).parameters) - {"graph"}
_CUT = ("machines", "part_method")
_TIMED = ("network", "cores", "shared_cores")  # changes of these need no new run


@dataclass(frozen=True)
class Case:
    """One combination of choices.

    Attributes
    ----------
    choice : dict
        Name → value.
    result : Result
    """

    choice: dict[str, Any]
    result: Result

    @property
    def seconds(self) -> float:
        """Predicted time of an epoch."""
        return self.result.epoch_seconds

    @property
    def num_bytes(self) -> int:
        """Bytes that left a machine."""
        total = self.result.traffic.total()
        return total.bytes_out + total.bytes_in


def what_if(
    graph: Any, function: Callable[..., Any], choices: Mapping[str, Sequence[Any]], **options: Any
) -> list[Case]:
    """Run a function for all combinations of some choices.

    Parameters
    ----------
    graph : path, Graph, or callable
        As for :func:`simulate`. A callable gets the number of machines and returns either.
    function : callable
        Each trainer calls it; choices that are no option of :func:`simulate` are its arguments.
    choices : dict
        Name → values.
    **options
        For :func:`simulate`, where they are the same for all.

    Returns
    -------
    list of Case
        The last choice varies fastest.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from gnnlab.simulate import Network, what_if
    >>> g = dgl.rand_graph(200, 2000)
    >>> g.ndata["x"] = torch.randn(200, 8)
    >>> def epoch(fanout):
    ...     dgl.distributed.initialize()
    ...     g = dgl.distributed.DistGraph("graph")
    ...     nodes = dgl.distributed.node_split(torch.arange(200), g.get_partition_book())
    ...     sampler = dgl.dataloading.NeighborSampler([fanout], prefetch_node_feats=["x"])
    ...     for batch in dgl.distributed.DistNodeDataLoader(g, nodes, sampler, batch_size=20):
    ...         pass
    >>> networks = [Network(bandwidth=1e8), Network(bandwidth=1e10)]
    >>> cases = what_if(g, epoch, {"fanout": [2, 8], "network": networks}, machines=2)
    >>> cases[0].num_bytes == cases[1].num_bytes < cases[2].num_bytes
    True
    >>> cases[1].seconds < cases[0].seconds
    True
    """
    unknown = set(options) - _OPTIONS
    if unknown:
        raise InvalidInput(f"simulate() has no options {sorted(unknown)}; put what the function "
                           "takes into choices")  # fmt: skip
    if not choices:
        raise InvalidInput("choices is empty; for instance {'machines': [1, 2, 4]}")
    return list(_cases(graph, function, choices, options))


def _cases(
    graph: Any, function: Callable[..., Any], choices: Mapping[str, Sequence[Any]], options: Any
) -> Iterator[Case]:
    cuts: dict[Any, Any] = {}
    runs: dict[Any, Result] = {}
    for picked in itertools.product(*map(enumerate, choices.values())):
        # Values are told apart by their places: many cannot be compared, or look alike.
        places, values = zip(*picked, strict=True)
        place, choice = (dict(zip(choices, each, strict=True)) for each in (places, values))
        given = {**options, **{n: v for n, v in choice.items() if n in _OPTIONS}}
        arguments = {n: v for n, v in choice.items() if n not in _OPTIONS}
        cut = tuple(place.get(name) for name in _CUT)
        run = cut, *(number for name, number in place.items() if name not in (*_CUT, *_TIMED))
        if run not in runs:
            if cut not in cuts:
                cuts.clear()  # a cut graph takes a folder; it goes with the last that uses it
                cuts[cut] = _cut(graph, given)
            others = {n: v for n, v in given.items() if n not in (*_CUT, *_TIMED)}
            runs[run] = simulate(cuts[cut].part_config, **others).run(function, **arguments)
        yield Case(choice, runs[run].retimed(**{n: given[n] for n in _TIMED if n in given}))


def _cut(graph: Any, given: Mapping[str, Any]) -> Any:
    """Return the simulation that has cut the graph, and keeps its files."""
    machines = given.get("machines")
    if callable(graph) and not isinstance(graph, Graph):
        graph = graph(machines)
    return simulate(graph, **{name: given[name] for name in _CUT if name in given})


@dataclass(frozen=True)
class Sweep:
    """The same training on different numbers of machines.

    Attributes
    ----------
    cases : list of Case
    """

    cases: list[Case]

    @property
    def machines(self) -> list[int]:
        """Numbers of machines."""
        return [case.choice["machines"] for case in self.cases]

    @property
    def seconds(self) -> list[float]:
        """Predicted seconds of an epoch."""
        return [case.seconds for case in self.cases]

    @property
    def speedup(self) -> list[float]:
        """How many times faster than the first case, times its number of machines."""
        first = self.seconds[0] * self.machines[0]
        return [first / seconds for seconds in self.seconds]

    @property
    def efficiency(self) -> list[float]:
        """Speed-up by the number of machines: 1 where all of each machine helps."""
        return [s / m for s, m in zip(self.speedup, self.machines, strict=True)]

    def __str__(self) -> str:
        """Return a table."""
        lines = ["machines   epoch, s  speed-up  efficiency     MB moved"]
        for case, speedup, efficiency in zip(
            self.cases, self.speedup, self.efficiency, strict=True
        ):
            lines.append(
                f"{case.choice['machines']:8} {case.seconds:10.3f} {speedup:9.2f} "
                f"{efficiency:11.2f} {case.num_bytes / 1e6:12.1f}"
            )
        return "\n".join(lines)


def sweep(
    graph: Any,
    function: Callable[..., Any],
    machines: Sequence[int] = (1, 2, 4, 8),
    **options: Any,
) -> Sweep:
    """Run a function on different numbers of machines, and compare.

    Parameters
    ----------
    graph : path, Graph, or callable
        A graph is cut for each number; a callable gets the number and returns a graph or the path
        of a JSON file.
    function : callable
    machines : sequence of int
    **options
        For :func:`simulate`.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from gnnlab.simulate import sweep
    >>> def epoch():
    ...     dgl.distributed.initialize()
    ...     g = dgl.distributed.DistGraph("graph")
    ...     nodes = dgl.distributed.node_split(torch.arange(200), g.get_partition_book())
    ...     sampler = dgl.dataloading.NeighborSampler([4])
    ...     for batch in dgl.distributed.DistNodeDataLoader(g, nodes, sampler, batch_size=20):
    ...         pass
    >>> found = sweep(dgl.rand_graph(200, 2000), epoch, (1, 2))
    >>> found.machines, found.speedup[0], found.cases[0].num_bytes
    ([1, 2], 1.0, 0)
    """
    return Sweep(what_if(graph, function, {"machines": machines}, **options))
