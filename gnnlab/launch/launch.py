r"""Start a job on many machines, watch it, and end it everywhere.

    python -m gnnlab.launch.launch --workspace ~/work --num_trainers 2 --num_samplers 1 \
        --num_servers 1 --part_config data/graph.json --ip_config ip_config.txt \
        "python3 train_dist.py --num_epochs 10"

On each host of ip_config an agent (:mod:`gnnlab.launch.agent`) starts the servers and the
trainers, which wait for the servers of all hosts. The first failure anywhere ends the job.
Needed on the hosts: the same versions of Python, torch and gnnlab, an sshd that lets you in without
a password, and in the workspace the scripts and the host's part of the graph (``copy_files``).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gnnlab.errors import GNNLabError, InvalidInput, no_such_file
from gnnlab.launch import environment
from gnnlab.launch import ip_config as ip_configs
from gnnlab.launch.agent import ENTRY
from gnnlab.launch.backends import NAMES, Backend, Host, HostRequest, choose, open_backend
from gnnlab.launch.certificates import Authority
from gnnlab.launch.ip_config import IP_CONFIG_HELP, names_of, read_ip_config
from gnnlab.launch.job_spec import Command, JobSpec
from gnnlab.launch.job_supervisor import JobSupervisor, LaunchError
from gnnlab.launch.probe import versions
from gnnlab.launch.status_table import StatusTable
from gnnlab.system.command import add_ssh_options, command, command_parser

_PATIENCE = 10.0  # seconds for servers to end after all trainers have


@dataclass(frozen=True)
class JobResult:
    """A job that has succeeded."""

    job: str  # its name
    log_dir: Path  # one file per process
    seconds: float  # from the first login to the end of the last process
    has_stopped: bool = False  # trainers stopped early: gnnlab.distributed.should_stop() said so

    @property
    def logs(self) -> dict[str, str]:
        """Output of each process, by names like ``"trainer-0"``."""
        return {f.stem: f.read_text("utf8", "replace") for f in sorted(self.log_dir.glob("*.log"))}

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        ends = ([name, text.rstrip().rpartition("\n")[2]] for name, text in self.logs.items())
        values = {"job": self.job, "seconds": self.seconds, "has_stopped": self.has_stopped}
        return cells.page(type(self).__name__, values, cells.table(["logs", ""], ends))


def run(
    command: str | Sequence[str],
    *,
    part_config: str | os.PathLike[str],
    workspace: str | os.PathLike[str] = ".",
    ip_config: str | os.PathLike[str] | None = None,
    num_machines: int | None = None,
    on: str | None = None,
    num_trainers: int = 1,
    num_samplers: int = 0,
    num_servers: int = 1,
    local: bool = False,
    ssh_port: int | None = None,
    ssh_username: str | None = None,
    extra_envs: Mapping[str, str] | None = None,
    graph_format: str = "csc",
    num_omp_threads: int | None = None,
    num_server_threads: int = 1,
    master_port: int | None = None,
    timeout: float = 300.0,
    max_pause: float = 3.0,
    log_dir: str | os.PathLike[str] = "gnnlab-logs",
    security: str = "tls",
    trace: str | os.PathLike[str] | None = None,
    dry_run: bool = False,
) -> JobResult | None:
    """Run a command as a job on many machines and wait until it has ended.

    Parameters that are not listed here are options of ``gnnlab launch``; see its ``--help``.

    Parameters
    ----------
    command : str or sequence of str
        Runs a Python script: ``"python3 train_dist.py --lr 0.1"``. NAME=VALUE before it sets an
        environment variable. No shell runs it, so pipes, ``$NAME``, ``~`` and the like are refused
        outside single quotes.
    part_config : path
        JSON file of the partitioned graph. There must be as many parts as machines.
    workspace : path
        Folder on each host in which the command runs and to which other paths are relative. ``~``
        and variables such as ``$GNNLAB_MACHINE``, the machine's number, are expanded on the host.
    ip_config : path, optional
        Local file that lists the machines, searched for in the workspace, then in the current
        folder; see :mod:`gnnlab.launch.ip_config`.
    num_machines : int, optional
        Number of machines. Without ``on``, they are emulated on this computer.
    on : str, optional
        What starts the agents: "local", "ssh", "slurm" or "ray"; see :mod:`gnnlab.launch.backends`.
        By default ssh with an ip_config, Slurm in an allocation, Ray if ``RAY_ADDRESS`` is set.
    num_trainers, num_servers, num_samplers : int
        The first two per machine, the last per trainer.
    local : bool
        Emulate all machines on this computer, without ssh, each at a loopback address of its own.
    extra_envs : dict of str, optional
        Additional environment variables for all processes.
    security : str
        "tls" to encrypt the traffic with servers and admit only processes of this job, or "none".
    trace : path, optional
        Folder for the trace events of all processes; :mod:`gnnlab.trace` reads it.
    timeout : float
        Seconds after which a host that does not answer, or an unready server, counts as failed.
    dry_run : bool
        Only print the commands, without secrets.
    max_pause : float
        Seconds for which a process may be stopped, by SIGSTOP, Ctrl-Z or a debugger, before it
        counts as failed. Trainers drop a stopped server after some four seconds in any case.
    log_dir : path
        Folder in which the job makes a folder of its own for the output of its processes.

    Returns
    -------
    JobResult, or None after a dry run

    Raises
    ------
    LaunchError
        The first failure; all processes have been ended.
    GNNLabError
        The system cannot start jobs: Windows without WSL. The package cryptography is missing.

    Examples
    --------
    >>> from gnnlab.launch import launch
    >>> launch.run("ls", part_config="data/graph.json", num_machines=2)
    Traceback (most recent call last):
        ...
    gnnlab.errors.InvalidInput: found the command 'ls'; expected one that runs a Python script, ...
    """
    if not hasattr(os, "fork"):
        raise GNNLabError(
            "jobs start on Linux and macOS; here is Windows. Run this in WSL (`wsl --install` in "
            "PowerShell, then install gnnlab there), or simulate the job: gnnlab.simulate"
        )
    taken_apart = Command.read(command)
    folder, graph, listed = (os.fspath(path) for path in (workspace, part_config, ip_config or ""))
    ssh: Any = {"ssh_port": ssh_port, "ssh_username": ssh_username}
    backend = _open_backend(on, local, folder, graph, listed, num_machines, num_servers, **ssh)
    if backend.is_local and "/" not in taken_apart.python:  # "python" means this interpreter
        argv = [sys.executable, *taken_apart.argv[1:]]
        taken_apart = taken_apart._replace(python=sys.executable, argv=argv)
    if not 0 < timeout < math.inf:
        raise InvalidInput(f"--timeout must be a number of seconds above 0; found {timeout}")
    with backend:
        numbers = num_trainers, num_samplers, num_servers, num_server_threads, num_omp_threads
        how: Any = graph_format, security, timeout, max_pause, extra_envs or {}, trace is not None
        job = JobSpec(taken_apart, backend.hosts, graph, listed, *numbers, *how)
        if dry_run:
            python = job.command.python
            where = "" if "/" in python else f": {python} is the first one on the PATH there"
            for machine, host in enumerate(job.hosts):
                agent = shlex.join(_agent(job, backend, host))
                print(f"# machine {machine}{where}\n{agent}\n{job.describe(machine)}")
            return None
        trace_dir = None if trace is None else _new_folder(trace)
        result = _run(job, backend, folder, master_port or 0, Path(log_dir), trace_dir)
        if result.has_stopped:
            backend.requeue()
        return result


def _run(
    job: JobSpec,
    backend: Backend,
    workspace: str,
    master_port: int,
    log_dir: Path,
    trace_dir: Path | None,
) -> JobResult:
    authority = _authority() if job.security == "tls" else None
    folder = Path(log_dir, time.strftime(f"%Y%m%d-%H%M%S-{job.id[:6]}")).absolute()
    folder.mkdir(parents=True)
    start = time.monotonic()
    names = names_of([ip_configs.Endpoint(name) for name in job.names])
    table = StatusTable(names, {"server": job.num_servers, "trainer": job.num_trainers})
    supervisor = JobSupervisor(job.names, folder, table, trace_dir, backend)
    grace = {}
    before: Any = None
    with suppress(ValueError):  # not in the main thread
        before = signal.signal(signal.SIGUSR1, lambda *_: supervisor.request_stop())
    try:
        for host in job.hosts:
            supervisor.begin(_agent(job, backend, host), _agent_env(backend))
        _start(job, supervisor, workspace, master_port, backend.is_local, authority)
        supervisor.wait_for("exited", "trainer", len(job.hosts) * job.num_trainers)
        grace = {"grace": _PATIENCE}
    finally:
        supervisor.end(**grace)
        if before is not None:
            signal.signal(signal.SIGUSR1, before)
    return JobResult(job.id, folder, time.monotonic() - start, supervisor.has_stopped)


def _new_folder(trace: str | os.PathLike[str]) -> Path:
    folder = Path(trace).absolute()
    if next(folder.glob("*.jsonl"), None):
        raise InvalidInput(
            f"{folder} holds the events of another job; name a new folder by --trace"
        )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _open_backend(
    on: str | None,
    local: bool,
    workspace: str,
    part_config: str,
    ip_config: str,
    num_machines: int | None,
    num_servers: int,
    **ssh: Any,
) -> Backend:
    """Open the backend ``on``; if that is None, the one that the arguments or the system imply."""
    folder = Path(os.path.expandvars(os.path.expanduser(workspace)))
    if local and on not in (None, "local"):
        raise InvalidInput(f"--local and --on {on} exclude each other; give one of them")
    if on is None and (local or num_machines is not None):
        on = "local"
    if on == "local" and "$GNNLAB_MACHINE" not in workspace and not folder.is_dir():
        raise InvalidInput(f"{no_such_file(folder)}. --workspace names the folder of the scripts")
    listed: list[Any] = []
    if ip_config and on in (None, "local", "ssh"):
        path = Path(ip_config)
        path = folder / path if (folder / path).is_file() else path
        listed = read_ip_config(path, num_servers=num_servers)
    request = HostRequest(num_machines, tuple(listed), **ssh)
    where = ""
    if on is None:
        on, where = choose(request)
    config = folder / part_config
    is_counted = num_machines is None and not listed and on != "ssh"
    if is_counted and (on == "local" or config.is_file()):
        request = replace(request, num_hosts=_num_parts(config))
    backend = open_backend(on, request)
    if where and on != "ssh":
        names = ", ".join(host.name for host in backend.hosts)
        print(f"gnnlab launch: the machines are {where}: {names}", flush=True)
    return backend


def _num_parts(part_config: Path) -> int:
    if not part_config.exists():
        raise InvalidInput(f"{no_such_file(part_config)}. --part_config is relative to --workspace")
    try:
        content = json.loads(part_config.read_text("utf-8-sig"))
        parts = sum(key.startswith("part-") for key in content)
        if content["num_parts"] != parts:
            raise ValueError(f"num_parts is {content['num_parts']!r}, and it lists {parts} parts")
        return parts
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"{part_config} is no JSON file of a partitioned graph: {error}"
        ) from None


def _agent(job: JobSpec, backend: Backend, host: Host) -> list[str]:
    """Return the command line that starts the agent of a host."""
    # -P: files in the login folder must not be imported as modules.
    as_dgl = ["-m", "gnnlab.as_dgl"] if environment.AS_DGL in os.environ else []
    argv = [job.command.python, "-P", *as_dgl, "-c", ENTRY]
    path = job.extra_envs.get("PYTHONPATH", os.environ.get("PYTHONPATH"))
    if path and not backend.is_local:
        argv = ["env", f"PYTHONPATH={path}", *argv]
    return backend.argv(host, argv)


def _agent_env(backend: Backend) -> dict[str, str]:
    path = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(path)} if backend.is_local else {}
    return {**os.environ, **own}


def _authority() -> Authority:
    """Make the authority of a job."""
    try:
        return Authority()
    except ImportError as missing:
        raise GNNLabError(
            f"keys of a job need the package cryptography ({missing}); `pip install cryptography` "
            "for the Python that runs `gnnlab launch`. In a network where everybody may read and "
            "write the data, --security none does without"
        ) from None


def _sign(
    authority: Authority, supervisor: JobSupervisor, hellos: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Sign the certificates that the agents ask for; return what each may know, without secrets."""
    found = []
    for i, hello in enumerate(hellos):
        try:
            own = {role: authority.sign(text, role, i) for role, text in hello["keys"].items()}
        except ValueError as error:
            raise supervisor.refuse(i, str(error)) from None
        found.append({"authority": authority.certificate, **own})
    return found


