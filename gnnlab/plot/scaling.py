"""Draw the scaling of a job: its speed-up, its time by kind of work, and both with sliders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas
from gnnlab.plot.explorer import Explorer, explore
from gnnlab.plot.words import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Parts = Mapping[str, float]


def speedup(
    machines: Sequence[int],
    seconds: Sequence[float] | Mapping[str, Sequence[float]],
    ax: Axes | None = None,
) -> Axes:
    """Draw the speed-up by number of machines, beside the ideal (linear) one.

    Dotted lines mark an *efficiency* (speed-up divided by the ideal) of 50% and 25%. The legend
    gives the efficiency of each curve at its last point.

    Parameters
    ----------
    machines : sequence of int
        Numbers of machines, ascending. Speed-up is relative to the first one.
    seconds : sequence of float, or dict of str to sequence of float
        Time of the same work on each number of machines; a dictionary gives several curves.

    Examples
    --------
    >>> from gnnlab import plot
    >>> ax = plot.speedup([1, 2, 4], {"metis": [8, 4.1, 2.5], "random": [8, 6, 5]})
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['ideal', 'metis: 80% of ideal', 'random: 40% of ideal']
    """
    counts = canvas.as_list(machines)
    if isinstance(seconds, Mapping):
        curves = {str(name): canvas.as_list(times) for name, times in seconds.items()}
    else:
        curves = {"": canvas.as_list(seconds)}
    _check(counts, curves)
    ideal = [count / counts[0] for count in counts]
    ax = canvas.axes(ax, 5.2, 3.2)
    ax.plot(counts, ideal, "--", color="gray", label=say("ideal"))
    for share in (0.5, 0.25):
        line = [share * value for value in ideal]
        ax.plot(counts, line, ":", color=canvas.GRAY, linewidth=1)
        style: Any = {"textcoords": "offset points", "color": "gray", "va": "center", "fontsize": 8}
        ax.annotate(f"{share:.0%}", (counts[-1], line[-1]), (4, 0), **style)
    colors = canvas.colors_of(range(len(curves)))
    for color, (name, times) in zip(colors.values(), curves.items(), strict=True):
        speeds = [times[0] / time for time in times]
        label = say("{share:.0%} of ideal", share=speeds[-1] / ideal[-1])
        ax.plot(counts, speeds, "o-", color=color, label=f"{name}: {label}" if name else label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}×")
    ax.minorticks_off()
    speed = "speed-up over {count} machine" + "s" * (counts[0] != 1)
    ax.set(xlabel=say("machines"), ylabel=say(speed, count=counts[0]))
    slowest = min(times[0] / max(times) for times in curves.values())
    ax.set_ylim(0.7 * slowest, 1.4 * ideal[-1])
    canvas.open_frame(ax)
    ax.legend(frameon=False)
    return ax


def _check(counts: list[int], curves: dict[str, list[float]]) -> None:
    if not counts or counts[0] <= 0 or any(a >= b for a, b in pairwise(counts)):
        raise InvalidInput(
            "machines must be positive numbers in ascending order, such as [1, 2, 4]; found "
            f"{counts}"
        )
    if not curves:
        raise InvalidInput("seconds is empty; give the times of at least one curve")
    for name, times in curves.items():
        if len(times) != len(counts) or not all(time > 0 for time in times):
            raise InvalidInput(
                f"seconds{f'[{name!r}]' * bool(name)} must hold a positive time for each of the "
                f"{len(counts)} numbers of machines; found {times}"
            )


def time_parts(
    parts: Mapping[Any, Mapping[str, float]], top: float | None = None, ax: Axes | None = None
) -> Axes:
    """Draw stacked bars of time by kind of work, one bar for each number of machines.

    Time is in s, ms or µs; the sum is written above each bar.

    Parameters
    ----------
    parts : dict of dict
        Number of machines, or name of a bar → kind of work → seconds. Kinds stack as they appear.
    top : float, optional
        Upper end of the time axis in seconds. Figures with the same value can be compared.

    Examples
    --------
    >>> from gnnlab import plot
    >>> ax = plot.time_parts({1: {"sample": 2.0, "compute": 6.0}, 2: {"sample": 1.1, "fetch": 2.5}})
    >>> ax.get_ylabel(), [text.get_text() for text in ax.texts]
    ('time (s)', ['8', '3.6'])
    """
    if not parts:
        raise InvalidInput("parts is empty; give at least one bar, {machines: {kind: seconds}}")
    for name, times in parts.items():
        if not all(time >= 0 for time in times.values()):
            raise InvalidInput(
                f"the times of {name!r} must be seconds of at least 0; found {dict(times)}"
            )
    kinds = list(dict.fromkeys(kind for times in parts.values() for kind in times))
    totals = [sum(times.values()) for times in parts.values()]
    top = max(totals) if top is None else top
    factor, unit = canvas.time_unit(top)
    ax = canvas.axes(ax, 2.6 + 0.5 * len(parts), 3.0)
    below = [0.0] * len(parts)
    for kind, color in canvas.colors_of(kinds).items():
        heights = [factor * times.get(kind, 0.0) for times in parts.values()]
        ax.bar(range(len(parts)), heights, 0.7, bottom=below, color=color, label=say(kind))
        below = [low + height for low, height in zip(below, heights, strict=True)]
    for x, total in enumerate(below):
        ax.annotate(
            f"{total:.3g}", (x, total), (0, 2), textcoords="offset points", ha="center", fontsize=8
        )
    ax.set_xticks(range(len(parts)), [str(name) for name in parts])
    ax.set(ylabel=say("time ({unit})", unit=unit), ylim=(0, 1.1 * factor * top or 1))
    if all(isinstance(name, int) for name in parts):
        ax.set_xlabel(say("machines"))
    canvas.open_frame(ax)
    canvas.legend_beside(ax, reverse=True)
    return ax


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
        pyplot = canvas.require("matplotlib.pyplot")
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
