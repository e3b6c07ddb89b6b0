"""Staging: files that are written under a temporary name and renamed when complete.

A process that is killed leaves its staging files behind. The next process that writes to the same
path removes them, but not those of a running process: each writer locks its staging file, and the
operating system releases the lock when the process ends, however it ends.
"""

from __future__ import annotations

import errno
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
except ImportError:  # Windows: no locks, so staging files of killed processes stay
    fcntl = None  # type: ignore[assignment]


def try_lock(path: Path) -> int | None:
    """Lock a file or folder without waiting; return a descriptor that holds the lock until closed.

    None if another process has it, the path is missing, or the system or file system has no locks.
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
    """Wait for the lock of a folder and hold it. No effect if the file system has no locks."""
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
def staging_folder(folder: Path, prefix: str, suffix: str) -> Iterator[Path]:
    """Make a folder that is removed after the block; also remove those of killed processes.

    These are unlocked folders whose names begin with ``prefix`` and end in ``suffix``.
    """
    with locked(folder):
        for path in folder.glob(f"{glob.escape(prefix)}*{glob.escape(suffix)}"):
            if (descriptor := try_lock(path)) is not None:
                try:
                    shutil.rmtree(path, ignore_errors=True)
                finally:
                    os.close(descriptor)
        made = Path(tempfile.mkdtemp(suffix, prefix, folder))
        descriptor = try_lock(made)
    try:
        yield made
    finally:
        try:
            shutil.rmtree(made, ignore_errors=True)
        finally:
            if descriptor is not None:
                os.close(descriptor)


def check_replaceable(path: Path) -> None:
    """Raise OSError for no name, or if a device, a pipe or a socket would become a file."""
    if not path.name or "\0" in str(path):
        raise OSError(errno.EINVAL, "it is not the name of a file", str(path))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block ends without an error.

    The old file stays until the new one is on disk. Staging files of killed processes are removed.
    """
    check_replaceable(path)
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        if (descriptor := try_lock(left)) is not None:
            left.unlink(missing_ok=True)
            os.close(descriptor)
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with _create(staged) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # Windows cannot rename an open file
                file.close()
            os.replace(staged, path)
        except BaseException:
            if fcntl is None:
                file.close()
            staged.unlink(missing_ok=True)
            raise


def _create(staged: Path) -> BinaryIO:
    """Create a file and lock it; retry if another process removed it before it was locked."""
    while True:
        file = open(staged, "xb")  # noqa: SIM115
        if fcntl is None:
            return file
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()
