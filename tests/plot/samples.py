"""What tests of pictures share: a toy graph, a sample of it, and looks at what was drawn."""

from __future__ import annotations

from typing import Any

from matplotlib.colors import to_hex

import gnnlab as dgl

PLACES = [(0, 0), (-1, 1), (1, 1), (1, -1), (-1, -1)]


def toy() -> dgl.Graph:
    """Edges to node 0 from 1, 2, 3; to 1 from 0, 4; to 2 from 4.

    1 ⇄ 0 ← 2 ← 4 → 1
        ↑
        3
    """
    return dgl.graph(([1, 2, 3, 0, 4, 4], [0, 0, 0, 1, 1, 2]))


def sample() -> list[dgl.Block]:
    """Of node 0: neighbors 1 and 2, then of 0: 3, of 1: 4, of 2: 4."""
    g = toy()
    last = dgl.to_block(dgl.edge_subgraph(g, [0, 1], relabel_nodes=False), [0])
    first = dgl.to_block(dgl.edge_subgraph(g, [2, 4, 5], relabel_nodes=False), [0, 1, 2])
    assert first.srcdata[dgl.NID].tolist() == [0, 1, 2, 3, 4]
    return [first, last]


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts]


def node_colors(ax: Any) -> dict[str, str]:
    """Name of a node that is drawn as a disk → color of the disk."""
    disks = {}
    for collection in ax.collections:
        colors = collection.get_facecolors()
        for i, (x, y) in enumerate(collection.get_offsets().tolist()):
            if len(colors):
                disks[round(x, 6), round(y, 6)] = to_hex(colors[min(i, len(colors) - 1)])
    names = {text.get_text(): tuple(round(v, 6) for v in text.get_position()) for text in ax.texts}
    return {name: disks[at] for name, at in names.items() if at in disks}


def legend(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]
