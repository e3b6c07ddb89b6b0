"""Each machine gets its own part, whole or not at all, by rsync and by sftp."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

import pytest
import torch
from tqdm import tqdm

import gnnlab as dgl
from gnnlab.errors import InvalidInput, PartitionError
from gnnlab.launch.backends.ssh import Login
from gnnlab.launch.copy_files import _part_files, _Target, _Transfer, copy_files, main
from gnnlab.partition import load_partition, partition_graph
from gnnlab.partition.files import read_config
from tests.helpers import wait_until
from tests.launch.machines import Cluster, cluster


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster", 2) as machines:
        yield machines


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """``data/toy.json`` with two parts of some 4 MB, and ``code/`` with two scripts."""
    write_partition(tmp_path / "data", 0)
    code = tmp_path / "code"
    (code / "lib").mkdir(parents=True)
    (code / "train.py").write_text("print('hello')\n")
    (code / "lib" / "a b[1].sh").write_text("true\n")
    (code / "lib" / "a b[1].sh").chmod(0o755)
    return tmp_path


def write_partition(folder: Path, seed: int, num_parts: int = 2) -> None:
    torch.manual_seed(seed)
    g = dgl.rand_graph(1000, 5000)
    g.ndata["feat"] = torch.rand(1000, 2000)
    partition_graph(g, "toy", num_parts, str(folder), part_method="random")


def words(two: Cluster, source: Path, **others: object) -> list[str]:
    options = {
        "part_config": source / "data/toy.json",
        "ip_config": two.ip_config,
        "workspace": "ws",
        "rel_data_path": "graphs/toy",
        "script_folder": source / "code",
        "ssh_port": two.port,
        **others,
    }
    return [f"--{name}={value}" for name, value in options.items() if value is not None]


def start(two: Cluster, source: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gnnlab.launch.copy_files", *words(two, source)],
        env={**two.env, "TMPDIR": str(source)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run(two: Cluster, source: Path, **others: object) -> tuple[int, str]:
    """Run the command line in this process; return its status and what it printed."""
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch, io.StringIO() as said:
        patch.setenv("PATH", two.env["PATH"])
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main(words(two, source, **others))
        signal.signal(signal.SIGTERM, before)
        return status, said.getvalue()


def wait_for(process: subprocess.Popen[str], condition: Callable[[], bool]) -> None:
    def is_so() -> bool:
        assert process.poll() is None
        return condition()

    wait_until("a copy", is_so)


def feat_of(two: Cluster, part: int) -> torch.Tensor:
    """The features that machine ``part`` holds, opened as a trainer there would."""
    config = two.machines[part].home / "ws/graphs/toy/toy.json"
    return load_partition(str(config), part)[1]["_N/feat"]


def same(two: Cluster, source: Path, part: int) -> bool:
    expected = load_partition(str(source / "data/toy.json"), part)[1]["_N/feat"]
    return torch.equal(feat_of(two, part), expected)


@pytest.mark.parametrize(
    "way",
    ["rsync", pytest.param("sftp", marks=pytest.mark.thorough("machines at one address use it"))],
)
def test_each_machine_gets_its_own_part(two: Cluster, source: Path, way: str) -> None:
    if way == "sftp":
        two.machines[0].hide("rsync")  # where it is missing on one side, that side gets sftp
        two.machines[1].replace("rsync", "echo 'rsync  version 2.6.9  protocol version 29'")
    status, said = run(two, source)
    assert status == 0, said
    for part, machine in enumerate(two.machines):
        folder = machine.home / "ws/graphs/toy"
        assert {p.name for p in folder.iterdir()} == {"toy.json", f"part{part}"}
        assert same(two, source, part)
        assert (machine.home / "ws/code/train.py").read_text() == "print('hello')\n"
        assert os.access(machine.home / "ws/code/lib/a b[1].sh", os.X_OK)
        assert (machine.home / "ws/ip_config.txt").read_text() == two.ip_config.read_text()
        names = {p.name for p in (machine.home / "ws").iterdir()}
        assert names == {"graphs", "code", "ip_config.txt"}
    if way == "sftp":
        return
    status, said = run(two, source)
    assert status == 0 and said.count(" 0 sent now") == 2, said

    (source / "code/train.py").write_text("print('new')\n")
    other = two.machines[0].home / "ws/code/result.txt"
    other.write_text("of a training run")
    status, said = run(two, source)
    assert status == 0 and said.count(" 1 sent now") == 2, said
    assert (machine.home / "ws/code/train.py").read_text() == "print('new')\n"
    assert other.exists()


def test_machines_at_one_address_and_names_that_look_like_options(
    two: Cluster, tmp_path: Path
) -> None:
    two.ip_config.write_text("127.0.0.2 30050\n127.0.0.2 30060\n")
    workspace = two.machines[0].home / "ws"
    g = dgl.rand_graph(100, 500)
    g.ndata["a/b ü"] = torch.rand(100, 3)
    partition_graph(g, "-1 #그래프", 2, str(tmp_path / "data"), part_method="random")
    (config,) = (tmp_path / "data").glob("*.json")
    for way in ("rsync", "sftp"):
        status, said = run(two, tmp_path, part_config=config, rel_data_path=".", script_folder=None)
        assert status == 0 and "127.0.0.2 (machine 1): " in said, said
        for part in range(2):
            found, expected = (
                load_partition(str(folder / config.name), part)[1]["_N/a/b ü"]
                for folder in (workspace, tmp_path / "data")
            )
            assert torch.equal(found, expected)
        if way == "rsync":
            shutil.rmtree(workspace)
            two.machines[0].hide("rsync")
    assert not list(workspace.glob(".gnnlab-incoming*"))


# After 3 MB the link stands still: the copy hangs in the middle of the features.
STUCK = f"""
[ "$1" != --version ] || exec {{real}} "$@"
{shlex.quote(sys.executable)} -c '
import os, time
left = 3_000_000
while left > 0 and (block := os.read(0, min(left, 65536))):
    os.write(1, block)
    left -= len(block)
