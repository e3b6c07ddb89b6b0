"""The figures of the site that answer without a kernel: their numbers and their places.

    python docs/site/figures.py             compute all of figures.json
    python docs/site/figures.py growth cut  compute these figures of it

The numbers come from the lessons: this program runs cells of the English notebooks, then asks the
library for every position of the sliders. ``static/figures.js`` draws them, with the words of
``figures.csv``. The file is stored, because it takes minutes and because the work in ``traffic``
is measured; a test compares everything else with the library.
"""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STORED = HERE / "figures.json"
LESSONS = HERE.parents[1] / "notebooks" / "en"
PLACES = {  # lesson → figure, and the cell in which it stands, before the first heading
    "01_node_classification": ("growth", "mean"),
    "05_partitioning": ("cut", "balance"),
    "07_cluster_on_a_laptop": ("traffic", "summary"),
    "10_scaling_study": ("cost", "ahead"),
}
METHODS = ("metis", "random")
SHARES = (0, 0.05, 0.1, 0.25, 0.5)  # of all features in a cache


def insert(lesson: str, lang: str, slot: str, source: str) -> str:
    """Return the Markdown of a cell; at its place, the lesson's figure ends the section."""
    figure, place = PLACES.get(lesson, ("", ""))
    if slot != place:
        return source
    before, heading, after = source.partition("\n## ")
    if not heading:
        raise ValueError(f"cell {slot} of {lesson} ({lang}) has no heading; correct PLACES")
    return f"{before}\n{markdown(figure, lang)}{heading}{after}"


def markdown(figure: str, lang: str) -> str:
    """Return a figure's Markdown: heading, how to use it, its place, its numbers, the script."""
    with (HERE / "figures.csv").open(encoding="utf8", newline="") as file:
        words = {row["key"]: row[lang] for row in csv.DictReader(file)}
    said = {
        key.removeprefix(figure + "."): text
        for key, text in words.items()
        if "." not in key or key.startswith(figure + ".")
    }
    title, about, without = said.pop("title"), said.pop("about"), said.pop("without")
    numbers = {"words": said, "data": json.loads(STORED.read_text("utf8"))[figure]}
    packed = json.dumps(numbers, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f"### {title}\n\n{about}\n\n"
        f'<div class="live" data-figure="{figure}" role="group" aria-label="{html.escape(title)}">'
        f"<noscript>{without}</noscript></div>\n\n"
        f'<script type="application/json" id="{figure}">{packed}</script>\n'
        '<script src="../_static/figures.js" defer></script>\n'
    )


def run(lesson: str, *slots: str) -> dict[str, Any]:
    """Run cells of a lesson, and return the names that they define."""
    book = json.loads((LESSONS / f"{lesson}.ipynb").read_text("utf8"))
    code = {each["id"]: "".join(each["source"]) for each in book["cells"]}
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for slot in slots:
            first, _, rest = code[slot].partition("\n")
            if first.startswith("%%writefile "):
                Path(first.split()[1]).write_text(rest, "utf8")
            else:
                exec(code[slot], names)
    return names


def growth() -> dict[str, Any]:
    """Samples of lesson 01's toy graph: for each fanout, the edges and nodes of both blocks."""
    lesson = run("01_node_classification", "imports", "toy-code")
    dgl, toy = lesson["dgl"], lesson["toy"]
    samples = {}
    for fanout in (1, 2, 3, 4):
        dgl.seed(1)
        _, _, blocks = lesson["MultiLayerNeighborSampler"]([fanout] * 2).sample(toy, [0])
        samples[fanout] = [
            {
                "sources": block.srcdata[dgl.NID].tolist(),
                "destinations": block.num_dst_nodes(),
                "edges": [list(edge) for edge in zip(*map(_ints, block.edges()), strict=True)],
            }
            for block in blocks
        ]
    edges = list(zip(lesson["toy_src"], lesson["toy_dst"], strict=True))
    return {"place": lesson["place"], "edges": edges, "samples": samples}


def cut() -> dict[str, Any]:
    """Partitions of a piece of `digits`: the part of each node, its new ID, and who copies it."""
    import networkx
    import torch

    lesson = run("05_partitioning", "imports")
    dgl = lesson["dgl"]
    graph, piece = dgl.data.load("digits")[0], torch.tensor([1658])
    while len(piece) < 56:  # a node that lies between digits, and what surrounds it
        ahead = torch.cat([piece, graph.in_edges(piece)[0]])
        piece = torch.tensor(list(dict.fromkeys(ahead.tolist()))[:56])
    small = dgl.node_subgraph(graph, piece)
    u, v = map(_ints, small.edges())
    plain = networkx.Graph(zip(u, v, strict=True))
    layout = networkx.kamada_kawai_layout(plain)
    small = dgl.graph((u, v), num_nodes=len(piece))
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS:
            for parts in range(2, 9):
                dgl.seed(0)
                where, how = f"{folder}/{method}{parts}", {"part_method": method}
                node_map, _ = lesson["partition_graph"](
                    small, "small", parts, where, return_mapping=True, **how
                )
                owner, halo = [0] * len(piece), []
                for part in range(parts):
                    held = lesson["load_partition"](f"{where}/small.json", part)[0]
                    ids, inner = held.ndata["orig_id"], held.ndata["inner_node"].bool()
                    halo.append(_ints(ids[~inner].sort().values))
                    for node in _ints(ids[inner]):
                        owner[node] = part
                new = _ints(node_map.argsort())
                found.setdefault(method, {})[parts] = {"owner": owner, "halo": halo, "new": new}
    place = [[round(float(x), 3) for x in layout[node]] for node in range(len(piece))]
    return {"place": place, "edges": list(zip(u, v, strict=True)), "partitions": found}


