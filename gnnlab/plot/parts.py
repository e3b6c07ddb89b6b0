"""Draw a partitioned graph: the owner of each node, and the cut edges."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.graph.frame import as_tensor
from gnnlab.graph.graph import Graph
from gnnlab.partition import open_part
from gnnlab.partition.files import read_config
from gnnlab.plot import canvas
from gnnlab.plot.canvas import GRAY, Labels
from gnnlab.plot.words import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_NODES = 500
_MOST_NAMES = 40  # nodes whose IDs can be read
_MOST_ARROWS = 150  # edges whose direction can be seen


def partition_map(
    g: Graph,
    assignment: Any,
    halo_of: int | None = 0,
    pos: Any = None,
    labels: Labels = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a small partitioned graph: nodes by owner, cut edges, and the HALO nodes of one part.

    Parameters
    ----------
    g : Graph
        The graph before partitioning, with one node type and at most 500 nodes.
    assignment : path, list, array or tensor
        The JSON file that ``partition_graph`` wrote, or shape (nodes,): the part of each node.
    halo_of : int or None
        Part whose HALO nodes get a ring: nodes of other parts that share an edge with its nodes.
    pos : mapping or array, optional
        Node → (x, y), or shape (nodes, 2). By default a deterministic layout by networkx that
        positions nodes of one part together.
    labels : mapping or sequence, optional
        Node → its text. By default its ID, in graphs of up to 40 nodes.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import plot
    >>> ring = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 0]))
    >>> ax = plot.partition_map(ring, [0, 0, 1, 1])
    >>> ax.get_title()
    '2 of 4 edges cut'
    """
    advice = (
        "Draw a part of it, dgl.node_subgraph(g, nodes) with assignment[nodes], or look at the "
        "counts: print(partition_report(part_config))"
    )
    canvas.check_plain(g, _MOST_NODES, "plot.partition_map", advice)
    owner = _owners(g, assignment)
    num_parts = int(owner.max()) + 1 if len(owner) else 1
    if halo_of is not None and not 0 <= halo_of < num_parts:
        raise InvalidInput(
            f"halo_of must be a part, 0 to {num_parts - 1}, or None; found {halo_of}"
        )
    u, v = (end.cpu() for end in g.edges())
    cut = owner[u] != owner[v]
    positions = canvas.node_positions(g, pos, owner.tolist())
    colors = list(canvas.colors_of(range(num_parts)).values())
    ax = canvas.axes(ax, 6.0, 4.0)
    size = 230.0 if len(owner) <= _MOST_NAMES else max(20.0, 5000 / len(owner))
    _draw_edges(ax, u, v, cut, positions, size)
    named = labels is not None or len(owner) <= _MOST_NAMES
    names = canvas.node_names(g, labels) if named else [""] * len(owner)
    canvas.draw_nodes(ax, positions, names, [colors[part] for part in owner.tolist()], size)
    for part, color in enumerate(colors):
        ax.scatter([], [], color=color, label=say("part {part}", part=part))
    ax.plot([], [], color="black", label=say("cut edge"))
    if halo_of is not None:
        inside = owner == halo_of
        touched = torch.cat([u[inside[v]], v[inside[u]]]).unique()
        halo = [positions[node] for node in touched[~inside[touched]].tolist()]
        ring: Any = {"facecolors": "none", "edgecolors": colors[halo_of], "linewidths": 2.2}
        x, y = zip(*halo, strict=True) if halo else ((), ())
        ax.scatter(x, y, s=2.2 * size, zorder=3, **ring)
        ax.scatter([], [], s=80, label=say("HALO of part {part}", part=halo_of), **ring)
    ax.set_title(say("{cut:,} of {count:,} edges cut", cut=int(cut.sum()), count=len(cut)))
    ax.margins(0.08, 0.12)
    ax.axis("off")
    canvas.legend_beside(ax)
    return ax


def _owners(g: Graph, assignment: Any) -> torch.Tensor:
    """Return the part of each node, shape (nodes,), by original IDs."""
    if isinstance(assignment, str | os.PathLike):
        return _read_owners(g, assignment)
    owner = as_tensor(assignment).cpu()
    if owner.shape != (g.num_nodes(),) or owner.dtype.is_floating_point or owner.dtype.is_complex:
        raise InvalidInput(
            f"the assignment must be one integer for each of the {g.num_nodes()} nodes; found "
            f"{owner.dtype} of shape {tuple(owner.shape)}"
        )
    owner = owner.long()
    if len(owner) and int(owner.min()) < 0:
        raise InvalidInput(f"parts count from 0; the assignment holds {int(owner.min())}")
    return owner


def _read_owners(g: Graph, part_config: str | os.PathLike[str]) -> torch.Tensor:
    config = read_config(part_config)
    counts = {ntype: int(offsets[-1]) for ntype, offsets in config.node_ranges.items()}
    if list(counts.values()) != [g.num_nodes()]:
        raise InvalidInput(
            f"{part_config} is a partition of a graph with {counts} nodes; this one has "
            f"{g.num_nodes()}. Pass the graph that was partitioned"
        )
    owner = torch.empty(g.num_nodes(), dtype=torch.int64)
    for i in range(config.num_parts):
        (nodes,) = open_part(config, i, load_feats=False).nodes.values()
        owner[nodes.orig_ids[: nodes.num_inner].long()] = i
    return owner


def _draw_edges(
    ax: Axes,
    u: torch.Tensor,
    v: torch.Tensor,
    cut: torch.Tensor,
    positions: list[canvas.Position],
    size: float,
) -> None:
    """Draw cut edges in black and others in gray; as arrows if they are few."""
    pairs = list(zip(u.tolist(), v.tolist(), strict=True))
    colors = ["black" if each else GRAY for each in cut.tolist()]
    if len(pairs) <= _MOST_ARROWS:
        canvas.draw_arrows(ax, pairs, positions, colors, size)
        return
    lines = [(positions[a], positions[b]) for a, b in pairs]
    collection = canvas.require("matplotlib.collections").LineCollection
    for order, color in enumerate((GRAY, "black"), 1):
        some = [line for line, own in zip(lines, colors, strict=True) if own == color]
        ax.add_collection(collection(some, colors=color, linewidths=0.8, zorder=order))
