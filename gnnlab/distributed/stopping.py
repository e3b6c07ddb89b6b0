"""Stop before a scheduler ends the job.

Clusters limit a job's time, and may take its hosts for another job. Slurm can announce that:
``#SBATCH --signal=B:USR1@120`` sends SIGUSR1 to the launcher two minutes before. The launcher
passes it on to the agents, and :func:`should_stop` to the trainers, which save a checkpoint.
"""

from __future__ import annotations

import os

from gnnlab.distributed import context
from gnnlab.launch import environment
from gnnlab.parallel.rendezvous import notify_agent

_STOP = "stop"  # the file that an agent makes; tools/agent.py


def should_stop() -> bool:
    """Return whether the job is about to be ended; the same answer for all trainers.

    All trainers must call this equally often, where they could save a checkpoint: after each epoch,
    or every few hundred batches. It waits for all of them.

    Returns
    -------
    bool
        True: save a checkpoint and return from the script. The launcher then asks Slurm to queue
        the job again. Always False without a launcher.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.distributed.initialize()
    >>> dgl.distributed.should_stop()
    False
    """
    folder = os.environ.get(environment.OUTPUT)
    told = _STOP if folder and os.path.exists(os.path.join(folder, _STOP)) else ""
    remote = context.current().remote
    is_told = _STOP in (remote.meet("should_stop", told) if remote else (told,))
    if is_told:
        notify_agent("stopping")
    return is_told
