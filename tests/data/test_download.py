"""Downloads from a server of our own: resumed, checked, whole or absent. No network is needed."""

from __future__ import annotations

import hashlib
import http.server
import shutil
import stat
import threading
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from gnnlab.data import DownloadFailed, data_home, fetch, unpack
from gnnlab.data.download import BLOCK
from gnnlab.errors import InvalidInput
from tests.data.samples import zipped
from tests.helpers import free_port, run_script

CONTENT = bytes(i * i % 251 for i in range(300_000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves ``files``; ``break_after`` bytes it hangs up, ``breaks`` times."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"a.bin": CONTENT}
        self.version, self.resumes = '"1"', True
        self.breaks, self.break_after = 0, 0
        self.ranges: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.ranges.append(asked)
        data = server.files.get(self.path.rsplit("/", 1)[1])
        if data is None:
            return self.send_error(404)
        fresh = self.headers.get("If-Range") in (None, server.version)
        start = int(asked[6:-1]) if asked and server.resumes and fresh else 0
        if start >= len(data):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(data)}")
            return self.end_headers()
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - start))
        self.send_header("ETag", server.version)
        self.end_headers()
        body = data[start:]
        if server.breaks:
            server.breaks -= 1
            body = body[: server.break_after]
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server():
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join(60)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_fetches_once_and_notes_the_checksum(server, tmp_path):
    path = fetch(f"{server.url}/a.bin", tmp_path)
    assert path.read_bytes() == CONTENT
    assert (tmp_path / "a.bin.sha256").read_text() == f"{SHA256}  a.bin\n"
    assert fetch(f"{server.url}/a.bin", tmp_path) == path
    assert server.ranges == [None]
    assert names(tmp_path) == {"a.bin", "a.bin.sha256"}


def test_broken_connections_go_on_where_they_broke(server, tmp_path):
    server.breaks, server.break_after = 3, 5 * BLOCK
    path = fetch(f"{server.url}/a.bin", tmp_path, sha256=SHA256)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, *(f"bytes={k * 5 * BLOCK}-" for k in (1, 2, 3))]
    assert names(tmp_path) == {"a.bin"}


def leave_part(folder: Path, content: bytes, version: str | None = '"1"') -> None:
    (folder / "a.bin.part").write_bytes(content)
    if version:
        (folder / "a.bin.part.version").write_text(version)


@pytest.mark.parametrize(
    ("part", "version", "ranges"),
    [
        (CONTENT[:1000], '"1"', ["bytes=1000-"]),
        (CONTENT, '"1"', ["bytes=300000-"]),
        (CONTENT + b"more", '"1"', ["bytes=300004-", None]),
        (b"of an older file", '"0"', ["bytes=16-"]),
        (b"of unknown age", None, [None]),
    ],
    ids=["begun", "complete", "too long", "file changed", "no version"],
)
def test_what_is_left_from_before(server, tmp_path, part, version, ranges):
    leave_part(tmp_path, part, version)
    assert fetch(f"{server.url}/a.bin", tmp_path, sha256=SHA256).read_bytes() == CONTENT
    assert server.ranges == ranges
    assert names(tmp_path) == {"a.bin"}


def test_a_server_that_cannot_resume(server, tmp_path):
    server.resumes = False
    leave_part(tmp_path, CONTENT[:1000])
    assert fetch(f"{server.url}/a.bin", tmp_path, sha256=SHA256).read_bytes() == CONTENT


def test_gives_up_when_no_byte_arrives(server, tmp_path):
    server.breaks, server.break_after = 1000, 0
    leave_part(tmp_path, CONTENT[:1000])
    with pytest.raises(DownloadFailed, match="1,000 bytes"):
        fetch(f"{server.url}/a.bin", tmp_path)
    assert (tmp_path / "a.bin.part").read_bytes() == CONTENT[:1000]


def test_wrong_checksum_leaves_nothing(server, tmp_path):
    with pytest.raises(DownloadFailed, match="0" * 64):
        fetch(f"{server.url}/a.bin", tmp_path, sha256="0" * 64)
    assert names(tmp_path) == set()


def test_first_use_is_trusted_later_ones_are_held_to_it(server, tmp_path):
    path = fetch(f"{server.url}/a.bin", tmp_path)
    path.unlink()
    server.files["a.bin"] = b"another"
    with pytest.raises(DownloadFailed, match=r"delete .*a.bin.sha256 first"):
        fetch(f"{server.url}/a.bin", tmp_path)
    assert names(tmp_path) == {"a.bin.sha256"}


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    fetch(f"{server.url}/a.bin", tmp_path).write_bytes(CONTENT[:-1])
    assert fetch(f"{server.url}/a.bin", tmp_path).read_bytes() == CONTENT


