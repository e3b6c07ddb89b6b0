"""What data sets there are, where they come from and who is to be thanked.

The files of ``cora`` and ``facebook`` are held to the SHA-256 given here. For the others we know of
no published checksum, so the first download is trusted and its SHA-256 noted (see ``download.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput, NotFound

__all__ = ["DATASETS", "DatasetInfo"]

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
    both_ways : bool
        Whether the files hold each edge in both directions already.
    """

    about: str
    read: Callable[..., RawDataset]
    files: dict[str, str | None]
    citation: str
    options: tuple[str, ...] = ()
    both_ways: bool = False


def _digits(folder: Path | None, progress: bool) -> RawDataset:
    from gnnlab.data.digits import digits_folder
    from gnnlab.data.ogb import read_ogb

    return read_ogb(folder or digits_folder(), "digits", progress=progress)


def _citations(name: str, folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.npz import read_citations

    return read_citations(_local(name, folder, progress), name, **options)


def _facebook(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.facebook import read_facebook

    return read_facebook(_local("facebook", folder, progress), progress=progress, **options)


def _reddit(folder: Path | None, progress: bool, self_loop: bool = False) -> RawDataset:
    """Fetch one of two archives, and unpack it; a given folder may hold its files or take them."""
    from gnnlab.data.download import data_home, fetch, locked, unpack
    from gnnlab.data.reddit import read_reddit

    folder = data_home() / "reddit" if folder is None else folder
    if not (folder / "reddit_data.npz").is_file():
        plain, loops = DATASETS["reddit"].files
        url = loops if self_loop else plain
        unpacked = folder / Path(url).stem
        if not unpacked.is_dir():
            with locked(folder):
                archive = fetch(url, folder, room=2.5, progress=progress)
                unpack(archive, unpacked, one_folder=False)
        folder = unpacked
    return read_reddit(folder, self_loop)


def _products_like(folder: Path | None, progress: bool, **options: Any) -> RawDataset:
    from gnnlab.data.generate import generate

    if folder is not None:
        raise InvalidInput("products-like is generated, not read; leave out folder")
    return generate(progress=progress, **options)


def _local(name: str, folder: Path | None, progress: bool) -> Path:
    """The folder of the files, the data home's by default, after fetching those that it lacks.

    Files in a folder that the caller names are the caller's: they need not have our checksum.
    """
    from gnnlab.data.download import data_home, fetch

    place = data_home() / name if folder is None else folder
    for url, sha256 in DATASETS[name].files.items():
        if folder is None or not (folder / url.rsplit("/", 1)[1]).is_file():
            fetch(url, place, sha256=sha256, progress=progress)
    return place


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
