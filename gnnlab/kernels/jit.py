"""``njit`` of numba, whose compiled code finds a folder in every case.

numba keeps what it compiles beside the source, or else in the user's home. In a container that runs
under a foreign user ID neither can be written, and numba refuses to compile at all. Then kernels go
to a folder of this user in the system's place for temporary files. Code is run from there, so
nobody else may write to it.
"""

from __future__ import annotations

import os
import stat
import tempfile
import warnings
from pathlib import Path

import numba.core.config
from numba import njit

__all__ = ["njit"]


def _try() -> None:
    """Decorated as kernels are: numba looks for the folder at once."""


def _private_folder() -> Path:
    """Make the folder, or take the one that this user has; never one of somebody else."""
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    folder = Path(tempfile.gettempdir(), f"gnnlab-kernels-{user}")
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        found = folder.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == user
        if not hasattr(os, "getuid") or (is_ours and not found.st_mode & 0o077):
            return folder
        folder = Path(tempfile.mkdtemp(prefix="gnnlab-kernels-"))
    warnings.warn(
        f"neither {Path(__file__).parent} nor your home folder can be written: compiled kernels "
        f"are kept in {folder}. Set NUMBA_CACHE_DIR to a folder of yours to keep them elsewhere",
        stacklevel=2,
    )
    return folder


try:
    njit(cache=True)(_try)
except RuntimeError:  # no locator available
    numba.core.config.CACHE_DIR = str(_private_folder())  # type: ignore[attr-defined]
