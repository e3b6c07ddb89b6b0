"""Jobs on two machines: how they start, how they end, and every way in which they may break.

The machines are either played by this computer without ssh (``--local``), or an sshd on a loopback
address each. After every job the process table holds none of its processes, and /dev/shm none of
its files. Scripts are plain ones that read the environment which ``launch`` has made.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest

import gnnlab as dgl
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.launch import agent, launch
from gnnlab.launch.backends import HostRequest
from gnnlab.launch.backends.ssh import Ssh
from gnnlab.launch.certificates import Keys, request
from gnnlab.launch.ip_config import read_ip_config
from gnnlab.launch.job_spec import Command, JobSpec
from gnnlab.launch.job_supervisor import JobSupervisor, LaunchError
from gnnlab.launch.status_table import StatusTable
from gnnlab.system.threads import processors
from tests.helpers import ROOT, _descendants, _end, run_script, wait_until
from tests.launch.machines import Cluster, cluster
from tests.launch.started import END, START, Started

# A job's script: a server that does nothing, and trainers that do what the first argument says.
SCRIPT = """
import os, signal, subprocess, sys, time
from pathlib import Path

env, mode = os.environ, sys.argv[1]
role = "server" if env["DGL_ROLE"] == "server" else "trainer"
number = env["DGL_SERVER_ID" if role == "server" else "RANK"]

def born():
    # A child that has left the process group, and a file in shared memory: both must go too.
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    Path(f"/dev/shm/gnnlab-{env['GNNLAB_JOB']}-{env['GNNLAB_TEST_TOKEN']}-{role}{number}").touch()
    folder = Path(env["TEST_FOLDER"])
    (folder / "draft").mkdir(exist_ok=True)
    draft = folder / "draft" / f"{role}-{number}"
    draft.write_text(str(os.getpid()))
    draft.rename(folder / f"{role}-{number}.pid")

if role == "server":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if mode == "server raises":
        raise RuntimeError("the part cannot be read")
    print("server", number, "listens", flush=True)
    Path(env["GNNLAB_OUTPUT"], "events").write_text(f"server {number} ready\\n")
    born()
    while True:
        time.sleep(1)
if mode == "reduce":
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    assert dist.is_torchelastic_launched()
    total = torch.tensor([float(number)])
    dist.all_reduce(total)
    print("total", total.item(), "of", dist.get_world_size(), "in", os.getcwd(), sys.argv[2:])
    print("threads:", env["OMP_NUM_THREADS"])
    print("".join(f"\\rstep {i}" for i in range(3)), end="")
    dist.destroy_process_group()
    sys.exit()
if mode == "server raises":
    time.sleep(60)
born()
if mode == "raise" and number == "0":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
elif mode == "raise":
    while not (Path(env["TEST_FOLDER"]) / "trainer-0.pid").exists():
        time.sleep(0.05)
    raise ValueError("the loss is NaN")
while True:
    time.sleep(1)
"""


def write_workspace(folder: Path, parts: tuple[int, ...] = (0, 1), num_parts: int = 2) -> Path:
    """A script and the JSON file of a graph in parts, some of which are there."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job.py").write_text(SCRIPT)
    graph = {"graph_name": "toy", "num_parts": num_parts}
    graph |= {f"part-{i}": {"part_graph": f"part{i}"} for i in range(num_parts)}
    (folder / "graph.json").write_text(json.dumps(graph))
    for i in parts:
        (folder / f"part{i}").mkdir(exist_ok=True)
    return folder


ALL = ("server-0", "server-1", "trainer-0", "trainer-1")


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """``begin(mode, *options)`` starts a job on two local machines."""
    begun: list[Started] = []

    def start(mode: str, *options: str, env: dict[str, str] | None = None) -> Started:
        workspace = write_workspace(tmp_path / "workspace")
        words = ["--workspace", str(workspace), "--part_config", "graph.json"]
        words += [*options, f"python job.py {shlex.quote(mode)}"]
        begun.append(Started(tmp_path / "run", words, env or {}))
        return begun[-1]

    yield start
    for each in begun:
        _end(_descendants(each.token))


