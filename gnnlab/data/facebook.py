"""Facebook pages: 22,470 verified pages, 171,002 mutual likes, 4 types of page.

Three files: ``facebook_edges.csv`` (id_1,id_2; each mutual like once), ``facebook_target.csv`` (id,
facebook_id, page_name, page_type) and ``facebook.json`` (page → indices of the words in its
description). The 4,714 words become 128 features by a truncated singular value decomposition.

References
----------
Rozemberczki, Allen and Sarkar, "Multi-Scale Attributed Node Embedding", J. Complex Networks 2021.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gnnlab.data.raw import RawDataset
from gnnlab.data.split import random_split
from gnnlab.data.table import read_integers
from gnnlab.errors import InvalidInput, check_file, reading

if TYPE_CHECKING:
    import scipy.sparse

MOST_WORDS = 1_000_000
EDGES, WORDS, TARGETS = ("facebook_edges.csv", "facebook.json", "facebook_target.csv")


def read_facebook(
    folder: str | Path, num_features: int | None = 128, seed: int = 0, progress: bool = True
) -> RawDataset:
    """Read the three files of a folder.

    Parameters
    ----------
    num_features : int, optional
        D, columns of the features after the decomposition; None keeps one 0/1 column per word.
    seed : int
        Seed of the split into 80 % training, 10 % validation and 10 % test nodes.

    Returns
    -------
    RawDataset
        Reduced features are divided by the standard deviation of all their entries. Classes are the
        page types in alphabetical order: company, government, politician, tvshow.
    """
    folder = Path(folder).expanduser()
    label, num_classes = _read_targets(folder / TARGETS)
    num_nodes = len(label)
    src, dst = read_integers(folder / EDGES, 2, below=num_nodes, header=True, progress=progress)
    words = _read_words(folder / WORDS, num_nodes)
    feat = words.toarray() if num_features is None else _reduce(words, num_features)
    split = random_split(num_nodes, (0.8, 0.1, 0.1), seed)
    return RawDataset("facebook", src, dst, feat, label, *split, num_classes)


def _read_targets(path: Path) -> tuple[np.ndarray, int]:
    """Return the class of each page, and how many classes there are."""
    types: dict[int, str] = {}
    with _text(path, newline="") as stream:
        rows = csv.DictReader(stream, strict=True)
        try:
            for row in rows:
                page, page_type = row.get("id"), row.get("page_type")
                if None in row or page is None or not page_type:
                    raise ValueError("expected id, page_type and as many cells as in line 1")
                if not page.isdecimal() or int(page) in types:
                    raise ValueError(f"id {page!r} is not an integer, or is here twice")
                types[int(page)] = page_type
        except (csv.Error, ValueError) as error:
            raise InvalidInput(f"{path}, line {rows.reader.line_num}: {error}") from error
    if not types or max(types) != len(types) - 1:
        raise InvalidInput(
            f"{path}: {len(types)} pages must have the IDs 0 … {len(types) - 1}; "
            f"the largest is {max(types, default='absent')}"
        )
    names = sorted(set(types.values()))
    return np.array([names.index(types[page]) for page in range(len(types))], np.int64), len(names)


def _read_words(path: Path, num_nodes: int) -> scipy.sparse.csr_matrix:
    """Return the page-by-word matrix of 0 and 1, float32."""
    from scipy.sparse import csr_matrix

    with _text(path) as stream:
        try:
            found = json.load(stream)
        except ValueError as error:
            raise InvalidInput(f"{path}: not valid JSON: {error}") from error
    if not isinstance(found, dict) or set(found) != set(map(str, range(num_nodes))):
        raise InvalidInput(f"{path}: expected one list of words for each page 0 … {num_nodes - 1}")
    for page, words in found.items():
        if not isinstance(words, list) or not all(
            type(w) is int and 0 <= w < MOST_WORDS for w in words
        ):
            raise InvalidInput(f"{path}, page {page}: expected a list of word indices 0, 1, 2 …")
    rows = [sorted(set(found[str(page)])) for page in range(num_nodes)]
    indices = np.array([word for row in rows for word in row], np.int32)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    shape = (num_nodes, int(indices.max(initial=0)) + 1)
    return csr_matrix((np.ones(len(indices), np.float32), indices, indptr), shape)


def _reduce(words: scipy.sparse.csr_matrix, num_features: int) -> np.ndarray:
    """Project rows on the ``num_features`` directions of largest variance about the origin."""
    from scipy.sparse.linalg import svds

    if not 1 <= num_features < min(words.shape):
        raise InvalidInput(
            f"num_features must be 1 … {min(words.shape) - 1} for {words.shape[0]} pages and "
            f"{words.shape[1]} words, or None; found {num_features}"
        )
    # A fixed start vector makes the result, including signs, the same in every run.
    left, singular, _ = svds(words, num_features, v0=np.ones(min(words.shape), np.float32))
    feat = (left * singular)[:, ::-1]
    return np.ascontiguousarray(feat / max(feat.std(), 1e-12), dtype=np.float32)


def _text(path: Path, newline: str | None = None):  # type: ignore[no-untyped-def]
    check_file(path)
    with reading(path, InvalidInput):
        return open(path, encoding="utf-8-sig", newline=newline)
