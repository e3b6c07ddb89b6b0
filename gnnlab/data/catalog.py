"""The table of data sets: where the files are, how they are read, whom to cite.

This table is the one way to add a data set. Write a reader that turns a folder of files into a
:class:`~gnnlab.data.raw.RawDataset` (``npz.py`` is a short one), and add an entry to ``DATASETS``
whose ``read`` gets the folder from ``local_files`` or ``local_archive`` and calls the reader.

The files of ``cora`` and ``facebook`` are compared with the SHA-256 given here. No checksum of the
other files has been published, so that of the first download is noted (see ``download.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gnnlab.data.arrays import load_arrays, save_arrays
from gnnlab.data.digits import digits_folder
from gnnlab.data.download import data_folder, local_archive, local_files, locked
from gnnlab.data.facebook import read_facebook
from gnnlab.data.npz import read_citations
from gnnlab.data.ogb import read_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.data.reddit import read_reddit
from gnnlab.errors import InvalidInput, NotFound

OGB = "https://snap.stanford.edu/ogb/data/nodeproppred"
CITATIONS = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz"
REDDIT = "https://data.dgl.ai/dataset"
MUSAE = "https://raw.githubusercontent.com/benedekrozemberczki/MUSAE/master/input"

_HU = (
    "W. Hu, M. Fey, M. Zitnik, Y. Dong, H. Ren, B. Liu, M. Catasta, J. Leskovec: Open Graph "
    "Benchmark: Datasets for Machine Learning on Graphs. NeurIPS 2020."
)
_SHCHUR = (
    "O. Shchur, M. Mumme, A. Bojchevski, S. Günnemann: Pitfalls of Graph Neural Network "
    "Evaluation. Relational Representation Learning Workshop, NeurIPS 2018."
)
_SPLIT = ("train_per_class", "num_val", "num_test", "seed")


@dataclass(frozen=True)
class DatasetInfo:
    """Description of a data set.

    Parameters
    ----------
    about : str
        What nodes, edges and classes are.
    read : callable
        ``read(folder, progress, **options)`` makes a RawDataset; ``folder`` is the user's, or None.
    files : dict
        URL → SHA-256, or None if none has been published.
    citation : str
        What users of the data set should cite.
    options : tuple of str
        Keywords that ``load`` passes to ``read``.
    both_ways : bool
        Whether the files hold each edge in both directions already.
    """

    about: str
    read: Callable[..., RawDataset]
    files: dict[str, str | None]
    citation: str
    options: tuple[str, ...] = ()
    both_ways: bool = False


def _citations(name: str, folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    return read_citations(local_files(name, find(name).files, folder, progress), name, **options)


def _facebook(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    local = local_files("facebook", find("facebook").files, folder, progress)
    return read_facebook(local, progress=progress, **options)


def _reddit(folder: Path | None, progress: bool, self_loop: bool = False) -> RawDataset:
    """Read a folder that holds the files, or one of the two archives."""
    local = data_folder("reddit", folder)
    if not (local / "reddit_data.npz").is_file():
        url, sha256 = list(find("reddit").files.items())[self_loop]
        unpacked = local / Path(url).stem
        local = local_archive(url, unpacked, progress, sha256=sha256, one_folder=False)
    return read_reddit(local, self_loop)


def _ogbn(name: str, folder: Path | None, progress: bool) -> RawDataset:
    """Read a folder in OGB's layout, or the archive, which is converted to ``.npz`` once."""
    local = data_folder(name, folder)
    if (local / "raw").is_dir():
        return read_ogb(local, name, progress=progress)
    arrays = local / "arrays.npz"
    with locked(local):
        if not arrays.exists():
            ((url, sha256),) = find(name).files.items()
            unpacked = local / Path(url).stem
            # room: the archive, its unpacked files and the arrays exist at the same time
            local_archive(url, unpacked, progress, sha256=sha256, room=3.5)
            save_arrays(read_ogb(unpacked, name, progress=progress), arrays)
        return load_arrays(arrays)


def _products_like(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.generate import generate  # imports numba

    if folder is not None:
        raise InvalidInput("products-like is generated, not read; leave out folder")
    return generate(progress=progress, **options)


def find(name: str) -> DatasetInfo:
    """Return the entry of ``DATASETS``; the error for an unknown name lists the known ones."""
    if name not in DATASETS:
        raise NotFound(f"no data set is called {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


DATASETS: dict[str, DatasetInfo] = {
    "digits": DatasetInfo(
        "1,797 handwritten digits; an edge joins near images; 10 classes; comes with gnnlab",
        lambda folder, progress: read_ogb(folder or digits_folder(), "digits", progress=progress),
        {},
        "E. Alpaydin, C. Kaynak: Optical Recognition of Handwritten Digits. UCI Machine Learning "
        "Repository, 1998. doi:10.24432/C50P49",
    ),
    "cora": DatasetInfo(
        "2,708 papers; an edge is a citation; 7 fields of machine learning; 0.5 MB",
        partial(_citations, "cora"),
        {
            f"{CITATIONS}/cora.npz": (
                "068e22d90c3849b4057dfb05851741428992af058efcd4e7ebb4186f3d581de2"
            )
        },
        _SHCHUR,
        _SPLIT,
    ),
    "citeseer": DatasetInfo(
        "papers; an edge is a citation; fields of computer science",
        partial(_citations, "citeseer"),
        {f"{CITATIONS}/citeseer.npz": None},
        _SHCHUR,
        _SPLIT,
    ),
    "pubmed": DatasetInfo(
        "papers on diabetes; an edge is a citation; kinds of diabetes",
        partial(_citations, "pubmed"),
        {f"{CITATIONS}/pubmed.npz": None},
        _SHCHUR,
        _SPLIT,
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
    "reddit": DatasetInfo(
        "posts; an edge joins posts that one user commented on; communities; a large download",
        _reddit,
        {f"{REDDIT}/reddit.zip": None, f"{REDDIT}/reddit_self_loop.zip": None},
        "W. L. Hamilton, R. Ying, J. Leskovec: Inductive Representation Learning on Large Graphs. "
        "NeurIPS 2017.",
        ("self_loop",),
        both_ways=True,
    ),
    "ogbn-products": DatasetInfo(
        "2,449,029 products; an edge joins products bought together; 47 categories; 1.4 GB",
        partial(_ogbn, "ogbn-products"),
        {f"{OGB}/products.zip": None},
        _HU,
    ),
    "ogbn-arxiv": DatasetInfo(
        "169,343 papers; an edge is a citation; 40 fields of computer science; 80 MB",
        partial(_ogbn, "ogbn-arxiv"),
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
