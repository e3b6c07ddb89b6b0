"""Roles of the processes of a job, under the names of ``dgl.distributed.role``."""

from __future__ import annotations

from gnnlab.distributed import context


def get_role() -> str:
    """Return "default" for a trainer, or "sampler"; servers run no code of a program."""
    return "sampler" if context.current().role == "sampler" else "default"


def get_num_trainers() -> int:
    """Return the number of trainers of the job."""
    return context.num_trainers()


def get_trainer_rank() -> int:
    """Return the rank of this trainer; a sampler has that of its trainer."""
    return context.rank()


def get_global_rank() -> int:
    """Return a number of this process among all of its role; for trainers, the rank."""
    return context.rank()


def is_initialized() -> bool:
    """Return whether :func:`gnnlab.distributed.initialize` was called and not left since."""
    return context.process().context is not None