def _start(
    job: JobSpec,
    supervisor: JobSupervisor,
    workspace: str,
    master_port: int,
    local: bool,
    authority: Authority | None,
) -> None:
    """Start a job; return when all trainers run."""
    number = len(job.hosts)
    for machine in supervisor.machines:
        machine.order(
            "hello",
            machine=machine.number,
            workspace=workspace,
            part_config=job.part_config,
            script=job.command.script,
            address=job.addresses[machine.number],
            peer=_peer(job.addresses, machine.number),
            job=job.id,
            security=job.security,
            max_pause=job.max_pause,
        )
    hellos = supervisor.wait_for("hello", "agent", number, job.timeout, "the agent did not answer")
    _compare(supervisor, hellos, job.security)
    job.hosts = [
        replace(host, address=hello["address"])
        for host, hello in zip(job.hosts, hellos, strict=True)
    ]
    if authority:
        job.keys = _sign(authority, supervisor, hellos)
    for i, machine in enumerate(supervisor.machines):
        chosen = [*job.server_ports(i), *([master_port] if i == 0 else [])]
        machine.order("reserve", places=[(job.addresses[i], port) for port in chosen])
    ports = []
    messages = supervisor.wait_for("ports", "agent", number, job.timeout, "no ports")
    for i, message in enumerate(messages):
        if problem := message["problem"]:
            free = "choose another port, or none: then a free one is found"
            raise supervisor.refuse(i, f"{problem}; {free}")
        wanted = job.num_servers + (i == 0)
        if len(message["ports"]) != wanted:
            raise supervisor.refuse(i, f"{wanted} ports were asked for; found {message['ports']}")
        ports.append(message["ports"])
    _check_apart(job, supervisor, ports)
    master_port = ports[0].pop()
    # Concurrently: interpreters take seconds to start, and trainers wait for the servers.
    for i, (machine, hello) in enumerate(zip(supervisor.machines, hellos, strict=True)):
        # Machines on one computer share its processors: more threads than those slow all down.
        cpus = hello["cpus"] // (number if local else job.addresses.count(job.addresses[i]))
        trainers = job.trainers(i, ports, master_port, cpus, hello["interface"])
        store = [job.addresses[0], master_port] if i == 0 else None
        machine.order("start", processes=[*job.servers(i, ports), *trainers], store=store)
    num_servers = number * job.num_servers
    supervisor.wait_for("ready", "server", num_servers, job.timeout, "was not ready")


