"""Partitioning from files: the same arrays as in memory, little memory, and clear refusals."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.errors import InvalidInput, NotFound, OutOfRange, PartitionError
from gnnlab.partition import open_part, partition_files, partition_graph
from tests.graph.samples import graphs, typed_graphs
from tests.helpers import examples, run_script, small_files

ETYPES = [("a", "r", "a"), ("a", "s", "b"), ("b", "r", "a")]


def add_features(g: dgl.Graph) -> dgl.Graph:
    """Tell each node and edge apart; one name is none for a file."""
    for i, ntype in enumerate(g.ntypes):
        g.nodes[ntype].data["x/y"] = torch.arange(g.num_nodes(ntype) * 3.0).reshape(-1, 3) + 100 * i
    for etype in g.canonical_etypes:
        g.edges[etype].data["w"] = torch.arange(g.num_edges(etype), dtype=torch.int16)
        g.edges[etype].data["z"] = torch.arange(2.0 * g.num_edges(etype)).reshape(-1, 1, 2)
    return g


def write(folder: Path, g: dgl.Graph) -> dict:
    """Write a graph with one file an edge type; return the arguments that name the files."""
    arguments: dict = {"edges": {}, "node_data": {}, "edge_data": {}}
    for etype in g.canonical_etypes:
        name = ".".join(etype)
        np.save(folder / f"{name}.npy", torch.stack(g.edges(etype=etype), 1).numpy())
        arguments["edges"][etype] = folder / f"{name}.npy"
        arguments["edge_data"][etype] = save(folder, name, g.edges[etype].data)
    for ntype in g.ntypes:
        arguments["node_data"][ntype] = save(folder, ntype, g.nodes[ntype].data)
    return {**arguments, "num_nodes": {ntype: g.num_nodes(ntype) for ntype in g.ntypes}}


def save(folder: Path, prefix: str, frame) -> dict[str, Path]:
    files = {}
    for number, (name, values) in enumerate(frame.items()):
        files[name] = folder / f"{prefix}-{number}.npy"
        np.save(files[name], values.numpy())
    return files


def content(config: Path) -> dict:
    """What a JSON file says, checksums of all arrays included, but for the name of the method."""
    return {**json.loads(config.read_text("utf8")), "part_method": None}


@examples(100)
@given(st.data())
def test_equals_the_build_in_memory(data):
    g = add_features(data.draw(st.one_of(graphs(), typed_graphs())))
    total = g.num_nodes()
    num_parts, hops = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 2))
    parts = data.draw(st.lists(st.integers(0, num_parts - 1), min_size=total, max_size=total))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        partition_graph(g, "g", num_parts, folder / "memory", hops, lambda g, k: parts)
        made = partition_files(
            **write(folder, g),
            graph_name="g",
            num_parts=num_parts,
            out_path=folder / "files",
            num_hops=hops,
            part_method=parts,
            chunk_edges=data.draw(st.sampled_from([1, 7, 1000])),
        )
        assert content(made) == content(folder / "memory" / "g.json")
        assert min(p.name for p in made.parent.iterdir()) == "g.json"  # nothing hidden is left
        for part_id in range(num_parts):
            open_part(made, part_id)


def test_narrow_integers_do_not_overflow(tmp_path):
    """Homogeneous IDs, here up to 399, are larger than what the files hold."""
    ends = np.random.RandomState(0).randint(0, 200, (500, 2))
    written = []
    for dtype in (np.int64, np.uint8):
        folder = tmp_path / np.dtype(dtype).name
        folder.mkdir()
        np.save(folder / "edges.npy", ends.astype(dtype))
        dgl.seed(1)
        edges = {("a", "r", "b"): folder / "edges.npy"}
        written.append(partition_files(edges, {"a": 200, "b": 200}, "bytes", 2, folder))
    assert content(written[0]) == content(written[1])


@pytest.mark.parametrize("method", ["ldg", "random"])
def test_decides_as_in_memory(tmp_path, method):
    """The stream from the file has the same nodes in the same order, whatever the chunks."""
    rng = np.random.default_rng(0)
    counts = {"a": 300, "b": 200}
    ends = {(u, r, v): rng.integers(0, [counts[u], counts[v]], (700, 2)).T for u, r, v in ETYPES}
    g = add_features(dgl.heterograph({etype: tuple(pair) for etype, pair in ends.items()}, counts))
    mask = {"a": torch.arange(300) % 7 == 0}
    options = {"part_method": method, "balance_ntypes": mask, "balance_edges": True}
    dgl.seed(5)
    partition_graph(g, "g", 3, tmp_path / "memory", **options)
    dgl.seed(5)
    made = partition_files(
        **write(tmp_path, g),
        graph_name="g",
        num_parts=3,
        out_path=tmp_path / "files",
        chunk_edges=100,
        **options,
    )
    assert content(made) == content(tmp_path / "memory" / "g.json")


# The ring 0 → 1 → … → 5 → 0 in every form that is read.
SRC, DST = np.arange(6), np.arange(1, 7) % 6


def ring_npy(folder):
    np.save(folder / "e.npy", np.stack([SRC, DST], 1).astype(np.uint16))
    return folder / "e.npy"


def ring_pair(folder):
    np.save(folder / "s.npy", SRC.astype(np.int32))
    np.save(folder / "d.npy", DST)
    return folder / "s.npy", str(folder / "d.npy")


def ring_csv(folder):
    (folder / "e.csv").write_text("".join(f"{u},{v}\n" for u, v in zip(SRC, DST, strict=True)))
    return folder / "e.csv"


def ring_pieces(folder):
    np.save(folder / "1.npy", np.stack([SRC[:2], DST[:2]], 1))
    with gzip.open(folder / "2.csv.gz", "wt") as file:
        file.write("2,3\n3,4\n")
    np.save(folder / "3.npy", SRC[4:])
    np.save(folder / "4.npy", DST[4:])
    return [folder / "1.npy", folder / "2.csv.gz", (folder / "3.npy", folder / "4.npy")]


@pytest.mark.parametrize("form", [ring_npy, ring_pair, ring_csv, ring_pieces])
def test_forms_of_edges(tmp_path, form):
    parts = np.array([0, 1, 0, 1, 0, 1])
    np.save(tmp_path / "parts.npy", parts)
    made = partition_files(
        form(tmp_path),
        6,
        "ring",
        2,
        tmp_path / "out",
        part_method=tmp_path / "parts.npy",
        chunk_edges=4,
    )
    g = dgl.graph((SRC, DST))
    partition_graph(g, "ring", 2, tmp_path / "memory", part_method=lambda g, k: parts)
    assert content(made) == content(tmp_path / "memory" / "ring.json")


def npy(values, dtype=None):
    """A function that writes an array and returns the file's name."""

    def save_bad(folder: Path) -> Path:
        np.save(folder / "bad.npy", np.array(values, dtype))
        return folder / "bad.npy"

    return save_bad


