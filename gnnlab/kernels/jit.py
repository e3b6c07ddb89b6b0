"""``njit`` of numba with a fallback folder for the compiled code, and what kernels share.

numba stores compiled code beside the source, or else in the user's home. In a container that runs
under another user ID neither is writable, and numba raises an error instead of compiling. In that
case this module uses a temporary folder: code is run from it, so only this user may write to it.

It also loads all of numba that a first call needs, in half of the time that it usually takes:
without searching the objects of torch for garbage, and without ``scipy.linalg``.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["njit", "prefetch", "unsigned"]

_collects = gc.isenabled()
gc.disable()  # the objects made here stay; Python would search them, and all of torch's, repeatedly
try:
    import numba.core.config
    from numba import njit, types
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target
    from numba.extending import intrinsic
    from numba.np import linalg

    _check_blas: Any = getattr(linalg, "ensure_blas", None)  # not a public name

    def _skip_once() -> None:
        """Take the place of numba's check, which imports ``scipy.linalg``, when numba starts.

        It is made again where a matrix product is compiled.
        """
        linalg.ensure_blas = _check_blas

    if _check_blas and "numba.np.arraymath" not in sys.modules:  # which calls it at its import
        linalg.ensure_blas = _skip_once
    with global_compiler_lock:
        cpu_target.target_context.refresh()  # imports most of numba; the first call would do it
finally:
    if not gc.get_freeze_count():
        gc.freeze()  # both together: the objects count as old, so they are searched rarely
        gc.unfreeze()
    if _collects:
        gc.enable()


def _try() -> None:
    """Test function: decorating it makes numba choose its cache folder."""


def _has_folder() -> bool:
    """Whether numba finds a folder that it can write to."""
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    if os.path.expanduser("~") == "~" and not chosen:
        # Without $HOME and an entry in /etc/passwd, numba would make a folder called "~".
        try:
            beside = Path(__file__).with_name("__pycache__")
            beside.mkdir(exist_ok=True)
            tempfile.TemporaryFile(dir=beside).close()
        except OSError:
            return False
    try:
        njit(cache=True)(_try)
    except RuntimeError:  # no locator available
        return False
    return True


def _private_folder() -> Path:
    """Make or reuse a folder of this user that others can neither own nor access."""
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
        f"are kept in {folder}. Set NUMBA_CACHE_DIR to another folder to keep them there",
        stacklevel=2,
    )
    return folder


if not _has_folder():
    numba.core.config.CACHE_DIR = str(_private_folder())  # type: ignore[attr-defined]


def unsigned(ids: np.ndarray) -> np.ndarray:
    """Return IDs or positions, int32 or int64 and not negative, as a view of unsigned integers.

    Where an index is signed, numba tests at each access whether it counts from the end.
    """
    return ids.view(np.uint32 if ids.itemsize == 4 else np.uint64)


def _prefetch(typing, array, index):  # type: ignore[no-untyped-def]
    """Start loading ``array[index]`` into the cache; a kernel goes on meanwhile."""
    from llvmlite import ir
    from numba.np.arrayobj import make_array

    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        load = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        # to be read (0), soon and often (3), data (1)
        builder.call(load, [place, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.uintp), generate


prefetch: Any = intrinsic(_prefetch)
