"""The digits files are what the script makes, and are found where they are."""

import runpy
import shutil

import numpy as np
import pytest

from gnnlab.data import digits
from gnnlab.data.digits import read_digits
from gnnlab.errors import InvalidInput
from tests.data.make_digits import make_digits
from tests.data.samples import assert_same


@pytest.fixture(scope="module")
def raw():
    return read_digits()


def test_files_are_what_the_script_makes(raw):
    assert_same(make_digits(), raw)


def test_facts(raw):
    assert (raw.num_nodes, raw.num_edges, raw.num_classes) == (1797, 9929, 10)
    parts = raw.train_idx, raw.val_idx, raw.test_idx
    assert [len(ids) for ids in parts] == [179, 179, 1439]
    assert len(np.unique(np.concatenate(parts))) == 1797
    assert set(np.bincount(raw.label[raw.train_idx])) == {17, 18}
    assert set(np.unique(raw.feat * 16)) == set(range(17))


def test_says_where_it_looked(tmp_path):
    copy = tmp_path / "gnnlab/data/digits.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(digits.__file__, copy)
    digits_folder = runpy.run_path(str(copy))["digits_folder"]
    with pytest.raises(InvalidInput, match="gnnlab"):
        digits_folder()
    for found in ("data/digits", "gnnlab/data/_digits"):
        (tmp_path / found / "raw").mkdir(parents=True)
        assert digits_folder() == tmp_path / found
