"""Pictures of samples show what the blocks hold, and only that."""

from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

import gnnlab as dgl
from gnnlab import plot
from gnnlab.errors import InvalidInput
from gnnlab.plot.canvas import BLUE, GRAY, GREEN, ORANGE
from tests.plot.samples import PLACES, node_colors, sample, texts, toy


def arrow_colors(ax) -> list[str]:
    return [to_hex(p.get_edgecolor()) for p in ax.patches if isinstance(p, FancyArrowPatch)]


def test_graph_has_every_node_and_edge() -> None:
    ax = plot.graph(toy(), pos=PLACES)
    assert node_colors(ax) == dict.fromkeys("01234", GRAY)
    assert arrow_colors(ax) == [GRAY] * 6
    assert [text.get_position() for text in ax.texts] == PLACES


def test_sample_is_colored_on_the_graph() -> None:
    """Taken: 1, 2 → 0 in the last layer, 3 → 0 and 4 → 1, 2 in the first; 0 → 1 was not."""
    ax = plot.graph(toy(), sample(), PLACES)
    assert arrow_colors(ax) == [ORANGE, ORANGE, GREEN, GRAY, GREEN, GREEN]
    assert node_colors(ax) == {"0": BLUE, "1": ORANGE, "2": ORANGE, "3": GREEN, "4": GREEN}


def test_graphs_and_blocks_that_cannot_be_drawn() -> None:
    for g, named in (
        (dgl.rand_graph(61, 10), "60 nodes.* 61.*node_subgraph"),
        (dgl.heterograph({("a", "r", "b"): ([0], [0])}), "one node type"),
        (sample()[0], "one node type"),
    ):
        with pytest.raises(InvalidInput, match=named):
            plot.graph(g)
    for wrong in (dgl.to_block(dgl.graph(([4], [0])), [0]), toy(), 3):
        with pytest.raises(InvalidInput, match=r"blocks\[0\]"):
            plot.graph(toy(), [wrong])
    first, last = sample()
    for draw in (plot.graph, plot.sampling_tree):
        for blocks in ([last, first], [last, last]):
            with pytest.raises(InvalidInput, match=r"blocks\[0\] .*blocks\[1\]"):
                draw(toy(), blocks)
    g = dgl.rand_graph(100, 5000)
    with pytest.raises(InvalidInput, match=r"60 leaves.*fanout"):
        plot.sampling_tree(g, dgl.dataloading.NeighborSampler([10, 10]).sample(g, [0])[2])
    with pytest.raises(InvalidInput, match="blocks"):
        plot.sampling_tree(g, [])


def test_tree_holds_each_message_once() -> None:
    """Rows from the top: 0; then itself, 1, 2 and not 3; then what each of these asks for.

    0 ┬ 0 ┬ 0, 3; not 1, 2
      ├ 1 ┬ 1, 4; not 0
      ├ 2 ┬ 2, 4
      └ (3)
    """
    ax = plot.sampling_tree(toy(), sample())
    rows: dict[float, list[str]] = {0: [], -1: [], -2: []}
    nodes = [text for text in ax.texts if text.get_ha() == "center"]
    for text in nodes:
        rows[text.get_position()[1]].append(text.get_text())
    assert list(map("".join, rows.values())) == ["0", "0123", "031214024"]
    assert len({text.get_position() for text in nodes}) == len(nodes)
    counts = [text for text in texts(ax) if "node" in text][:3]
    assert counts == ["output: 1 node", "1 away: 3 nodes", "input: 5 nodes"]
