"""The timeline: one track per process, one box per event, at its time and of its length."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex

from gnnlab import plot
from gnnlab.errors import InvalidInput
from gnnlab.plot.canvas import KIND_COLORS
from gnnlab.trace import Event

RUN = [
    Event("compute", 100.5, 0.5, rank=0),
    Event("sample", 100.0, 0.5, rank=0),
    Event("fetch", 100.1, 0.2, rank=0),
    Event("wait", 100.0, 0.25, rank=1, machine=1),
    Event("serve", 100.2, 0.1, rank=0, role="server"),
]


def boxes(ax) -> list[tuple[float, float, float, str]]:
    """Left, right and track of each box in drawing order, and its color."""
    (bars,) = ax.collections
    found = []
    for path, color in zip(bars.get_paths(), bars.get_facecolors(), strict=True):
        x, y = path.vertices.T
        track = (y.min() + y.max()) / 2
        found.append((round(x.min(), 6), round(x.max(), 6), round(track, 6), to_hex(color)))
    return found


def tracks(ax) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def test_events_are_on_their_tracks() -> None:
    """The fetch within the sampling comes after it, hence on top."""
    ax = plot.timeline(RUN)
    assert tracks(ax) == ["machine 0, trainer 0", "machine 0, server 0", "machine 1, trainer 1"]
    assert boxes(ax) == [
        (0, 0.5, 0, KIND_COLORS["sample"]),
        (0, 0.25, 2, KIND_COLORS["wait"]),
        (0.1, 0.3, 0, KIND_COLORS["fetch"]),
        (0.2, 0.3, 1, KIND_COLORS["serve"]),
        (0.5, 1, 0, KIND_COLORS["compute"]),
    ]


@pytest.mark.parametrize(
    ("events", "window", "named"),
    [
        ([], {}, "no events"),
        (RUN, {"start": 2.0}, "2 s and 1 s.* 0 s to 1 s"),
        (RUN, {"start": 1.5, "seconds": 1}, "1.5 s and 2.5 s"),
        (RUN, {"seconds": -1}, "0 s and -1 s"),
        ([Event("serve", 0.0, 1.0, i) for i in range(257)], {}, "256 .* 257 and 257"),
        ([Event("serve", 0.0, 1.0, 0)] * 50_001, {}, "50,000 .* 50,001"),
    ],
)
def test_what_cannot_be_drawn(events: list[Event], window: dict, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        plot.timeline(events, **window)
