"""Download and unpack the files of data sets.

pooch decides whether a file must be downloaded and compares its SHA-256; the transfer is done here,
because pooch's own downloader starts over after a broken connection and does not look at the free
space. An incomplete download stays in ``NAME.part``. A later call resumes it, unless the file on
the server has changed (``ETag`` or ``Last-Modified``, noted in ``NAME.part.version``). The file is
renamed to ``NAME`` only when it is complete and its checksum is right. Without a published
checksum, that of the first download is written to ``NAME.sha256`` and checked at every later use.

:func:`local_files` and :func:`local_archive` are what data sets call: they return the folder that
holds the files and download only what is missing.
"""

from __future__ import annotations

import logging
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput, check_file, writing
from gnnlab.system.bars import progress_bar
from gnnlab.system.staging import staging_folder

TIMEOUT = (10, 30)  # seconds: to connect, between two blocks
LOCK_TIMEOUT = 7200  # seconds
_BROKEN = (zlib.error, lzma.LZMAError, EOFError, NotImplementedError)
BLOCK = 1 << 14  # bytes: a broken connection loses at most one block


class DownloadFailed(GNNLabError, OSError):
    """A file could not be fetched or stored."""


def data_home() -> Path:
    """Return the folder of downloads: ``$GNNLAB_DATA_DIR``, by default in the user's cache.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.data_home().name                                       # doctest: +SKIP
    'gnnlab'
    """
    import pooch

    chosen = os.environ.get("GNNLAB_DATA_DIR")
    try:
        return Path(chosen or pooch.os_cache("gnnlab")).expanduser()
    except RuntimeError as error:  # neither $HOME nor an entry in /etc/passwd
        raise InvalidInput(
            "this user has no home folder to keep downloads in; name a folder in the environment "
            "variable GNNLAB_DATA_DIR, or set HOME"
        ) from error


def data_folder(name: str, folder: str | Path | None) -> Path:
    """Return the folder of a data set: the user's choice, by default ``NAME`` in the data home."""
    return data_home() / name if folder is None else Path(folder).expanduser()


def local_files(
    name: str, files: Mapping[str, str | None], folder: str | Path | None, progress: bool
) -> Path:
    """Return the folder that holds all files of a data set, after downloading those it lacks.

    ``files`` holds URL → SHA-256, or None. Files already in the user's folder are used unchecked.
    """
    target = data_folder(name, folder)
    for url, sha256 in files.items():
        if folder is None or not (target / url.rsplit("/", 1)[1]).is_file():
            fetch(url, target, sha256=sha256, progress=progress)
    return target


def local_archive(
    url: str,
    unpacked: Path,
    progress: bool,
    *,
    sha256: str | None = None,
    room: float = 2.5,
    one_folder: bool = True,
) -> Path:
    """Return the folder ``unpacked``, after downloading and unpacking an archive if it is missing.

    The archive is stored beside it. Arguments are those of :func:`fetch` and :func:`unpack`.
    """
    if not unpacked.is_dir():
        with locked(unpacked.parent):
            archive = fetch(url, unpacked.parent, sha256=sha256, room=room, progress=progress)
            unpack(archive, unpacked, one_folder)
    return unpacked


def fetch(
    url: str,
    folder: str | Path,
    *,
    sha256: str | None = None,
    base_url: str | None = None,
    room: float = 1.0,
    progress: bool = True,
) -> Path:
    """Return the path of a file in ``folder``, after downloading it if it is missing.

    Parameters
    ----------
    url : str
        Address of the file.
    folder : str or Path
        Folder of the local file; a file that the user copied there is used.
    sha256 : str, optional
        Expected checksum; by default the one in ``NAME.sha256``, which the first use writes.
    base_url : str, optional
        URL of a mirror's folder to download from; by default ``$GNNLAB_DATA_URL``, if set.
    room : float
        Free space required before the download starts, as a multiple of the file's size.
    progress : bool
        Whether to show a bar when the download takes longer than a second.

    Raises
    ------
    DownloadFailed
        No connection, not enough space, or a wrong checksum; the message says what to do.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.fetch("https://example.org/a.zip", "downloads")        # doctest: +SKIP
    PosixPath('downloads/a.zip')
    """
    import pooch

    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    name = url.rsplit("/", 1)[1]
    path, note = folder / name, folder / f"{name}.sha256"
    base = base_url or os.environ.get("GNNLAB_DATA_URL")
    if base:
        url = f"{base.rstrip('/')}/{name}"

    def resume(address: str, output: str, _: Any) -> None:
        part = folder / f"{name}.part"
        transfer(address, part, room, progress)
        os.replace(part, output)
        _tag(part).unlink(missing_ok=True)

    logger = pooch.get_logger()
    with locked(folder), ExitStack() as stack:
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.WARNING)
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
    """Unpack a zip or tar file; ``folder`` is created only when all of it is unpacked.

    Parameters
    ----------
    archive : str or Path
    folder : str or Path
        New name of the archive's one top folder. If it exists, nothing is done.
    one_folder : bool
        False if the archive has no top folder; its files are then put in ``folder``.

    Returns
    -------
    pathlib.Path
        ``folder``.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.data.unpack("products.zip", "products")                     # doctest: +SKIP
    PosixPath('products')
    """
    archive, folder = Path(archive), Path(folder)
    if folder.exists():
        return folder
    check_file(archive, "give the path of an archive")
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with staging_folder(folder.parent, ".unpacking-", "") as staging:
        content = staging / "content"
        content.mkdir()
        extract(archive, content)
        # Archives made on macOS have a second folder, __MACOSX, of metadata.
        found = [path for path in content.iterdir() if path.name != "__MACOSX"]
        tops = found if one_folder else [content]
        if len(tops) != 1 or not tops[0].is_dir():
            names = ", ".join(sorted(top.name for top in tops)) or "nothing"
            raise InvalidInput(f"{archive}: expected one folder inside; found {names}")
        os.replace(tops[0], folder)
    return folder