def traffic(counts: Sequence[int] = (1, 2, 4, 8, 16, 32, 64), repeats: int = 4) -> dict[str, Any]:
    """Lesson 07's job on so many machines: bytes, and the second epoch's parts by link."""
    lesson = run("07_cluster_on_a_laptop", "imports", "model-code", "loop-code")
    dgl, links, found = lesson["dgl"], (0.1, 1, 10), {}
    dgl.seed(0)
    graph = dgl.data.load("products-like", progress=False, num_nodes=20_000, num_edges=300_000)[0]

    def quietest(cluster: Any) -> Any:
        """Of several runs, which send the same, the one whose work other programs slowed least."""
        many = lesson["lesson"].folder / "many"
        runs = [cluster.run("train.py", many) for _ in range(repeats)]
        return min(runs, key=lambda each: each.epochs[1].parts["compute"])

    alone = quietest(lesson["simulate"](graph, 1))
    for method in METHODS:
        for machines in counts:
            played = alone
            if machines > 1:
                dgl.seed(0)
                played = quietest(lesson["simulate"](graph, machines, part_method=method))
            times = {}
            for link in links:
                network = lesson["Network"](bandwidth=link * 1e9)
                parts = played.retimed(network).epochs[1].parts
                times[link] = {kind: round(1000 * seconds, 1) for kind, seconds in parts.items()}
            matrix = [
                [round(each / 1000) for each in _ints(row)] for row in played.traffic.matrix()
            ]
            found.setdefault(method, {})[machines] = {"kilobytes": matrix, "times": times}
    return found


def cost(
    machine_counts: Sequence[int] = (1, 2, 4, 8), fanouts: Sequence[int] = (5, 10, 15)
) -> dict[str, Any]:
    """What lesson 10's formula needs: counts for each cut and fanout, hit rates, constants."""
    lesson = run("10_scaling_study", "imports", "data-code", "count-code", "formula-code")
    counts: dict[str, Any] = {}
    for method in METHODS:
        for machines in machine_counts:
            for fanout in fanouts:
                rows, remote, steps = lesson["count"](machines, method, fanouts=(fanout, fanout))
                hits = hit_rates(lesson, machines, method, (fanout, fanout))
                found = {"rows": rows, "remote": remote, "steps": steps, "hits": hits}
                counts.setdefault(method, {}).setdefault(machines, {})[fanout] = found
    network = lesson["gbit"](1)
    fields = ("latency", "overhead", "per_request", "per_byte")
    constants = {field: getattr(network, field) for field in fields}
    constants |= {"row": lesson["ROW"], "gradients": lesson["GRADIENTS"]}
    constants["layers"] = len(lesson["FANOUTS"])
    return {"counts": counts, "constants": constants, "shares": SHARES}


def hit_rates(
    lesson: dict[str, Any], machines: int, method: str, fanouts: tuple[int, int]
) -> list[float]:
    """Hit rates of trainer 0 if its cache holds the rows with most edges, as the lesson's does."""
    import torch

    _, book, old = lesson["cut"](machines, method)
    foreign = old[book.nid2partid(torch.arange(len(old))) != 0]
    if not len(foreign):
        return [0.0] * len(SHARES)
    asks = torch.zeros(len(old))
    for rank, nodes, is_remote in lesson["reads"](machines, method, fanouts):
        if rank == 0:
            asks[nodes[is_remote]] += 1
    worth = lesson["graph"].out_degrees()[foreign]
    order = foreign[worth.argsort(descending=True, stable=True)]
    kept = [asks[order[: int(share * len(old))]].sum() for share in SHARES]
    return [round(float(each / asks.sum()), 4) for each in kept]


def _ints(tensor: Any) -> list[int]:
    return [int(each) for each in tensor.tolist()]


def main(names: list[str]) -> None:
    """Compute these figures; all of them if there are no names."""
    os.environ.setdefault("MPLBACKEND", "agg")
    stored = json.loads(STORED.read_text("utf8")) if STORED.exists() else {}
    for make in (growth, cut, traffic, cost):
        if not names or make.__name__ in names:
            stored[make.__name__] = make()
    rows = (f'"{name}": {json.dumps(each, separators=(",", ":"))}' for name, each in stored.items())
    STORED.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
