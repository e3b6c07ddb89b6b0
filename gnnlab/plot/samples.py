"""Draw a sample: on its graph, and as a tree.

Both are for toy graphs. The output nodes are blue, and each layer before them has another color.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gnnlab.errors import InvalidInput
from gnnlab.graph.block import Block
from gnnlab.graph.graph import Graph
from gnnlab.graph.names import NID
from gnnlab.plot import canvas
from gnnlab.plot.canvas import GRAY, Labels
from gnnlab.plot.words import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Edge = tuple[int, int]

_MOST_NODES = 60  # in a drawing of a graph
_MOST_LEAVES = 60  # in a tree
_MOST_UNSAMPLED = 3  # neighbors not sampled that are drawn one by one


def graph(
    g: Graph,
    blocks: Sequence[Block] = (),
    pos: Any = None,
    labels: Labels = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a small graph, and color the nodes and edges that were sampled.

    Parameters
    ----------
    g : Graph
        With one node type and at most 60 nodes.
    blocks : sequence of Block
        A sample of ``g``, first layer first. Each layer has a color for its edges and nodes.
    pos : mapping or array, optional
        Node → (x, y), or shape (nodes, 2). By default a deterministic layout by networkx.
    labels : mapping or sequence, optional
        Node → its text. By default its ID.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import plot
    >>> g = dgl.graph(([1, 2, 3, 3], [0, 0, 1, 2]))
    >>> _, _, blocks = dgl.dataloading.NeighborSampler([1, 1]).sample(g, [0])
    >>> ax = plot.graph(g, blocks)
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2', '3']
    """
    canvas.check_plain(
        g, _MOST_NODES, "plot.graph", "Draw a part of it: dgl.node_subgraph(g, nodes)"
    )
    columns, sampled = _read(g, blocks)
    positions, names = canvas.node_positions(g, pos), canvas.node_names(g, labels)
    nodes = dict.fromkeys(range(g.num_nodes()), GRAY)
    edges: dict[Edge, str] = {}
    for i, color in enumerate(canvas.layer_colors(len(columns))):
        nodes |= dict.fromkeys(columns[i], color)
        edges |= dict.fromkeys(sampled[i] if i < len(sampled) else [], color)
    ax = canvas.axes(ax, 4.2, 3.2)
    pairs = _pairs(g)
    canvas.draw_arrows(ax, pairs, positions, [edges.get(pair, GRAY) for pair in pairs])
    canvas.draw_nodes(ax, positions, names, list(nodes.values()))
    ax.margins(0.12)
    ax.axis("off")
    return ax


def _pairs(g: Graph) -> list[tuple[int, int]]:
    u, v = g.edges()
    return list(zip(u.tolist(), v.tolist(), strict=True))


def _read(g: Graph, blocks: Sequence[Block]) -> tuple[list[list[int]], list[list[Edge]]]:
    """Return the sources of the first block and the destinations of each, and the edges of each.

    All are in original IDs.
    """
    for i, each in enumerate(blocks):
        if not (isinstance(each, Block) and each.is_homogeneous and NID in each.srcdata):
            raise InvalidInput(
                f"blocks[{i}] must be a block with one node type and original node IDs in "
                f"srcdata[dgl.NID], as samplers and to_block make it; found {each!r}"
            )
    sides = [(each.srcdata[NID].tolist(), each.dstdata[NID].tolist()) for each in blocks]
    for i, ((_, before), (now, _)) in enumerate(pairwise(sides)):
        if before != now:
            raise InvalidInput(
                f"the destinations of blocks[{i}] are not the sources of blocks[{i + 1}]; pass "
                "blocks of one sample, first layer first"
            )
    columns = [source for source, _ in sides] + [sides[-1][1]] if sides else []
    sampled = [
        [(columns[i][u], columns[i + 1][v]) for u, v in _pairs(each)]
        for i, each in enumerate(blocks)
    ]
    for i, edges in enumerate(sampled):
        for u, v in edges:
            if max(u, v) >= g.num_nodes() or not g.has_edges_between(u, v):
                raise InvalidInput(
                    f"blocks[{i}] has an edge {u} → {v}, which the graph does not have; pass the "
                    "graph that was sampled, and its blocks"
                )
    return columns, sampled


# --------------------------------------------------------------------------------- the tree
@dataclass
class _TreeNode:
    """A node of the tree: one for each message that the graph's node sends."""

    name: str
    color: str = GRAY
    line: str = ""  # style of the line to the parent; empty for a neighbor that was not sampled
    below: list[_TreeNode] = field(default_factory=list)
    x: float = 0.0

    def place(self, x: float) -> float:
        """Set the x positions of the child, from ``x`` on; return that of the next child."""
        if not self.below:
            self.x = x
            return x + 1
        for child in self.below:
            x = child.place(x)
        self.x = (self.below[0].x + self.below[-1].x) / 2
        return x

    def all(self) -> Iterator[_TreeNode]:
        """Yield the child and those below it."""
        yield self
        for child in self.below:
            yield from child.all()