def extract(archive: Path, folder: Path) -> None:
    """Extract a zip or tar file into a folder, after a check of all paths and of the free space.

    Raises InvalidInput if the archive is damaged, or holds a path or link that leads outside of the
    folder, and DownloadFailed if the disk has too little space.
    """
    check_file(archive, "give the path of an archive")
    try:
        if tarfile.is_tarfile(archive):
            with tarfile.open(archive) as tar:
                for entry in tar.getmembers():
                    _check_entry(archive, entry, folder)
                _check_space(folder, sum(entry.size for entry in tar.getmembers()))
                tar.extractall(folder, **_AS_DATA)
            return
        with zipfile.ZipFile(archive) as source:
            for member in source.infolist():
                _check_member(archive, member)
            _check_space(folder, sum(member.file_size for member in source.infolist()))
            source.extractall(folder)
    except _REFUSED as error:
        raise InvalidInput(f"{archive}: refused, {error}") from error
    except (zipfile.BadZipFile, tarfile.TarError, *_BROKEN) as error:
        raise InvalidInput(f"{archive}: damaged ({error}); delete it and try again") from error


# Python 3.11 has filters since 3.11.4; without them, only files and folders are extracted.
_AS_DATA: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
_REFUSED = getattr(tarfile, "FilterError", ())


def _check_entry(archive: Path, entry: tarfile.TarInfo, folder: Path) -> None:
    if _AS_DATA:
        tarfile.data_filter(entry, str(folder))
        return
    inside = (folder / entry.name).resolve().is_relative_to(folder.resolve())
    if not inside or not (entry.isfile() or entry.isdir()):
        raise InvalidInput(f"{archive}: refused, {entry.name!r} leads outside or is a link")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes: ranks of one machine load the same data set."""
    from filelock import FileLock, Timeout

    lock = FileLock(folder / ".lock", timeout=LOCK_TIMEOUT, is_singleton=True)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise DownloadFailed(
                f"another process has locked {folder} for {LOCK_TIMEOUT} s; wait for it or end it"
            ) from error
    try:
        yield
    finally:
        lock.release()


def _check_space(folder: Path, needed: float) -> None:
    """Raise DownloadFailed unless ``needed`` bytes are free on the disk of ``folder``."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DownloadFailed(
            f"{folder} has {free / 1e9:.2f} GB free; {needed / 1e9:.2f} GB are needed. Free some "
            "space, or choose another disk with the environment variable GNNLAB_DATA_DIR"
        )


def _check_member(archive: Path, member: zipfile.ZipInfo) -> None:
    parts = member.filename.replace("\\", "/").split("/")
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or ".." in parts or parts[0] == "" or ":" in parts[0]:
        raise InvalidInput(
            f"{archive}: refused, {member.filename!r} would be written outside the archive's folder"
        )


def transfer(url: str, part: Path, room: float, progress: bool, verify: bool = True) -> None:
    """Complete ``part``; after a broken connection, retry as long as each attempt adds bytes.

    If one adds nothing, DownloadFailed is raised, and ``part`` keeps the bytes that arrived.
    """
    import requests

    while True:
        before = _size(part)
        try:
            return _transfer(url, part, room, progress, verify)
        except requests.HTTPError as error:
            reason = f"the server answered: {error}"
        except requests.RequestException as error:
            if _size(part) > before:
                continue
            reason = f"{type(error).__name__}: no answer, or the connection broke"
        again = f"Try again: it goes on after {_size(part):,} bytes" if _size(part) else "Try again"
        path = part.with_name(part.name.removesuffix(".part"))
        raise DownloadFailed(
            f"could not get {url} ({reason}). {again}; or get {path.name} with a browser or on "
            f"another machine, and save it as {path}"
        )


def _transfer(url: str, part: Path, room: float, progress: bool, verify: bool) -> None:
    """Request the missing bytes and append them to ``part``."""
    import requests

    have = _size(part) if _tag(part).exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers |= {"Range": f"bytes={have}-", "If-Range": _tag(part).read_text("utf8")}
    options: Any = {"headers": headers, "stream": True, "timeout": TIMEOUT, "verify": verify}
    with requests.get(url, **options) as answer:
        content_range = answer.headers.get("Content-Range", "")
        if answer.status_code == 416 and content_range == f"bytes */{have}":
            return
        if answer.status_code == 416:
            part.unlink()
            return _transfer(url, part, room, progress, verify)
        answer.raise_for_status()
        if not (answer.status_code == 206 and content_range.startswith(f"bytes {have}-")):
            have = 0  # whole file: the server cannot resume, or its file has changed
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else None
        _check_space(part.parent, (total or 0) * room - have)
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
    """Return the version of the server's file, a strong ``ETag`` or else its date, if given."""
    etag = headers.get("ETag", "W/")
    return headers.get("Last-Modified") if etag.startswith("W/") else etag


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _tag(part: Path) -> Path:
    """Return the path of the file with the version that ``part`` was downloaded from."""
    return part.with_name(f"{part.name}.version")