def _peer(addresses: Sequence[str], machine: int) -> str:
    """Return the address of another computer, or its own if there is none."""
    own = addresses[machine]
    return next((address for address in addresses if address != own), own)


def _check_apart(job: JobSpec, supervisor: JobSupervisor, ports: Sequence[Sequence[int]]) -> None:
    """Raise for ports requested twice: with SO_REUSEADDR, agents can bind both."""
    taken: dict[tuple[str, int], int] = {}
    for i, those in enumerate(ports):
        for port in those:
            other = taken.setdefault((job.addresses[i], port), i)
            if other != i or those.count(port) > 1:
                raise supervisor.refuse(
                    i,
                    f"port {port} is wanted twice at this address, by machines {other} and {i}; "
                    "choose other ports, or none: then some that are free are found",
                )


def _compare(
    supervisor: JobSupervisor, hellos: Sequence[Mapping[str, Any]], security: str = "none"
) -> None:
    """Raise unless the versions and the graph files of all hosts match."""
    for i, hello in enumerate(hellos):
        if hello["problem"]:
            raise supervisor.refuse(
                i, f"{hello['problem']}. gnnlab copy_files brings what is missing"
            )
        needed = {"torch": hello["torch"], "cryptography": security != "tls" or hello["keys"]}
        missing = [package for package, is_there in needed.items() if not is_there]
        if missing:
            how = "install gnnlab there, for the interpreter of your command"
            raise supervisor.refuse(i, f"{missing[0]} is missing; {how}")
    expectations = [(what, hellos[0][what], "machine 0") for what in ("python", "torch", "graph")]
    expectations.append(("gnnlab", versions()["gnnlab"], "the launcher"))
    for i, hello in enumerate(hellos):
        for what, expected, where in expectations:
            if hello[what] != expected:
                raise supervisor.refuse(
                    i, f"{what} is {hello[what]}, but {expected} on {where}; make them the same"
                )
        num_parts = hello["graph"]["num_parts"]
        if num_parts != len(hellos):
            raise supervisor.refuse(
                i,
                f"the graph has {num_parts} parts, but there are {len(hellos)} machines; partition "
                f"it into {len(hellos)}, or list {num_parts} machines",
            )


