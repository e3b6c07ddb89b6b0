"""The layout of Cora, Citeseer and Pubmed, on a toy of four papers; the real Cora where it is."""

from __future__ import annotations

import numpy as np
import pytest

from gnnlab.data.npz import read_citations
from gnnlab.errors import InvalidInput
from tests.helpers import shared_data

SPLIT = {"train_per_class": 1, "num_val": 1, "num_test": 1}


def toy() -> dict[str, np.ndarray]:
    """Paper 0 cites 2 and 3, paper 2 cites 0; words 0 … 2.

    ::

        adj          attr
        . . 1 1      1 . .
        . . . .      . . 1
        1 . . .      . . .
        . . . .      1 1 .
    """
    return {
        "adj_data": np.ones(3, np.float32),
        "adj_indices": np.array([2, 3, 0], np.int32),
        "adj_indptr": np.array([0, 2, 2, 3, 3], np.int32),
        "adj_shape": np.array([4, 4]),
        "attr_data": np.ones(4, np.float32),
        "attr_indices": np.array([0, 2, 0, 1], np.int32),
        "attr_indptr": np.array([0, 1, 2, 2, 4], np.int32),
        "attr_shape": np.array([4, 3]),
        "labels": np.array([1, 0, 1, 0], np.int8),
    }


def write(folder, name="cora", **changes):
    arrays = {part: value for part, value in (toy() | changes).items() if value is not None}
    np.savez_compressed(folder / f"{name}.npz", **arrays)


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_reads_the_toy(tmp_path, name):
    write(tmp_path, name)
    raw = read_citations(tmp_path, name, **SPLIT)
    assert raw.name == name
    assert list(zip(raw.src.tolist(), raw.dst.tolist(), strict=True)) == [(0, 2), (0, 3), (2, 0)]
    assert raw.feat.tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [1, 1, 0]]
    assert raw.label.tolist() == [1, 0, 1, 0]
    assert sorted(raw.label[raw.train_idx]) == [0, 1]
    assert raw.num_classes == 2


def test_the_real_file():
    raw = read_citations(shared_data("cora"))
    assert (raw.num_nodes, raw.num_edges) == (2708, 5429)
    assert (raw.feat.shape[1], raw.num_classes) == (1433, 7)
    assert raw.feat.sum() == 49216
    assert [len(ids) for ids in (raw.train_idx, raw.val_idx, raw.test_idx)] == [140, 500, 1000]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"labels": None}, "labels"),
        ({"adj_data": None, "attr_shape": None}, "adj_data, attr_shape"),
        ({"labels": np.array([1, 0, 1])}, r"adj_shape .*\[4, 4\].*\[3, 3\]"),
        ({"labels": np.array([1, 0, -1, 0])}, "labels"),
        ({"labels": np.array([1, 0, np.nan, 0])}, "labels"),
        ({"labels": np.array(["a", "b", "a", "b"])}, "labels"),
        ({"adj_shape": np.array([4, 5])}, r"adj_shape .*\[4, 5\]"),
        ({"adj_shape": np.array(4)}, "adj_shape .*4"),
        ({"adj_indices": np.array([2, 4, 0])}, "adj_indices .*0 … 3.* 0 … 4"),
        ({"attr_indices": np.array([0, -1, 0, 1])}, "attr_indices .*0 … 2.* -1"),
        ({"adj_indices": np.array([2.5, 3, 0])}, "adj_indices"),
        ({"adj_indptr": np.array([0, 2, 1, 3, 3])}, "adj_indptr .* 3 entries into 4"),
        ({"adj_indptr": np.array([0, 2, 2, 3])}, "adj_indptr"),
        ({"adj_indptr": np.array([0, 2, 2, 3, 4])}, "adj_indptr"),
        ({"attr_data": np.ones(3)}, "attr_indptr"),
        ({"attr_data": np.array([1, np.nan, 1, 1])}, "attr_data .*NaN"),
        ({"labels": np.array([1, 0, None, 0])}, "intact"),
    ],
)
def test_bad_parts(tmp_path, changes, named):
    write(tmp_path, **changes)
    with pytest.raises(InvalidInput, match=f"cora.npz.*{named}"):
        read_citations(tmp_path, **SPLIT)


def test_missing_or_damaged_file(tmp_path):
    with pytest.raises(InvalidInput, match=r"cora.npz: no such file"):
        read_citations(tmp_path)
    write(tmp_path)
    whole = (tmp_path / "cora.npz").read_bytes()
    turned = whole[:60] + bytes(byte ^ 255 for byte in whole[60:90]) + whole[90:]
    for spoiled in (whole[:-30], whole[:200], b"", b"PK\x03\x04", b"text", turned):
        (tmp_path / "cora.npz").write_bytes(spoiled)
        with pytest.raises(InvalidInput, match=r"cora.npz.* intact"):
            read_citations(tmp_path, **SPLIT)
