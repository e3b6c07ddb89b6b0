"""How objects show themselves in a notebook: HTML that is well-formed, counted and literal.

0 → 1 → 2 ↺    a graph of three nodes and three edges, one of them a self-loop
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import gnnlab as dgl
from gnnlab.system import cells
from tests.helpers import run_script


class Page:
    """Rows of tables, texts, and how often each tag occurs; a tag that stays open is an error."""

    def __init__(self, html: str) -> None:
        root = ElementTree.fromstring(html.replace("&nbsp;", " "))
        self.count = Counter(each.tag.rpartition("}")[2] for each in root.iter())
        self.rows = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
        self.texts = list(root.itertext())


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


def test_not_imported_until_a_cell_asks() -> None:
    source = (
        "import sys, gnnlab as dgl\ng = dgl.graph(([0], [1]))\n"
        "print('gnnlab.system.cells' in sys.modules)\ng._repr_html_()\n"
        "print('gnnlab.system.cells' in sys.modules)"
    )
    assert run_script(source).split() == ["False", "True"]