def sampling_tree(
    g: Graph, blocks: Sequence[Block], labels: Labels = None, ax: Axes | None = None
) -> Axes:
    """Draw the sampled neighbors, layer by layer, as a tree below the output nodes.

    Colored nodes were sampled; gray ones are neighbors that were not, or their number. Dotted lines
    connect a node with itself, since a layer also reads the node's own features. A node occurs
    once for each reader, but only once in a block: the counts on the left are those of the blocks.

    Parameters
    ----------
    g : Graph
        With one node type.
    blocks : sequence of Block
        A sample of ``g``, first layer first.
    labels : mapping or sequence, optional
        Node → its text. By default its ID.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import plot
    >>> g = dgl.graph(([1, 2, 3, 4], [0, 0, 0, 0]))
    >>> _, _, blocks = dgl.dataloading.NeighborSampler([2]).sample(g, [0])
    >>> ax = plot.sampling_tree(g, blocks)
    >>> [text.get_text() for text in ax.texts if "node" in text.get_text()][:2]
    ['output: 1 node', 'input: 3 nodes']
    """
    canvas.check_plain(g, None, "plot.sampling_tree")
    if not blocks:
        raise InvalidInput("blocks is empty; pass the blocks of a sample, at least one")
    columns, sampled = _read(g, blocks)
    level = roots = _build_tree(g, columns, sampled, labels)
    width = 0.0
    for root in roots:
        width = root.place(width)
    drawn = [node for root in roots for node in root.all()]
    longest = max(len(node.name) for node in drawn)
    step = 0.3 + 0.09 * max(longest - 2, 0)  # inches a leaf
    ax = canvas.axes(ax, min(max(1.5 + step * width, 4), 18), 0.6 + 0.8 * len(blocks))
    for depth, column in enumerate(reversed(columns)):
        _draw_level(ax, level, -depth)
        level = [child for above in level for child in above.below]
        what = "output" if depth == 0 else "input" if depth == len(blocks) else "{depth} away"
        line = "{what}: {count} node" + "s" * (len(column) != 1)
        line = say(line, what=say(what, depth=depth), count=len(column))
        ax.text(-1, -depth, line, ha="right", va="center")
    gray = any(node.color == GRAY for node in drawn)
    note = say("dotted: the node itself" + "; gray: not sampled" * gray)
    ax.text(-0.5, -len(blocks) - 0.6, note, va="center", color="gray", fontsize=8)
    ax.set(xlim=(-0.8, max(width, 2) - 0.2), ylim=(-len(blocks) - 0.8, 0.4))
    ax.axis("off")
    return ax


def _build_tree(
    g: Graph, columns: list[list[int]], sampled: list[list[Edge]], labels: Labels
) -> list[_TreeNode]:
    """Build the tree; return a child for each output node."""
    names = {} if labels is None else dict(enumerate(canvas.node_names(g, labels)))
    colors = canvas.layer_colors(len(columns))

    def child(node: int, layer: int, line: str) -> _TreeNode:
        found = _TreeNode(str(names.get(node, node)), colors[layer], line)
        if layer:
            chosen = [u for u, v in sampled[layer - 1] if v == node]
            itself = [node] if node in columns[layer - 1] else []
            found.below += [child(u, layer - 1, ":") for u in itself]
            found.below += [child(u, layer - 1, "-") for u in chosen]
            left = (Counter(g.predecessors(node).tolist()) - Counter(chosen)).elements()
            unsampled = [str(names.get(u, u)) for u in left]
            if len(unsampled) > _MOST_UNSAMPLED:
                unsampled = [f"+{len(unsampled)}"]
            found.below += map(_TreeNode, unsampled)
        leaves[0] += not found.below
        if leaves[0] > _MOST_LEAVES:
            raise InvalidInput(
                f"the tree has more than {_MOST_LEAVES} leaves and cannot be read; sample from "
                "fewer seeds, with a smaller fanout, or in fewer layers"
            )
        return found

    leaves = [0]
    return [child(node, len(sampled), "") for node in columns[-1]]


def _draw_level(ax: Axes, level: list[_TreeNode], y: float) -> None:
    """Draw the nodes of a level, and the lines to their children."""
    for above in level:
        for child in above.below:
            style = child.line or "-"
            order = 2 if child.line else 1
            ends = [above.x, child.x], [y, y - 1]
            ax.plot(*ends, style, color=child.color, linewidth=1.4, zorder=order)
    positions = [(child.x, y) for child in level]
    names, colors = [child.name for child in level], [child.color for child in level]
    canvas.draw_nodes(ax, positions, names, colors, size=150)
