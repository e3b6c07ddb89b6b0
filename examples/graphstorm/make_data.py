"""Make a small graph of papers and authors as CSV and Parquet files: python make_data.py FOLDER

Papers and authors are in 40 hidden groups. A paper's features are the center of its group and
noise; its label is the group modulo 4, so a guess is right in 25 %. Nine of ten citations, and
nine of ten papers of an author, are within the group. Authors have no features.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

PAPERS, AUTHORS, GROUPS, CLASSES = 2000, 800, 40, 4


def pairs(
    rng: np.random.Generator, source: np.ndarray, target: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draw different pairs of nodes, given their groups; nine of ten are within a group."""
    members = [np.flatnonzero(target == group) for group in range(GROUPS)]
    src = rng.integers(0, len(source), count)
    near = np.array([rng.choice(members[group]) for group in source[src]])
    dst = np.where(rng.random(count) < 0.9, near, rng.integers(0, len(target), count))
    edges = rng.permutation(np.unique(np.stack([src, dst], 1), axis=0))
    return edges[:, 0], edges[:, 1]


def main(folder: Path) -> None:
    """Write the tables and graph.json, which tells GraphStorm what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    papers, authors = (rng.integers(0, GROUPS, count) for count in (PAPERS, AUTHORS))
    feat = rng.normal(size=(GROUPS, 16))[papers] + rng.normal(size=(PAPERS, 16))
    cites, writes = pairs(rng, papers, papers, 8000), pairs(rng, authors, papers, 6000)
    names = np.char.add("p", np.arange(PAPERS).astype(str))
    writers = np.char.add("a", np.arange(AUTHORS).astype(str))
    label = papers % CLASSES
    pd.DataFrame({"id": names, "label": label, "feat": list(feat.astype("float32"))}).to_parquet(
        folder / "papers.parquet"
    )
    pd.DataFrame({"from": names[cites[0]], "to": names[cites[1]]}).to_csv(
        folder / "cites.csv", index=False
    )
    topic = label[writes[1]]
    pd.DataFrame(
        {"author": writers[writes[0]], "paper": names[writes[1]], "topic": topic}
    ).to_parquet(folder / "writes.parquet")

    def split(**label: object) -> list[dict[str, object]]:
        return [{**label, "split_pct": [0.8, 0.1, 0.1]}]

    graph = {
        "version": "gconstruct-v0.1",
        "nodes": [
            {
                "node_type": "paper",
                "format": {"name": "parquet"},
                "files": [str(folder / "papers.parquet")],
                "node_id_col": "id",
                "features": [{"feature_col": "feat", "feature_name": "feat"}],
                "labels": split(label_col="label", task_type="classification"),
            }
        ],
        "edges": [
            {
                "relation": ["paper", "cites", "paper"],
                "format": {"name": "csv"},
                "files": [str(folder / "cites.csv")],
                "source_id_col": "from",
                "dest_id_col": "to",
                "labels": split(task_type="link_prediction"),
            },
            {
                "relation": ["author", "writes", "paper"],
                "format": {"name": "parquet"},
                "files": [str(folder / "writes.parquet")],
                "source_id_col": "author",
                "dest_id_col": "paper",
                "labels": split(label_col="topic", task_type="classification"),
            },
        ],
    }
    (folder / "graph.json").write_text(json.dumps(graph, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