def npz(folder):
    with open(folder / "several.npy", "wb") as file:
        np.savez(file, x=np.zeros(6))
    return folder / "several.npy"


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("edges", lambda f: f / "no.npy", r"no\.npy"),
        ("edges", lambda f: f / "no.csv", r"no\.csv"),
        ("edges", lambda f: f / "no.parquet", "partition_tables"),
        ("edges", lambda f: np.zeros((3, 2), int), "ndarray"),
        ("edges", lambda f: ([0, 1], [1, 0]), "list"),
        ("edges", npy([[0, 1, 2]]), r"bad\.npy: found shape \(1, 3\); expected \(E, 2\)"),
        ("edges", npy([[0.0, 1.0]]), "float64"),
        ("edges", lambda f: (npy([0])(f), ring_pair(f)[1]), r"shapes \[\(1,\), \(6,\)\]"),
        ("edges", npy([[0, 6]]), r"bad\.npy: node 6 .* 0 to 5"),
        ("edges", npy([[-1, 0]]), r"bad\.npy: node -1"),
        ("edges", lambda f: {("_N", "r"): f}, r"\('_N', 'r'\)"),
        ("edges", lambda f: {("_N", "r", "w"): f}, "num_nodes .*'w'"),
        ("edges", lambda f: {}, "edge type"),
        ("num_nodes", lambda f: -1, "num_nodes .*'_N'"),
        ("num_parts", lambda f: 0, "num_parts .* 0"),
        ("graph_name", lambda f: "a/b", "graph name 'a/b'"),
        ("part_method", lambda f: "metis", "'ldg', 'random'"),
        ("part_method", lambda f: [0, 1], r"parts .*\(2,\)"),
        ("part_method", lambda f: "no.npy", r"no\.npy"),
        ("node_data", lambda f: {"x": torch.zeros(6)}, "Tensor"),
        ("node_data", lambda f: {"x": npz(f)}, r"several\.npy"),
        ("node_data", lambda f: {"x": npy([0] * 5)(f)}, "6 nodes"),
        ("node_data", lambda f: {"x": npy(["a"] * 6)(f)}, "<U1"),
        ("edge_data", lambda f: {"x": npy([0] * 7)(f)}, "6 edges"),
    ],
)
def test_refuses(tmp_path, argument, value, message):
    """Nothing is left behind, and an older result stays as it was."""
    out = tmp_path / "out"
    good = {"edges": ring_npy(tmp_path), "num_nodes": 6, "graph_name": "ring", "num_parts": 2}
    before = content(partition_files(**good, out_path=out))
    with pytest.raises((InvalidInput, NotFound, OutOfRange), match=message):
        partition_files(**{**good, argument: value(tmp_path)}, out_path=out)
    assert content(out / "ring.json") == before
    assert sorted(p.name for p in out.iterdir()) == ["part0", "part1", "ring.json"]


