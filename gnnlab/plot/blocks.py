"""Draw blocks as columns of nodes, with the edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from gnnlab.errors import InvalidInput
from gnnlab.graph.block import Block
from gnnlab.graph.names import NID, EdgeType
from gnnlab.plot import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["block"]

_MOST_ROWS = 40  # in a column


def block(blocks: Block | Sequence[Block], ax: Axes | None = None) -> Axes:
    """Draw a block, or all blocks of a sample in a row, as columns of nodes.

    Sources are on the left, destinations on the right, in the order of their IDs in the block. The
    numbers are original IDs if the block has them. Dotted lines connect a node with itself.
    Several types get different colors.

    Parameters
    ----------
    blocks : Block or sequence of Block
        With at most 40 nodes on each side. In a sequence, the destinations of a block must be the
        sources of the next one.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    InvalidInput
        A block has too many nodes, or the sequence is not one sample.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> from gnnlab import plot
    >>> block = dgl.to_block(dgl.graph(([1, 2, 7], [2, 3, 3])), [3, 2])
    >>> ax = plot.block(block)
    >>> [text.get_text() for text in ax.texts]
    ['3', '2', '1', '7', '3', '2', 'sources', 'destinations']
    """
    chain = [blocks] if isinstance(blocks, Block) else list(blocks)
    _check_chain(chain)
    columns = [_column(chain[0], "src"), *(_column(each, "dst") for each in chain)]
    colors = _type_colors(chain)
    heights = _heights(columns)
    ends = [heights[t] - len(ids) for column in columns for t, ids in column.items()]
    low = min(ends, default=0)
    ax = canvas.axes(ax, 1.2 + 1.6 * len(chain), 0.7 - 0.3 * low)
    for x, column in enumerate(columns):
        for ntype, ids in column.items():
            positions = [(x, heights[ntype] - i) for i in range(len(ids))]
            fill = [colors.get(ntype, canvas.layer_colors(len(columns))[x])] * len(ids)
            canvas.draw_nodes(ax, positions, ids, fill, size=190)
    for x, each in enumerate(chain):
        own = colors or canvas.layer_colors(len(columns))[x]
        _draw_edges(ax, each, x, columns[x : x + 2], heights, own)
    titles = {0.0: "sources", 1.0: "destinations"}
    if len(chain) > 1:
        titles = {x + 0.5: f"blocks[{x}]" for x in range(len(chain))}
    for where, title in titles.items():
        ax.text(where, 0.8, title, ha="center", va="center")
    ax.set(xlim=(-0.4, len(chain) + 0.4), ylim=(low + 0.4, 1.3))
    ax.axis("off")
    if colors:
        for name, color in colors.items():
            mark = "o" if name in {ntype for column in columns for ntype in column} else ""
            ax.plot([], [], mark or "-", color=color, label=name)
        canvas.legend_beside(ax)
    return ax


def _check_chain(chain: list[Block]) -> None:
    for each in chain:
        if not isinstance(each, Block):
            raise InvalidInput(
                f"plot.block draws blocks; found {each!r}. dgl.to_block(g, seeds) makes one; "
                "plot.graph(g) draws a graph"
            )
    if not chain:
        raise InvalidInput("found no block to draw; pass a block, or a list of at least one")
    canvas.check_chain([(_column(each, "src"), _column(each, "dst")) for each in chain])
    most = max(max(each.num_src_nodes(), each.num_dst_nodes()) for each in chain)
    if most > _MOST_ROWS:
        raise InvalidInput(
            f"plot.block draws at most {_MOST_ROWS} nodes on a side; found {most:,}. Sample from "
            "fewer seeds or with a smaller fanout"
        )


def _column(each: Block, side: str) -> dict[str, list[int]]:
    """Return the node IDs of a side by type: original IDs if the block has them."""
    types, view = (
        (each.srctypes, each.srcnodes) if side == "src" else (each.dsttypes, each.dstnodes)
    )
    found = {}
    for ntype in types:
        ids = view[ntype].data.get(NID)
        count = each.num_src_nodes(ntype) if side == "src" else each.num_dst_nodes(ntype)
        found[ntype] = list(range(count)) if ids is None else ids.tolist()
    return {ntype: ids for ntype, ids in found.items() if ids}


def _heights(columns: list[dict[str, list[int]]]) -> dict[str, int]:
    """Return the height of the first node of each type, the same in all columns."""
    found, height = {}, 0
    for ntype in sorted({ntype for column in columns for ntype in column}):
        found[ntype] = height
        height -= max(len(column.get(ntype, [])) for column in columns) + 1
    return found


def _type_colors(chain: list[Block]) -> dict[str, str]:
    """Return colors of node types and relations; none if there is only one of each."""
    ntypes = sorted({ntype for each in chain for ntype in (*each.srctypes, *each.dsttypes)})
    etypes = dict.fromkeys(etype for each in chain for etype in each.canonical_etypes)
    if len(ntypes) == 1 and len(etypes) <= 1:
        return {}
    shared = [e for e in etypes if sum(e[1] == other[1] for other in etypes) > 1 or e[1] in ntypes]
    names = [" ".join(etype) if etype in shared else etype[1] for etype in etypes]
    return canvas.colors_of([*ntypes, *names])


def _relation(etype: EdgeType, colors: dict[str, str]) -> str:
    """Return the key of a relation in the colors."""
    full_name = " ".join(etype)
    return full_name if full_name in colors else etype[1]


def _draw_edges(
    ax: Axes,
    each: Block,
    x: int,
    sides: list[dict[str, list[int]]],
    heights: dict[str, int],
    colors: dict[str, str] | str,
) -> None:
    """Draw the edges of a block, and a dotted line from each node to itself."""
    for etype in each.canonical_etypes:
        color = colors if isinstance(colors, str) else colors[_relation(etype, colors)]
        u, v = each.edges(etype=etype)
        for i, j in zip(u.tolist(), v.tolist(), strict=True):
            ends = heights[etype[0]] - i, heights[etype[2]] - j
            ax.plot([x, x + 1], ends, color=color, linewidth=1.4)
    left, right = sides
    for ntype, ids in right.items():
        if ids == left.get(ntype, [])[: len(ids)] and NID in each.srcnodes[ntype].data:
            for i in range(len(ids)):
                ends = heights[ntype] - i, heights[ntype] - i
                ax.plot([x, x + 1], ends, ":", color="gray", linewidth=1.2)
