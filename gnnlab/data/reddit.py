"""Reddit: an edge joins two posts that the same user commented on; classes are communities.

The archive holds two files. ``reddit_data.npz`` has ``feature``, ``label`` and ``node_types`` (1
training, 2 validation, 3 test); ``reddit_graph.npz`` has the arrays of a scipy COO matrix, with
each edge in both directions. With self-loops, its name may be ``reddit_self_loop_graph.npz``.

References
----------
Hamilton, Ying and Leskovec, "Inductive Representation Learning on Large Graphs", NeurIPS 2017.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gnnlab.data.npz import as_classes, open_npz
from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput


def read_reddit(folder: str | Path, self_loop: bool = False) -> RawDataset:
    """Read the two files of a folder, which may hold the variant with self-loops."""
    folder = Path(folder).expanduser()
    path = folder / "reddit_data.npz"
    arrays = open_npz(path, ("feature", "label", "node_types"))
    label = as_classes(path, "label", arrays["label"])
    feat, kind = arrays["feature"], arrays["node_types"]
    if feat.dtype.kind != "f" or feat.ndim != 2 or len(feat) != len(label):
        raise InvalidInput(
            f"{path}: feature must be floats of shape [{len(label)}, features]; "
            f"found {feat.dtype} of shape {list(feat.shape)}"
        )
    if not np.isfinite(feat).all():
        raise InvalidInput(f"{path}: feature holds NaN or infinity")
    if kind.shape != label.shape or not np.isin(kind, (1, 2, 3)).all():
        raise InvalidInput(f"{path}: node_types must be 1, 2 or 3 for each node")
    src, dst = _read_edges(folder, len(label), self_loop)
    train, val, test = (np.flatnonzero(kind == number) for number in (1, 2, 3))
    feat = feat.astype(np.float32, copy=False)
    return RawDataset("reddit", src, dst, feat, label, train, val, test, int(label.max()) + 1)


def _read_edges(folder: Path, num_nodes: int, self_loop: bool) -> list[np.ndarray]:
    path = folder / "reddit_graph.npz"
    if self_loop and (folder / "reddit_self_loop_graph.npz").is_file():
        path = folder / "reddit_self_loop_graph.npz"
    arrays = open_npz(path, ("row", "col", "shape"))
    if arrays["shape"].tolist() != [num_nodes, num_nodes]:
        raise InvalidInput(
            f"{path}: shape is {arrays['shape'].tolist()}; expected {[num_nodes, num_nodes]}, "
            "the number of labels in reddit_data.npz"
        )
    src, dst = arrays["row"], arrays["col"]
    for ids in (src, dst):
        wrong = ids.dtype.kind not in "iu" or ids.ndim != 1
        if wrong or (ids.size and not 0 <= ids.min() <= ids.max() < num_nodes):
            raise InvalidInput(f"{path}: row and col must be node IDs 0 … {num_nodes - 1}")
    if self_loop and len(src) == len(dst) and not (src == dst).any():
        raise InvalidInput(
            f"{path}: holds no self-loops; unpack reddit_self_loop.zip there, or self_loop=False"
        )
    return [ids.astype(np.int32) if num_nodes <= 2**31 else ids for ids in (src, dst)]
