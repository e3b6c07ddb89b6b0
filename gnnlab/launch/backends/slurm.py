"""The backend ``slurm``: the nodes of the allocation in which this runs, one job step on each.

In an sbatch script or a shell of ``salloc``, the environment names the job and its nodes. ``srun``
starts an agent on a node as a step that shares the job's resources, and forwards its streams.

References
----------
Slurm, manual pages srun(1) and sbatch(1), "ENVIRONMENT VARIABLES".
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import ClassVar

from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch.backends import Backend, Host, HostRequest


class Slurm(Backend):
    """The nodes of an allocation, in its order; the first runs the sbatch script."""

    name = "slurm"
    remedies: ClassVar = {
        "has been revoked": "the job of Slurm has ended; allocate nodes again",
        "already completing": "the job of Slurm is ending; allocate nodes again",
        "Invalid job id": "the job of Slurm has ended; allocate nodes again",
        "Requested node configuration is not available": "the node is not part of the allocation",
        "Unable to contact slurm controller": "its controller does not answer; try `scontrol ping`",
        "execve()": "name an interpreter that is there in your command",
    }

    def __init__(self, request: HostRequest) -> None:
        env = os.environ
        nodes = env.get("SLURM_JOB_NODELIST", "")
        if not env.get("SLURM_JOB_ID") or not nodes:
            raise InvalidInput(
                "this does not run in an allocation of Slurm; start it in a script for sbatch, or "
                "in the shell of `salloc --nodes=N`"
            )
        names = _ask("scontrol", "show", "hostnames", nodes)
        gpus = env.get("SLURM_GPUS_ON_NODE", "")
        self._gpus = int(gpus) if gpus.isdigit() else 0
        number = request.num_hosts or len(names)
        if number > len(names):
            raise InvalidInput(
                f"{number} machines are needed, one for each part of the graph, but the allocation "
                f"has {len(names)} nodes ({nodes}); allocate {number}, or partition the graph "
                f"into {len(names)}"
            )
        self.hosts = [Host(name, name) for name in names[:number]]

    def argv(self, host: Host, command: Sequence[str]) -> list[str]:
        """Return the command line of srun.

        Not ``--unbuffered``: it makes a pseudo-terminal, which changes bytes of a pipe.
        """
        argv = ["env", "-u", "SLURM_GPUS", "srun", "--overlap", "--quiet", "--export=ALL"]
        argv += [f"--nodelist={host.name}", "--nodes=1", "--ntasks=1", "--mem=0", "--mpi=none"]
        if self._gpus:
            argv += [f"--gpus-per-node={self._gpus}"]
        return [*argv, "--", *command]

    def requeue(self) -> None:
        """Queue the batch job again, which ends this run of it; its ID stays the same."""
        job = os.environ["SLURM_JOB_ID"]
        try:
            print(
                f"gnnlab launch: the trainers have stopped; job {job} is queued again", flush=True
            )
            with suppress(ValueError):  # not in the main thread
                signal.signal(signal.SIGTERM, signal.SIG_IGN)  # everything has ended already
            _ask("scontrol", "requeue", job)
        except GNNLabError as error:
            print(f"gnnlab launch: job {job} was not queued again: {error}", flush=True)


def _ask(*argv: str) -> list[str]:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or str(error)).strip()
        raise GNNLabError(f"{' '.join(argv)} failed: {said}") from None
    return done.stdout.split()