# --------------------------------------------------------------------------- command line
@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = _parser()
    known, others = parser.parse_known_args(argv)
    if others:
        hint = "" if others[0].startswith("-") else "; is the command one argument, in quotes?"
        parser.error(f"unrecognized arguments: {' '.join(others)}{hint}")
    arguments = vars(known)
    command = arguments.pop("command")
    if command is None:  # argparse took it as a value of --extra_envs
        command = next((group.pop() for group in arguments["extra_envs"][-1:]), "")
    with suppress(ValueError, AttributeError):  # not in the main thread; no SIGHUP on Windows
        signal.signal(signal.SIGTERM, _exit)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # as under nohup
            signal.signal(signal.SIGHUP, _exit)
    try:
        envs = dict(_pair(pair) for group in arguments["extra_envs"] for pair in group)
        result = run(command, **arguments | {"extra_envs": envs})
        if result:
            how = "stopped when it was asked to," if result.has_stopped else "finished"
            print(f"job {result.job} {how} after {result.seconds:.1f} s; {result.log_dir}")
    except LaunchError as error:
        print(f"gnnlab launch: {error}", file=sys.stderr)
        return error.status
    except (GNNLabError, OSError) as error:
        print(f"gnnlab launch: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gnnlab launch: interrupted; everything has been ended", file=sys.stderr)
        return 128 + signal.SIGINT
    except SystemExit as ended:
        status = int(ended.code or 0)
        name = signal.Signals(status - 128).name
        with suppress(OSError):  # after SIGHUP, the terminal may be gone
            print(f"gnnlab launch: {name} came; everything has been ended", file=sys.stderr)
        return status
    return 0