def test_a_full_disk_is_named(tmp_path):
    """Of 5,000 edges; the list of what is to be removed, which comes first, is small."""
    edges = tmp_path / "edges.npy"
    np.save(edges, np.arange(10_000).reshape(5000, 2) % 200)
    partition_files(edges, 200, "ring", 2, tmp_path / "before")  # compiled code fills files, too
    for scratch in (None, tmp_path / "scratch"):
        place = re.escape(str(scratch or tmp_path / "out"))
        full = pytest.raises(PartitionError, match=f"{place}.*File too large.*scratch=")
        with small_files(20_000), full:
            partition_files(edges, 200, "ring", 2, tmp_path / "out", scratch=scratch)
    assert not list((tmp_path / "scratch").iterdir())
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.thorough("writes and sorts files of 190 MB")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_stays_small(tmp_path):
    """Files of 190 MB, 3 million edges: less than 100 MB over what a small run takes."""
    rng = np.random.default_rng(0)
    np.save(tmp_path / "edges.npy", rng.integers(0, 200_000, (3_000_000, 2)))
    np.save(tmp_path / "x.npy", np.zeros((200_000, 128), np.float32))
    np.save(tmp_path / "w.npy", np.zeros((3_000_000, 3), np.float32))
    np.save(tmp_path / "few.npy", rng.integers(0, 200, (3_000, 2)))
    printed = run_script(
        """
        import re, sys
        from pathlib import Path
        from gnnlab.partition import partition_files

        def peak():
            # getrusage would tell that of the process which started this one, if it was larger.
            status = Path("/proc/self/status").read_text()
            return int(re.search(r"VmHWM:\\s+(\\d+)", status)[1]) // 1024

        folder = sys.argv[1]
        partition_files(f"{folder}/few.npy", 200, "few", 8, f"{folder}/few", chunk_edges=100)
        before = peak()
        partition_files(
            f"{folder}/edges.npy", 200_000, "many", 8, f"{folder}/many", chunk_edges=100_000,
            node_data={"x": f"{folder}/x.npy"}, edge_data={"w": f"{folder}/w.npy"},
        )
        print(peak() - before)
        """,
        args=[str(tmp_path)],
        fresh=True,
    )  # fmt: skip
    assert 10 < int(printed) < 100
