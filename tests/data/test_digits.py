"""The digits files are what the script makes, and are found where they are."""

from __future__ import annotations

import runpy
import shutil

import numpy as np
import pytest

from gnnlab.data import digits, digits_folder
from gnnlab.data.digits import read_digits
from gnnlab.errors import InvalidInput
from tests.data.make_digits import make_digits
from tests.data.samples import assert_same
from tests.helpers import run_script


@pytest.fixture(scope="module")
def raw():
    return read_digits()


def test_files_are_what_the_script_makes(raw):
    assert_same(make_digits(), raw)


def test_facts(raw):
    assert (raw.num_nodes, raw.num_edges, raw.num_classes) == (1797, 9929, 10)
    assert [len(ids) for ids in (raw.train_idx, raw.val_idx, raw.test_idx)] == [179, 179, 1439]
    assert np.bincount(raw.label[raw.train_idx]).tolist() == [
        18,
        18,
        18,
        18,
        18,
        18,
        18,
        18,
        17,
        18,
    ]
    assert set(np.unique(raw.feat * 16)) == set(range(17))
    assert len(np.unique(np.concatenate([raw.train_idx, raw.val_idx, raw.test_idx]))) == 1797


def test_edges_join_each_node_with_its_nearest(raw):
    """Every pair once, u < v; each node has at least 8 neighbors, none nearer is left out."""
    pairs = set(zip(raw.src.tolist(), raw.dst.tolist(), strict=True))
    assert len(pairs) == raw.num_edges
    assert all(u < v for u, v in pairs)
    pixels = (raw.feat * 16).astype(int)
    for node in range(0, 1797, 100):
        distance = ((pixels - pixels[node]) ** 2).sum(1)
        distance[node] = 10**9
        nearest = sorted(range(1797), key=lambda other: (distance[other], other))[:8]
        assert {(min(node, other), max(node, other)) for other in nearest} <= pairs


def test_says_where_it_looked(tmp_path):
    copy = tmp_path / "gnnlab/data/digits.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(digits.__file__, copy)
    digits_folder = runpy.run_path(str(copy))["digits_folder"]
    with pytest.raises(InvalidInput, match="install gnnlab again"):
        digits_folder()
    for found in ("data/digits", "gnnlab/data/_digits"):
        (tmp_path / found / "raw").mkdir(parents=True)
        assert digits_folder() == tmp_path / found


def test_script_writes_the_same_files(raw, tmp_path):
    script = "import runpy; runpy.run_module('tests.data.make_digits', run_name='__main__')"
    run_script(script, args=[str(tmp_path)])
    for path in digits_folder().rglob("*.gz"):
        assert (tmp_path / path.relative_to(digits_folder())).is_file()