def supervisor_of(
    folder: Path, addresses: Sequence[str] = ("10.0.0.1", "10.0.0.2")
) -> JobSupervisor:
    """One that has no agents, and logs into the folder."""
    return JobSupervisor(addresses, folder, StatusTable(addresses, {}, io.StringIO()))


# ------------------------------------------------------------------------------- without ssh
def test_an_error_from_python(tmp_path: Path) -> None:
    workspace = write_workspace(tmp_path)
    with pytest.raises(launch.LaunchError, match="RuntimeError") as caught:
        launch.run(
            "python job.py 'server raises'",
            part_config="graph.json",
            workspace=workspace,
            num_machines=2,
            log_dir=tmp_path / "logs",
        )
    error = caught.value
    assert error.role == "server" and error.status == 1 and error.log_dir
    assert (error.log_dir / f"server-{error.rank}.log").exists()
    assert "before it was ready" in str(error)


def test_a_trainer_raises(begin: Callable[..., Started]) -> None:
    """The other one ignores SIGTERM."""
    status, errors = begin("raise", "--local").end(START)
    assert status == 1
    assert errors.startswith(
        "gnnlab launch: trainer 1 on 127.0.0.3 (machine 1) ended with status 1: "
        "ValueError: the loss is NaN\n"
    )
    assert "Traceback" in errors


AGAIN = pytest.mark.thorough("as with another process of the job")


def victims(started: Started, who: str) -> list[psutil.Process]:
    """Processes of a job that runs; "agents" are all of both machines: nobody else knows of it."""
    if who == "trainer":
        return [psutil.Process(started.wait_for("trainer-0"))]
    if who == "runner":
        return started.find("gnnlab.launch.runner")[:1]
    agents = started.find("gnnlab.launch.agent")
    guards = [each for each in agents if each.ppid() == started.process.pid]
    workers = [each for each in agents if each not in guards]
    assert len(guards) == len(workers) == 2
    return {"guard": guards[:1], "worker": workers[:1], "agents": agents}[who]


ENDED = r"the agent ended: its {} \(process \d+\) was killed by SIGKILL"
STOPPED = r"was stopped for .*\(process PID: "


@pytest.mark.parametrize(
    ("who", "how", "named", "status"),
    [
        ("agents", "kill", "the agent ended", None),
        ("trainer", "suspend", f"trainer 0 .*{STOPPED}", 128 + signal.SIGSTOP),
        *(
            pytest.param(*row, marks=AGAIN)
            for row in (
                ("agents", "suspend", r"\(machine \d\): no sign of life for 4\.5 s", None),
                ("guard", "kill", ENDED.format("guard"), None),
                ("worker", "kill", ENDED.format("worker"), None),
                ("worker", "suspend", ENDED.format("stopped worker"), None),
                ("runner", "kill", ENDED.format("runner"), 128 + signal.SIGKILL),
                ("runner", "suspend", rf"\): the agent.*{STOPPED}", 128 + signal.SIGSTOP),
                ("guard", "suspend", rf"\): the agent.*{STOPPED}", 128 + signal.SIGSTOP),
                (
                    *("trainer", "kill"),
                    r"trainer 0 on 127.0.0.2 \(machine 0\) was killed by SIGKILL",
                    128 + signal.SIGKILL,
                ),
            )
        ),
    ],
)
def test_a_process_is_killed_or_stopped(
    begin: Callable[..., Started], who: str, how: str, named: str, status: int | None
) -> None:
    """It is named, and nothing waits for it; SIGTERM alone does not end a stopped process."""
    started = begin("wait", "--local")
    started.wait_for(*ALL)
    started.note_ports()
    hit = victims(started, who)
    for each in hit:
        getattr(each, how)()
    found, errors = started.end(2 * END)
    assert found == status if status else found
    assert re.search(named.replace("PID", str(hit[0].pid)), errors.splitlines()[0])


def test_an_agent_is_stopped_before_it_has_said_anything(begin: Callable[..., Started]) -> None:
    started = begin("wait", "--local")
    agents = wait_until("an agent", lambda: started.find("gnnlab.launch.agent"), START)
    agents[0].suspend()
    status, errors = started.end(2 * END)
    assert status == 1
    assert f"no sign of life for 4.5 s; process {agents[0].pid} is stopped" in errors


