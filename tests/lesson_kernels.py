"""Kernels of tested lessons, forked by the nursery: they have imported what all lessons import.

A kernel that starts as a fresh interpreter imports IPython, torch and matplotlib for some four
seconds. One that the nursery forks has a session, a process group, a seed and an environment of its
own, as has a fresh one, and gnnlab is not imported yet. The ranks that it starts with
``launch_processes`` are forked by the nursery, too. ``make test ALL=1`` starts fresh ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import ipykernel_launcher
from jupyter_client.provisioning import local_provisioner

from tests.helpers import FRESH, _nursery
from tests.nursery import EARLY, IS_POSSIBLE

MODULES = ("ipykernel.kernelapp", "IPython.core.completer", "matplotlib.pyplot", "tqdm.auto")
INLINE = "module://matplotlib_inline.backend_inline"  # what a kernel sets; pyplot reads it once
ARGUMENTS = ["-m", "ipykernel_launcher"]

_start_fresh = local_provisioner.launch_kernel


@contextmanager
def forked() -> Iterator[None]:
    """Within it, ``jupyter_client`` has Python's kernels forked where that is possible."""
    possible = IS_POSSIBLE and hasattr(os, "fork") and not FRESH
    local_provisioner.launch_kernel = _start if possible else _start_fresh
    try:
        yield
    finally:
        local_provisioner.launch_kernel = _start_fresh


def _start(cmd: list[str], **options: Any) -> Any:
    env = {**(options.get("env") or os.environ)}
    early = {name for name in {*env, *os.environ} if name.startswith(EARLY)} - {"PYTHONPATH"}
    is_python = cmd[1:3] == ARGUMENTS or cmd[1:4] == ["-Xfrozen_modules=off", *ARGUMENTS]
    if not is_python or any(env.get(name) != os.environ.get(name) for name in early):
        return _start_fresh(cmd, **options)
    env = {"MPLBACKEND": INLINE, **env, "JPY_PARENT_PID": str(os.getpid())}
    words = [ipykernel_launcher.__file__, *cmd[cmd.index(ARGUMENTS[1]) + 1 :]]
    with open(os.devnull, "wb") as null:
        files = [(options.get(name) or null).fileno() for name in ("stdout", "stderr")]
        kernel: Any = _nursery().start(
            words, env, *files, options.get("cwd"), MODULES, starts_ranks=True
        )
    kernel.stdin = kernel.stdout = kernel.stderr = None
    kernel.await_group()
    return kernel
