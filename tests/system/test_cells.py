"""How objects show themselves in a notebook: HTML that is well-formed, counted and literal.

0 → 1 → 2 ↺    a graph of three nodes and three edges, one of them a self-loop
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed.traffic import Count, Traffic
from gnnlab.launch.launch import JobResult
from gnnlab.partition import GraphPartitionBook, partition_graph
from gnnlab.simulate import simulate
from gnnlab.system import cells
from tests.helpers import run_script

EMPTY = {"line", "rect", "circle", "polygon"}


class Page(HTMLParser):
    """Rows of tables, texts, and how often each tag occurs; each tag must be closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in EMPTY
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def shown(value: Any) -> Page:
    html = value._repr_html_()
    # No color but marks': the page's light or dark colors hold.
    colors = set(re.findall(r"#[0-9a-f]{3,6}\b", html))
    assert colors <= set(cells._COLORS) and "white" not in html and "black" not in html
    return Page(html)


def path() -> dgl.Graph:
    g = dgl.graph(([0, 1, 2], [1, 2, 2]))
    g.ndata["feat"] = torch.zeros(3, 64)
    g.ndata["label"] = torch.zeros(3, dtype=torch.int64)
    return g


def test_a_small_graph_is_drawn() -> None:
    page = shown(path())
    assert page.texts[0] == "Graph"
    assert page.rows == [
        ["ntype", "num_nodes", "data"],
        ["_N", "3", "feat: float32 (64,), label: int64"],
        ["canonical_etype", "num_edges", "data"],
        ["_N → _E → _N", "3", ""],
    ]
    # Three nodes and the self-loop; the other two edges are lines with heads.
    assert page.count["svg"] == 1
    assert (page.count["circle"], page.count["line"], page.count["polygon"]) == (4, 2, 2)
    assert page.texts[-3:] == ["0", "1", "2"]


def test_types_have_colors_and_a_legend() -> None:
    g = dgl.heterograph({("user", "plays", "game"): ([0, 0, 1], [0, 1, 1])})
    page = shown(g)
    assert page.rows[1:3] == [["game", "2", ""], ["user", "2", ""]]
    assert page.texts[-6:] == ["0", "1", "0", "1", "game", "user"]
    assert (page.count["circle"], page.count["line"], page.count["rect"]) == (4, 3, 2)


@pytest.mark.parametrize(
    ("num_nodes", "num_edges", "is_drawn"),
    [(0, 0, False), (1, 0, True), (30, 150, True), (31, 0, False), (30, 151, False)],
)
def test_only_what_is_small_is_drawn(num_nodes: int, num_edges: int, is_drawn: bool) -> None:
    ends = torch.arange(num_edges) % max(num_nodes, 1)
    page = shown(dgl.graph((ends, (ends + 1) % max(num_nodes, 1)), num_nodes=num_nodes))
    assert ("svg" in page.count) == is_drawn
    assert page.rows[1][1] == str(num_nodes)


def test_a_block_has_two_rows() -> None:
    block = dgl.to_block(dgl.in_subgraph(path(), [1]), [1])
    page = shown(block)
    assert page.rows[1][:2] == ["_N", "2"] and page.rows[3][:2] == ["_N", "1"]
    assert page.texts[-5:] == ["0", "1", "0", "srcnodes", "dstnodes"]
    assert page.count["line"] == 1


def test_showing_computes_no_feature() -> None:
    block = dgl.to_block(dgl.in_subgraph(path(), [1]), [1])
    before = block.src_frames["_N"].column("feat")
    assert shown(block).rows[1][2].startswith("feat, label")
    assert block.src_frames["_N"].column("feat") is before and callable(before)


def test_names_are_text_and_never_markup() -> None:
    g = dgl.heterograph({("<b>", "&amp;", "<b>"): ([0], [0])})
    page = shown(g)
    assert "b" in page.count and page.count["b"] == 1  # the title
    assert page.rows[1][0] == "<b>" and page.rows[3][0] == "<b> → &amp; → <b>"


def test_a_partition_book_lists_ranges() -> None:
    nodes = {"game": [0, 1, 3], "user": [0, 2, 3]}
    page = shown(GraphPartitionBook(0, nodes, {("user", "plays", "game"): [0, 2, 5]}))
    assert page.rows == [
        ["partid", "game", "user", "user → plays → game"],
        ["0", "0 – 0", "0 – 1", "0 – 1"],
        ["1", "1 – 2", "2 – 2", "2 – 4"],
    ]
    assert page.count["rect"] == 6


def test_long_tables_end_early() -> None:
    offsets = torch.arange(65)
    page = shown(GraphPartitionBook(0, {"_N": offsets}, {("_N", "_E", "_N"): offsets}))
    assert len(page.rows) == 1 + 16 + 1 and page.rows[-1] == ["… 48"]


def test_traffic_is_a_matrix() -> None:
    traffic = Traffic(2)
    traffic.add(0, 1, "features", Count(requests=1, rows=10, bytes_out=150, bytes_in=4090))
    page = shown(traffic)
    assert page.rows == [["matrix()", "0", "1"], ["0", "0", "4,090"], ["1", "150", "0"]]


def test_a_simulation_its_graph_and_its_result(tmp_path: Path) -> None:
    g = path()
    partition_graph(g, "path", 1, tmp_path)
    found = {}

    def train() -> None:
        dgl.distributed.initialize("ip_config.txt")
        graph = dgl.distributed.DistGraph("path")
        found["graph"], found["feat"] = shown(graph), shown(graph.ndata["feat"])

    simulation = simulate(tmp_path / "path.json", 1)
    result = simulation.run(train)
    assert {"Simulation", "path"} <= {word for t in shown(simulation).texts for word in t.split()}
    assert found["graph"].rows[1] == ["_N", "3", "feat: float32 (64,), label: int64"]
    assert found["feat"].texts[0] == "DistTensor" and "(3, 64)" in "".join(found["feat"].texts)
    assert shown(result).rows == [["matrix()", "0"], ["0", "0"]]


def test_a_job_shows_the_last_line_of_each_process(tmp_path: Path) -> None:
    (tmp_path / "trainer-0.log").write_text("epoch 1\naccuracy 0.9\n")
    page = shown(JobResult("job", tmp_path, 12.5))
    assert page.rows == [["logs", ""], ["trainer-0", "accuracy 0.9"]]
    assert "seconds = 12.5" in "".join(page.texts)


def test_not_imported_until_a_cell_asks() -> None:
    source = (
        "import sys, gnnlab as dgl\ng = dgl.graph(([0], [1]))\n"
        "print('gnnlab.system.cells' in sys.modules)\ng._repr_html_()\n"
        "print('gnnlab.system.cells' in sys.modules)"
    )
    assert run_script(source).split() == ["False", "True"]
