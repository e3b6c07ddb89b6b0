"""Shared by all figures: colors, axes, nodes, arrows, and readable units.

The colors can be told apart with each kind of color blindness, by the model of Machado et al.

References
----------
G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A Physiologically-based Model for Simulation of
Color Vision Deficiency", 2009.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnnlab.errors import InvalidInput, check_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gnnlab.graph.graph import Graph

BLUE, ORANGE, GREEN, GRAY = "#3b6fb6", "#e07b39", "#3a9e75", "#c3c9d1"
YELLOW, SKY, INDIGO, WINE, PURPLE = "#f2d66b", "#9ad6f3", "#2b1a66", "#6b1f2b", "#c77fd0"
PALETTE = (BLUE, ORANGE, GREEN, YELLOW, SKY, INDIGO, WINE, PURPLE)

# The color of each kind of work, the same in every figure.
KIND_COLORS = {
    "sample": GREEN,
    "fetch": ORANGE,
    "copy": YELLOW,
    "compute": BLUE,
    "allreduce": PURPLE,
    "wait": GRAY,
    "serve": SKY,
}

Position = tuple[float, float]
Labels = Mapping[int, Any] | Sequence[Any] | None


def require(module: str) -> Any:
    """Import an optional dependency; if it is missing, raise an error with the remedy."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise InvalidInput(
            f"this figure needs {module.partition('.')[0]}, which cannot be imported ({missing}); "
            'install it: pip install "gnnlab[lab]"'
        ) from None


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    pyplot = require("matplotlib.pyplot")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def open_frame(ax: Axes) -> None:
    """Hide the top and right spines of axes."""
    ax.spines[["top", "right"]].set_visible(False)


def colors_of(names: Collection[Any]) -> dict[Any, str]:
    """Return a color for each name: that of a kind of work, or the next color of the palette.

    If there are more names than colors in the palette, they get shades from dark to light.
    """
    others = [name for name in names if name not in KIND_COLORS]
    taken = KIND_COLORS.values() if len(others) < len(names) else ()
    free = [color for color in PALETTE if color not in taken]
    if len(others) > len(free):
        colors = require("matplotlib.colors")
        shades = require("matplotlib").colormaps["viridis"].resampled(len(others))
        free = [colors.to_hex(shades(i)) for i in range(len(others))]
    found = dict(zip(others, free, strict=False))
    return {name: KIND_COLORS.get(name) or found[name] for name in names}


def layer_colors(count: int) -> list[str]:
    """Return colors for ``count`` columns of nodes: blue for the outputs, which come last."""
    return [PALETTE[i % len(PALETTE)] for i in reversed(range(count))]


def text_color(color: str) -> str:
    """Return black or white, whichever is readable on a color."""
    red, green, blue = require("matplotlib.colors").to_rgb(color)
    return "black" if 0.299 * red + 0.587 * green + 0.114 * blue > 0.6 else "white"


def draw_nodes(
    ax: Axes,
    positions: Sequence[Position],
    names: Sequence[Any],
    colors: Sequence[str],
    size: float = 230,
) -> None:
    """Draw disks with their names inside; ``size`` is an area in square points.

    Names of more than two characters are drawn in boxes instead.
    """
    disks = [i for i, name in enumerate(names) if len(str(name)) <= 2]
    xs, ys = [positions[i][0] for i in disks], [positions[i][1] for i in disks]
    ax.scatter(xs, ys, s=size, color=[colors[i] for i in disks], zorder=3)
    font = 9 * min(1.0, (size / 230) ** 0.5)
    for (x, y), name, color in zip(positions, names, colors, strict=True):
        style: dict[str, Any] = {"ha": "center", "va": "center_baseline", "weight": "bold"}
        if len(str(name)) > 2:
            style["bbox"] = {"boxstyle": "round,pad=0.25", "facecolor": color, "linewidth": 0}
        ax.text(x, y, str(name), color=text_color(color), fontsize=font, zorder=4, **style)


def draw_arrows(
    ax: Axes,
    pairs: Sequence[tuple[int, int]],
    positions: Sequence[Position],
    colors: Sequence[str],
    size: float = 230,
) -> None:
    """Draw arrows between nodes of the given size; edges in both directions are curved.

    A self-loop is a ring above its node.
    """
    patches = require("matplotlib.patches")
    both = set(pairs)
    gap = size**0.5 / 2 + 1
    for (u, v), color in zip(pairs, colors, strict=True):
        if u == v:
            _draw_loop(ax, positions[u], color, gap)
            continue
        bend = 0.15 if (v, u) in both else 0.0
        style = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "linewidth": 1.4}
        style |= {"mutation_scale": max(gap, 6), "shrinkA": gap, "shrinkB": gap, "color": color}
        style |= {"zorder": 1 if color == GRAY else 2}
        ax.add_patch(patches.FancyArrowPatch(positions[u], positions[v], **style))


