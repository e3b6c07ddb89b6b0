"""Reddit's archive, on a toy of four posts; and the names by which old programs load data sets."""

import numpy as np
import pytest
import scipy.sparse

import gnnlab as dgl
from gnnlab.data import load
from gnnlab.data.reddit import read_reddit
from gnnlab.errors import InvalidInput
from tests.data.samples import zipped
from tests.data.test_download import server  # noqa: F401
from tests.data.test_npz import toy as citations

pytestmark = pytest.mark.timeout(60)

EDGES = ([0, 1, 1, 2], [1, 0, 2, 1])


def posts(**changes):
    return {
        "feature": np.array([[0, 1], [2, 3], [4, 5], [6, 7]], np.float32),
        "label": np.array([2, 0, 1, 2]),
        "node_types": np.array([1, 3, 1, 2]),
        "node_ids": np.arange(4),
    } | changes


def matrix(src, dst, nodes=4):
    return scipy.sparse.coo_matrix((np.ones(len(src)), (src, dst)), (nodes, nodes))


def write(folder, data=None, graph=None, name="reddit_graph"):
    folder.mkdir(exist_ok=True)
    np.savez(folder / "reddit_data.npz", **(data or posts()))
    scipy.sparse.save_npz(folder / f"{name}.npz", matrix(*EDGES) if graph is None else graph)


def archive(folder):
    return zipped({path.name: path.read_bytes() for path in folder.glob("*.npz")})


@pytest.fixture
def mirror(tmp_path, monkeypatch, server):  # noqa: F811
    """A server with both archives, the second with self-loops."""
    loops = matrix([*EDGES[0], 0, 1, 2, 3], [*EDGES[1], 0, 1, 2, 3])
    write(tmp_path / "plain")
    write(tmp_path / "loops", graph=loops, name="reddit_self_loop_graph")
    server.files["reddit.zip"] = archive(tmp_path / "plain")
    server.files["reddit_self_loop.zip"] = archive(tmp_path / "loops")
    monkeypatch.setenv("GNNLAB_DATA_URL", server.url)
    monkeypatch.setenv("GNNLAB_DATA_DIR", str(tmp_path / "home"))
    return server


def test_reads_the_toy(tmp_path):
    write(tmp_path)
    raw = read_reddit(tmp_path)
    assert (raw.src.tolist(), raw.dst.tolist()) == EDGES
    assert (raw.label.tolist(), raw.num_classes) == ([2, 0, 1, 2], 3)
    assert raw.feat.tolist() == posts()["feature"].tolist()
    ids = (raw.train_idx, raw.val_idx, raw.test_idx)
    assert [part.tolist() for part in ids] == [[0, 2], [3], [1]]


def test_archives_are_fetched_once(mirror, tmp_path):
    dataset = load("reddit")
    g = dataset[0]
    assert (g.num_nodes(), g.num_edges(), dataset.num_classes) == (4, 4, 3)
    assert g.ndata["train_mask"].tolist() == [True, False, True, False]
    assert load("reddit", self_loop=True)[0].num_edges() == 8
    assert len(mirror.ranges) == 2
    for name in ("reddit.zip", "reddit_self_loop.zip"):
        (tmp_path / "home" / "reddit" / name).unlink()
    assert load("reddit")[0].num_edges() == load("reddit", add_reverse_edges=False)[0].num_edges()
    assert load("reddit", self_loop=True).name == "reddit"
    assert len(mirror.ranges) == 2
    assert "Hamilton" in dataset.citation


def test_raw_dir_takes_the_archive_or_holds_the_files(mirror, tmp_path):
    assert load("reddit", folder=tmp_path / "here")[0].num_edges() == 4
    assert (tmp_path / "here" / "reddit.zip").is_file()
    looped = load("reddit", folder=str(tmp_path / "plain"), transform=dgl.AddSelfLoop())
    assert looped[0].num_edges() == 8
    assert looped.graph.num_edges() == 4
    assert len(mirror.ranges) == 1
    with pytest.raises(InvalidInput, match=r"reddit_graph.npz.* reddit_"):
        load("reddit", self_loop=True, folder=tmp_path / "plain")


def test_files_in_a_folder_of_the_caller_are_kept(mirror, tmp_path):
    """They need not be those of the server, whatever their checksum."""
    changed = citations() | {"labels": np.array([0, 1, 0, 1])}
    np.savez(tmp_path / "cora.npz", **changed)
    options = {"train_per_class": 1, "num_val": 1, "num_test": 1}
    assert load("cora", folder=tmp_path, **options)[0].ndata["label"].tolist() == [0, 1, 0, 1]
    assert mirror.ranges == []


def edges(row, col=(1, 2)):
    return {"row": np.array(row), "col": np.array(col), "shape": np.array([4, 4])}


@pytest.mark.parametrize(
    ("data", "graph", "named"),
    [
        ({"label": np.array([0, 1, -1, 0])}, None, "reddit_data.npz: label"),
        ({"label": np.array([0.0, 1, 1, 0])}, None, "label"),
        ({"feature": np.zeros((3, 2))}, None, r"feature .*\[4, "),
        ({"feature": np.zeros((4, 2), int)}, None, "feature"),
        ({"feature": np.full((4, 2), np.nan)}, None, "feature .*NaN"),
        ({"node_types": np.array([1, 2, 3])}, None, "node_types"),
        ({"node_types": np.array([1, 2, 3, 4])}, None, "node_types"),
        ({"node_types": np.array([1, None, 3, 4])}, None, "npz"),
        ({}, matrix([0], [4], 5), r"shape .*\[5, 5\].*\[4, 4\]"),
        ({}, matrix(*EDGES).tocsr(), "reddit_graph.npz.* row, col"),
        ({}, edges([0, 4]), "0 … 3"),
        ({}, edges([0, 2**32]), "0 … 3"),
        ({}, edges([0.5, 1]), "row"),
        ({}, edges([1]), "one length"),
    ],
)
def test_bad_parts(tmp_path, data, graph, named):
    write(tmp_path, posts(**data), None if isinstance(graph, dict) else graph)
    if isinstance(graph, dict):
        np.savez(tmp_path / "reddit_graph.npz", **graph)
    with pytest.raises(InvalidInput, match=named):
        read_reddit(tmp_path)
