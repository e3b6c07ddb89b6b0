"""Text files of many small graphs, on toys."""

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.compat.data import GINDataset
from gnnlab.compat.data.gin import read_gin
from gnnlab.data import DownloadFailed
from gnnlab.errors import InvalidInput, OutOfRange
from tests.data.samples import zipped
from tests.data.test_download import server  # noqa: F401

pytestmark = pytest.mark.timeout(120)

# A triangle with a tail, class 7; an edge, class 4; a node alone, class 7. Tags 5, 2 and 9.
TOY = """3
4 7
5 2 1 2
2 2 0 2
5 3 0 1 3
9 1 2
2 4
2 1 1
2 1 0
1 7
5 0
"""


def write(folder, text=TOY, name="MUTAG"):
    path = folder / "dataset" / name / f"{name}.txt"
    path.parent.mkdir(parents=True)
    path.write_text(text, "utf8")
    return folder


@pytest.fixture
def mirror(tmp_path, monkeypatch, server):  # noqa: F811
    """A server with an archive as a Mac makes it, of two of the nine sets."""
    files = {"dataset/MUTAG/MUTAG.txt": TOY, "__MACOSX/dataset/._MUTAG": ""}
    files["dataset/IMDBBINARY/IMDBBINARY.txt"] = TOY
    server.files["dataset.zip"] = zipped(files)
    monkeypatch.setenv("GNNLAB_DATA_URL", server.url)
    monkeypatch.setenv("GNNLAB_DATA_DIR", str(tmp_path / "home"))
    return server


def test_toy(tmp_path):
    dataset = GINDataset("MUTAG", self_loop=False, raw_dir=write(tmp_path))
    assert (len(dataset), dataset.num_classes, dataset.gclasses, dataset.dim_nfeats) == (3, 2, 2, 3)
    assert dataset.labels.tolist() == [0, 1, 0]
    g, label = dataset[0]
    assert (label, g.num_nodes(), g.idtype) == (0, 4, torch.int64)
    assert g.edges()[0].tolist() == [0, 0, 1, 1, 2, 2, 2, 3]
    assert g.edges()[1].tolist() == [1, 2, 0, 2, 0, 1, 3, 2]
    assert g.ndata["label"].tolist() == [0, 1, 0, 2]
    assert g.ndata["attr"].tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert g.ndata["attr"].dtype == torch.float32
    alone = dataset[2][0]
    assert (alone.num_nodes(), alone.num_edges()) == (1, 0)
    assert "Xu" in dataset.citation


def test_self_loops_and_degrees(tmp_path):
    dataset = GINDataset("MUTAG", True, degree_as_nlabel=True, raw_dir=write(tmp_path))
    g = dataset[0][0]
    assert g.num_edges() == 12
    assert bool(g.has_edges_between(range(4), range(4)).all())
    assert g.ndata["label"].tolist() == [3, 3, 4, 2]
    assert g.ndata["attr"].argmax(1).tolist() == [2, 2, 3, 1]  # the degrees are 1, 2, 3 and 4
    assert dataset[2][0].ndata["attr"].tolist() == [[1, 0, 0, 0]]
    assert dataset.dim_nfeats == 4


def test_index(tmp_path):
    dataset = GINDataset("MUTAG", False, raw_dir=write(tmp_path), transform=dgl.AddSelfLoop())
    assert [g.num_edges() for g, _ in dataset] == [12, 4, 1]
    assert dataset.graphs[0].num_edges() == 8
    assert dataset[-1][0].num_nodes() == dataset[torch.tensor(2)][0].num_nodes() == 1
    for index in (slice(1, None), torch.tensor([1, 2]), np.array([False, True, True]), [-2, -1]):
        assert [g.num_nodes() for g, _ in dataset[index]] == [2, 1]
    for index in (3, -4, [0, 3], 1.5):
        with pytest.raises(OutOfRange, match="MUTAG has 3 graphs; "):
            dataset[index]


def test_attributes_stand_in_for_tags(tmp_path):
    text = "2\n2 0\n0 1 1 0.5 -1e3\n1 1 0 2 3\n\n1 1\n1 0 4 5\n"
    dataset = GINDataset("PROTEINS", False, raw_dir=write(tmp_path, text, "PROTEINS"))
    assert dataset.dim_nfeats == 2
    assert dataset[0][0].ndata["attr"].tolist() == [[0.5, -1000], [2, 3]]
    assert dataset[1][0].ndata["attr"].tolist() == [[4, 5]]
    assert dataset[0][0].ndata["label"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("3\n4 7", "3 1\n4 7", "line 1.*'3 1'"),
        ("4 7", "4", "line 2.*'4'"),
        ("4 7", "0 7", "line 2"),
        ("5 2 1 2", "5 3 1 2", "line 3.*0 … 3"),
        ("5 2 1 2", "5", "line 3"),
        ("5 2 1 2", "5 -1 1 2", "line 3"),
        ("5 2 1 2", "5 2 1 4", "line 3"),
        ("5 2 1 2", "5 2 -1 2", "line 3"),
        ("5 2 1 2", "5.5 2 1 2", "line 3"),
        ("9 1 2", "9 1 2 0.5", "line 6"),
        ("9 1 2", f"{2**70} 1 2", "line 6"),
        ("3\n4 7", "\ufeff3\n4", "line 2"),  # accepted in line 1
        ("1 7\n5 0\n", "", "3 graphs; found 2,.* 0 "),
        ("1 7\n5 0\n", "2 7\n5 0\n", "3 graphs; found 3,.* 1 "),
        (TOY, TOY + "1 7\n5 0\n", "3 graphs; found 4"),
        (TOY, "0\n", "found 0"),
        (TOY, "1\n1 0\n0 0 nan\n", "node 0"),
    ],
)
def test_bad_lines(tmp_path, old, new, names):
    path = tmp_path / "toy.txt"
    path.write_text(TOY.replace(old, new, 1), "utf8")
    with pytest.raises(InvalidInput, match=names):
        read_gin(path)


def test_the_archive_is_fetched_once(mirror, tmp_path):
    assert len(GINDataset("MUTAG", self_loop=False)) == 3
    assert len(GINDataset("IMDBBINARY", self_loop=False)) == 3
    assert len(mirror.ranges) == 1
    kept = {path.name for path in (tmp_path / "home" / "gin").iterdir()} - {".lock"}
    assert kept == {"dataset.zip", "dataset.zip.sha256", "dataset"}
    del mirror.files["dataset.zip"]
    with pytest.raises(DownloadFailed, match="404"):
        GINDataset("MUTAG", self_loop=False, raw_dir=tmp_path / "new")
