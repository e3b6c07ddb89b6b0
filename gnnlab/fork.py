"""Safe use of fork: an alias of :mod:`gnnlab.helpers.fork`, a single file to be copied."""

from __future__ import annotations

from gnnlab.helpers.fork import (
    ForkError,
    Lock,
    check_fork,
    fix_openmp,
    prepare_mp,
    protect_forks,
    rest_openmp,
)

__all__ = [
    "ForkError",
    "Lock",
    "check_fork",
    "fix_openmp",
    "prepare_mp",
    "protect_forks",
    "rest_openmp",
]
