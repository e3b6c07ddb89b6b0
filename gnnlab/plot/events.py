"""Draw a timeline of trace events: one track per process, one color per kind of work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from gnnlab.errors import InvalidInput
from gnnlab.plot import canvas
from gnnlab.plot.words import say
from gnnlab.trace import track_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gnnlab.trace import Event


_MOST_EVENTS = 50_000
_MOST_TRACKS = 256
_MOST_NAMES = 32  # most names that fit beside the tracks
Track = tuple[int, int, str, int, str]


def timeline(
    events: Iterable[Event],
    start: float = 0.0,
    seconds: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the events of each process over time, of a real or a simulated run.

    An event inside another one of its process, such as a fetch while a mini-batch is sampled, is
    drawn on top of it. Gaps are times without a recorded event.

    Parameters
    ----------
    events : iterable of gnnlab.trace.Event
        For instance from ``gnnlab.trace.read(folder)``.
    start : float
        Beginning of the window, in seconds since the first event.
    seconds : float, optional
        Length of the window. By default up to the end of the last event.

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
    tracks = sorted({track_of(event) for event in shown})
    _check(everything, shown, tracks, start, end, last)

    # Long events first, so that events inside them are drawn on top.
    shown.sort(key=lambda event: (event.start, -event.seconds))
    row = {track: y for y, track in enumerate(tracks)}
    kinds = {event.kind for event in shown}
    ordered = (kind for kind in (*canvas.KIND_COLORS, *sorted(kinds)) if kind in kinds)
    colors = canvas.colors_of(dict.fromkeys(ordered))
    factor, unit = canvas.time_unit(end - start)
    ax = canvas.axes(ax, 8.5, min(1.1 + 0.34 * len(tracks), 10))
    boxes = [_box(event, row[track_of(event)], first, factor) for event in shown]
    fill = [colors[event.kind] for event in shown]
    bars = canvas.require("matplotlib.collections").PolyCollection
    # The edges keep the shortest events visible.
    ax.add_collection(bars(boxes, facecolors=fill, edgecolors=fill, linewidths=0.4))
    ax.set(xlim=(start * factor, end * factor), ylim=(len(tracks) - 0.5, -0.5), xlabel=unit)
    _name_tracks(ax, tracks)
    patch = canvas.require("matplotlib.patches").Patch
    handles = [patch(color=color, label=say(kind)) for kind, color in colors.items()]
    above: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    spaces: Any = {"handlelength": 1.0, "columnspacing": 1.2}
    ax.legend(handles=handles, ncols=len(handles), frameon=False, **above, **spaces)
    return ax


def _check(
    everything: list[Event],
    shown: list[Event],
    tracks: list[Track],
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
            f"{last:g} s. Choose start and seconds within it"
        )
    if len(shown) > _MOST_EVENTS or len(tracks) > _MOST_TRACKS:
        raise InvalidInput(
            f"a timeline can show {_MOST_EVENTS:,} events and {_MOST_TRACKS} processes; found "
            f"{len(shown):,} and {len(tracks)}. Draw a part, timeline(events, start=…, seconds=…), "
            "or the events of some ranks"
        )


def _box(event: Event, y: int, first: float, factor: float) -> list[tuple[float, float]]:
    left = (event.start - first) * factor
    right = left + event.seconds * factor
    return [(left, y - 0.4), (right, y - 0.4), (right, y + 0.4), (left, y + 0.4)]


def _name_tracks(ax: Axes, tracks: list[Track]) -> None:
    """Name as many tracks as fit; draw a line between machines."""
    machines = len({track[0] for track in tracks})
    names = []
    for machine, _, role, rank, track in tracks:
        parts = [say("machine {machine}", machine=machine)] * (machines > 1)
        parts += [say(role + " {rank}", rank=rank)] + [say(track)] * bool(track)
        names.append(", ".join(parts))
    step = -(-len(tracks) // _MOST_NAMES)
    ax.set_yticks(range(0, len(tracks), step), names[::step])
    ax.tick_params(axis="y", length=0)
    for y in range(1, len(tracks)):
        if tracks[y][0] != tracks[y - 1][0]:
            ax.axhline(y - 0.5, color="gray", linewidth=0.5)
