"""Two explorers: the growth of neighborhoods, and the time of a job by machines and settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from gnnlab.dataloading import NeighborSampler
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.graph.ids import read_ids
from gnnlab.plot import canvas
from gnnlab.plot.explorer import Explorer, explore
from gnnlab.plot.scaling import speedup, time_parts
from gnnlab.random import stream

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["explore_fanout", "explore_time"]

Parts = Mapping[str, float]


def explore_fanout(g: Graph, seeds: Any, max_layers: int = 4, max_fanout: int = 20) -> Explorer:
    """Explore how many nodes a mini-batch reads, by layers and fanout.

    A mini-batch is sampled for each setting. Bars count its distinct nodes after each step away
    from the seeds; outlines count all nodes within as many steps.

    Parameters
    ----------
    g : Graph
        With one node type and one edge type.
    seeds : IDs or mask
        The nodes of one mini-batch.
    max_layers, max_fanout : int
        Upper ends of the sliders.

    Returns
    -------
    Explorer

    Raises
    ------
    InvalidInput
        The graph has several types, or there are no seeds.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import plot
    >>> g = dgl.rand_graph(500, 4000)
    >>> explorer = plot.explore_fanout(g, range(8))
    >>> explorer
    explorer of growth: layers = 2, fanout = 5
    >>> explorer.controls["fanout"].value = 10
    """
    canvas.check_plain(g, None, "plot.explore_fanout")
    ids = read_ids(seeds, g.num_nodes(), "node", g.device)
    if not len(ids):
        raise InvalidInput("seeds is empty; give the IDs of at least one node")
    reach = _reach(g, ids, max_layers)

    def growth(layers: int = 2, fanout: int = 5) -> Axes:
        with stream(0):  # the same sample each time; the sampling counter does not advance
            _, _, blocks = NeighborSampler([fanout] * layers).sample(g, ids)
        found = [len(ids), *(block.num_src_nodes() for block in reversed(blocks))]
        ax = canvas.axes(None, 5.5, 3.2)
        steps = range(layers + 1)
        ax.bar(steps, reach[: layers + 1], 0.8, fill=False, edgecolor="gray", label="all neighbors")
        ax.bar(steps, found, 0.8, color=canvas.BLUE, label=f"fanout {fanout}")
        names = ["seeds", *(f"{step} away" for step in steps[1:])]
        counts = zip(names, found, reach, strict=False)
        ax.set_xticks(steps, [f"{name}\n{few:,} of {all_:,}" for name, few, all_ in counts])
        edges = sum(block.num_edges() for block in blocks)
        ax.set_title(
            f"{found[-1] / g.num_nodes():.0%} of {g.num_nodes():,} nodes, {edges:,} edges",
            fontsize=10,
        )
        ax.set(ylabel="nodes", ylim=(0, 1.15 * max(reach[-1], 1)))
        canvas.open_frame(ax)
        ax.legend(frameon=False, loc="upper left")
        return ax

    return explore(growth, layers=(1, max_layers), fanout=(1, max_fanout))


def _reach(g: Graph, seeds: torch.Tensor, steps: int) -> list[int]:
    """Count the nodes within 0, 1, … steps against the edges, by breadth-first search."""
    known = torch.zeros(g.num_nodes(), dtype=torch.bool, device=g.device)
    known[seeds.long()] = True
    new, counts = known.nonzero().flatten(), [int(known.sum())]
    for _ in range(steps):
        if len(new):
            sources = g.in_edges(new)[0].long().unique()
            new = sources[~known[sources]]
            known[new] = True
        counts.append(counts[-1] + len(new))
    return counts


def explore_time(
    times: Callable[..., Parts | float] | Mapping[Any, Parts | float],
    machines: Sequence[int],
    **controls: Any,
) -> Explorer:
    """Explore how the time of a job depends on the number of machines and on other settings.

    Stacked bars show the time by kind of work for each number of machines, beside the speed-up.
    Each setting is computed once and cached. With a dictionary all figures have the same scale.

    Parameters
    ----------
    times : callable or dict
        Seconds, or a dictionary of kind of work → seconds. A callable gets ``machines`` and the
        controls as keyword arguments. A dictionary, computed before, has keys
        ``(machines, *values of the controls)``, the controls in the order given here.
    machines : sequence of int
        Ascending; the horizontal axis of both plots.
    **controls
        At least one, as for :func:`explore`: such as ``partitioner=["metis", "random"]``.

    Returns
    -------
    Explorer

    Raises
    ------
    InvalidInput
        A setting is missing in the dictionary, or a time is negative.

    Examples
    --------
    >>> from gnnlab import plot
    >>> def times(machines, network):
    ...     gbit = {"1 Gbit/s": 1, "10 Gbit/s": 10}[network]
    ...     return {"compute": 8 / machines, "fetch": (1 - 1 / machines) / gbit}
    >>> plot.explore_time(times, [1, 2, 4, 8], network=["1 Gbit/s", "10 Gbit/s"])
    explorer of time: network = 1 Gbit/s
    """
    known = {} if callable(times) else {key: _parts(found) for key, found in times.items()}
    top = max((sum(parts.values()) for parts in known.values()), default=None)

    def parts_of(count: int, setting: dict[str, Any]) -> Parts:
        key = (count, *(tuple(v) if isinstance(v, list) else v for v in setting.values()))
        if key not in known:
            if not callable(times):
                raise InvalidInput(
                    f"times has no {key}; its keys must be (machines, {', '.join(setting)}), one "
                    f"for each setting. Its first key is {next(iter(times), None)!r}"
                )
            known[key] = _parts(times(machines=count, **setting))
        return known[key]

    def time(**setting: Any) -> Any:
        pyplot = canvas.needed("matplotlib.pyplot")
        parts = {count: parts_of(count, setting) for count in machines}
        figure, (left, right) = pyplot.subplots(
            1, 2, figsize=(7.6, 2.7), layout="constrained", width_ratios=[1.25, 1]
        )
        time_parts(parts, top, ax=left)
        speedup(machines, [sum(each.values()) for each in parts.values()], ax=right)
        return figure

    return explore(time, **controls)


def _parts(found: Parts | float) -> Parts:
    return found if isinstance(found, Mapping) else {"time": float(found)}
