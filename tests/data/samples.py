"""Small data sets that tests write."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

from gnnlab.data.raw import RawDataset


def square(name: str = "square") -> RawDataset:
    """A square with a diagonal, and node 4 alone; two classes.

    ::

        0 → 1
        ↓ ↘ ↓        4
        2 → 3
    """
    return RawDataset(
        name,
        src=np.array([0, 0, 0, 1, 2]),
        dst=np.array([1, 2, 3, 3, 3]),
        feat=np.array([[0, 1], [0.5, -1], [2e-3, 0], [1, 1], [0, 0]], np.float32),
        label=np.array([0, 1, 0, 1, 1]),
        train_idx=np.array([0, 3]),
        val_idx=np.array([4]),
        test_idx=np.array([2, 1]),
        num_classes=2,
    )


def assert_same(found: RawDataset, expected: RawDataset) -> None:
    for name in ("src", "dst", "feat", "label", "train_idx", "val_idx", "test_idx"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert (found.name, found.num_classes) == (expected.name, expected.num_classes)


def zipped(files: dict[str, bytes | str]) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as target:
        for name, content in files.items():
            target.writestr(name, content)
    return held.getvalue()


def tarred(files: dict[str, bytes | str | None]) -> bytes:
    """An archive of name → content; None makes a link to /etc."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            entry = tarfile.TarInfo(name)
            if data is None:
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc"
            entry.size = len(data or b"")
            tar.addfile(entry, io.BytesIO(data or b""))
    return held.getvalue()


def write_ogb(raw: RawDataset, folder: str | Path, split: str = "random") -> None:
    """Write a data set in OGB's layout; equal data gives equal bytes."""
    tables = {
        "raw/num-node-list": np.array([raw.num_nodes]),
        "raw/num-edge-list": np.array([raw.num_edges]),
        "raw/edge": np.stack([raw.src, raw.dst], axis=1),
        "raw/node-feat": raw.feat,
        "raw/node-label": raw.label,
    }
    ids = (raw.train_idx, raw.val_idx, raw.test_idx)
    tables |= {
        f"split/{split}/{part}": nodes
        for part, nodes in zip(("train", "valid", "test"), ids, strict=True)
    }
    for table_name, table in tables.items():
        _write(Path(folder, f"{table_name}.csv.gz"), table)


def _write(path: Path, table: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
        pd.DataFrame(table).to_csv(stream, header=False, index=False, lineterminator="\n")