time.sleep(1000)
' | {{real}} "$@"
"""


AGAIN = pytest.mark.thorough("as by rsync, when an older copy is there")


@pytest.mark.parametrize(
    ("program", "is_first"), [("rsync", False), pytest.param("sftp-server", True, marks=AGAIN)]
)
def test_a_killed_copy_is_never_taken_for_a_whole_one(
    two: Cluster, source: Path, program: str, is_first: bool
) -> None:
    machine = two.machines[1]
    real = shutil.which("rsync")
    if program == "sftp-server":
        machine.hide("rsync")
        real = f"{machine.folder}/programs/sftp-server"
    if not is_first:
        assert run(two, source)[0] == 0
        old = feat_of(two, 1)
        write_partition(source / "data", 1)
    machine.replace(program, STUCK.format(real=real))
    process = start(two, source)
    aside = machine.home / "ws/.gnnlab-incoming-part1"
    wait_for(process, lambda: sum(p.stat().st_size for p in aside.rglob("*.npy")) > 1_000_000)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    if is_first:
        with pytest.raises(PartitionError, match=r"toy\.json"):
            feat_of(two, 1)
    else:
        assert torch.equal(feat_of(two, 1), old)

    machine.restore(program)
    status, said = run(two, source)
    assert status == 0, said
    assert same(two, source, 0) and same(two, source, 1)
    assert not aside.exists()


@pytest.mark.thorough("a copy is killed at another moment above")
def test_a_stop_between_old_and_new_leaves_nothing_that_opens(two: Cluster, source: Path) -> None:
    assert run(two, source)[0] == 0
    write_partition(source / "data", 1)
    two.machines[1].replace("mv", '[ ! -e "$HOME/moved" ] || exit 1; > "$HOME/moved"; /bin/mv "$@"')
    assert run(two, source)[0] == 1
    with pytest.raises(PartitionError, match=r"toy\.json"):
        feat_of(two, 1)
    two.machines[1].restore("mv")
    status, said = run(two, source)
    assert status == 0, said
    assert same(two, source, 1)


def test_a_damaged_file_over_there_is_sent_again(two: Cluster, source: Path) -> None:
    assert run(two, source, script_folder=None)[0] == 0
    file = next((two.machines[0].home / "ws").rglob("feat.npy"))
    with file.open("r+b") as opened:
        opened.seek(2000)
        opened.write(b"damage")
    status, said = run(two, source, script_folder=None)
    assert status == 0 and " 2 sent now" in said, said  # with the JSON file
    assert same(two, source, 0)


def test_a_file_that_changed_here_is_refused(two: Cluster, source: Path) -> None:
    file = next((source / "data/part1").rglob("feat.npy"))
    with file.open("r+b") as opened:
        opened.seek(2000)
        opened.write(b"damage")
    status, said = run(two, source)
    assert status == 1 and f"{file} on this machine has changed" in said
    assert "127.0.0.3 is not complete" in said and "127.0.0.2 is not" not in said
    assert same(two, source, 0)
    assert not (two.machines[1].home / "ws/graphs").exists()


def test_interrupted(two: Cluster, source: Path) -> None:
    two.machines[1].replace("sha256sum", '> "$HOME/reached"; sleep 1000')
    process = start(two, source)
    wait_for(process, lambda: (two.machines[1].home / "reached").exists())
    os.kill(process.pid, signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "run it again" in said
    assert not list(source.glob("gnnlab-copy-*"))


def test_names_that_would_lead_elsewhere_are_refused(two: Cluster, source: Path) -> None:
    good = (source / "data/toy.json", two.ip_config, "ws")
    with pytest.raises(InvalidInput, match=r"\.\./data"):
        copy_files(*good, "../data")
    with pytest.raises(InvalidInput, match="-oProxyCommand=x"):
        copy_files(*good, "data", ssh_username="-oProxyCommand=x")
    for name in ("a\nb", "a\t"):
        (source / "code" / name).touch()
        with pytest.raises(InvalidInput, match=re.escape(repr(f"code/{name}"))):
            copy_files(*good, "data", source / "code")
        (source / "code" / name).unlink()


def test_more_files_than_fit_into_a_pipe(tmp_path: Path) -> None:
    """A program that answers each line as it reads it, as sftp does, holds up nobody."""
    transfer = _Transfer(tqdm(total=0, disable=True), str(tmp_path))
    text = "put some file\n" * 100_000
    heard: list[str] = []
    sending = threading.Thread(
        target=transfer.send,
        args=(["cat"], text, [], lambda line, before: heard.append(line) or before),
        daemon=True,
    )
    sending.start()
    sending.join(60.0)
    transfer.stop()
    assert not sending.is_alive() and "".join(heard) == text


def test_a_login_shell_that_greets_is_no_harm_to_what_is_read(two: Cluster, source: Path) -> None:
    for machine in two.machines:
        enter = machine.folder / "enter"
        enter.write_text(enter.read_text().replace("exec", "echo Welcome to disk 7\nexec"))
    login = Login("127.0.0.2", two.port)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", two.env["PATH"])
        assert _Target(login, "./ws", 0, "127.0.0.2").run("cat", "one\ntwo\n") == ["one", "two"]


def test_an_array_that_is_a_link_elsewhere_is_not_sent(tmp_path: Path) -> None:
    g = dgl.graph([(0, 1), (1, 0)])
    partition_graph(g, "pair", 1, tmp_path / "data", part_method="random")
    config = read_config(tmp_path / "data/pair.json")
    array = next(iter(config.arrays[0].values())).file
    assert len(list(_part_files(config, 0, PurePosixPath("data")))) == len(config.arrays[0]) + 1
    array.rename(tmp_path / "elsewhere.npy")
    array.symlink_to(tmp_path / "elsewhere.npy")
    with pytest.raises(PartitionError, match=r"elsewhere\.npy"):
        list(_part_files(config, 0, PurePosixPath("data")))
