"""HTML of graphs, blocks, partitions and results for notebook cells.

IPython asks an object for ``_repr_html_`` when it is the value of a cell; the methods of that name
collect plain values and call the functions here, which need nothing but Python. Labels are names of
the API, the same in every language. Text and lines have the color of the text around them, marks
have colors that are legible on light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

MOST_NODES = 30  # of a graph that is drawn
_MOST_EDGES = 150
_MOST_ROWS = 16
_COLORS = ("#4e8fd0", "#e08a3c", "#4aa56b", "#b36fc4", "#c9566b", "#8a8f3a")
_FRAME = "1px solid var(--jp-border-color2, rgba(128, 128, 128, .45))"
_FONT = "font: 13px/1.5 var(--jp-code-font-family, ui-monospace, monospace)"
_TEXT = 'fill="currentColor" text-anchor="middle" dominant-baseline="central" font-size="10"'


def page(title: str, values: Mapping[str, Any], *parts: str) -> str:
    """Return the HTML of an object: name of its class, values by name, tables and drawings."""
    shown = "".join(f" &nbsp; {escape(name)} = {_show(value)}" for name, value in values.items())
    style = f"{_FONT}; color: var(--jp-content-font-color1, currentColor); overflow-x: auto"
    return f'<div style="{style}"><div><b>{escape(title)}</b>{shown}</div>{"".join(parts)}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; numbers are aligned to the right, rows after the 16th left out."""
    rows = list(rows)
    lines = [_row("th", head), *(_row("td", row) for row in rows[:_MOST_ROWS])]
    if len(rows) > _MOST_ROWS:
        lines.append(_row("td", [f"… {len(rows) - _MOST_ROWS:,}"]))
    style = "border-collapse: collapse; margin: 4px 0; background: none; font: inherit"
    return f'<table style="{style}">{"".join(lines)}</table>'


def features(head: str, count: str, frames: Mapping[Any, Any]) -> str:
    """Return a table of types: number of rows, and name, dtype and row shape of each feature.

    ``frames`` are by type. Features that are not computed yet are named and stay as they are.
    """
    rows = []
    for kind, frame in frames.items():
        columns = []
        for name in frame:
            column = getattr(frame, "column", frame.__getitem__)(name)
            if hasattr(column, "dtype"):
                shape = tuple(column.shape[1:])
                name += f": {str(column.dtype).removeprefix('torch.')}" + f" {shape}" * bool(shape)
            columns.append(name)
        rows.append([type_name(kind), frame.num_rows, ", ".join(columns)])
    return table([head, count, "data"], rows)


def type_name(kind: str | tuple[str, str, str]) -> str:
    """Return a node type as it is, an edge type with arrows between its three parts."""
    return kind if isinstance(kind, str) else " → ".join(kind)


def circle(sizes: Mapping[str, int], edges: Iterable[tuple[int, int]]) -> str:
    """Draw a graph with its nodes on a circle, as SVG; colors tell their types.

    ``sizes`` are numbers of nodes by type; edges are pairs of nodes, counted through all types.
    Empty if there is no node, or over 30 nodes or 150 edges.
    """
    count = sum(sizes.values())
    radius = max(44.0, count * 26 / math.tau)
    middle = radius + 30
    turns = [math.tau * i / max(count, 1) - math.pi / 2 for i in range(count)]
    places = [(middle + radius * math.cos(a), middle + radius * math.sin(a)) for a in turns]
    return _drawing(2 * middle, 2 * middle, places, sizes, edges, middle)


def bipartite(num_src: int, num_dst: int, edges: Iterable[tuple[int, int]]) -> str:
    """Draw a block: destinations in the upper row, below them the sources that they read.

    Edges are pairs of source and destination, counted from 0 on each side; see :func:`circle`.
    """
    step, width = 34, max(34 * max(num_src, num_dst), 180)
    places = [
        ((width - step * count) / 2 + step * (i + 0.5), y)
        for count, y in ((num_src, 104), (num_dst, 20))
        for i in range(count)
    ]
    joined = [(src, num_src + dst) for src, dst in edges]
    return _drawing(width, 124, places, {"srcnodes": num_src, "dstnodes": num_dst}, joined)