@pytest.mark.parametrize(
    "how",
    [
        signal.SIGINT,
        pytest.param(signal.SIGTERM, marks=AGAIN),
        pytest.param(signal.SIGHUP, marks=AGAIN),
        pytest.param(signal.SIGKILL, marks=AGAIN),
    ],
)
def test_the_launcher_is_stopped(begin: Callable[..., Started], how: signal.Signals) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # of nohup, which a launcher respects
    try:
        started = begin("wait", "--local")
    finally:
        signal.signal(signal.SIGHUP, before)
    started.wait_for(*ALL)
    started.process.send_signal(how)
    status = started.process.wait(END)
    started.check_nothing_left(END)
    assert status == (-how if how == signal.SIGKILL else 128 + how)


def test_a_port_that_cannot_be_had(tmp_path: Path) -> None:
    folder = write_workspace(tmp_path / "workspace")
    options: dict[str, Any] = {"ip_config": "ip_config.txt", "local": True}

    def refusal(port: int) -> str:
        (folder / "ip_config.txt").write_text(f"10.0.0.1\n10.0.0.2 {port}\n")
        with pytest.raises(LaunchError) as caught:
            launch.run("python job.py wait", part_config="graph.json", workspace=folder,
                       num_servers=2, log_dir=tmp_path / "logs", **options)  # fmt: skip
        return str(caught.value)

    with socket.create_server(("127.0.0.3", 0)) as listener:
        port = listener.getsockname()[1]
        said = refusal(port)
    assert f"127.0.0.3 (machine 1): port {port} of 127.0.0.3: Address already in use" in said
    assert f"process {os.getpid()} listens there" in said
    assert re.search(r"port 65536 of 127\.0\.0\.3: .*0-65535", refusal(65535))


@pytest.mark.parametrize(
    ("script", "parts", "num_parts", "said"),
    [
        ("jb.py", (0, 1), 2, "127.0.0.2 (machine 0): no such file or folder: {folder}/jb.py (did "
         "you mean {folder}/job.py?). gnnlab copy_files brings what is missing"),
        ("job.py", (0,), 2, "(machine 1): {folder}/graph.json names part1, which is not beside it"),
        ("job.py", (0, 1, 2), 3, "the graph has 3 parts, but there are 2 machines"),
    ],
)  # fmt: skip
def test_what_is_missing_is_told_by_the_host(
    tmp_path: Path, script: str, parts: tuple[int, ...], num_parts: int, said: str
) -> None:
    folder = write_workspace(tmp_path / "workspace", parts, num_parts)
    options = {"workspace": folder, "num_machines": 2, "log_dir": tmp_path / "logs"}
    with pytest.raises(LaunchError) as caught:
        launch.run(f"python {script} wait", part_config="graph.json", **options)
    assert said.format(folder=folder) in str(caught.value)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"torch": ""}, "torch is missing; install gnnlab there"),
        ({"torch": "2.0.0"}, "torch is 2.0.0, but 2.9.0 on machine 0; make them the same"),
        ({"python": "3.9"}, "python is 3.9, but 3.11 on machine 0"),
        ({"gnnlab": "0.0.9"}, r"gnnlab is 0.0.9, but .* on the launcher"),
        ({"graph": {"num_parts": 2, "IDs": "b"}}, r"graph is .*'b'.*, but .*'a'.* on machine 0"),
        ({"problem": "no part1"}, "no part1. gnnlab copy_files brings what is missing"),
    ],
)
def test_machines_must_fit_together(tmp_path: Path, other: dict[str, Any], said: str) -> None:
    hello = {"python": "3.11", "torch": "2.9.0", "gnnlab": dgl.__version__, "problem": None}
    hello["graph"] = {"num_parts": 2, "IDs": "a"}
    supervisor = supervisor_of(tmp_path)
    launch._compare(supervisor, [hello, hello])
    with pytest.raises(launch.LaunchError, match=rf"10.0.0.2 \(machine 1\): {said}"):
        launch._compare(supervisor, [hello, hello | other])


