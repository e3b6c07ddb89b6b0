"""The map of a partition shows owners, cut edges and HALO nodes as the partitioner counts them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

import gnnlab as dgl
from gnnlab import plot
from gnnlab.errors import InvalidInput
from gnnlab.partition import open_part
from gnnlab.plot.canvas import BLUE, GRAY, ORANGE
from tests.partition.samples import PART_OF, cut_ring, ring
from tests.plot.samples import legend, node_colors, texts


def rings(ax) -> set[tuple[float, ...]]:
    """Places of the nodes that have a ring."""
    drawn = [c for c in ax.collections if c.get_zorder() == 3]  # the sample in the legend is not
    empty = [c for c in drawn if not len(c.get_facecolors())]
    return {tuple(place) for c in empty for place in c.get_offsets().tolist()}


CIRCLE = [(0, 0), (1, 0), (2, 1), (1, 2), (0, 2), (-1, 1)]


@pytest.mark.parametrize("as_files", [False, True])
def test_owners_and_cut_edges(tmp_path: Path, as_files: bool) -> None:
    """Part 0 owns 1, 2, 4. Edges 1 → 2 and 5 → 0 lie within a part, the others join two."""
    ax = plot.partition_map(ring(), cut_ring(tmp_path) if as_files else PART_OF, pos=CIRCLE)
    colors = [BLUE if part == 0 else ORANGE for part in PART_OF]
    assert node_colors(ax) == dict(zip("012345", colors, strict=True))
    assert legend(ax) == ["part 0", "part 1", "cut edge", "HALO of part 0"]
    arrows = [to_hex(p.get_edgecolor()) for p in ax.patches if isinstance(p, FancyArrowPatch)]
    assert arrows == ["#000000", GRAY, *["#000000"] * 3, GRAY, *["#000000"] * 2]
    assert ax.get_title() == "6 of 8 edges cut"


def test_halo_is_that_of_the_part(tmp_path: Path) -> None:
    config = cut_ring(tmp_path)
    for part in (0, 1):
        ax = plot.partition_map(ring(), config, halo_of=part, pos=CIRCLE)
        nodes = open_part(config, part).nodes["_N"]
        halo = nodes.orig_ids[nodes.num_inner :].tolist()
        assert rings(ax) == {CIRCLE[node] for node in halo} != set()
    ax = plot.partition_map(ring(), torch.tensor(PART_OF), halo_of=None)
    assert rings(ax) == set() and "HALO" not in "".join(legend(ax))


def test_large_graphs_have_lines_and_no_names() -> None:
    """300 edges i → i + 1; those into 100, 200 and 0 are cut."""
    g = dgl.graph((torch.arange(300), (torch.arange(300) + 1) % 300))
    ax = plot.partition_map(g, torch.arange(300) // 100, halo_of=2)
    assert "".join(texts(ax)) == "" and not ax.patches
    pale, black = [c for c in ax.collections if type(c).__name__ == "LineCollection"]
    assert (len(pale.get_segments()), len(black.get_segments())) == (297, 3)
    assert len(rings(ax)) == 2


@pytest.mark.parametrize(
    ("g", "assignment", "named"),
    [
        (dgl.rand_graph(501, 9), [0] * 501, "500 nodes.* 501.*partition_report"),
        (ring(), [0, 1], r"6 nodes.*\(2,\)"),
        (ring(), [0.5] * 6, "6 nodes"),
        (ring(), [-1, 0, 0, 0, 0, 0], "-1"),
        (ring(), [0] * 6, "halo_of .* 1"),
    ],
)
def test_what_cannot_be_drawn(g: dgl.Graph, assignment: list, named: str) -> None:
    with pytest.raises(InvalidInput, match=named):
        plot.partition_map(g, assignment, halo_of=1)


def test_files_of_another_graph_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"6.* 2"):
        plot.partition_map(dgl.graph(([0], [1])), cut_ring(tmp_path))
