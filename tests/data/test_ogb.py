"""OGB archives: what is written is read; whatever is wrong is named with file and line."""

from __future__ import annotations

import gzip
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.data import read_ogb
from gnnlab.data.raw import RawDataset
from gnnlab.errors import InvalidInput
from tests.data.samples import assert_same, square, write_ogb
from tests.helpers import examples


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_ogb(square(), tmp_path / "square")
    return tmp_path / "square"


def rewrite(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@st.composite
def datasets(draw) -> RawDataset:
    n = draw(st.integers(1, 12))
    m = draw(st.integers(0, 30))
    ids = st.integers(0, n - 1)
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    edges = np.array(draw(st.lists(st.tuples(ids, ids), min_size=m, max_size=m)), int).reshape(m, 2)
    width = draw(st.integers(1, 3))
    feat = draw(st.lists(number, min_size=n * width, max_size=n * width))
    label = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    order = np.array(draw(st.permutations(range(n))))
    a, b = sorted(draw(st.tuples(st.integers(0, n), st.integers(0, n))))
    feat = np.array(feat, np.float32).reshape(n, width)
    parts = np.split(order, [a, b])
    return RawDataset("any", edges[:, 0], edges[:, 1], feat, label, *parts, int(label.max()) + 1)


@examples(200)
@given(raw=datasets())
def test_any_data_set_comes_back(raw):
    with tempfile.TemporaryDirectory() as folder:
        write_ogb(raw, folder)
        found = read_ogb(folder, "any")
        assert_same(found, raw)
        assert found.src.dtype == np.int32 and found.feat.dtype == np.float32
        assert found.label.dtype == found.train_idx.dtype == np.int64


@pytest.mark.parametrize(
    ("file", "text", "named"),
    [
        ("raw/num-node-list", "6\n", "feat.csv.gz.* 5 .* num-node-list.csv.gz .* 6"),
        ("raw/num-node-list", "0\n", "num-node-list.csv.gz, line 1"),
        ("raw/num-node-list", "5\n5\n", "num-node-list.csv.gz.* 2"),
        ("raw/num-edge-list", "6\n", "edge.csv.gz.* 5 .* num-edge-list.csv.gz .* 6"),
        ("raw/num-edge-list", "4\n", "edge.csv.gz.* 4 .* num-edge-list"),
        ("raw/edge", "0,1\n0,2\n0,x\n1,3\n2,3\n", "edge.csv.gz, line 3: column 2 .*'x'"),
        ("raw/edge", "0,1\n0,2\n0,5\n1,3\n2,3\n", "column 2 .*'5'.* 0 … 4"),
        ("raw/edge", "0,1\n0,2\n0,3,9\n1,3\n2,3\n", "line 3.* 3 columns.* 2"),
        ("raw/node-feat", "1,2\n1,2\n1,nan\n1,2\n1,2\n", "feat.csv.gz, line 3: column 2 .*'nan'"),
        ("raw/node-feat", "1,2\n1,2\n1\n1,2\n1,2\n", "line 3.* 1 columns.* 2"),
        ("raw/node-label", "0\n1\n-1\n0\n1\n", "node-label.csv.gz, line 3: -1"),
        ("raw/node-label", "0\n1\n0.5\n0\n1\n", "node-label.csv.gz, line 3: 0.5"),
        ("raw/node-label", "0,1\n" * 5, "node-label.csv.gz, line 1.* 2 columns.* 1"),
        ("raw/node-label", "0\n", "node-label.csv.gz.* 1 .* num-node-list.csv.gz .* 5"),
        ("split/random/train", "0\n5\n", "train.csv.gz, line 2: column 1 .*'5'"),
        ("split/random/train", "0\n3\n0\n", "train.csv.gz, line 3: node 0 .* train.csv"),
        ("split/random/test", "2\n4\n1\n", "test.csv.gz, line 2: node 4 .* valid.csv"),
    ],
)
def test_bad_content_is_named_with_its_line(folder, file, text, named):
    rewrite(folder / f"{file}.csv.gz", text)
    with pytest.raises(InvalidInput, match=f"{folder}.*{named}"):
        read_ogb(folder)


@pytest.mark.parametrize("spoil", ["missing", "cut", "not gzip"])
def test_missing_or_damaged_file(folder, spoil):
    for path in folder.rglob("*.gz"):
        data = path.read_bytes()
        path.unlink()
        if spoil != "missing":
            path.write_bytes(data[:-6] if spoil == "cut" else gzip.decompress(data))
        with pytest.raises(InvalidInput, match=re.escape(str(path))):
            read_ogb(folder)
        path.write_bytes(data)


def test_labels_may_be_written_as_decimals(folder):
    rewrite(folder / "raw/node-label.csv.gz", "0.0\n1.0\n0.0\n1.0\n1.0\n")
    assert read_ogb(folder).label.tolist() == [0, 1, 0, 1, 1]


def test_one_split_needs_no_name_several_do(tmp_path, folder):
    write_ogb(square(), folder, split="time")
    with pytest.raises(InvalidInput, match="random, time"):
        read_ogb(folder)
    assert_same(read_ogb(folder, split="time"), square())
    with pytest.raises(InvalidInput, match=r"train.csv.gz"):
        read_ogb(folder, split="none")
    (folder / "split").rename(tmp_path / "elsewhere")
    with pytest.raises(InvalidInput, match="none"):
        read_ogb(folder)
