"""The tasks by name: what a row is called, and how each peer calls the same work."""

from __future__ import annotations

import re
from typing import NamedTuple

from benchmarks.table import OURS


class Task(NamedTuple):
    """One row of the table. ``peers`` maps a system to its word; None: it has no such task."""

    name: str
    title: str
    peers: dict[str, str | None]


_FANOUTS = ("4,4,4", "10,25", "15,10,5")
_BIG = "15,10,5"


def _same(word: str, **others: str | None) -> dict[str, str | None]:
    return {"dgl": word, "pyg": word, "proto": word, **others}


_NOBODY: dict[str, str | None] = {"dgl": None, "pyg": None, "proto": None}
_MOLECULES: dict[str, str | None] = {"pyg": None, "proto": None}

GROUPS: dict[str, list[Task]] = {
    "build": [Task("build", "COO → CSC", _same("build"))],
    "sample": [
        task
        for f in _FANOUTS
        for task in (
            Task(f"sample:{f}", f"sample + blocks [{f}]", _same(f"sample:{f}")),
            Task(f"sample:{f}:eids", f"… and edge IDs [{f}]", _same(f"sample:{f}", pyg=None)),
        )
    ],
    "gather": [Task(f"gather:{_BIG}", f"row gather [{_BIG}]", _same(f"gather:{_BIG}"))],
    "step": [
        Task(f"step:{_BIG}", f"model step [{_BIG}], fused relu+dropout", _same(f"sage:{_BIG}")),
        Task(
            f"step:{_BIG}:plain",
            f"model step [{_BIG}], relu, dropout",
            _same(f"sage:{_BIG}", proto=f"sage:{_BIG}:nb"),
        ),
    ],
    "epoch": [
        Task("epoch", f"epoch [{_BIG}]", _same("epoch")),
        Task(
            "epoch:prefetch",
            f"epoch [{_BIG}], prefetch thread",
            _same("epoch", proto=f"epoch:{_BIG}:nbx:1"),
        ),
    ],
    "inference": [Task("inference", "layer-wise inference", _same("infer"))],
    "partition": [
        Task("assign:4", "METIS into 4 parts", _same("part:4", pyg=None, proto=None)),
        Task("partition:4", "partition_graph, files and all", _NOBODY),
    ],
    "small": [
        Task(f"small:{name}", title, _MOLECULES)
        for name, title in (
            ("batch", "batch of 128 molecules"),
            ("batch:typed", "… of 128 typed graphs"),
            ("unbatch", "unbatch 128 molecules"),
            ("unbatch:typed", "… 128 typed graphs"),
            ("line_graph", "line graph of the batch"),
            ("layer:GraphConv", "GraphConv, forward and backward"),
            ("layer:GINEConv", "GINEConv, forward and backward"),
            ("layer:CFConv", "CFConv (SchNet), forward and backward"),
            ("message:message", "a message function of one's own"),
            ("message:reduce", "a reduce function of one's own"),
            ("readout", "sum and mean per graph"),
            ("epoch:GraphConv", "epoch of 512 molecules, GraphConv"),
            ("epoch:GINEConv", "epoch of 512 molecules, GINEConv"),
            ("epoch:CFConv", "epoch of 512 molecules, CFConv"),
        )
    ],
}
ALONE = ("import",)  # measured in fresh interpreters, without peers
NAMES = (*GROUPS, *ALONE)


def chosen(text: str) -> tuple[list[Task], list[str]]:
    """Read ``--tasks``: groups (``sample``) or single tasks (``sample:15,10,5:eids``).

    Returns
    -------
    tuple of (list of Task, list of str)
        What systems run in turn, and what is measured alone.

    Raises
    ------
    ValueError
        For a name that is neither.

    Examples
    --------
    >>> [task.name for task in chosen("build,sample:10,25")[0]]
    ['build', 'sample:10,25']
    """
    tasks: list[Task] = []
    alone: list[str] = []
    known = {task.name: task for group in GROUPS.values() for task in group}
    # A comma inside a fanout is followed by a digit, one between tasks by a letter.
    for name in filter(None, re.split(r",(?=[a-z])", text.replace(" ", ""))):
        if name in ALONE:
            alone.append(name)
        elif name in GROUPS:
            tasks += GROUPS[name]
        elif name in known:
            tasks.append(known[name])
        else:
            raise ValueError(f"no task {name!r}; expected {', '.join(NAMES)} or {', '.join(known)}")
    return tasks, alone


def translate(system: str, task: str) -> str | None:
    """Say a task in a system's own words; None where it has none. Unknown peers speak ours."""
    if system == OURS:
        return task
    known = {t.name: t for group in GROUPS.values() for t in group}
    return known[task].peers.get(system, task) if task in known else task