def test_what_hosts_ask_for_is_signed(tmp_path: Path) -> None:
    hellos = [{"torch": "2.9.0", "problem": None, "keys": {}} for _ in range(2)]
    secrets: list[dict[str, str]] = [{}, {}]
    for secret, hello in zip(secrets, hellos, strict=True):
        for role in ("server", "client"):
            secret[role], hello["keys"][role] = request()
    supervisor, authority = supervisor_of(tmp_path), launch._authority()
    signed = launch._sign(authority, supervisor, hellos)
    for secret, own in zip(secrets, signed, strict=True):
        assert own.keys() == {"authority", "server", "client"}
        for role, text in secret.items():
            Keys(own["authority"], own[role], text).context(is_server=role == "server")
    start, body = hellos[1]["keys"]["server"].split("\n", 1)
    other = request()[1].split("\n", 1)[1]  # by the owner of one key, with another key in it
    swapped = f"{start}\n{other[:-150]}{body[-150:]}"
    for bad in (f"{start}\nAAAA\n", f"{start}\n{body.swapcase()}", swapped):
        hellos[1]["keys"]["server"] = bad
        said = r"10.0.0.2 \(machine 1\): a request for a certificate (cannot be|is not)"
        with pytest.raises(launch.LaunchError, match=said):
            launch._sign(authority, supervisor, hellos)


def test_an_agent_makes_keys_without_torch() -> None:
    code = "from gnnlab.launch.certificates import request; request()"
    code = f"{agent.ENTRY.replace('main()', code)}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# ------------------------------------------------------------------------------------ by ssh
@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("machines")) as made:
        for i, machine in enumerate(made.machines):
            write_workspace(machine.home / "work", parts=(i,))
        yield made


@pytest.fixture
def log_in(machines: Cluster, tmp_path: Path) -> Iterator[Callable[..., Started]]:
    """``log_in(mode, *options)`` starts a job on the two machines with an sshd."""
    begun: list[Started] = []

    def start(
        mode: str,
        *options: str,
        python: str = sys.executable,
        script: str = "job.py",
        args: str = "",
    ) -> Started:
        words = ["--workspace", "work", "--part_config", "graph.json"]
        words += ["--ip_config", str(machines.ip_config), "--ssh_port", str(machines.port)]
        words += [*options, f"{shlex.quote(python)} {script} {shlex.quote(mode)} {args}"]
        begun.append(Started(tmp_path / "run", words, machines.env))
        return begun[-1]

    yield start
    for each in begun:
        _end(_descendants(each.token))
    assert machines.left_over() == []


def test_by_ssh_each_host_in_its_own_folder(
    log_in: Callable[..., Started], machines: Cluster
) -> None:
    # Options are the script's alone, as is "--".
    started = log_in("reduce", args="--log 3 -m -- --help")
    assert started.end(START)[0] == 0, started.said()
    printed = started.said()
    args = ["--log", "3", "-m", "--", "--help"]
    for rank in range(2):
        home = machines.machines[rank].home
        assert (
            f"127.0.0.{2 + rank} trainer {rank} | total 1.0 of 2 in {home}/work {args}" in printed
        )
    assert f"127.0.0.3 trainer 1 | threads: {processors()}\n" in printed
    assert "127.0.0.3 trainer 1 | step 2\n" in printed and " finished after " in printed
    assert "127.0.0.2 (machine 0)" not in printed and "127.0.0.2  servers: 1 ready" in printed


def test_the_connection_is_cut(log_in: Callable[..., Started]) -> None:
    started = log_in("wait")
    started.wait_for(*ALL)
    ssh = [p for p in psutil.Process(started.process.pid).children() if p.name() == "ssh"]
    assert len(ssh) == 2
    ssh[1].kill()
    status, errors = started.end()
    assert status and "(machine " in errors and "the agent ended" in errors


def test_an_unknown_host_key(log_in: Callable[..., Started], machines: Cluster) -> None:
    known = machines.known_hosts.read_text()
    try:
        machines.known_hosts.write_text(known.splitlines()[0] + "\n")
        status, errors = log_in("wait").end(START)
    finally:
        machines.known_hosts.write_text(known)
    assert status == 255
    assert "127.0.0.3 (machine 1): the agent could not be started" in errors
    assert "Host key verification failed" in errors and "fingerprint" in errors


