"""The three files of the Facebook pages, on a toy of four pages; the real ones where they are."""

import json
from pathlib import Path

import numpy as np
import pytest

from gnnlab.data.facebook import read_facebook
from gnnlab.errors import InvalidInput
from tests.helpers import shared_data

EDGES = "id_1,id_2\n0,1\n1,2\n3,3\n"
WORDS = {"2": [0, 3], "0": [1], "1": [], "3": [0, 1, 3]}
TARGETS = (
    "id,facebook_id,page_name,page_type\n"
    '0,10,"Bread, butter",company\n'
    "2,12,빵 面包,tvshow\n"
    '1,11,"two\nlines",company\n'
    "3,13,x,government\n"
)


def write(folder, edges=EDGES, words=WORDS, targets=TARGETS):
    text = words if isinstance(words, str) else json.dumps(words)
    (folder / "facebook_edges.csv").write_text(edges, "utf8")
    (folder / "facebook.json").write_text(text, "utf8")
    (folder / "facebook_target.csv").write_text(targets, "utf8")


def test_reads_the_toy(tmp_path):
    write(tmp_path)
    raw = read_facebook(tmp_path, num_features=None)
    assert (raw.src.tolist(), raw.dst.tolist()) == ([0, 1, 3], [1, 2, 3])
    assert raw.label.tolist() == [0, 0, 2, 1]
    assert raw.feat.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 0, 1]]
    assert raw.num_classes == 3
    assert sum(map(len, (raw.train_idx, raw.val_idx, raw.test_idx))) == 4


def test_reduced_features_keep_the_angles(tmp_path):
    """The words span three dimensions, so three features keep every inner product."""
    write(tmp_path)
    words = read_facebook(tmp_path, num_features=None).feat
    feat = read_facebook(tmp_path, num_features=3).feat
    assert feat.std() == pytest.approx(1, rel=1e-5)
    gram = feat @ feat.T
    np.testing.assert_allclose(
        gram * (words @ words.T)[3, 3] / gram[3, 3], words @ words.T, atol=1e-5
    )


@pytest.mark.parametrize("num_features", [0, 4, -1])
def test_number_of_features(tmp_path, num_features):
    write(tmp_path)
    with pytest.raises(InvalidInput, match=r"num_features .* 1 … 3"):
        read_facebook(tmp_path, num_features=num_features)


def test_the_real_files():
    raw = read_facebook(shared_data("facebook_pages"))
    assert (raw.num_nodes, raw.num_edges, raw.num_classes) == (22470, 171002, 4)
    assert raw.feat.shape == (22470, 128)
    assert raw.feat.dtype == np.float32
    assert (raw.src == raw.dst).sum() == 179
    assert [len(ids) for ids in (raw.train_idx, raw.val_idx, raw.test_idx)] == [17976, 2247, 2247]
    assert np.bincount(raw.label).tolist() == [6495, 6880, 5768, 3327]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"edges": "id_1,id_2\n0,1\n1,4\n"}, "facebook_edges.csv, line 3: column 2 .*'4'"),
        ({"edges": "id_1,id_2\n0,1\n1,x\n"}, "facebook_edges.csv, line 3: column 2 .*'x'"),
        ({"edges": "id_1,id_2\n0,1,1\n"}, "facebook_edges.csv, line 2.* 3 columns"),
        ({"words": "{"}, "facebook.json"),
        ({"words": [1]}, "facebook.json.* 0 … 3"),
        ({"words": {"0": []}}, "facebook.json.* 0 … 3"),
        *(
            ({"words": WORDS | {"1": wrong}}, "facebook.json, page 1")
            for wrong in ([-1], [1.5], [True], [10**9], "no")
        ),
        ({"targets": TARGETS + "3,14,y,company\n"}, "line 7: id '3'"),
        ({"targets": TARGETS + "x,14,y,company\n"}, "line 7: id 'x'"),
        ({"targets": TARGETS + "5,14,y,company\n"}, "5 pages .* 0 … 4"),
        ({"targets": TARGETS + "4,14,y\n"}, "line 7.* id, page_type"),
        ({"targets": TARGETS + "4,14,y,company,z\n"}, "line 7.* id, page_type"),
        ({"targets": TARGETS + '4,14,"y,company\n'}, "line 7"),
        ({"targets": "id,kind\n0,company\n"}, "line 2.* id, page_type"),
        ({"targets": ""}, "facebook_target.csv: 0"),
    ],
)
def test_bad_files(tmp_path, changes, named):
    write(tmp_path, **changes)
    with pytest.raises(InvalidInput, match=named):
        read_facebook(tmp_path, num_features=None)


@pytest.mark.parametrize("name", ["facebook_edges.csv", "facebook.json", "facebook_target.csv"])
def test_missing_file_or_no_text(tmp_path, name):
    write(tmp_path)
    for damage in (lambda path: path.write_bytes(path.read_bytes() + b"\xff\xfe"), Path.unlink):
        damage(tmp_path / name)
        with pytest.raises(InvalidInput, match=name):
            read_facebook(tmp_path, num_features=None)
