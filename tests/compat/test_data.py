"""``dgl.data``: life cycle of the base class, downloads from a server here, archives, info."""

import gzip
import hashlib
import os
import pickle

import numpy as np
import pytest
import torch

import gnnlab.compat as dgl
from gnnlab.compat.data import DGLBuiltinDataset, DGLDataset, utils
from gnnlab.data import DownloadFailed
from gnnlab.errors import InvalidInput
from tests.data.samples import tarred, zipped
from tests.data.test_download import CONTENT, server  # noqa: F401

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("DGL_DOWNLOAD_DIR", str(tmp_path / "home"))
    return tmp_path / "home"


class Rings(DGLDataset):
    """Guide 4.1–4.4 in short; ``calls`` is the order of the life cycle."""

    def __init__(self, sizes=(3, 4), **kwargs):
        self.calls, self.sizes = [], sizes
        super().__init__(name="rings", hash_key=(sizes,), **kwargs)

    def _file(self):
        return os.path.join(self.save_path, f"graphs_{self.hash}.bin")

    def download(self):
        self.calls.append("download")
        dgl.data.utils.makedirs(self.raw_path)

    def process(self):
        self.calls.append("process")
        rings = [(torch.arange(n), (torch.arange(n) + 1) % n) for n in self.sizes]
        self.graphs = [dgl.graph(ends) for ends in rings]
        self.labels = torch.tensor(self.sizes)
        self.num_classes = 2

    def has_cache(self):
        self.calls.append("has_cache")
        return os.path.exists(self._file())

    def save(self):
        self.calls.append("save")
        dgl.data.utils.makedirs(self.save_path)
        dgl.data.utils.save_graphs(self._file(), self.graphs, {"labels": self.labels})
        dgl.data.utils.save_info(self._file() + ".pkl", {"num_classes": self.num_classes})

    def load(self):
        self.calls.append("load")
        self.graphs, labels = dgl.data.utils.load_graphs(self._file())
        self.labels = labels["labels"]
        self.num_classes = dgl.data.utils.load_info(self._file() + ".pkl")["num_classes"]

    def __getitem__(self, i):
        return self.graphs[i], self.labels[i]

    def __len__(self):
        return len(self.graphs)


def test_life_cycle(home, capsys):
    first = Rings(verbose=True)
    assert first.calls == ["has_cache", "download", "process", "save"]
    assert "Done saving" in capsys.readouterr().out
    second = Rings()
    assert second.calls == ["has_cache", "load"]
    assert (len(second), second[1][0].num_nodes(), second[1][1].item()) == (2, 4, 4)
    assert second.num_classes == 2
    assert Rings(force_reload=True).calls == ["process", "save"]  # the raw files are there
    assert Rings(sizes=(5,)).calls == ["has_cache", "process", "save"]  # another hash
    assert capsys.readouterr().out == ""


def test_a_broken_cache_is_made_again(home):
    first = Rings()
    with open(first._file(), "wb") as file:
        file.write(b"no graphs")
    with pytest.warns(UserWarning, match="rings"):
        assert Rings().calls == ["has_cache", "load", "process", "save"]
    assert Rings().calls == ["has_cache", "load"]


def test_builtin_dataset_downloads_and_unpacks_once(server, home):  # noqa: F811
    server.files["x.zip"] = zipped({"a/edges.txt": "0 1\n1 2\n"})

    class Mine(DGLBuiltinDataset):
        def process(self):
            src, dst = np.loadtxt(os.path.join(self.raw_path, "a", "edges.txt"), int).T
            self.g = dgl.graph((src, dst))

        def __getitem__(self, i):
            return self.g

        def __len__(self):
            return 1

    for _ in range(2):
        assert Mine("mine", f"{server.url}/x.zip")[0].num_edges() == 2
    assert len(server.ranges) == 1
    assert Mine("mine", None).url is None


# ------------------------------------------------------------------- data.utils


def test_download(server, tmp_path):  # noqa: F811
    url, sha1 = f"{server.url}/a.bin", hashlib.sha1(CONTENT).hexdigest()
    target = tmp_path / "new" / "b.bin"
    assert utils.download(url, target, sha1_hash=sha1.upper(), log=False) == str(target)
    assert target.read_bytes() == CONTENT and utils.check_sha1(target, sha1)
    assert utils.download(url, tmp_path / "new", log=False) == str(tmp_path / "new" / "a.bin")
    assert len(server.ranges) == 2
    utils.download(url, target, overwrite=False)
    utils.download(url, target, overwrite=False, sha1_hash=sha1)
    assert len(server.ranges) == 2  # it is there and right
    target.write_bytes(b"other")
    utils.download(url, target, overwrite=False)
    assert target.read_bytes() == b"other"
    utils.download(url, target, overwrite=False, sha1_hash=sha1)
    assert target.read_bytes() == CONTENT
    names = {path.name for path in target.parent.iterdir()}
    assert names - {".lock"} == {"a.bin", "b.bin"}