def test_gnnlab_is_missing_on_a_host(log_in: Callable[..., Started], tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare" / "bin" / "python")
    status, errors = log_in("wait", "--extra_envs", "PYTHONPATH=", python=python).end(START)
    assert status == 1
    assert "install gnnlab there" in errors and "No module named 'gnnlab'" in errors


@pytest.mark.parametrize("content", ["", "[]", "{}", "7", '{"num_parts": "two"}'])
def test_a_file_that_describes_no_graph_is_named(tmp_path: Path, content: str) -> None:
    config = tmp_path / "graph.json"
    config.write_text(content)
    with pytest.raises(ValueError, match=r"graph\.json"):
        agent._look_at_part(config, 0)


# --------------------------------------------------------------------------- what is received
def hear(folder: Path, script: str, num_trainers: int = 1) -> JobSupervisor:
    """A supervisor of a machine whose agent is a shell script; it logs into the folder."""
    table = StatusTable(["10.0.0.1"], {"server": 1, "trainer": num_trainers}, io.StringIO())
    supervisor = JobSupervisor(["10.0.0.1"], folder, table)
    supervisor.begin(["/bin/sh", "-c", script], os.environ)
    return supervisor


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [
        ("exit 127", 127, "the agent could not be started; name an interpreter"),
        ("echo {}; sleep 0.3; kill -TERM $$", 143, "guard .* was killed by SIGTERM"),
    ],
)
def test_why_an_agent_is_gone(tmp_path: Path, script: str, status: int, said: str) -> None:
    """How its guard ended is known a moment after the guard's pipes are closed."""
    lost = {"agent": "lost", "process": "guard (process 7)", "status": 0}
    supervisor = hear(tmp_path, script.format(shlex.quote(json.dumps(lost))))
    with pytest.raises(LaunchError, match=said) as failed:
        supervisor.wait_for("ports", "agent", 1, 60.0, "no ports")
    supervisor.end()
    assert failed.value.status == status


def test_what_does_not_come_in_time(tmp_path: Path) -> None:
    supervisor = hear(tmp_path, "cat >/dev/null")
    with pytest.raises(LaunchError, match=r"^server 0 on 10.0.0.1 \(machine 0\) was "):
        supervisor.wait_for("ready", "server", 1, 0.1, "was late")
    supervisor.end()


def test_what_an_agent_said_last_is_not_lost(tmp_path: Path) -> None:
    message = json.dumps({"agent": "line", "role": "trainer", "id": 0, "text": "the last words"})
    supervisor = hear(tmp_path, f"(sleep 0.5; echo {shlex.quote(message)}) & exit 0")
    supervisor.machines[0].process.wait(60.0)
    supervisor.end()
    assert (tmp_path / "trainer-0.log").read_text() == "the last words\n"


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    (tmp_path / "trainer-0.log").symlink_to("/dev/full")
    message = json.dumps({"agent": "line", "role": "trainer", "id": 0, "text": "loss 0.5"})
    supervisor = hear(tmp_path, f"echo {shlex.quote(message)}; cat >/dev/null")
    with pytest.raises(GNNLabError, match=re.escape(f"{tmp_path}/trainer-0.log")):
        supervisor.wait_for("hello", "agent", 1, 60.0, "no hello")
    supervisor.end()
    assert supervisor.machines[0].process.poll() == 0  # ended in order


def test_how_a_process_ended_is_reported(tmp_path: Path) -> None:
    """Also of one that ends as soon as it has started, and of one that cannot start."""
    source = """
        import json, os, sys, time
        from pathlib import Path
        from gnnlab.launch import process_tree
        from gnnlab.launch.runner import Runner

        process_tree.adopt_orphans()
        folder = Path(sys.argv[1])
        os.mkfifo(folder / "events")
        commands = [["sh", "-c", "echo $A; kill -TERM $$"], ["/nowhere/python"]]
        commands += [["sh", "-c", "printf 'one\\r\\rtwo'; (sleep 9 &); exit 3"]]
        processes = [{"role": "server", "id": i, "argv": argv, "env": {"A": "b"}}
                     for i, argv in enumerate(commands)]
        order = {"folder": str(folder), "processes": processes, "store": None}
        (folder / "order").write_text(json.dumps(order))
        os.dup2(os.open(folder / "order", os.O_RDONLY), 0)
        runner = Runner(folder)
        runner.serve()
        for _ in range(100):
            runner.reap()
            time.sleep(0.02)
        process_tree.end_descendants(0.0)
        os._exit(0)
    """
    said = [json.loads(line) for line in run_script(source, args=[str(tmp_path)]).splitlines()]
    found = [(each["id"], each["agent"], each.get("text", each.get("status"))) for each in said]
    assert {each for each in found if each[1] != "started"} == {
        *((0, "line", "b"), (0, "exited", 143)),
        *((1, "line", "/nowhere/python: No such file or directory"), (1, "exited", 127)),
        *((2, "line", "two"), (2, "exited", 3)),
    }
    assert found.index((2, "line", "two")) < found.index((2, "exited", 3))


