"""Getting a file from the network: resumed, checked, and never half there.

What has arrived waits in ``NAME.part``; a later call continues where it stopped, unless the
server's file has changed meanwhile. Only a complete file with the right checksum gets its name.
Where no checksum is known beforehand, the first download is trusted: its SHA-256 is kept in
``NAME.sha256`` beside the file, and every later use is held to it.
"""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnnlab.bars import progress_bar
from gnnlab.errors import GNNLabError, InvalidInput

__all__ = ["DownloadFailed", "data_home", "fetch", "unpack"]

TIMEOUT = (10, 30)  # seconds to connect, seconds without a byte
LOCK_TIMEOUT = 7200
BLOCK = 1 << 14  # bytes; a connection that breaks loses at most one block


class DownloadFailed(GNNLabError, OSError):
    """A file could not be fetched or stored."""


def data_home() -> Path:
    """Return the folder of downloads: ``$GNNLAB_DATA_DIR``, else one in the user's cache.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.data_home().name                                       # doctest: +SKIP
    'gnnlab'
    """
    import pooch

    chosen = os.environ.get("GNNLAB_DATA_DIR")
    return Path(chosen).expanduser() if chosen else Path(pooch.os_cache("gnnlab"))


def fetch(
    url: str,
    folder: str | Path,
    *,
    sha256: str | None = None,
    base_url: str | None = None,
    room: float = 1.0,
    progress: bool = True,
) -> Path:
    """Return the path of a file, after downloading it if it is not there yet.

    Parameters
    ----------
    url : str
        Where the file usually is.
    folder : str or Path
        Where it shall be; a file put there by hand is used.
    sha256 : str, optional
        Its checksum; by default the one noted in ``NAME.sha256`` at the first use.
    base_url : str, optional
        A mirror's folder to fetch the file from; by default ``$GNNLAB_DATA_URL``, if set.
    room : float
        Free space to ask for before starting, as a multiple of the file's size.
    progress : bool
        Whether to show a bar when it takes longer than a second.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    DownloadFailed
        No network, no space, or a wrong checksum; the message says what to do.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.fetch("https://example.org/a.zip", "downloads")        # doctest: +SKIP
    PosixPath('downloads/a.zip')
    """
    import pooch

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    name = url.rsplit("/", 1)[1]
    path, note = folder / name, folder / f"{name}.sha256"
    base = base_url or os.environ.get("GNNLAB_DATA_URL")
    if base:
        url = f"{base.rstrip('/')}/{name}"

    def resume(address: str, output: str, _: Any) -> None:
        part = folder / f"{name}.part"
        _download(address, part, room, progress)
        os.replace(part, output)
        _tag(part).unlink(missing_ok=True)

    with locked(folder), _quiet(pooch.get_logger()):
        known = sha256 or (note.read_text("utf8").split()[0] if note.exists() else None)
        try:
            pooch.retrieve(url, known, fname=name, path=folder, downloader=resume)
        except ValueError as error:
            raise DownloadFailed(
                f"{url} does not have the expected SHA-256 {known}; nothing was kept. Try again; "
                f"if the file was replaced on purpose, delete {note} first"
            ) from error
        if known is None:
            note.write_text(f"{pooch.file_hash(str(path))}  {name}\n", "utf8")
    return path


