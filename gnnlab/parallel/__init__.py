"""Parallel processes on one machine, started from a notebook cell or a script."""

from gnnlab.parallel.checkpoint import load_checkpoint, save_checkpoint
from gnnlab.parallel.ddp import (
    create_dataloader,
    free_port,
    global_mean,
    init_model,
    init_process_group,
    rank_share,
)
from gnnlab.parallel.processes import launch_processes
from gnnlab.parallel.progress import report, track
from gnnlab.parallel.rank_supervisor import RankError

__all__ = [
    "RankError",
    "create_dataloader",
    "free_port",
    "global_mean",
    "init_model",
    "init_process_group",
    "launch_processes",
    "load_checkpoint",
    "rank_share",
    "report",
    "save_checkpoint",
    "track",
]