def test_an_agent_without_a_launcher_ends() -> None:
    run_script(
        """
        import os, subprocess, sys, tempfile, threading, time
        from pathlib import Path
        from gnnlab.launch import agent, process_tree

        child = subprocess.Popen(["sleep", "30"])
        os.path.isdir = lambda path: False  # a system without /proc: ps is no child to be ended
        found = process_tree.descendants(os.getpid(), process_tree.processes())
        assert found == [child.pid], found
        child.kill()
        child.wait()

        scratch = tempfile.TemporaryDirectory()
        folder = Path(scratch.name)
        (folder / "trace").mkdir()
        (folder / "trace" / "machine0.jsonl").write_text("{}\\n")
        reader, writer = os.pipe()
        os.dup2(writer, 1)  # a launcher that is stopped: it does not read, nor does it end
        mine = agent.Agent(reader, reader, os.getpid(), folder, child)
        threading.Thread(target=mine._messages.send, args=("x" * 200_000,), daemon=True).start()
        time.sleep(0.2)
        mine._messages.is_closed = True
        last = threading.Thread(target=mine._send_events, daemon=True)
        last.start()
        last.join(60.0)
        assert not last.is_alive()
        """
    )


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [
                (1, {"kind": "exited", "role": "trainer", "id": 1, "status": 0}),
                (0, {"kind": "line", "role": "trainer", "id": 0, "text": "gloo/x: closed by peer"}),
                (0, {"kind": "exited", "role": "trainer", "id": 0, "status": 1}),
            ],
            "trainer 1 on 10.0.0.2 (machine 1) ended with status 0 while others still ran, whose "
            "connections to it then broke: trainer 0 on 10.0.0.1 (machine 0) ended with status 1. "
            "All ranks must make the same number of steps",
        ),
        (  # the other way round: the failure has a cause of its own
            [
                (1, {"kind": "exited", "role": "trainer", "id": 1, "status": 0}),
                (0, {"kind": "line", "role": "trainer", "id": 0, "text": "a.b.MyError: no loss"}),
                (0, {"kind": "exited", "role": "trainer", "id": 0, "status": 1}),
            ],
            "trainer 0 on 10.0.0.1 (machine 0) ended with status 1: a.b.MyError: no loss\n",
        ),
        (
            [(0, {"kind": "exited", "role": "server", "id": 0, "status": 0})],
            "server 0 on 10.0.0.1 (machine 0) ended with status 0 before it was ready; does the "
            "script call gnnlab.distributed.initialize()?",
        ),
    ],
)
def test_the_cause_is_named(tmp_path: Path, messages: list[tuple[int, Any]], said: str) -> None:
    supervisor = supervisor_of(tmp_path)
    for each in messages:
        supervisor._messages.put(each)
    with pytest.raises(launch.LaunchError) as caught:
        supervisor.wait_for("exited", "trainer", 2)
    assert str(caught.value).startswith(said)


def test_trainers_that_wait_for_a_group_which_then_meets_are_no_failure(tmp_path: Path) -> None:
    supervisor = hear(tmp_path, "cat >/dev/null", num_trainers=2)
    for kind, number in (("exited", 0), ("waiting", 1), ("met", 1)):
        message = {"kind": kind, "role": "trainer", "id": number, "status": 0}
        supervisor._messages.put((0, message))
        if kind == "waiting":
            with pytest.raises(LaunchError, match=r"trainer 0 .* without joining"):
                supervisor.wait_for("exited", "trainer", 2, 60.0)
            supervisor._failures.clear()
    with pytest.raises(LaunchError, match=r"trainer 1 .* late"):
        supervisor.wait_for("exited", "trainer", 2, 2.0, "late")
    supervisor.end()