def test_download_goes_on_and_gives_up(server, tmp_path):  # noqa: F811
    server.breaks, server.break_after = 3, 100_000
    utils.download(f"{server.url}/a.bin", tmp_path / "a", log=False)
    assert (tmp_path / "a").read_bytes() == CONTENT
    with pytest.raises(DownloadFailed, match="00"):
        utils.download(f"{server.url}/a.bin", tmp_path / "a", sha1_hash="00")
    assert (tmp_path / "a").read_bytes() == CONTENT
    server.ranges.clear()
    with pytest.raises(DownloadFailed, match="404"):
        utils.download(f"{server.url}/none", tmp_path / "n", retries=2)
    assert len(server.ranges) == 3


def packed(path, members):
    content = zipped(members) if path.suffix == ".zip" else tarred(members)
    path.write_bytes(gzip.decompress(content) if path.suffix == ".tar" else content)
    return path


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz", "a.tar.gz"])
def test_extract_archive(tmp_path, name):
    archive = packed(tmp_path / name, {"x/one.txt": b"1", "two.txt": b"2"})
    utils.extract_archive(archive, tmp_path / "out")
    assert (tmp_path / "out/x/one.txt").read_text() == "1"
    (tmp_path / "out/two.txt").unlink()
    utils.extract_archive(archive, tmp_path / "out", overwrite=False)
    assert not (tmp_path / "out/two.txt").exists()
    (tmp_path / "out/kept").touch()
    utils.extract_archive(str(archive), str(tmp_path / "out"))
    assert (tmp_path / "out/two.txt").exists() and (tmp_path / "out/kept").exists()
    archive.write_bytes(archive.read_bytes()[:50])
    with pytest.raises(InvalidInput, match="damaged"):
        utils.extract_archive(archive, tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tgz"])
@pytest.mark.parametrize("inner", ["../evil", "x/../../evil", "link"])
def test_no_member_leaves_the_folder(tmp_path, name, inner):
    if inner == "link" and name == "a.zip":
        inner = "/evil"
    members = {"good": b"1", inner: None if inner == "link" else b"2"}
    archive = packed(tmp_path / name, members)
    for folder in ("new", "old"):
        (tmp_path / "old").mkdir(exist_ok=True)
        with pytest.raises(InvalidInput, match="refused"):
            utils.extract_archive(archive, tmp_path / "deep" / folder)
    found = {path.name for path in tmp_path.rglob("*")}
    assert found <= {name, "old", "deep", ".lock"}


def test_extract_gz_and_unknown(tmp_path):
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1,2\n"))
    utils.extract_archive(tmp_path / "t.csv.gz", tmp_path / "out")
    assert (tmp_path / "out/t.csv").read_text() == "1,2\n"
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"1,2\n")[:-9])
    with pytest.raises(InvalidInput, match="damaged"):
        utils.extract_archive(tmp_path / "t.csv.gz", tmp_path / "out2")
    assert not (tmp_path / "out2/t.csv").exists()
    with pytest.raises(InvalidInput, match="rar"):
        utils.extract_archive(tmp_path / "a.rar", tmp_path)


def test_info_holds_data_only(tmp_path):
    info = {
        "n": 3,
        "names": ["a", ("b", 1.5)],
        "array": np.arange(6).reshape(2, 3),
        "scalar": np.float32(0.5),
        "tensor": torch.tensor([[1.0, 2.0]], dtype=torch.float16),
        "set": {1, 2},
    }
    for protocol in (None, 2, 5):
        path = tmp_path / f"info{protocol}"
        if protocol is None:
            utils.save_info(path, info)
        else:
            path.write_bytes(pickle.dumps(info, protocol))
        found = utils.load_info(path)
        assert found["array"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert torch.equal(found["tensor"], info["tensor"]) and found["scalar"] == 0.5
        assert (found["n"], found["names"], found["set"]) == (3, ["a", ("b", 1.5)], {1, 2})


def test_one_changed_byte_of_info_is_an_error(tmp_path):
    path = tmp_path / "info"
    utils.save_info(path, {"weights": np.arange(3.0), "n": 3})
    whole = path.read_bytes()
    assert pickle.loads(whole)["n"] == 3  # other readers ignore the checksum
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :])
        with pytest.raises(InvalidInput):
            utils.load_info(path)


class Trap:
    def __reduce__(self):
        return os.mkdir, ("trapped",)


def test_info_runs_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad").write_bytes(pickle.dumps({"x": Trap()}))
    with pytest.raises(InvalidInput, match="mkdir"):
        utils.load_info("bad")
    with pytest.raises(InvalidInput):
        utils.save_info("worse", {"x": Trap()})
    (tmp_path / "cut").write_bytes(pickle.dumps([1] * 99)[:-5])
    with pytest.raises(InvalidInput, match="cut"):
        utils.load_info("cut")
    assert {path.name for path in tmp_path.iterdir()} == {"bad", "cut"}
