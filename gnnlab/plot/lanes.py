"""A picture of when each process did what: one lane a process, one color a kind of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas
from gnnlab.trace import lane_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gnnlab.trace import Event

__all__ = ["timeline"]

_MOST_EVENTS = 50_000
_MOST_LANES = 256
_MOST_NAMES = 32  # lanes whose names fit beside them
Lane = tuple[int, int, str, int, str]


def timeline(
    events: Iterable[Event],
    start: float = 0.0,
    seconds: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what each process did when, from a real run or a simulated one.

    What lies within another event of its process, such as a fetch while a mini-batch is sampled, is
    drawn over it. Empty places are time that nobody has recorded.

    Parameters
    ----------
    events : iterable of gnnlab.trace.Event
        For instance of ``gnnlab.trace.read(folder)``.
    start : float
        Where the picture begins, in seconds since the first event.
    seconds : float, optional
        How much time it shows. By default all up to the last event.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
        Time counts from the first event, in s, ms or µs.

    Raises
    ------
    InvalidInput
        There is no event in the window, or more than can be drawn.

    Examples
    --------
    >>> from gnnlab import plot
    >>> from gnnlab.trace import Event
    >>> ax = plot.timeline(
    ...     [Event("sample", 7.0, 0.2, rank=0), Event("compute", 7.2, 0.5, rank=0),
    ...      Event("sample", 7.0, 0.4, rank=1), Event("compute", 7.4, 0.3, rank=1)]
    ... )
    >>> [label.get_text() for label in ax.get_yticklabels()], ax.get_xlabel()
    (['trainer 0', 'trainer 1'], 'ms')
    """
    everything = list(events)
    first = min((event.start for event in everything), default=0.0)
    last = max((event.start + event.seconds for event in everything), default=0.0) - first
    end = last if seconds is None else start + seconds
    shown = [e for e in everything if e.start - first < end and e.start + e.seconds - first > start]
    lanes = sorted({lane_of(event) for event in shown})
    _check(everything, shown, lanes, start, end, last)

    # Long events first, so that those within them come on top.
    shown.sort(key=lambda event: (event.start, -event.seconds))
    row = {lane: y for y, lane in enumerate(lanes)}
    colors = canvas.colors_of(sorted({event.kind for event in shown}, key=_kind_order))
    factor, unit = canvas.time_unit(end - start)
    ax = canvas.axes(ax, 8.5, min(1.1 + 0.34 * len(lanes), 10))
    boxes = [_box(event, row[lane_of(event)], first, factor) for event in shown]
    fill = [colors[event.kind] for event in shown]
    bars = canvas.needed("matplotlib.collections").PolyCollection(
        boxes,
        facecolors=fill,
        edgecolors=fill,
        linewidths=0.4,  # so that the shortest are seen
    )
    ax.add_collection(bars)
    ax.set(xlim=(start * factor, end * factor), ylim=(len(lanes) - 0.5, -0.5), xlabel=unit)
    _name_lanes(ax, lanes)
    patch = canvas.needed("matplotlib.patches").Patch
    handles = [patch(color=color, label=kind) for kind, color in colors.items()]
    ax.legend(
        handles=handles,
        ncols=len(handles),
        frameon=False,
        loc="lower left",
        borderaxespad=0.2,
        bbox_to_anchor=(0, 1),
        handlelength=1.0,
        columnspacing=1.2,
    )
    return ax


def _check(
    everything: list[Event],
    shown: list[Event],
    lanes: list[Lane],
    start: float,
    end: float,
    last: float,
) -> None:
    if not everything:
        raise InvalidInput(
            "there are no events to draw; record them with gnnlab launch --trace DIR or "
            "gnnlab.trace.start(folder), and read them with gnnlab.trace.read(folder)"
        )
    if not shown or end <= start:
        raise InvalidInput(
            f"no event lies between {start:g} s and {end:g} s; the run has events from 0 s to "
            f"{last:g} s. Choose start and seconds so that the window meets it"
        )
    if len(shown) > _MOST_EVENTS or len(lanes) > _MOST_LANES:
        raise InvalidInput(
            f"a picture can show {_MOST_EVENTS:,} events and {_MOST_LANES} processes; found "
            f"{len(shown):,} and {len(lanes)}. Draw a part, timeline(events, start=…, seconds=…), "
            "or the events of some ranks"
        )


def _kind_order(kind: str) -> tuple[int, str]:
    known = list(canvas.KIND_COLORS)
    return (known.index(kind) if kind in known else len(known), kind)


def _box(event: Event, y: int, first: float, factor: float) -> list[tuple[float, float]]:
    left = (event.start - first) * factor
    right = left + event.seconds * factor
    return [(left, y - 0.4), (right, y - 0.4), (right, y + 0.4), (left, y + 0.4)]


def _name_lanes(ax: Axes, lanes: list[Lane]) -> None:
    """Name lanes, as many as fit; a line parts machines."""
    machines = len({lane[0] for lane in lanes})
    names = []
    for machine, _, role, rank, lane in lanes:
        words = [f"machine {machine}"] * (machines > 1) + [f"{role} {rank}"] + [lane] * bool(lane)
        names.append(", ".join(words))
    step = -(-len(lanes) // _MOST_NAMES)
    ax.set_yticks(range(0, len(lanes), step), names[::step])
    ax.tick_params(axis="y", length=0)
    for y in range(1, len(lanes)):
        if lanes[y][0] != lanes[y - 1][0]:
            ax.axhline(y - 0.5, color="gray", linewidth=0.5)
