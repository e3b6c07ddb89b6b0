"""Speed-up against the ideal, and bars of where the time goes."""

from __future__ import annotations

from typing import Any

import pytest
from matplotlib.colors import to_rgba

from gnnlab import plot
from gnnlab.errors import InvalidInput
from gnnlab.plot.canvas import KIND_COLORS
from tests.plot.samples import legend, texts


def curve(ax, name: str) -> list[float]:
    line = next(line for line in ax.lines if line.get_label().startswith(name))
    return list(line.get_ydata())


def test_speed_is_relative_to_the_first() -> None:
    ax = plot.speedup([1, 2, 4], {"metis": [8, 4, 4], "random": [8, 8, 16]})
    assert curve(ax, "ideal") == [1, 2, 4]
    assert curve(ax, "metis") == [1, 2, 2] and curve(ax, "random") == [1, 1, 0.5]
    assert legend(ax) == ["ideal", "metis: 50% of ideal", "random: 12% of ideal"]
    assert texts(ax) == ["50%", "25%"]
    assert ax.get_ylim()[0] < 0.5 and ax.get_ylim()[1] > 4


def test_parts_are_stacked() -> None:
    """One machine: 2 s sampling, 6 s computing. Two: 1 s sampling, 3 s fetching."""
    ax = plot.time_parts({1: {"sample": 2, "compute": 6}, 2: {"sample": 1, "fetch": 3}})
    bars = [(b.get_x() + b.get_width() / 2, b.get_y(), b.get_height()) for b in ax.patches]
    assert bars == [
        *((0, 0, 2), (1, 0, 1)),  # sample
        *((0, 2, 6), (1, 1, 0)),  # compute
        *((0, 8, 0), (1, 1, 3)),  # fetch
    ]
    assert texts(ax) == ["8", "4"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("machines", "time (s)")
    assert legend(ax) == ["fetch", "compute", "sample"]  # as they lie, from the top
    colors = {container.get_label(): container[0].get_facecolor() for container in ax.containers}
    assert colors["sample"] == pytest.approx(to_rgba(KIND_COLORS["sample"]))


@pytest.mark.parametrize(
    ("draw", "given", "named"),
    [
        (plot.speedup, ([], []), "ascending"),
        (plot.speedup, ([2, 1], [1, 1]), "ascending"),
        (plot.speedup, ([0, 1], [1, 1]), "positive"),
        (plot.speedup, ([1, 2], [1]), r"seconds .* 2 .*\[1\]"),
        (plot.speedup, ([1, 2], {"metis": [1, 0]}), r"seconds\['metis'\]"),
        (plot.speedup, ([1, 2], {}), "seconds"),
        (plot.time_parts, ({},), "parts"),
        (plot.time_parts, ({1: {"a": -1.0}},), "times of 1"),
    ],
)
def test_what_makes_no_sense(draw: Any, given: tuple[Any, ...], named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        draw(*given)
