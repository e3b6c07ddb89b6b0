"""What data sets there are, where they come from and who is to be thanked.

``ogbn-products`` and ``ogbn-arxiv`` come from Stanford without a published checksum, so the first
download is trusted and its SHA-256 noted (see ``download.py``). The files of ``cora`` and
``facebook`` are held to the SHA-256 given here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput, NotFound

__all__ = ["DATASETS", "DatasetInfo"]

OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
CORA = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
MUSAE = "https://raw.githubusercontent.com/benedekrozemberczki/MUSAE/master/input"

_HU = (
    "W. Hu, M. Fey, M. Zitnik, Y. Dong, H. Ren, B. Liu, M. Catasta, J. Leskovec: Open Graph "
    "Benchmark: Datasets for Machine Learning on Graphs. NeurIPS 2020."
)


@dataclass(frozen=True)
class DatasetInfo:
    """Facts about a data set.

    Parameters
    ----------
    about : str
        What nodes, edges and classes are.
    read : callable
        ``read(folder, progress, **options)`` returns a RawDataset.
    files : dict
        URL → SHA-256, or None where nobody has published one.
    citation : str
        Whom to cite.
    options : tuple of str
        Names of what ``load`` passes on to the reader.
    """

    about: str
    read: Callable[..., RawDataset]
    files: dict[str, str | None]
    citation: str
    options: tuple[str, ...] = ()


def _digits(folder: Path | None, progress: bool) -> RawDataset:
    from gnnlab.data.digits import digits_folder
    from gnnlab.data.ogb import read_ogb

    return read_ogb(folder or digits_folder(), "digits", progress=progress)


def _cora(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.cora import FILE, read_cora

    return read_cora(_local("cora", folder, (FILE,), progress), **options)


def _facebook(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.facebook import FILES, read_facebook

    return read_facebook(_local("facebook", folder, FILES, progress), progress=progress, **options)


def _products(folder: Path | None, progress: bool) -> RawDataset:
    return _ogbn("ogbn-products", folder, progress)


def _arxiv(folder: Path | None, progress: bool) -> RawDataset:
    return _ogbn("ogbn-arxiv", folder, progress)


def _products_like(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.generate import generate

    if folder is not None:
        raise InvalidInput("products-like is generated, not read; leave out folder")
    return generate(progress=progress, **options)


def _local(name: str, folder: Path | None, files: tuple[str, ...], progress: bool) -> Path:
    """The folder that holds ``files``: as given, else the data home's, with what lacks fetched."""
    from gnnlab.data.download import data_home, fetch, locked

    if folder is not None:
        return folder
    folder = data_home() / name
    with locked(folder):
        for url, sha256 in DATASETS[name].files.items():
            fetch(url, folder, sha256=sha256, progress=progress)
    return folder


def _ogbn(name: str, folder: Path | None, progress: bool) -> RawDataset:
    """Fetch an archive, unpack it and convert it to arrays; what is done is not done again."""
    from gnnlab.data.arrays import load_arrays, save_arrays
    from gnnlab.data.download import data_home, fetch, locked, unpack
    from gnnlab.data.ogb import read_ogb

    folder = data_home() / name if folder is None else folder
    if (folder / "raw").is_dir():
        return read_ogb(folder, name, progress=progress)
    arrays = folder / "arrays"
    with locked(folder):
        if not arrays.exists():
            ((url, sha256),) = DATASETS[name].files.items()
            # The archive, its unpacked files and the arrays lie side by side for a while.
            archive = fetch(url, folder, sha256=sha256, room=3.5, progress=progress)
            unpacked = unpack(archive, folder / archive.stem)
            save_arrays(read_ogb(unpacked, name, progress=progress), arrays)
        return load_arrays(arrays)


def find(name: str) -> DatasetInfo:
    """Return the entry of ``DATASETS``, or say which names there are."""
    if name not in DATASETS:
        raise NotFound(f"no data set is called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


DATASETS: dict[str, DatasetInfo] = {
    "digits": DatasetInfo(
        "1,797 handwritten digits; an edge joins near images; 10 classes; comes with gnnlab",
        _digits,
        {},
        "E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits. UCI Machine Learning "
        "Repository, 1998. doi:10.24432/C50P49",
    ),
    "cora": DatasetInfo(
        "2,708 papers; an edge is a citation; 7 fields of machine learning; 0.5 MB",
        _cora,
        {f"{CORA}/cora.npz": "068e22d90c3849b4057dfb05851741428992af058efcd4e7ebb4186f3d581de2"},
        "O. Shchur, M. Mumme, A. Bojchevski, S. Günnemann: Pitfalls of Graph Neural Network "
        "Evaluation. Relational Representation Learning Workshop, NeurIPS 2018.",
        ("train_per_class", "num_val", "num_test", "seed"),
    ),
    "facebook": DatasetInfo(
        "22,470 Facebook pages; an edge is a mutual like; 4 kinds of owner; 5 MB",
        _facebook,
        {
            f"{MUSAE}/edges/facebook_edges.csv": (
                "7c50d8f02a75cc0829577814a1fc14535164daa38d79c3612340c9e9cdbd4022"
            ),
            f"{MUSAE}/features/facebook.json": (
                "ea870537646a93642a0008d38aa9bfeff02018070ba97b1f3f469d9622626436"
            ),
            f"{MUSAE}/target/facebook_target.csv": (
                "7bd96eafea3c2ca40f44bfa9e73642194696c21e38c7b29ed409c32ad14075cd"
            ),
        },
        "B. Rozemberczki, C. Allen, R. Sarkar: Multi-Scale Attributed Node Embedding. Journal of "
        "Complex Networks 9(2), 2021.",
        ("num_features", "seed"),
    ),
    "ogbn-products": DatasetInfo(
        "2,449,029 products; an edge joins products bought together; 47 categories; 1.4 GB",
        _products,
        {f"{OGB}/products.zip": None},
        _HU,
    ),
    "ogbn-arxiv": DatasetInfo(
        "169,343 papers; an edge is a citation; 40 fields of computer science; 80 MB",
        _arxiv,
        {f"{OGB}/arxiv.zip": None},
        _HU,
    ),
    "products-like": DatasetInfo(
        "generated at any size, shaped like ogbn-products; 47 classes; no download",
        _products_like,
        {},
        "B. Karrer, M. E. J. Newman: Stochastic blockmodels and community structure in networks. "
        "Physical Review E 83, 2011 (the model).",
        ("num_nodes", "num_edges", "seed", "num_features"),
    ),
}
