"""From single measurements to medians, ratios and tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OURS = "gnnlab"
_TO_MS = {"ms": 1.0, "s": 1e3, "total_s": 1e3, "assign_s": 1e3}


class Cell(NamedTuple):
    """The rounds of one task on one system, in milliseconds."""

    median: float
    low: float
    high: float


def milliseconds(result: dict) -> float | None:
    """Return the time a system reported, whatever unit it speaks; None where it has none."""
    for key, factor in _TO_MS.items():
        if key in result:
            return float(result[key]) * factor
    return None


def summarize(results: Iterable[dict]) -> dict[str, dict[str, Cell]]:
    """Group results by task and system, in the order in which they came.

    Parameters
    ----------
    results : iterable of dict
        Each with ``task``, ``sys`` and a time, such as ``ms`` or ``total_s``; those without
        a time (failures) are left out.

    Returns
    -------
    dict
        Task -> system -> :class:`Cell`.
    """
    times: dict[str, dict[str, list[float]]] = {}
    for result in results:
        value = milliseconds(result)
        if value is not None:
            times.setdefault(result["task"], {}).setdefault(result["sys"], []).append(value)
    return {
        task: {name: Cell(statistics.median(v), min(v), max(v)) for name, v in by_system.items()}
        for task, by_system in times.items()
    }


def speed_table(results: Sequence[dict], titles: dict[str, str]) -> list[list[str]]:
    """Lay out medians in ms and how many times faster gnnlab is, a row a task.

    Returns
    -------
    list of list of str
        The first row is the header; a missing figure is a dash.
    """
    cells = summarize(results)
    systems = list(dict.fromkeys(name for row in cells.values() for name in row))
    peers = [name for name in systems if name != OURS]
    rows = [["work", f"{OURS} ms", *(t for p in peers for t in (f"{p} ms", f"{p} / {OURS}"))]]
    for task, row in cells.items():
        ours = row.get(OURS)
        line = [titles.get(task, task), _figure(ours)]
        for peer in peers:
            theirs = row.get(peer)
            ratio = f"{theirs.median / ours.median:.2f}" if ours and theirs else "–"
            line += [_figure(theirs), ratio]
        rows.append(line)
    return rows


def memory_table(results: Sequence[dict]) -> list[list[str]]:
    """Lay out resident memory in MB: after the graph was built, and the highest ever."""
    built: dict[str, float] = {}
    peak: dict[str, float] = {}
    for result in results:
        name = result["sys"]
        if result.get("task") == "build" and "rss" in result:
            built[name] = float(result["rss"])
        if "peak" in result:
            peak[name] = max(peak.get(name, 0.0), float(result["peak"]))
    rows = [["memory", "after build MB", "peak MB", f"peak / {OURS}"]]
    for name, high in peak.items():
        ratio = f"{high / peak[OURS]:.2f}" if peak.get(OURS) else "–"
        low = f"{built[name]:.0f}" if name in built else "–"
        rows.append([name, low, f"{high:.0f}", ratio])
    return rows


def _figure(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    digits = 0 if cell.median >= 1000 else 1 if cell.median >= 100 else 2
    return f"{cell.median:.{digits}f} [{cell.low:.{digits}f}–{cell.high:.{digits}f}]"


def as_text(rows: Sequence[Sequence[str]]) -> str:
    """Align a table for the terminal: the first column to the left, figures to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Write a table in Markdown, figures aligned to the right."""
    rule = ["---", *["---:"] * (len(rows[0]) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in [rows[0], rule, *rows[1:]])