def unpack(archive: str | Path, folder: str | Path, one_folder: bool = True) -> Path:
    """Unpack a zip file; the result appears whole or not at all.

    Parameters
    ----------
    archive : str or Path
    folder : str or Path
        What the one folder of the archive shall be called. If it is there already, nothing is done.
    one_folder : bool
        False for an archive whose files lie in no folder; they are put in ``folder``.

    Returns
    -------
    pathlib.Path
        ``folder``.

    Raises
    ------
    InvalidInput
        The archive is damaged, or names a place outside of itself.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.unpack("products.zip", "products")                     # doctest: +SKIP
    PosixPath('products')
    """
    archive, folder = Path(archive), Path(folder)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as temporary:
        whole = Path(temporary, "whole")
        whole.mkdir()
        try:
            with zipfile.ZipFile(archive) as source:
                for member in source.infolist():
                    _check_member(archive, member)
                check_room(folder.parent, sum(member.file_size for member in source.infolist()))
                source.extractall(whole)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
            raise InvalidInput(f"{archive}: damaged ({error}); delete it and try again") from error
        # Archives made on a Mac have a second folder, of what only a Mac needs.
        inside = [top for top in whole.iterdir() if top.name != "__MACOSX"]
        tops = inside if one_folder else [whole]
        if len(tops) != 1 or not tops[0].is_dir():
            names = ", ".join(sorted(top.name for top in tops)) or "nothing"
            raise InvalidInput(f"{archive}: expected one folder inside; found {names}")
        os.replace(tops[0], folder)
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let one process at a time work in a folder: ranks of one machine load the same data set."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock", timeout=LOCK_TIMEOUT, is_singleton=True)
    try:
        lock.acquire()
    except Timeout as error:
        raise DownloadFailed(
            f"another process has worked in {folder} for {LOCK_TIMEOUT} s; wait for it or end it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def check_room(folder: Path, needed: float) -> None:
    """Raise DownloadFailed unless ``needed`` bytes are free on the disk of ``folder``."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadFailed(
            f"{folder} has {free / 1e9:.2f} GB free; {needed / 1e9:.2f} GB are needed. Make room, "
            "or choose another disk with the environment variable GNNLAB_DATA_DIR"
        )


def _check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    parts = member.filename.replace("\\", "/").split("/")
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or ".." in parts or parts[0] == "" or ":" in parts[0]:
        raise InvalidInput(
            f"{archive}: refused, {member.filename!r} would be written outside the archive's folder"
        )


def _download(url: str, part: Path, room: float, progress: bool) -> None:
    """Bring ``part`` to completion, going on after each break as long as bytes arrive."""
    import requests

    while True:
        before = _size(part)
        try:
            return _transfer(url, part, room, progress)
        except requests.HTTPError as error:
            reason = f"the server answered: {error}"
        except requests.RequestException as error:
            if _size(part) > before:
                continue
            reason = f"{type(error).__name__}: no answer, or the connection broke"
        again = f"Try again: it goes on after {_size(part):,} bytes" if _size(part) else "Try again"
        place = part.with_name(part.name.removesuffix(".part"))
        raise DownloadFailed(
            f"could not get {url} ({reason}). {again}; or get {place.name} with a browser or on "
            f"another machine, and put it at {place}"
        )


def _transfer(url: str, part: Path, room: float, progress: bool) -> None:
    """Ask for what is missing and append it."""
    import requests

    have = _size(part) if _tag(part).exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": _tag(part).read_text("utf8")}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        content_range = answer.headers.get("Content-Range", "")
        if answer.status_code == 416 and content_range == f"bytes */{have}":
            return
        if answer.status_code == 416:
            part.unlink()
            return _transfer(url, part, room, progress)
        answer.raise_for_status()
        if not (answer.status_code == 206 and content_range.startswith(f"bytes {have}-")):
            have = 0  # the server starts over: it cannot resume, or its file is another one now
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        check_room(part.parent, (total or 0) * room - have)
        version = _version(answer.headers)
        _tag(part).write_text(version, "utf8") if version else _tag(part).unlink(missing_ok=True)
        name = part.name.removesuffix(".part")
        bar = progress_bar(
            None, progress, total=total, initial=have, desc=name, unit="B", unit_scale=True
        )
        with bar, open(part, "ab" if have else "wb") as file:
            for block in answer.iter_content(BLOCK):
                file.write(block)
                bar.update(len(block))
    if total is not None and _size(part) != total:
        raise requests.ConnectionError(f"{_size(part)} of {total} bytes arrived")


def _version(headers: Mapping[str, str]) -> str | None:
    """What tells this file from a later one at the same address, if the server says."""
    etag = headers.get("ETag", "W/")
    return headers.get("Last-Modified") if etag.startswith("W/") else etag


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _tag(part: Path) -> Path:
    """The file that notes which version of the server's file a part belongs to."""
    return part.with_name(f"{part.name}.version")


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence a logger's everyday messages for a while."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
