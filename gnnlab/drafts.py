"""Drafts: files that are written under another name, and appear under their own when complete.

A process that is killed leaves its drafts behind. The next process that writes to the same place
clears them, but not those of a process that is still writing: each writer holds a lock on its
draft, which the system releases however the process ends.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: no locks, so drafts of killed processes stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["hold", "locked", "replacing", "temporary_folder"]


def hold(path: Path) -> int | None:
    """Lock a file or folder without waiting.

    Returns
    -------
    int or None
        A descriptor that holds the lock until it is closed. None where another process has the
        lock, the path does not exist, or the file system or Windows has no locks.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; wait for it. Without effect where the file system has no locks."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def temporary_folder(folder: Path, prefix: str, suffix: str) -> Iterator[Path]:
    """Make a folder for the time of the block, and clear those that killed processes left.

    Parameters
    ----------
    folder : Path
        Where it is made.
    prefix, suffix : str
        How its name begins and ends. What ends in ``suffix`` and is not locked is cleared.
    """
    with locked(folder):
        for path in folder.glob(f"{glob.escape(prefix)}*{glob.escape(suffix)}"):
            if (descriptor := hold(path)) is not None:
                try:
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(descriptor)
        made = Path(tempfile.mkdtemp(suffix, prefix, folder))
        descriptor = hold(made)
    try:
        yield made
    finally:
        try:
            shutil.rmtree(made, ignore_errors=True)
        finally:
            if descriptor is not None:
                os.close(descriptor)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another when the block ends without an error.

    Drafts of killed processes for the same path are removed.

    Parameters
    ----------
    path : Path
        Not touched before the new content is on the disk.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gnnlab.drafts import replacing
    >>> path = Path(tempfile.mkdtemp(), "a")
    >>> with replacing(path) as file:
    ...     _ = file.write(b"all")
    ...     print(path.exists())
    False
    >>> path.read_bytes()
    b'all'
    """
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if (descriptor := hold(left)) is not None:
            left.unlink(missing_ok=True)
            os.close(descriptor)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with _create(draft) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # an open file has no other name on Windows
                file.close()
            os.replace(draft, path)
        except BaseException:
            if fcntl is None:
                file.close()
            draft.unlink(missing_ok=True)
            raise


def _create(draft: Path) -> BinaryIO:
    """Create a file and lock it; again where another process cleared it before the lock."""
    while True:
        file = open(draft, "xb")  # noqa: SIM115
        if fcntl is None:
            return file
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()
