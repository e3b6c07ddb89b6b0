"""The doctor names what is wrong, its cause and its remedy, in three languages."""

from __future__ import annotations

import argparse
import json
import shutil
import socket
import string
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.launch import doctor, probe
from gnnlab.multiprocessing import raise_file_limit
from gnnlab.partition import partition_graph
from tests.helpers import ROOT
from tests.launch.machines import Cluster, cluster

TEXTS = tomllib.loads((ROOT / "gnnlab/launch/doctor.toml").read_text("utf8"))
Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Two machines that hold a part each in ``data/toy.json``."""
    raise_file_limit()  # logins inherit it
    with cluster(tmp_path / "cluster", 2) as machines:
        first, second = (machine.home / "data" for machine in machines.machines)
        g = dgl.rand_graph(50, 200)
        g.ndata["feat"] = torch.rand(50, 3)
        partition_graph(g, "toy", 2, str(first), part_method="random")
        shutil.copytree(first, second)
        yield machines


@pytest.fixture
def run(two: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    for name in ("PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, two.env[name])

    def run(*words: str) -> tuple[int, dict[str, Any]]:
        common = ["--ip_config", str(two.ip_config), "--ssh_port", str(two.port), "--json"]
        capsys.readouterr()
        status = doctor.main([*common, "--python", sys.executable, *words])
        return status, json.loads(capsys.readouterr().out)

    return run


def failures(said: dict[str, Any]) -> list[tuple[str, str]]:
    return [(row["host"], row["code"]) for row in said["findings"] if row["state"] == "failed"]


def test_all_is_well(run: Run) -> None:
    status, said = run("--part_config", "data/toy.json")
    assert status == 0 and said["ok"] and not failures(said)
    found = {row["check"]: row["found"] for row in said["findings"] if row["host"] == "127.0.0.3"}
    assert set(found) == set(TEXTS["checks"]["en"]) - {"start"}  # of other backends
    assert found["address"] == "lo"
    # The installed distribution; a CUDA build adds to torch.__version__.
    assert f"torch {version('torch')}," in found["versions"]


def test_partitions(two: Cluster, run: Run) -> None:
    first, second = (machine.home for machine in two.machines)
    file = next((first / "data/part0").rglob("feat.npy"))
    with file.open("r+b") as opened:
        opened.seek(-4, 2)
        opened.write(b"\1\2\3\4")
    next((first / "data/part1").rglob("feat.npy")).unlink()  # not its part: nobody minds
    (second / "data/toy.json").unlink()
    status, said = run("--part_config", "data/toy.json")
    assert status == 1
    assert failures(said) == [
        ("127.0.0.2", "partition_damaged"),
        ("127.0.0.3", "partition_missing"),
    ]
    partition_graph(dgl.rand_graph(9, 9), "toy", 3, str(second / "data"), part_method="random")
    status, said = run("--part_config", "data/toy.json")
    assert status == 1
    assert failures(said)[1:] == [
        ("127.0.0.3", "partition_count"),
        ("127.0.0.3", "partition_differs"),
    ]


def test_ssh(two: Cluster, run: Run) -> None:
    keys = two.known_hosts.read_text().splitlines()
    two.known_hosts.write_text(f"{keys[0]}\n")
    status, said = run()
    assert status == 1 and failures(said) == [("127.0.0.3", "host_key_unknown")]
    assert f"ssh -p {two.port} 127.0.0.3" in said["findings"][-1]["remedy"]

    place, wrong = keys[1].split(" ", 1)[0], keys[0].split(" ", 1)[1]
    two.known_hosts.write_text(f"{keys[0]}\n{place} {wrong}\n")
    status, said = run()
    assert failures(said) == [("127.0.0.3", "host_key_changed")]
    assert f"ssh-keygen -R '[127.0.0.3]:{two.port}'" in said["findings"][-1]["remedy"]

    two.known_hosts.write_text("\n".join(keys) + "\n")
    (two.machines[1].folder / "authorized_keys").write_text("")
    assert failures(run()[1]) == [("127.0.0.3", "ssh_denied")]
    two.machines[1].stop()
    assert failures(run()[1]) == [("127.0.0.3", "ssh_refused")]
    two.ip_config.write_text("127.0.0.2\nno-such-host.invalid\n")
    codes = [code for _, code in failures(run()[1])]
    assert codes == ["peer_unreachable", "ssh_name"]


def test_machines_that_are_stuck_are_told(two: Cluster, run: Run) -> None:
    """They let us in, and then nothing happens, as where a disk of the network does not answer."""
    for machine in two.machines:
        machine.replace("stuck", "exec sleep 30")
    status, said = run("--python", "stuck", "--timeout", "1")
    assert status == 1
    assert [code for _, code in failures(said)] == ["ssh_unreachable"] * 2
    assert "nothing came back within 1 s" in said["findings"][0]["cause"]


def test_python_and_ports(two: Cluster, run: Run) -> None:
    _, said = run("--python", "/nowhere/python")
    assert [code for _, code in failures(said)] == ["no_python"] * 2
    assert "/nowhere/python" in said["findings"][0]["cause"]
    with socket.socket() as listener:
        listener.bind(("127.0.0.3", 0))
        listener.listen()
        port = listener.getsockname()[1]
        two.ip_config.write_text(f"127.0.0.2 {port}\n127.0.0.3 {port - 1}\n")
        _, said = run("--num_servers", "2")
    assert failures(said) == [("127.0.0.3", "port_busy")]
    assert any(f"Port {port} is in use" in row["cause"] for row in said["findings"])
    two.ip_config.write_text("127.0.0.2 30050\n127.0.0.2 30050\n")
    with pytest.raises(json.JSONDecodeError):
        run()


def facts(**others: Any) -> dict[str, Any]:
    """What a sound machine says."""
    return {
        "versions": {"python": "3.12.1", "gnnlab": "0.1.0", "torch": "2.9.0+cpu"},
        "interface": {"10.0.0.2": "eth0"},
        "unreachable": [],
        "is_own": True,
        "rsync": "rsync 3.2.7",
        "own_rsync": "rsync 3.4.1",
        "busy": [],
        "shm": [1 << 33, 1 << 32],
        "memory": 1 << 34,
        "processor": (0.5, 4, ""),
        "limits": {"NOFILE": 4096, "NPROC": -1},
        "workspace": True,
        "is_shared": True,
        "disk": 5 << 40,
        "skew": 0.0,
        "gpus": [],
        **others,
    }


@pytest.mark.parametrize(
    ("seen", "code", "state"),
    [
        ({}, "", doctor.OK),
        ({"versions": {"python": "3.12.1", "gnnlab": "", "torch": "2.9.0+cpu"}},
         "package_missing", doctor.FAILED),
        ({"versions": {"python": "3.12.1", "gnnlab": "0.1.0", "torch": "2.8.0"}},
         "versions_differ", doctor.FAILED),
        ({"versions": {"python": "3.12.1", "gnnlab": "0.1.0", "torch": "2.9.0+cu130"}},
         "", doctor.OK),
        ({"is_own": False}, "address_foreign", doctor.FAILED),
        ({"rsync": ""}, "rsync_missing", doctor.WARNING),
        ({"own_rsync": ""}, "rsync_missing", doctor.WARNING),
        ({"unreachable": ["10.0.0.2"]}, "peer_unreachable", doctor.FAILED),
        ({"interface": {"10.0.0.2": ""}}, "no_interface", doctor.WARNING),
        ({"busy": [[30050, 7, "python"]]}, "port_busy", doctor.FAILED),
        ({"shm": None}, "shm_missing", doctor.FAILED),
        ({"shm": [1 << 26, 1 << 25]}, "shm_small", doctor.WARNING),
        ({"limits": {"NOFILE": 256, "NPROC": -1}}, "limit_low", doctor.FAILED),
        ({"memory": 1 << 29}, "memory_low", doctor.WARNING),
        ({"memory": None}, "", doctor.OK),
        ({"processor": (2.5, 2, "")}, "cpu_busy", doctor.WARNING),
        ({"processor": (2.5, 2, "passive")}, "", doctor.OK),
        ({"disk": 1000}, "disk_low", doctor.WARNING),
        ({"is_shared": False}, "not_shared", doctor.WARNING),
        ({"workspace": False}, "no_workspace", doctor.FAILED),
        ({"skew": 60.0}, "clock_off", doctor.WARNING),
        ({"partition": {"error": "missing"}}, "partition_missing", doctor.FAILED),
        ({"partition": {"error": "ValueError()"}}, "partition_unreadable", doctor.FAILED),
        ({"gpus": ["H200"]}, "gpu_unused", doctor.WARNING),
    ],
)  # fmt: skip
@pytest.mark.parametrize("language", doctor.LANGUAGES)
def test_judgement(seen: dict[str, Any], code: str, state: int, language: str) -> None:
    arguments = argparse.Namespace(
        on="ssh",
        ip_config="ip_config.txt",
        workspace="ws",
        part_config="toy.json",
        python="python3",
    )
    findings = doctor.judge("10.0.0.1", facts(**seen), arguments, 2, ("10.0.0.2", facts()))
    bad = [finding for finding in findings if finding.code]
    assert [(finding.code, finding.state) for finding in bad][:1] == (
        [(code, state)] if code else []
    )
    table = "\n".join(doctor._as_table(findings, doctor._Words(language)))
    assert "{" not in table
    if code:
        assert TEXTS["finding"][language][1].partition("{")[0] in table


def test_every_message_is_whole_in_every_language() -> None:
    """Same number of texts, same names in braces; no sentence is left in English."""
    for code, texts in TEXTS.items():
        assert set(texts) == set(doctor.LANGUAGES), code
        fields = {
            language: {name for text in each for _, name, _, _ in string.Formatter().parse(text)}
            for language, each in texts.items()
        }
        assert len({len(each) for each in texts.values()}) == 1, code
        assert fields["en"] == fields["ko"] == fields["zh"], code
        if texts["en"][0].endswith("."):
            for language in ("ko", "zh"):
                assert all(any("\u3000" < c < "\ud7b0" for c in t) for t in texts[language]), code


def test_this_machine_alone(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--on", "local"], ["--local"]):
        doctor.main([*words, "--lang", "ko"])
        assert capsys.readouterr().out.startswith("항목")
    assert doctor.main(["--local", "--ip_config", "missing.txt"]) == 1
    with pytest.raises(SystemExit):
        doctor.main(["--local", "--on", "ssh"])


def test_who_holds_a_port() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        pid, command = probe.holder(listener.getsockname()[1])
    assert "python" in command or pid == 0
