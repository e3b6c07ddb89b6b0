"""Run the scripts of examples/ by ssh and by a backend, on the same three hosts; print a table.

    python -m tests.backends.compare slurm
    python -m tests.backends.compare ray

Each script runs once on this computer before, which compiles its kernels. The first batch is in
time when the last trainer has it. Ends with status 1 if losses or accuracies differ.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gnnlab import trace
from tests.backends.hosts import Hosts
from tests.backends.ray import PORT, RayHosts, ray_cluster
from tests.backends.slurm import slurm_cluster
from tests.helpers import ROOT, wait_until

END = 400  # seconds for one job, on a busy computer
SCRIPTS = {  # script: options of partition.py, options of the script
    "train_dist": ("--dataset digits", "--num_epochs 2 --batch_size 60"),
    "train_dist_hetero": ("--kind typed --graph_name typed", "--num_epochs 1"),
    "train_dist_link": ("--kind links --graph_name links", "--num_epochs 1"),
    "train_dist_transductive": ("--dataset digits", "--num_epochs 1"),
}
SHOWN = re.compile(r"(?:loss|validation accuracy|test accuracy) [\d.]*\d")
SSHD = """\
ListenAddress {address}
HostKey {folder}/key
AuthorizedKeysFile {folder}/key.pub
PidFile none
UsePAM no
StrictModes no
"""


def start_sshd(hosts: Hosts) -> None:
    """Start sshd on each host, and write a ``bin/ssh`` that knows its key."""
    folder = hosts.folder / "ssh"
    (folder / "bin").mkdir(parents=True)
    key = folder / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    lines = "".join(f"{address} {public}\n" for address in hosts.addresses)
    (folder / "known_hosts").write_text(lines)
    options = f"-i {key} -o UserKnownHostsFile={folder}/known_hosts"
    (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {options} "$@"\n')
    (folder / "bin" / "ssh").chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)
    for i, address in enumerate(hosts.addresses):
        (folder / f"config{i}").write_text(SSHD.format(address=address, folder=folder))
        hosts.run(i, "/usr/sbin/sshd", "-f", f"{folder}/config{i}", "-E", f"{folder}/log{i}")
        probe = hosts.argv(0, [f"{folder}/bin/ssh", address, "true"])
        wait_until("sshd", lambda probe=probe: subprocess.run(probe).returncode == 0)


def run(hosts: Hosts, backend: str, script: str, folder: Path) -> tuple[float, list[str], str]:
    """Run a job; return seconds to the first batch, what was printed, and the hosts."""
    _, options = SCRIPTS[script]
    config = next((folder / script).glob("*.json"))
    python, events = sys.executable, folder / f"{script}-{backend}"
    command = f"{python} {ROOT}/examples/{script}.py --graph_name {config.stem} {options}"
    launch = [python, "-m", "gnnlab", "launch", "--workspace", str(folder)]
    launch += ["--part_config", str(config), "--num_omp_threads", "1", "--trace", str(events)]
    launch += ["--log_dir", f"{events}-logs"]
    before: list[str] = []
    path = f"{hosts.folder}/ssh/bin:{Path(python).parent}:{os.environ['PATH']}"
    shell = ["env", "-i", f"PATH={path}", "HOME=/root", "LANG=C.UTF-8"]
    if backend == "ssh":
        launch += ["--ip_config", str(folder / "ip_config.txt")]
    elif backend == "ray":
        assert isinstance(hosts, RayHosts)
        shell = hosts.shell(RAY_ADDRESS=f"{hosts.addresses[0]}:{PORT}")
    else:
        before = ["salloc", "--quiet", f"--nodes={len(hosts.names)}", "--"]
    start = time.time()
    said = hosts.run(0, *shell, *before, *launch, command, folder=folder, timeout=END)
    first = {}
    for event in trace.read(events):
        if event.kind == "compute":
            first[event.rank] = min(event.start, first.get(event.rank, event.start))
    assert len(first) == len(hosts.names), first
    known = next((line for line in said.splitlines() if "machines are" in line), "")
    return max(first.values()) - start, SHOWN.findall(said), known


def main(backend: str) -> int:
    """Print the table; return 1 if results differ."""
    cluster = slurm_cluster("gnc") if backend == "slurm" else ray_cluster("gnc")
    same = True
    with tempfile.TemporaryDirectory(prefix="gnnlab-compare-") as name, cluster as hosts:
        folder = Path(name)
        (folder / "ip_config.txt").write_text("".join(f"{each}\n" for each in hosts.addresses))
        start_sshd(hosts)
        for script, (parts, options) in SCRIPTS.items():
            data = folder / script
            words = [sys.executable, f"{ROOT}/examples/partition.py", *parts.split()]
            words += ["--num_parts", "3", "--output", str(data)]
            subprocess.run(words, check=True, capture_output=True)
            config = next(data.glob("*.json"))
            alone = [sys.executable, f"{ROOT}/examples/{script}.py", "--graph_name", config.stem]
            alone += ["--part_config", str(config), *options.split()]
            subprocess.run(alone, check=True, capture_output=True)
            by_ssh, said_ssh, _ = run(hosts, "ssh", script, folder)
            took, said, known = run(hosts, backend, script, folder)
            same &= said == said_ssh and bool(said)
            load = f"load {os.getloadavg()[0]:.0f}"
            print(f"{script} | {', '.join(said)} | {by_ssh:.1f} s | {took:.1f} s | {load}")
            print(f"    {known}", flush=True)
            if said != said_ssh:
                print(f"    ssh: {', '.join(said_ssh)}", flush=True)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
