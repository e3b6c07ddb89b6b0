"""Check whether a job can run on the machines, before it starts.

    gnnlab doctor --ip_config ip_config.txt --workspace workspace --part_config data/mygraph.json

Checks every machine of ip_config: ssh and its host key, versions, addresses and ports, shared
memory, limits, disk, clock, the machine's part of the graph, GPUs. In an allocation of Slurm, or
with RAY_ADDRESS set, it checks the nodes there, and whether they share the workspace. Otherwise it
checks this computer. Failures are explained in English, Korean or Chinese; see --lang.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import time
import tomllib
import unicodedata
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from gnnlab.errors import InvalidInput
from gnnlab.launch import probe
from gnnlab.launch.backends import NAMES, Backend, Host, HostRequest, choose, open_backend
from gnnlab.launch.backends.ssh import Login, LoginError, reason, run_there
from gnnlab.launch.ip_config import IP_CONFIG_HELP, Endpoint, names_of, read_ip_config
from gnnlab.system.command import add_ssh_options, command, command_parser, locale_language

LANGUAGES = ("en", "ko", "zh")
OK, WARNING, FAILED = range(3)
SSH, START, VERSIONS, ADDRESS, PORTS, SHM, MEMORY, LIMITS, DISK, CLOCK, PARTITION, GPU, CPU = range(
    13
)

_GIB = 1 << 30
_LIMITS = {"NOFILE": ("nofile", 1024), "NPROC": ("nproc", 512)}
_SKEW = 2.0  # seconds
_HIGH_PORT = 40000  # one of those that a system gives to a process that asks for any


@dataclass(frozen=True)
class Finding:
    """Result of one check of one machine."""

    host: str
    check: int  # index of its name
    found: str  # independent of the language
    state: int = OK
    code: str = ""  # of the explanation; "" if ok
    values: dict[str, Any] = field(default_factory=dict)  # inserted into the explanation


def diagnose(arguments: argparse.Namespace) -> list[Finding]:
    """Examine all machines concurrently and judge the facts that they report, one after another."""
    all_facts: list[dict[str, Any] | Finding]
    arguments.on = _backend_name(arguments)
    listed: list[Endpoint] = []
    if arguments.ip_config:  # which a job on this computer reads, too
        listed = read_ip_config(arguments.ip_config, num_servers=arguments.num_servers)
    if arguments.on == "local":
        hosts, count = [Host("localhost", "localhost")], 1
        arguments.python = sys.executable
        all_facts = [{**probe.examine(_request(arguments)), "skew": 0.0}]
    else:
        is_ssh = arguments.on == "ssh"
        login = arguments.ssh_port, arguments.ssh_username
        request = HostRequest(None, tuple(listed) if is_ssh else (), *login)
        shared = nullcontext() if is_ssh else _mark(arguments)
        with open_backend(arguments.on, request) as backend, shared as mark:
            hosts = backend.hosts
            parts = (None if is_ssh else _num_parts(arguments)) or len(hosts)
            count = min(parts, len(hosts))  # a job takes as many as there are parts
            work = partial(_examine, arguments, backend, parts, mark)
            all_facts = _concurrently(work, len(hosts))
    findings: list[Finding] = []
    reference = None
    names = names_of([Endpoint(host.name) for host in hosts])
    for host, name, facts in zip(hosts, names, all_facts, strict=True):
        if isinstance(facts, Finding):
            found = [facts]
        else:
            found = judge(host.address, facts, arguments, count, reference)
            reference = reference or (name, facts)
        findings += [replace(each, host=name) for each in found]
    return findings


def _backend_name(arguments: argparse.Namespace) -> str:
    """Return the backend whose hosts are checked; "local" for this computer."""
    if arguments.on == "ssh" and not arguments.ip_config:
        raise InvalidInput("--on ssh needs --ip_config FILE with a line `address` for each machine")
    if arguments.on or arguments.ip_config:
        return arguments.on or "ssh"
    try:
        name, where = choose(HostRequest())
    except InvalidInput:
        return "local"
    print(f"gnnlab doctor: the machines are {where}", file=sys.stderr)
    return name


def _concurrently(examine: Any, number: int) -> list[dict[str, Any] | Finding]:
    pool = ThreadPoolExecutor(min(number, 32))
    try:
        return list(pool.map(examine, range(number)))
    finally:  # Ctrl-C does not wait for hosts that do not answer
        pool.shutdown(wait=False, cancel_futures=True)


def _num_parts(arguments: argparse.Namespace) -> int | None:
    """Return the number of parts if the graph can be read here."""
    path = Path(os.path.expanduser(arguments.workspace or "."), arguments.part_config or "")
    with suppress(OSError, ValueError, LookupError, TypeError):
        return int(json.loads(path.read_text("utf-8-sig"))["num_parts"])
    return None


@contextmanager
def _mark(arguments: argparse.Namespace) -> Iterator[str]:
    """Write a file into the workspace that nodes must find if they share it; '' if impossible."""
    name = f".gnnlab-doctor-{secrets.token_hex(8)}"
    path = Path(os.path.expanduser(arguments.workspace or "."), name)
    try:
        path.touch()
    except OSError:
        name = ""
    try:
        yield name
    finally:
        path.unlink(missing_ok=True)


def _request(arguments: argparse.Namespace, **about: Any) -> dict[str, Any]:
    request = {"address": "", "peers": [], "ports": [], "part": None, **about}
    return request | {name: getattr(arguments, name) for name in ("workspace", "part_config")}


def _examine(
    arguments: argparse.Namespace, backend: Backend, parts: int, mark: str | None, number: int
) -> dict[str, Any] | Finding:
    """Get the facts of one machine through a backend, or a Finding that says why that failed."""
    host, is_ssh = backend.hosts[number], backend.name == "ssh"
    port = (arguments.ssh_port or 22) if is_ssh else _HIGH_PORT
    others = dict.fromkeys(e.address for e in backend.hosts if e.address != host.address)
    request = _request(
        arguments,
        address=host.address,
        peers=[(other, port) for other in others],
        ports=[host.port + i for i in range(arguments.num_servers)] if host.port else [],
        part=number % parts,
        **({} if mark is None else {"mark": mark}),
    )
    path = os.environ.get("PYTHONPATH")
    command = ["env", *([f"PYTHONPATH={path}"] if path else [])]
    command += [arguments.python, "-", json.dumps(request)]  # its input is the probe
    argv, begun = backend.argv(host, command), time.time()
    try:
        output = run_there(argv, Path(probe.__file__).read_text("utf8"), arguments.timeout)
        facts: dict[str, Any] = json.loads(output.splitlines()[-1])
    except (LoginError, ValueError, IndexError) as error:
        said = str(error).strip() or "?"
        login = Login(host.address, arguments.ssh_port, arguments.ssh_username)
        values = {
            "host": host.name,
            "target": login.target,
            "options": f"-p {login.port} " if login.port else "",
            "known": f"'[{host.address}]:{login.port}'" if login.port else host.address,
            "python": arguments.python,
            "backend": backend.name,
            "error": said.splitlines()[-1],
        }
        if is_ssh:
            is_lost = isinstance(error, LoginError) and error.status == 255
            code = reason(said) if is_lost else "no_python"
            return Finding(host.name, SSH, login.target, FAILED, code, values)
        # env's status for a program that is not there; srun can lose what such a short step says
        is_missing = isinstance(error, LoginError) and error.status == 127
        code = "no_python" if is_missing else "no_start"
        return Finding(host.name, START, backend.name, FAILED, code, values)
    # The program started and ended between the two readings: its clock differs at least by this.
    facts["skew"] = max(begun - facts["clock"], facts["clock"] - time.time(), 0.0)
    return facts | {"own_rsync": probe.rsync() if is_ssh else ""}


# ------------------------------------------------------------------------------------- judging
def judge(
    host: str,
    facts: dict[str, Any],
    arguments: argparse.Namespace,
    num_hosts: int,
    reference: tuple[str, dict[str, Any]] | None,
) -> list[Finding]:
    """Judge the facts about one machine, from :func:`gnnlab.launch.probe.examine` plus ``skew``.

    ``reference`` has the name and the facts of the machine whose versions this one should have.
    """
    findings = []
    for check, found, *faults in _checks(facts, arguments, num_hosts, reference):
        findings += [
            Finding(host, check, found, state, code, {"host": host, **values})
            for state, code, values in faults or [(OK, "", {})]
        ]
    return findings


def _checks(
    facts: dict[str, Any],
    arguments: argparse.Namespace,
    num_hosts: int,
    reference: tuple[str, dict[str, Any]] | None,
) -> Iterator[tuple[Any, ...]]:
    """Yield (check, what was found, fault, fault, …), a fault being (state, code, values)."""
    other, theirs = reference or ("", facts)
    faults: list[tuple[int, str, dict[str, Any]]]
    is_remote = arguments.on != "local"
    if arguments.on == "ssh":
        faults = [] if facts["rsync"] else [(WARNING, "rsync_missing", {})]
        if not facts["own_rsync"]:
            faults += [(WARNING, "rsync_missing", {"host": "localhost"})]
        yield SSH, facts["rsync"], *faults
    elif is_remote:
        yield START, arguments.on
    known = ", ".join(f"{name} {version}" for name, version in facts["versions"].items() if version)
    yield VERSIONS, known, *_versions(facts, arguments, other, theirs)
    if is_remote:
        faults = [] if facts["is_own"] else [(FAILED, "address_foreign", {})]
        if away := facts["unreachable"]:
            faults += [(FAILED, "peer_unreachable", {"peers": ", ".join(away)})]
        if unknown := [peer for peer, name in facts["interface"].items() if not name]:
            faults += [(WARNING, "no_interface", {"peers": ", ".join(unknown)})]
        yield ADDRESS, ", ".join(sorted(set(facts["interface"].values()) - {""})), *faults
        busy = [
            (FAILED, "port_busy", {"port": port, "holder": f"{pid or '?'} {command}".strip()})
            for port, pid, command in facts["busy"]
        ]
        yield PORTS, "", *busy
    if facts["shm"] is None:
        yield SHM, "", (FAILED, "shm_missing", {})
    else:
        free = _size(facts["shm"][1])
        low = facts["shm"][1] < _GIB // 4
        yield SHM, free, *([(WARNING, "shm_small", {"free": free})] if low else [])
    if free_bytes := facts["memory"]:
        part = facts.get("partition", {}).get("bytes", 0)
        values = {"free": _size(free_bytes), "part": _size(part)}
        low = free_bytes < _GIB + part
        yield MEMORY, _size(free_bytes), *([(WARNING, "memory_low", values)] if low else [])
    low_limits = [
        (FAILED, "limit_low", {"what": what, "count": facts["limits"][name], "wanted": wanted})
        for name, (what, wanted) in _LIMITS.items()
        if 0 <= facts["limits"].get(name, -1) < wanted  # negative: no limit
    ]
    yield LIMITS, f"nofile {facts['limits'].get('NOFILE', '-')}", *low_limits
    free = _size(facts["disk"])
    faults = [(WARNING, "disk_low", {"free": free})] if facts["disk"] < _GIB else []
    if not facts["workspace"]:
        faults += [(FAILED, "no_workspace", {"workspace": arguments.workspace})]
    elif not facts["is_shared"]:
        faults += [(WARNING, "not_shared", {"workspace": arguments.workspace or os.getcwd()})]
    yield DISK, free, *faults
    if is_remote:
        seconds = f"{facts['skew']:.1f}"
        off = facts["skew"] > _SKEW
        yield CLOCK, "", *([(WARNING, "clock_off", {"seconds": seconds})] if off else [])
    if "partition" in facts:
        yield _partition(facts["partition"], arguments, num_hosts if is_remote else None, reference)
    yield GPU, ", ".join(facts["gpus"]) or "–", *_gpus(facts, other, theirs)
    load, cores, waits = facts["processor"]
    is_slow = load > cores > 1 and waits.upper() != "PASSIVE"
    busy = [(WARNING, "cpu_busy", {"load": f"{load:.1f}", "cores": cores})] if is_slow else []
    yield CPU, f"{load:.1f} / {cores}", *busy


def _versions(
    facts: dict[str, Any], arguments: argparse.Namespace, other: str, theirs: dict[str, Any]
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    versions = facts["versions"]
    if missing := [name for name, version in versions.items() if not version]:
        yield FAILED, "package_missing", {"names": ", ".join(missing), "python": arguments.python}
    differ = [
        f"{name} {version} / {theirs['versions'][name]}"
        for name, version in versions.items()
        # torch 2.9.0+cpu and 2.9.0+cu128 are compatible
        if version and version.split("+")[0] != theirs["versions"][name].split("+")[0]
    ]
    if differ:
        yield FAILED, "versions_differ", {"first": other, "names": ", ".join(differ)}


def _partition(
    seen: dict[str, Any],
    arguments: argparse.Namespace,
    num_hosts: int | None,
    reference: tuple[str, dict[str, Any]] | None,
) -> tuple[Any, ...]:
    path = os.path.join(arguments.workspace or "", arguments.part_config)
    if error := seen.get("error"):
        code = "partition_missing" if error == "missing" else "partition_unreadable"
        return PARTITION, "", (FAILED, code, {"path": path, "error": error})
    faults: list[tuple[int, str, dict[str, Any]]] = []
    if num_hosts not in (None, seen["parts"]):
        faults += [(FAILED, "partition_count", {"parts": seen["parts"], "hosts": num_hosts})]
    if reference and seen["json"] != reference[1]["partition"].get("json", seen["json"]):
        faults += [(FAILED, "partition_differs", {"first": reference[0]})]
    if seen["faults"]:
        name, error = seen["faults"][0]
        values = {"count": len(seen["faults"]), "name": name, "error": error}
        faults += [(FAILED, "partition_damaged", values)]
    return PARTITION, _size(seen["bytes"]), *faults


def _gpus(
    facts: dict[str, Any], other: str, theirs: dict[str, Any]
) -> Iterator[tuple[int, str, dict[str, Any]]]:
    count, torch = len(facts["gpus"]), facts["versions"]["torch"]
    if count and torch.endswith("+cpu"):
        yield WARNING, "gpu_unused", {"count": count, "torch": torch}
    if count != len(theirs["gpus"]):
        yield WARNING, "gpu_differ", {"count": count, "first": other, "other": len(theirs["gpus"])}


def _size(count: float) -> str:
    power = max(len(str(int(count / 0.9995))) - 1, 0) // 3  # 999,999 is 1 MB
    return f"{count / 1000**power:.3g} {('B', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


# ------------------------------------------------------------------------------------- report
class _Words:
    """The messages in one language."""

    def __init__(self, language: str) -> None:
        text = Path(__file__).with_name("doctor.toml").read_text("utf8")
        self._texts = {code: texts[language] for code, texts in tomllib.loads(text).items()}

    def __getitem__(self, code: str) -> list[str]:
        return self._texts[code]

    def explain(self, finding: Finding) -> tuple[str, str]:
        """Return cause and remedy."""
        cause, remedy = self._texts[finding.code]
        return cause.format(**finding.values), remedy.format(**finding.values)


def _as_json(findings: list[Finding], texts: _Words) -> str:
    rows, checks = [], _Words("en")["checks"]
    for finding in findings:
        cause, remedy = texts.explain(finding) if finding.code else ("", "")
        row = {"host": finding.host, "check": checks[finding.check]}
        row |= {"state": ("ok", "warning", "failed")[finding.state], "found": finding.found}
        rows.append({**row, "code": finding.code, "cause": cause, "remedy": remedy})
    is_ok = all(finding.state != FAILED for finding in findings)
    return json.dumps({"ok": is_ok, "findings": rows}, ensure_ascii=False, indent=1)


def _as_table(findings: list[Finding], texts: _Words) -> Iterator[str]:
    names, states, checks = texts["names"], texts["states"], texts["checks"]
    hosts = list(dict.fromkeys(finding.host for finding in findings))
    together: dict[tuple[int, int, str], list[str]] = {}
    for finding in sorted(findings, key=lambda finding: finding.check):
        who = together.setdefault((finding.check, finding.state, finding.found), [])
        if finding.host not in who:
            who.append(finding.host)
    rows = [names[:4]]
    for (check, state, found), who in together.items():
        machines = names[4] if len(who) == len(hosts) > 1 else ", ".join(who)
        rows.append([checks[check], states[state], machines, found])
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell + " " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()
    title, advice = texts["finding"]
    for finding in findings:
        if finding.code:
            cause, remedy = texts.explain(finding)
            words = {"check": checks[finding.check], "state": states[finding.state]}
            yield "\n" + title.format(host=finding.host, cause=cause, **words)
            yield "  " + advice.format(remedy=remedy)
    count = sum(finding.state == FAILED for finding in findings)
    yield "\n" + texts["verdict"][bool(count)].format(count=count)


def _width(text: str) -> int:
    """Return a text's width in terminal columns; Korean and Chinese characters take two."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status is 1 when a check failed."""
    parser = command_parser("doctor", __doc__, 2)
    add = parser.add_argument
    add("--ip_config", help=f"{IP_CONFIG_HELP} (the allocation of Slurm, or only this computer)")
    which = parser.add_mutually_exclusive_group().add_argument
    local: Any = {"dest": "on", "action": "store_const", "const": "local"}
    which("--local", **local, help="check this computer: --on local")
    which(
        "--on",
        choices=NAMES,
        help="whose hosts are checked; local is this computer (ssh with --ip_config, slurm in an "
        "allocation, ray where RAY_ADDRESS is set, otherwise local)",
    )
    place = "folder on the machines (that of a login, where relative ones start)"
    add("--workspace", default="", help=place)
    add("--part_config", help="JSON file of the graph, relative to the workspace (not looked at)")
    add("--num_servers", type=int, default=1, help="servers per machine (1)")
    add_ssh_options(parser)
    add("--python", default="python3", help="interpreter on the machines (python3)")
    add("--timeout", type=float, default=300.0, help="seconds that a machine may take (300)")
    add("--lang", choices=LANGUAGES, help="language of the messages (that of LANG)")
    add("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args(argv)
    texts = _Words(arguments.lang or locale_language(LANGUAGES))
    findings = diagnose(arguments)
    print(_as_json(findings, texts) if arguments.json else "\n".join(_as_table(findings, texts)))
    return int(any(finding.state == FAILED for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