def bars(rows: Mapping[str, Mapping[str, float]]) -> str:
    """Draw one bar per row; its segments have lengths in proportion to their values."""
    lines: list[str] = []
    for name, segments in rows.items():
        left, total, y = 130.0, sum(segments.values()) or 1, 18 * len(lines)
        line = f'<text x="0" y="{y + 12}" fill="currentColor" font-size="11">{escape(name)}</text>'
        for i, (label, value) in enumerate(segments.items()):
            width = 360 * value / total
            line += (
                f'<rect x="{left:.1f}" y="{y + 2}" width="{width:.1f}" height="13" '
                f'fill="{_COLORS[i % len(_COLORS)]}" fill-opacity=".75">'
                f"<title>{escape(label)}: {_show(value)}</title></rect>"
            )
            if width > 8 * len(label) + 4:
                x = left + width / 2
                line += f'<text x="{x:.1f}" y="{y + 9}" {_TEXT}>{escape(label)}</text>'
            left += width
        lines.append(line)
    return _svg(490, 18 * len(lines), "".join(lines)) if lines else ""


def _drawing(
    width: float,
    height: float,
    places: Sequence[tuple[float, float]],
    sizes: Mapping[str, int],
    edges: Iterable[tuple[int, int]],
    middle: float = 0.0,
) -> str:
    pairs = list(edges)
    if not 0 < len(places) <= MOST_NODES or len(pairs) > _MOST_EDGES:
        return ""
    body = "".join(_arrow(places[src], places[dst], middle) for src, dst in pairs)
    nodes = ((kind, i) for kind, name in enumerate(sizes) for i in range(sizes[name]))
    for (x, y), (kind, i) in zip(places, nodes, strict=True):
        color = _COLORS[kind % len(_COLORS)]
        body += (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{color}" fill-opacity=".35" '
            f'stroke="{color}"/><text x="{x:.1f}" y="{y:.1f}" {_TEXT}>{i}</text>'
        )
    for kind, name in enumerate(sizes if len(sizes) > 1 else ()):
        body += (
            f'<rect x="4" y="{height + 4:.0f}" width="9" height="9" '
            f'fill="{_COLORS[kind % len(_COLORS)]}"/><text x="18" y="{height + 12:.0f}" '
            f'fill="currentColor" font-size="11">{escape(name)}</text>'
        )
        height += 16
    return _svg(max(width, 8 * max(map(len, sizes)) + 20), height + 4, body)


def _arrow(src: tuple[float, float], dst: tuple[float, float], middle: float) -> str:
    """A line from rim to rim with a head; a self-loop is a small circle outside of the node."""
    (x, y), (to_x, to_y) = src, dst
    length = math.hypot(to_x - x, to_y - y)
    if not length:
        away = math.hypot(x - middle, y - middle) or 1
        cx, cy = (value + 14 * (value - middle) / away for value in src)
        return (
            f'<circle class="loop" cx="{cx:.1f}" cy="{cy:.1f}" r="7" fill="none" '
            'stroke="currentColor" stroke-opacity=".6"/>'
        )
    ux, uy = (to_x - x) / length, (to_y - y) / length
    tip_x, tip_y, back_x, back_y = to_x - 12 * ux, to_y - 12 * uy, to_x - 18 * ux, to_y - 18 * uy
    corners = ((tip_x, tip_y), *((back_x + s * uy, back_y - s * ux) for s in (-3, 3)))
    return (
        f'<line x1="{x + 11 * ux:.1f}" y1="{y + 11 * uy:.1f}" x2="{back_x:.1f}" y2="{back_y:.1f}" '
        'stroke="currentColor" stroke-opacity=".6"/><polygon fill="currentColor" '
        f'fill-opacity=".6" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in corners)}"/>'
    )


def _svg(width: float, height: float, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="display: block; margin: 4px 0">{body}</svg>'
    )


def _row(tag: str, values: Sequence[Any]) -> str:
    done = []
    for value in values:
        side = "right" if isinstance(value, int | float) else "left"
        style = f"text-align: {side}; padding: 1px 10px; border-bottom: {_FRAME}; background: none"
        done.append(f'<{tag} style="{style}">{_show(value)}</{tag}>')
    return f"<tr>{''.join(done)}</tr>"


def _show(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return escape(str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