# --------------------------------------------------------------------------- what is refused
def refusal(*words: str, **arguments: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        launch.run(*words, **{"part_config": "graph.json"} | arguments)
    return str(caught.value)


def test_an_ip_config_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    wrong = {"none": FileNotFoundError, "": IsADirectoryError, "bytes": ValueError}
    for name, builtin in wrong.items():
        with pytest.raises(InvalidInput) as found:
            read_ip_config(tmp_path / name)
        assert isinstance(found.value, builtin)


def job_of(hosts: list[Any], security: str, **others: Any) -> JobSpec:
    return JobSpec(
        Command.read("python x.py"), hosts, "g.json", "", 1, 0, 1, 1, None, "csc", security, 60.0,
        3.0, {}, **others,
    )  # fmt: skip


def test_one_address_twice(tmp_path: Path) -> None:
    path = tmp_path / "ip_config.txt"
    path.write_text("10.0.0.1 30050\n10.0.0.2 30050\n# one more\n10.0.0.1 30051\n10.0.0.1\n")
    hosts = read_ip_config(path)
    assert [host.port for host in hosts] == [30050, 30050, 30051, None]
    with pytest.raises(
        InvalidInput, match=r"lines 1 and 4: 10\.0\.0\.1 30050 and 10\.0\.0\.1 3005"
    ):
        read_ip_config(path, num_servers=2)
    said = refusal("python job.py", ip_config=path, num_servers=2, workspace=tmp_path)
    assert "cannot have ports less than 2 apart" in said
    path.write_text("10.0.0.1 30050\n10.0.0.1 30050\n")
    with pytest.raises(InvalidInput, match=r"ip_config\.txt, lines 1 and 2: .* the same port"):
        read_ip_config(path)

    addresses = [host.address for host in hosts]
    peers = ["10.0.0.2", "10.0.0.1", "10.0.0.2", "10.0.0.2"]
    assert [launch._peer(addresses, i) for i in range(4)] == peers
    assert launch._peer(["10.0.0.1", "10.0.0.1"], 1) == "10.0.0.1"

    job = job_of(Ssh(HostRequest(listed=tuple(hosts))).hosts, "none")
    supervisor = supervisor_of(tmp_path, addresses)
    launch._check_apart(job, supervisor, [[1, 9], [1], [2], [3]])
    # Port 2 was free when machine 3 asked for any, and is that of machine 2's line.
    with pytest.raises(launch.LaunchError, match=r"port 2 .* machines 2 and 3"):
        launch._check_apart(job, supervisor, [[1, 9], [1], [2], [2]])
    with pytest.raises(launch.LaunchError, match="port 1 "):  # --master_port 1
        launch._check_apart(job, supervisor, [[1, 1], [1], [2], [3]])


def test_folders_that_cannot_be_written_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_workspace(tmp_path)
    (tmp_path / "logs").write_text("a file")
    words = ["--workspace", str(tmp_path), "--part_config", "graph.json", "--local"]
    for option in ("--log_dir", "--trace"):
        assert launch.main([*words, option, str(tmp_path / "logs"), "python job.py"]) == 2
        said = capsys.readouterr().err
        assert said.startswith("gnnlab launch: ") and str(tmp_path / "logs") in said


def test_dry_run_prints_commands_and_nothing_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_workspace(tmp_path)
    ip_config = tmp_path / "ip_config.txt"
    ip_config.write_text("10.0.0.1\n10.0.0.2 31000\n")
    options = f"--workspace {tmp_path} --part_config graph.json --ip_config ip_config.txt"
    options += " --ssh_username ann --num_trainers 2 --num_samplers 1 --num_servers 2 --dry-run"
    command = "PASS=hunter2 python3 job.py --lr 0.1"
    assert launch.main([*options.split(), "--extra_envs", "TOKEN=hunter2", command]) == 0
    printed = capsys.readouterr().out
    assert "hunter2" not in printed and "_secret" not in printed
    assert "ann@10.0.0.2" in printed and "StrictHostKeyChecking=yes" in printed
    assert '["10.0.0.2", 31000], ["10.0.0.2", 31001]' in printed
    assert "DGL_NUM_CLIENT=8" in printed and "DGL_SERVER_ID=3" in printed
    assert printed.count("MASTER_ADDR=10.0.0.1") == 4
    assert " RANK=3 " in printed and " WORLD_SIZE=4 " in printed
    assert "python3 job.py --lr 0.1" in printed
    assert "# machine 0: python3 is the first one on the PATH there\n" in printed


def test_commands() -> None:
    read = Command.read
    assert read("A=1 /opt/bin/python3.12 -m train 'a b'") == (
        "/opt/bin/python3.12",
        ["/opt/bin/python3.12", "-m", "train", "a b"],
        {"A": "1"},
    )
    assert read(["python", "x.py", "it's | $A"]).argv == ["python", "x.py", "it's | $A"]
    quoted = r"""python x.py 'a|b' "c;d>e" f\&g '$X ~ *' h~1 i#j {} '[0]' \
        -m -- --log=3 --x=[[1,2],[3]] [10,25]"""
    assert read(quoted).argv[2:] == [
        *("a|b", "c;d>e", "f&g", "$X ~ *", "h~1", "i#j", "{}", "[0]", "-m", "--", "--log=3"),
        *("--x=[[1,2],[3]]", "[10,25]"),
    ]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("python x.py d | tee o.txt", "|"),
        ("python x.py 2>&1", ">"),
        ("python x.py; ls", ";"),
        ("python x.py\npython y.py", "a line break"),
        ("cd folder && python x.py", "&&"),
        ("python x.py &", "&"),
        ("(python x.py)", "("),
        ("python x.py # now", "#"),
        ("A=$B python x.py", "$"),
        ('python x.py "$HOME/a b"', "$"),
        ("python x.py --data=~/data", "~"),
        ("python x.py *.csv", "*"),
        ("python x.py part[01].csv", "[01]"),
        ("python x.py part{0,1}.csv", "{0,1}"),
    ],
)
def test_a_command_that_needs_a_shell_is_refused(command: str, named: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(f"contains {named}, ")):
        Command.read(command)


