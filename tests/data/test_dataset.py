"""Datasets as DGL code uses them, by name, from files, from a server, generated."""

import shutil

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.data import DATASETS, DownloadFailed, NodeDataset, RawDataset, load
from gnnlab.data.arrays import load_arrays, save_arrays
from gnnlab.errors import InvalidInput, NotFound, OutOfRange
from tests.data.samples import assert_same, square, write_ogb
from tests.data.test_download import server  # noqa: F401
from tests.data.test_facebook import write as write_facebook
from tests.data.test_npz import write as write_cora
from tests.helpers import free_port, run_script


def test_digits_is_the_default():
    dataset = load()
    g = dataset[0]
    assert (len(dataset), list(dataset), g.num_edges()) == (1, [g], 19858)
    assert (g.idtype, g.ndata["feat"].dtype, g.ndata["label"].dtype) == (
        *(torch.int64, torch.float32, torch.int64),
    )
    for part in ("train", "val", "test"):
        ids = g.ndata[f"{part}_mask"].nonzero().flatten()
        assert ids.tolist() == sorted(getattr(dataset, f"{part}_idx").tolist())
    assert "Kaynak" in dataset.citation and all(info.citation for info in DATASETS.values())
    with pytest.raises(OutOfRange, match="index 1"):
        dataset[1]
    with pytest.raises(NotFound, match=r"'twitter'.*digits, cora"):
        load("twitter")


def test_reverse_edges():
    """The square has five edges, one way; both ways it has ten, and a self-loop stays single."""
    one, both = (NodeDataset(square(), add_reverse_edges=way)[0] for way in (False, True))
    assert one.edges()[0].tolist() == [0, 0, 0, 1, 2]
    assert both.edges()[0].tolist() == [0, 0, 0, 1, 2, 1, 2, 3, 3, 3]
    assert both.edges()[1].tolist() == [1, 2, 3, 3, 3, 0, 0, 0, 1, 2]
    loop = RawDataset(
        **{**square().__dict__, "src": np.array([1, 2, 2]), "dst": np.array([1, 2, 3])}
    )
    assert [ends.tolist() for ends in NodeDataset(loop)[0].edges()] == [[1, 2, 2, 3], [1, 2, 3, 2]]


def test_options_go_to_the_reader(tmp_path):
    write_cora(tmp_path)
    write_facebook(tmp_path)
    cora = load("cora", folder=tmp_path, train_per_class=1, num_val=1, num_test=0)
    assert len(cora.train_idx) == 2
    assert load("facebook", folder=tmp_path, num_features=2)[0].ndata["feat"].shape == (4, 2)
    like = load("products-like", num_nodes=500, num_edges=2000, num_features=3)
    assert (like[0].num_edges(), like[0].ndata["feat"].shape) == (2000, (500, 3))
    assert dgl.data.products_like(500, 2000, add_reverse_edges=False)[0].num_edges() == 1000
    with pytest.raises(InvalidInput, match=r"num_features.*add_rev"):
        load("digits", num_features=3)
    with pytest.raises(InvalidInput, match="products-like"):
        load("products-like", folder=tmp_path)


