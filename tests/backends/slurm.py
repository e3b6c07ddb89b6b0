"""A Slurm cluster on one machine: a controller and a node on host 0, a node on each other host.

Needs slurmctld, slurmd, srun and munged (Debian, Ubuntu: slurmctld, slurmd, slurm-client, munge).
None of their services has to run; keys and configuration are made anew, and mounted over
/etc/slurm on the hosts alone.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.backends.hosts import PROGRAMS, Hosts, obstacle
from tests.helpers import wait_until

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
CONFIG = """\
ClusterName={name}
SlurmctldHost={name}0({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
MessageTimeout=20
SlurmdTimeout=60
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldParameters=preempt_send_user_signal
PartitionName=DEFAULT Nodes=ALL MaxTime=INFINITE State=UP DefMemPerCPU=500
PartitionName=all Default=YES PriorityTier=1 GraceTime=600
PartitionName=urgent PriorityTier=10
"""


def slurm_obstacle() -> str:
    """Say why there can be no Slurm cluster here; '' if there can."""
    if missing := obstacle((*PROGRAMS, *DAEMONS)):
        return missing
    return "" if os.path.isdir("/etc/slurm") else "needs /etc/slurm, which slurmd's package makes"


@contextmanager
def slurm_cluster(name: str = "slm", loopback: bool = False) -> Iterator[Hosts]:
    """Run a cluster of three nodes; what a job inherits is what a login shell would have."""
    with Hosts(name, loopback=loopback) as hosts:
        folder = hosts.folder / "slurm"
        _write(folder, name, hosts)
        shell = ["env", "-i", f"PATH={os.environ['PATH']}:/usr/sbin", "HOME=/root", "LANG=C.UTF-8"]
        for i in range(len(hosts.names)):
            hosts.run(i, "mount", "--bind", f"{folder}/etc", "/etc/slurm")
        munge = folder / "munge"
        files = [f"--{kind}={munge}/{kind.split('-')[0]}" for kind in ("key-file", "pid-file")]
        files += [f"--{kind}={munge}/{kind.split('-')[0]}" for kind in ("log-file", "seed-file")]
        _start(hosts, 0, *shell, "munged", "--force", f"--socket={munge}/socket", *files)
        wait_until("munge", (munge / "socket").exists)
        _start(hosts, 0, *shell, "slurmctld", "-c")
        for i in range(len(hosts.names)):
            _start(hosts, i, *shell, "slurmd")
        total = str(len(hosts.names))

        def is_idle() -> bool:
            return hosts.run(0, "sinfo", "-h", "-t", "idle", "-o", "%D").strip() == total

        try:
            wait_until("idle nodes", is_idle)
        except (TimeoutError, OSError) as error:
            logs = "\n".join(path.read_text()[-2000:] for path in folder.glob("*.log"))
            raise OSError(f"Slurm did not come up: {error}\n{logs}") from None
        yield hosts


def _write(folder: Path, name: str, hosts: Hosts) -> None:
    for each in ("etc", "state", "munge"):
        (folder / each).mkdir(parents=True)
    (folder / "munge").chmod(0o700)
    (folder / "munge" / "key").touch(0o600)
    (folder / "munge" / "key").write_bytes(secrets.token_bytes(128))
    config = CONFIG.format(name=name, address=hosts.addresses[0], folder=folder)
    for node, address in zip(hosts.names, hosts.addresses, strict=True):
        config += f"NodeName={node} NodeAddr={address} CPUs=2 RealMemory=8000 State=UNKNOWN\n"
    (folder / "etc" / "slurm.conf").write_text(config)


def _start(hosts: Hosts, i: int, *command: str) -> None:
    """Start a daemon; its streams are not ours, so waiting for them would not end."""
    with open(hosts.folder / "slurm" / "started", "ab") as log:
        hosts.run(i, *command, stderr=log)
