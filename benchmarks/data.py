"""The graphs that are measured: generated once, kept as ``.npy`` arrays.

T, S and M have ten thousand, a hundred thousand and 2.45 million nodes; M has the size of
ogbn-products. Symmetric, without duplicates, power-law degrees, 47 communities, 100 features,
8 % of the nodes for training.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SIZES = {"T": (10_000, 200_000), "S": (100_000, 2_382_770), "M": (2_450_000, 64_196_196)}
NAMES = ("src", "dst", "feat", "label", "train")
HERE = Path(__file__).resolve().parent / "data"


def folder_of(size: str, peer: Path | None = None) -> Path:
    """Return the folder that holds a graph: the peers' very arrays if they have it, else ours.

    Raises
    ------
    ValueError
        For an unknown size.
    """
    if peer is not None:
        if all((peer / "data" / size / f"{name}.npy").exists() for name in NAMES):
            return peer / "data" / size
        raise ValueError(
            f"{peer / 'data' / size} lacks one of {', '.join(n + '.npy' for n in NAMES)}; "
            "peers read that graph: generate it with their own generator first"
        )
    if size not in SIZES:
        raise ValueError(f"no graph of size {size!r}; expected one of {', '.join(SIZES)}")
    folder = HERE / size
    if not all((folder / f"{name}.npy").exists() for name in NAMES):
        generate(size, folder)
    return folder


def generate(size: str, folder: Path) -> None:
    """Write the arrays of a graph to a folder."""
    from gnnlab.data import products_like

    dataset = products_like(*SIZES[size], seed=0)
    g = dataset[0]
    src, dst = g.edges()
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {
        "src": src.numpy().astype(np.int32),
        "dst": dst.numpy().astype(np.int32),
        "feat": g.ndata["feat"].numpy(),
        "label": g.ndata["label"].numpy(),
        "train": dataset.train_idx.numpy(),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
