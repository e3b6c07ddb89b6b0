"""The text files of ParMETIS: its input is written, its output becomes a partition."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.compat.convert_partition import main
from gnnlab.compat.parmetis import convert_partition
from gnnlab.partition import partition_graph
from gnnlab.partition.assign import classes_of, weights_of
from tests.graph.samples import graphs, typed, typed_graphs
from tests.helpers import examples, save_as_windows

any_graph = st.one_of(graphs(), typed_graphs())


def write_parmetis(g: dgl.Graph, graph_name: str, folder: Path) -> None:
    """Write the input of ParMETIS, self-loops and repeated edges apart, and the schema."""
    base = Path(folder, graph_name)
    base.parent.mkdir(parents=True, exist_ok=True)
    counts = {ntype: g.num_nodes(ntype) for ntype in g.ntypes}
    whole, _, edge_counts = dgl.to_homogeneous(g, return_count=True)
    weights = weights_of(classes_of(counts), 1)
    types = np.repeat(np.arange(len(counts)), list(counts.values()))
    ids = np.concatenate([np.arange(count) for count in counts.values()])
    _write(f"{base}_nodes.txt", types, *weights.T, ids)
    src, dst = (ends.cpu().numpy().astype(np.int64) for ends in whole.edges())
    _, first = np.unique(src * len(ids) + dst, return_index=True)
    kept = np.zeros(len(src), np.bool_)
    kept[first] = True
    kept &= src != dst
    columns = [src, dst, whole.edata[dgl.EID].cpu().numpy(), whole.edata[dgl.ETYPE].cpu().numpy()]
    _write(f"{base}_edges.txt", *(column[kept] for column in columns))
    _write(f"{base}_removed_edges.txt", *(column[~kept] for column in columns))
    etypes = dict(zip((":".join(t) for t in g.canonical_etypes), edge_counts, strict=True))
    schema = {"nid": ranges(counts), "eid": ranges(etypes)}
    Path(f"{base}.json").write_text(json.dumps(schema, indent=1), "utf8")


def ranges(counts: dict[str, int]) -> dict[str, list[int]]:
    ends = np.cumsum(list(counts.values())).tolist()
    return {name: [end - counts[name], end] for name, end in zip(counts, ends, strict=True)}


def _write(path: str, *columns: np.ndarray) -> None:
    table = pd.DataFrame(dict(enumerate(columns)))
    table.to_csv(path, sep=" ", header=False, index=False, lineterminator="\n")


def run_parmetis(folder: Path, g: dgl.Graph, part: np.ndarray, attributes: str = "") -> None:
    """Write what ``pm_dglpart`` would, from its own input; new IDs are not looked at."""
    nodes = (folder / "g_nodes.txt").read_text().splitlines()
    edges = (folder / "g_edges.txt").read_text().splitlines()
    for p in range(int(part.max(initial=0)) + 1):
        own = [f"{i} {line}{attributes}" for i, line in enumerate(nodes) if part[i] == p]
        into = [f"0 0 {line}{attributes}" for line in edges if part[int(line.split()[1])] == p]
        # The order of lines within a part is ParMETIS' own.
        (folder / f"p{p:03}-g_nodes.txt").write_text("\n".join(reversed(own)) + "\n" * bool(own))
        (folder / f"p{p:03}-g_edges.txt").write_text("\n".join(reversed(into)) + "\n" * bool(into))


@examples(40)
@given(any_graph, st.data())
def test_parts_become_the_partition_of_the_same_assignment(g, data):
    count, num_parts = g.num_nodes(), data.draw(st.integers(1, 3))
    part = data.draw(st.lists(st.integers(0, num_parts - 1), min_size=count, max_size=count))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for frame in [*g.node_frames().values(), *g.edge_frames.values()]:
            frame.clear()
        partition_graph(g, "g", num_parts, folder / "memory", part_method=lambda g, k: part)
        write_parmetis(g, "g", folder)
        lines = (folder / "g_edges.txt").read_text().splitlines()
        pairs = {tuple(line.split()[:2]) for line in lines}
        assert len(pairs) == len(lines) and all(u != v for u, v in pairs)
        run_parmetis(folder, g, np.array([*part, num_parts - 1]))
        num_weights = sum(g.num_nodes(ntype) > 0 for ntype in g.ntypes) or 1
        convert_partition(
            folder, "g", folder / "g.json", num_parts, num_weights, folder / "converted",
            removed_edges=folder / "g_removed_edges.txt",
        )  # fmt: skip
        made = (folder / "converted" / "g.json").read_text()
        assert json.loads(made) == json.loads((folder / "memory" / "g.json").read_text())


def prepare(folder: Path) -> dict[str, str]:
    """A typed graph in two parts, two attributes a line; the schema as the guide writes it."""
    g = typed()
    write_parmetis(g, "g", folder)
    run_parmetis(folder, g, np.arange(g.num_nodes()) % 2, " 0.5 2")
    schema = json.loads((folder / "g.json").read_text())
    schema["eid"] = {name.split(":")[1]: pair for name, pair in schema["eid"].items()}
    (folder / "g.json").write_text(json.dumps(schema))
    return {
        "--input-dir": str(folder),
        "--graph-name": "g",
        "--schema": str(folder / "g.json"),
        "--num-parts": "2",
        "--num-node-weights": "2",
        "--output": str(folder / "out"),
        "--removed-edges": str(folder / "g_removed_edges.txt"),
    }


def run(arguments: dict[str, str]) -> int:
    return main([word for pair in arguments.items() for word in pair])


def test_from_a_shell(tmp_path):
    (tmp_path / "g_removed_edges.txt").touch()
    arguments = prepare(tmp_path)
    save_as_windows(tmp_path / "g.json", tmp_path / "p000-g_nodes.txt")
    assert run({**arguments, "--node-attr-dtype": "float32"}) == 0
    (nodes, edges), *_ = [dgl.partition.load_partition_feats(tmp_path / "out" / "g.json", 0)]
    assert edges == {} and sorted(nodes) == ["game/feat", "user/feat"]
    assert nodes["game/feat"].tolist() == [[0.5, 2.0], [0.5, 2.0]]
    assert nodes["game/feat"].dtype == torch.float32


def edit(name, old, new, count=1):
    def change(folder: Path, arguments: dict[str, str]) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, count))

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f, a: (f / "p001-g_nodes.txt").unlink(), "neither p1-g_nodes.txt nor p001-g_nodes"),
        (lambda f, a: a.update({"--num-node-weights": "1"}), "an ID occurs twice"),
        (lambda f, a: a.pop("--removed-edges"), "no file has edge .* removed_edges="),
        (edit("g.json", "[0, 4]", "[1, 4]"), "ranges of nid do not follow"),
        (edit("g.json", '"nid"', '"nodes"'), r"g\.json: expected"),
        (edit("g.json", "plays", "a:b"), "edge type 'a:b' of the schema"),
        (edit("p000-g_nodes.txt", "0.5", "0.5 1"), "equally many on each line"),
        (edit("p001-g_nodes.txt", " 0.5 2", "", -1), "0 attributes a line; before, 2"),
        (edit("p000-g_nodes.txt", " 0.5", ".5 0.5"), "expected 5 integers a line"),
        (edit("p000-g_nodes.txt", " 2 0.5", " 9 0.5"), r"ID 9 of type 1; the schema has \[4, 3\]"),
        (edit("p000-g_edges.txt", "0 0 ", "0 0 9"), "ends at a node that is not in the schema"),
    ],
)
def test_refuses(tmp_path, capsys, change, message):
    arguments = prepare(tmp_path)
    change(tmp_path, arguments)
    assert run({**arguments, "--node-attr-dtype": "float64"}) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