def _draw_loop(ax: Axes, position: Position, color: str, gap: float) -> None:
    offset_copy = require("matplotlib.transforms").offset_copy
    above = offset_copy(ax.transData, ax.get_figure(), y=gap, units="points")
    style: Any = {"s": gap**2, "facecolors": "none", "edgecolors": color, "linewidths": 1.4}
    ax.scatter(*position, **style, transform=above, zorder=1)


def legend_beside(ax: Axes, **options: Any) -> None:
    """Put the legend outside, to the right of the axes."""
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), **options)


def check_plain(g: Graph, most_nodes: int | None, what: str, advice: str = "") -> None:
    """Raise InvalidInput for a graph with several types or too many nodes."""
    check_graph(g, what)
    if g.is_block or not g.is_homogeneous:
        raise InvalidInput(
            f"{what} takes a graph with one node type and one edge type; found {g!r}. "
            "Take one relation, g[etype], or dgl.to_homogeneous(g)"
        )
    if most_nodes is not None and g.num_nodes() > most_nodes:
        raise InvalidInput(
            f"{what} draws at most {most_nodes} nodes; found {g.num_nodes():,}. {advice}"
        )


def node_names(g: Graph, labels: Labels) -> list[Any]:
    """Return the text of each node: its label if it has one, else its ID."""
    if labels is None:
        return list(range(g.num_nodes()))
    if isinstance(labels, Mapping):
        return [labels.get(node, node) for node in range(g.num_nodes())]
    if len(labels) != g.num_nodes():
        raise InvalidInput(
            f"labels has {len(labels)} entries for {g.num_nodes()} nodes; give one per node, or a "
            "dictionary with labels of some nodes"
        )
    return [getattr(label, "item", lambda label=label: label)() for label in labels]


def node_positions(g: Graph, pos: Any, owner: Sequence[int] | None = None) -> list[Position]:
    """Return the position of each node.

    ``pos`` is a mapping node → (x, y), or has shape (nodes, 2); None is networkx's spring layout,
    the same each time, which places nodes of one ``owner`` together.
    """
    if pos is None:
        return _spring(g, owner)
    try:
        positions = [tuple(float(value) for value in pos[node]) for node in range(g.num_nodes())]
    except (KeyError, IndexError, TypeError, ValueError):
        positions = []
    wrong = len(positions) != g.num_nodes() or any(len(position) != 2 for position in positions)
    if wrong or (not isinstance(pos, Mapping) and len(pos) != len(positions)):
        found = f"shape {tuple(pos.shape)}" if hasattr(pos, "shape") else f"{len(pos)} entries"
        raise InvalidInput(
            f"pos must give x and y of each of the {g.num_nodes()} nodes; found {found}"
        )
    return positions  # type: ignore[return-value]


def _spring(g: Graph, owner: Sequence[int] | None) -> list[Position]:
    networkx = require("networkx")
    layout = networkx.Graph()
    layout.add_nodes_from(range(g.num_nodes()))
    for u, v in zip(*(end.tolist() for end in g.edges()), strict=True):
        layout.add_edge(u, v, weight=1.0 if owner is None or owner[u] == owner[v] else 0.3)
    for node, part in enumerate(owner or ()):
        # An invisible node in the middle of each part attracts nodes without an edge inside.
        layout.add_edge(node, f"part {part}", weight=0.15)
    apart = 3 / max(len(layout), 1) ** 0.5  # three times the usual distance
    found = networkx.spring_layout(layout, k=apart, seed=0, iterations=200)
    return [tuple(found[node]) for node in range(g.num_nodes())]


def human_bytes(count: float) -> str:
    """Write a number of bytes in units of 1000."""
    power = 0
    while power < 5 and abs(count) >= 999.5 * 1000**power:
        power += 1
    unit = ("B", "kB", "MB", "GB", "TB", "PB")[power]
    return f"{count / 1000**power:.3g} {unit}" if count else "0"


def time_unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a time is at least 1: units per second, and its name."""
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return factor, unit
    return 1e6, "µs"


def as_list(values: Any) -> list[Any]:
    """Return a tensor, an array or a sequence as a list."""
    return values.tolist() if hasattr(values, "tolist") else list(values)