def _exit(number: int, _: object) -> None:
    sys.exit(128 + number)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise InvalidInput(f"--extra_envs expects NAME=VALUE; found {text!r}")
    return name, value


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("launch", __doc__, allow_abbrev=False)
    add = parser.add_argument
    add(
        "command",
        nargs="?",
        help='runs a Python script, in quotes: "python3 train_dist.py --lr 0.1"; NAME=VALUE before '
        "it sets a variable, and no shell runs it, so it may not contain | > ; $ ~ * and the like "
        "outside single quotes",
    )
    add("--workspace", default=".", help="folder on each host in which the command runs (.)")
    add("--part_config", required=True, help="JSON file of the graph, relative to the workspace")
    add("--ip_config", help=f"{IP_CONFIG_HELP}; needed by ssh")
    add(
        "--on",
        choices=NAMES,
        help="launch backend, which starts programs on hosts (ssh with --ip_config, slurm in an "
        "allocation, ray where RAY_ADDRESS is set)",
    )
    add("--local", action="store_true", help="play all machines on this computer: --on local")
    add("--num_trainers", type=int, default=1, help="trainers per machine (1)")
    add("--num_samplers", type=int, default=0, help="sampler processes per trainer (0)")
    add("--num_servers", type=int, default=1, help="servers per machine (1)")
    add("--num_omp_threads", type=int, help="threads of a trainer (its share of processors)")
    add("--num_server_threads", type=int, default=1, help="threads of a server (1)")
    add("--graph_format", default="csc", help="accepted; scripts find it in DGL_GRAPH_FORMAT (csc)")
    add_ssh_options(parser)
    add(
        "--extra_envs",
        nargs="+",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="further environment variables for all processes (none)",
    )
    add("--master_port", type=int, help="port on machine 0 where trainers meet (a free one)")
    add("--timeout", type=float, default=300.0, help="seconds that hosts may take to answer (300)")
    add("--log_dir", default="gnnlab-logs", help="folder for the logs of jobs (gnnlab-logs)")
    pause = "seconds for which a process may be stopped, as by a debugger (3)"
    add("--max_pause", type=float, default=3.0, help=pause)
    security = "tls: encrypted, only processes of this job are let in (tls)"
    add("--security", choices=("tls", "none"), default="tls", help=security)
    add("--trace", metavar="DIR", help="record where time goes; `gnnlab trace DIR` shows it (off)")
    add("--dry_run", action="store_true", help="only print what would be run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