def test_a_path_with_a_space_has_to_be_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "수업 자료 资料"
    folder.mkdir()
    python, script = folder / "python3", folder / "job.py"
    # Files that are not on this computer: the command may be right for the machines.
    assert Command.read(f"python3 {script}").argv == ["python3", *str(script).split(" ")]
    python.touch()
    script.touch()
    assert f"quote it: {shlex.quote(str(python))}" in refusal(f"{python} job.py", num_machines=2)
    assert f"quote it: {shlex.quote(str(script))} " in refusal(
        f"A=1 python3 {script} --lr 0.1", num_machines=2
    )
    assert Command.read(f"{shlex.quote(str(python))} job.py").python == str(python)
    assert Command.read([str(python), str(script)]).argv == [str(python), str(script)]
    monkeypatch.chdir(folder)
    assert Command.read("python3 job.py").argv == ["python3", "job.py"]


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python -u x.py -m", "x.py"),
        ("python -X dev -Wignore -W error x.py", "x.py"),
        ("python -um train x.py", ""),
        ("python -c 'print(1)' x.py", ""),
        ("python - x.py", ""),
    ],
)
def test_the_script_of_a_command(command: str, script: str) -> None:
    assert Command.read(command).script == script


def test_secrets_stay_where_they_belong() -> None:
    from gnnlab.launch.backends.local import loopback_hosts

    keys = [{"authority": "a", "server": f"s{i}", "client": f"c{i}"} for i in range(2)]
    job = job_of(loopback_hosts(2), "tls", keys=keys)
    server = json.loads(job.servers(1, [[1], [2]])[0]["env"]["GNNLAB_KEYS"])
    trainer = json.loads(job.trainers(1, [[1], [2]], 3)[0]["env"]["GNNLAB_KEYS"])
    # What is public; each agent adds its secret keys.
    assert server == {"authority": "a", "certificate": "s1"}
    assert trainer == {"authority": "a", "certificate": "c1"}
