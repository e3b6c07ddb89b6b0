"""Files that DGL 2.1 wrote (``fixtures/make.py``), compared with what DGL reads from them."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.compat.data.tensors import load_tensors
from gnnlab.compat.dglfile import load_graphs, read_graphs, read_tensors
from tests.compat.fixtures.said import said_of_graph, said_of_tensors
from tests.graph.samples import same
from tests.helpers import examples

FIXTURES = Path(__file__).parent / "fixtures"
EXPECTED = json.loads((FIXTURES / "expected.json").read_text("utf8"))
RELATION = struct.pack("<Q", 0xDD2E60F0F6B4A127)
SAME_FOLDER = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.parametrize("name", ["one_type.bin", "typed.bin"])
def test_graphs_are_what_dgl_reads(name: str) -> None:
    graphs, labels = load_graphs(FIXTURES / name)
    assert {
        "graphs": [said_of_graph(g) for g in graphs],
        "labels": said_of_tensors(labels),
    } == EXPECTED[name]


def test_chosen_graphs_in_the_order_asked() -> None:
    found, _ = load_graphs(FIXTURES / "one_type.bin", [5, 0])
    expected = EXPECTED["one_type.bin"]["graphs"]
    assert [said_of_graph(g) for g in found] == [expected[5], expected[0]]
    (one,), _ = load_graphs(FIXTURES / "one_type.bin", 5)
    assert said_of_graph(one) == expected[5]
    for wrong in ([9], 9):
        with pytest.raises(IndexError, match=r"0 to 8; found 9 .*idx_list"):
            load_graphs(FIXTURES / "one_type.bin", wrong)


def test_a_graph_of_dgl_is_a_graph_like_any_other(tmp_path: Path) -> None:
    """It goes to our own format and back, and its in-edges stand in the order of their IDs."""
    graphs, labels = load_graphs(FIXTURES / "one_type.bin")
    dgl.save_graphs(tmp_path / "again", graphs, labels)
    for a, b in zip(graphs, load_graphs(tmp_path / "again")[0], strict=True):
        assert same(a, b)
    _, dst, eids = graphs[7].in_edges([0, 2], form="all")
    assert (dst.tolist(), eids.tolist()) == ([0, 0, 0, 2, 2], [0, 2, 4, 1, 3])


@pytest.mark.parametrize("name", ["tensors.dgl", "nothing.dgl"])
def test_tensors_are_what_dgl_reads(name: str) -> None:
    assert said_of_tensors(load_tensors(str(FIXTURES / name))) == EXPECTED[name]


def relations(content: bytes) -> list[int]:
    """Where relations begin."""
    found, place = [], content.find(RELATION)
    while place >= 0:
        found.append(place)
        place = content.find(RELATION, place + 1)
    return found


@pytest.mark.parametrize(("bit", "number"), [(1, 1), (2, 2), (4, 3)])
def test_formats_numbered_as_older_versions_did(tmp_path: Path, bit: int, number: int) -> None:
    """Without 1 in the upper half, DGL 2.1 reads 1, 2, 3 as COO, CSR, CSC; 0 as "all allowed"."""
    content = bytearray((FIXTURES / "one_type.bin").read_bytes())
    changed = []
    for i, place in enumerate(relations(bytes(content))):
        if struct.unpack_from("<2I", content, place + 8) == (bit, 1):
            struct.pack_into("<2Q", content, place + 8, number, 0)
            changed.append(i)
    (tmp_path / "old").write_bytes(content)
    assert changed
    for i, g in enumerate(load_graphs(tmp_path / "old")[0]):
        expected = dict(EXPECTED["one_type.bin"]["graphs"][i])
        if i in changed:
            expected["formats"] = ["coo", "csc", "csr"]
        assert said_of_graph(g) == expected


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (8, 1, "version 2, kind 2.*version 1"),
        (16, 1, "version 2, kind 1"),
        (24, 3, " 3 graphs"),
        (24, 1 << 63, "graphs"),
        (4104, 1 << 60, "bytes"),  # the number of labels
    ],
)
def test_headers_that_lie(tmp_path: Path, place: int, value: int, message: str) -> None:
    content = bytearray((FIXTURES / "one_type.bin").read_bytes())
    struct.pack_into("<Q", content, place, value)
    (tmp_path / "lie").write_bytes(content)
    with pytest.raises(dgl.DGLError, match=message) as error:
        load_graphs(tmp_path / "lie")
    assert str(tmp_path / "lie") in str(error.value)


def check(g: dgl.Graph) -> None:
    """Where a change went unnoticed, no index leads out of its array."""
    for etype in g.canonical_etypes:
        for ends, ntype in zip(g.edges(etype=etype), (etype[0], etype[2]), strict=True):
            assert len(ends) == 0 or 0 <= int(ends.min()) <= int(ends.max()) < g.num_nodes(ntype)
        assert all(len(column) == g.num_edges(etype) for column in g.edges[etype].data.values())
    for ntype in g.ntypes:
        assert all(len(column) == g.num_nodes(ntype) for column in g.nodes[ntype].data.values())


@examples(200, SAME_FOLDER)
@given(st.data(), st.sampled_from(["one_type.bin", "typed.bin", "tensors.dgl", "nothing.dgl"]))
def test_changed_bytes_are_an_error_or_harmless(
    tmp_path: Path, data: st.DataObject, name: str
) -> None:
    content = bytearray((FIXTURES / name).read_bytes())
    body = [*range(32), *range(4096, len(content))] if len(content) > 4096 else range(len(content))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(body))
        new = data.draw(st.binary(min_size=1, max_size=8))
        content[place : place + len(new)] = new
    (tmp_path / "changed").write_bytes(content)
    read: Any = read_graphs if name.endswith(".bin") else read_tensors
    try:
        found = read(tmp_path / "changed")
    except dgl.DGLError as error:
        assert str(tmp_path / "changed") in str(error)
    else:
        for g in found[0] if name.endswith(".bin") else ():
            check(g)


@examples(100, SAME_FOLDER)
@given(st.data(), st.sampled_from(["one_type.bin", "typed.bin", "tensors.dgl", "nothing.dgl"]))
def test_a_file_cut_anywhere_is_an_error(tmp_path: Path, data: st.DataObject, name: str) -> None:
    content = (FIXTURES / name).read_bytes()
    (tmp_path / "cut").write_bytes(content[: data.draw(st.integers(8, len(content) - 1))])
    load: Any = load_graphs if name.endswith(".bin") else load_tensors
    with pytest.raises(dgl.DGLError, match=str(tmp_path / "cut")):
        load(tmp_path / "cut")


def test_no_memory_is_asked_for_on_trust(tmp_path: Path) -> None:
    """The first tensor says that it has 2⁴⁰ bytes."""
    content = bytearray((FIXTURES / "tensors.dgl").read_bytes())
    start = content.find(struct.pack("<Q", 0xDD5E40F096B4A13F))
    (dims,) = struct.unpack_from("<I", content, start + 24)
    struct.pack_into("<Q", content, start + 32 + 8 * dims, 1 << 40)
    (tmp_path / "huge").write_bytes(content)
    with pytest.raises(dgl.DGLError, match="1099511627776 bytes"):
        load_tensors(tmp_path / "huge")