def test_offline_says_where_to_put_the_file_which_is_then_used(server, tmp_path):
    with pytest.raises(DownloadFailed, match=f"{tmp_path}/a.bin"):
        fetch(f"http://127.0.0.1:{free_port()}/a.bin", tmp_path)
    with pytest.raises(DownloadFailed, match="404"):
        fetch(f"{server.url}/b.bin", tmp_path)
    assert names(tmp_path) == set()
    (tmp_path / "a.bin").write_bytes(CONTENT)
    path = fetch(f"http://127.0.0.1:{free_port()}/a.bin", tmp_path)
    assert path.read_bytes() == CONTENT and names(tmp_path) == {"a.bin", "a.bin.sha256"}


@pytest.mark.parametrize("by", ["argument", "environment"])
def test_mirror(server, tmp_path, monkeypatch, by):
    base = f"{server.url}/mirror/"
    if by == "environment":
        monkeypatch.setenv("GNNLAB_DATA_URL", base)
    path = fetch(
        "http://elsewhere.invalid/x/a.bin", tmp_path, base_url=base if by == "argument" else None
    )
    assert path.read_bytes() == CONTENT


def test_full_disk_is_noticed_before_the_first_byte(server, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**6, 10**6 - 400_000, 400_000))
    with pytest.raises(DownloadFailed, match=r"GB free.*GNNLAB_DATA_DIR"):
        fetch(f"{server.url}/a.bin", tmp_path, room=2)
    assert not names(tmp_path) & {"a.bin", "a.bin.part"}
    assert fetch(f"{server.url}/a.bin", tmp_path, room=1.3).read_bytes() == CONTENT


def test_processes_that_ask_at_once_download_once(server, tmp_path):
    script = """
        import sys
        from concurrent.futures import ProcessPoolExecutor
        from gnnlab.data import fetch
        if __name__ == "__main__":
            with ProcessPoolExecutor(3) as pool:
                jobs = [pool.submit(fetch, sys.argv[1], sys.argv[2]) for _ in range(3)]
                print({len(job.result().read_bytes()) for job in jobs})
    """
    printed = run_script(script, args=[f"{server.url}/a.bin", str(tmp_path)], timeout=200)
    assert printed.strip() == "{300000}"
    assert server.ranges == [None]


def archive(path: Path, files: dict[str, bytes | str]) -> Path:
    path.write_bytes(zipped(files))
    return path


def test_unpacks_under_the_given_name(tmp_path):
    source = archive(tmp_path / "a.zip", {"top/raw/x": "1", "top/split/y": "2"})
    folder = unpack(source, tmp_path / "data")
    assert (folder / "raw/x").read_text() == "1"
    assert names(tmp_path) == {"a.zip", "data"}
    source.unlink()
    assert unpack(source, tmp_path / "data") == folder


@pytest.mark.parametrize(
    "name", ["../evil", "top/../../evil", "/evil", "top\\..\\..\\evil", "C:/evil", "C:\\evil"]
)
def test_refuses_to_write_elsewhere(tmp_path, name):
    (tmp_path / "in").mkdir()
    source = archive(tmp_path / "in/a.zip", {"top/good": "1", name: "2"})
    with pytest.raises(InvalidInput, match="outside"):
        unpack(source, tmp_path / "in/data")
    assert names(tmp_path) == {"in"}
    assert names(tmp_path / "in") == {"a.zip"}


def test_refuses_links(tmp_path):
    link = zipfile.ZipInfo("top/link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as target:
        target.writestr(link, "/etc")
    with pytest.raises(InvalidInput, match="'top/link'"):
        unpack(tmp_path / "a.zip", tmp_path / "data")


@pytest.mark.parametrize("files", [{}, {"x": "1"}, {"a/x": "1", "b/x": "1"}])
def test_expects_one_folder(tmp_path, files):
    source = archive(tmp_path / "a.zip", files)
    with pytest.raises(InvalidInput, match="one folder"):
        unpack(source, tmp_path / "data")
    assert names(tmp_path) == {"a.zip"}


@pytest.mark.parametrize("spoil", ["cut", "flip", "text"])
def test_damaged_archive_leaves_nothing(tmp_path, spoil):
    data = bytearray(zipped({"top/x": CONTENT}))
    data[1000] ^= 0xFF
    spoiled = {"cut": bytes(data[:-50]), "flip": bytes(data), "text": b"<html>"}[spoil]
    (tmp_path / "a.zip").write_bytes(spoiled)
    with pytest.raises(InvalidInput, match=r"a.zip: damaged"):
        unpack(tmp_path / "a.zip", tmp_path / "data")
    assert names(tmp_path) == {"a.zip"}


def test_archive_that_would_fill_the_disk(tmp_path, monkeypatch):
    source = archive(tmp_path / "a.zip", {"top/x": bytes(10_000)})
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10_000, 1, 9_999))
    with pytest.raises(DownloadFailed, match="GB"):
        unpack(source, tmp_path / "data")


def test_a_user_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither $HOME nor an entry in /etc/passwd: no folder called "~" is made."""
    for name in ("GNNLAB_DATA_DIR", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    with pytest.raises(InvalidInput, match="GNNLAB_DATA_DIR"):
        data_home()