def test_a_folder_in_ogb_layout(tmp_path):
    write_ogb(square(), tmp_path)
    assert load("ogbn-arxiv", folder=tmp_path)[0].num_edges() == 10
    assert load("digits", folder=tmp_path)[0].num_nodes() == 5


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GNNLAB_DATA_DIR", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def mirror(tmp_path, monkeypatch, server):  # noqa: F811
    """A server with all downloads, in small."""
    for name in ("products", "arxiv"):
        write_ogb(square(), tmp_path / "made" / name)
        shutil.make_archive(str(tmp_path / name), "zip", tmp_path / "made", name)
        server.files[f"{name}.zip"] = (tmp_path / f"{name}.zip").read_bytes()
    monkeypatch.setenv("GNNLAB_DATA_URL", server.url)
    return server


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["ogbn-products", "ogbn-arxiv"])
def test_ogb_archives_are_fetched_once_and_kept_as_arrays(home, mirror, name):
    first = load(name)
    assert (first.name, first[0].num_edges(), first.num_classes) == (name, 10, 2)
    assert len(mirror.ranges) == 1
    short = name.removeprefix("ogbn-")
    kept = {path.name for path in (home / name).iterdir()} - {".lock"}
    assert kept == {f"{short}.zip", f"{short}.zip.sha256", short, "arrays.npz"}
    assert_same(load_arrays(home / name / "arrays.npz"), square(name))
    shutil.rmtree(home / name / short)
    (home / name / f"{short}.zip").unlink()
    assert repr(load(name)) == repr(first)
    assert len(mirror.ranges) == 1


@pytest.mark.timeout(60)
def test_an_archive_put_there_by_hand(home, mirror, monkeypatch):
    monkeypatch.setenv("GNNLAB_DATA_URL", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(DownloadFailed) as caught:
        load("ogbn-products")
    place = home / "ogbn-products" / "products.zip"
    assert str(place) in str(caught.value)
    place.write_bytes(mirror.files["products.zip"])
    assert load("ogbn-products")[0].num_nodes() == 5


@pytest.mark.timeout(60)
def test_files_with_a_known_checksum_are_held_to_it(home, mirror, tmp_path):
    write_cora(tmp_path)
    mirror.files["cora.npz"] = (tmp_path / "cora.npz").read_bytes()
    with pytest.raises(DownloadFailed, match="068e22d9"):
        load("cora")
    assert {path.name for path in (home / "cora").iterdir()} == {".lock"}
    mirror.files["facebook_edges.csv"] = b"id_1,id_2\n"
    with pytest.raises(DownloadFailed, match="7c50d8f0"):
        load("facebook")


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-4])


def change_a_byte(path):
    content = bytearray(path.read_bytes())
    content[content.index(np.float32(2e-3).tobytes())] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.unlink(), "no such file"),
        (cut_off, "delete"),
        (change_a_byte, "delete"),
        (lambda path: np.savez(path, src=np.zeros(2)), "name, dst"),
        (lambda path: path.write_text("{}"), "delete"),
    ],
)
def test_spoiled_arrays_are_refused(tmp_path, spoil, says):
    save_arrays(square(), tmp_path / "x.npz")
    spoil(tmp_path / "x.npz")
    with pytest.raises(InvalidInput, match=says):
        load_arrays(tmp_path / "x.npz")


def test_a_full_disk_leaves_no_half_arrays(tmp_path, monkeypatch):
    def full(file: object, **_: object) -> None:
        file.write(b"PK")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match=r"x.npz .*No space"):
        save_arrays(square(), tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"src": np.array([0])}, InvalidInput, "one length"),
        ({"feat": np.zeros(5, np.float32)}, InvalidInput, "feat"),
        ({"label": np.zeros(4, int)}, InvalidInput, "label"),
        ({"dst": np.array([0, 1, 2, 3, 5])}, OutOfRange, "dst .* 0 … 4.* 0 … 5"),
        ({"val_idx": np.array([-1])}, OutOfRange, "val_idx .* 0 … 4.* -1"),
    ],
)
def test_arrays_that_do_not_fit(change, error, named):
    with pytest.raises(error, match=named):
        RawDataset(**{**square().__dict__, **change})


def test_loading_digits_needs_few_libraries():
    """Neither the network library, nor the compiler, nor scikit-learn."""
    script = """
        import sys
        import gnnlab as dgl
        print(*({"pandas", "pooch", "numba"} & {dgl.data.__name__, *sys.modules}))
        dgl.data.load("digits")
        print(*({"requests", "sklearn"} & set(sys.modules)))
    """
    assert run_script(script, fresh=True).split() == []
