"""A host may print anything: it is shown, or it ends the job, and it touches nothing else."""

from __future__ import annotations

import io
import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnnlab.launch.agent_messages import LONGEST, WIDEST, BadMessage, parse_message
from gnnlab.launch.certificates import request
from gnnlab.launch.job_supervisor import JobSupervisor, LaunchError
from gnnlab.launch.status_table import StatusTable

REQUEST = request()[1]
IDS = {"agent": range(1, 2), "server": range(2, 4), "trainer": range(1, 2)}
HELLO: dict[str, Any] = {
    "agent": "hello",
    **dict.fromkeys(("python", "torch", "gnnlab", "interface", "address"), "x"),
    "keys": {"server": REQUEST, "client": request()[1]},
    "cpus": 2,
    "graph": {"num_parts": 2, "graph_name": "toy", "IDs": "ab"},
    "problem": None,
}
TRAINER = {"role": "trainer", "id": 1}
GOOD: list[dict[str, Any]] = [
    {"agent": "beat"},
    HELLO,
    HELLO | {"keys": {}},
    HELLO | {"graph": None, "problem": "no part1"},
    HELLO | {"graph": {"num_parts": 2, "graph_name": "그래프-1\u00a0\u200d😀", "IDs": "ab"}},
    {"agent": "ports", "ports": [1, 65535], "problem": None},
    {"agent": "ports", "problem": "in use"},
    {"agent": "line", **TRAINER, "text": "epoch 1"},
    {"agent": "started", **TRAINER},
    {"agent": "ready", "role": "server", "id": 3},
    {"agent": "waiting", **TRAINER},
    {"agent": "met", **TRAINER},
    {"agent": "failing", **TRAINER},
    {"agent": "lost", "process": "guard (process 7)", "status": 0},
    {"agent": "exited", **TRAINER, "status": 255},
    {"agent": "stopped", **TRAINER, "process": "process 7: python x.py", "seconds": 3},
    {"agent": "stopped", "process": "process 7: python", "seconds": 3},
    {"agent": "trace", "name": "machine1-server-2-99.jsonl", "text": "{}\n"},
]
BAD: list[dict[str, Any]] = [
    {"agent": "exploded"},
    {"agent": ["line"]},
    {"agent": "beat", "more": 1},
    {"agent": "line", "role": "../../../tmp/x", "id": 1, "text": "a"},
    {"agent": "line", "role": "trainer", "id": "/../../x", "text": "a"},
    {"agent": "line", "role": "trainer", "id": 0, "text": "that of another host"},
    {"agent": "line", "role": "trainer", "id": True, "text": "a"},
    {"agent": "line", "role": "trainer", "id": 1.0, "text": "a"},
    {"agent": "line", "role": ["trainer"], "id": 1, "text": "a"},
    {"agent": "line", **TRAINER, "text": 7},
    {"agent": "line", **TRAINER, "text": "a\n127.0.0.9 trainer 3 | b"},
    {"agent": "line", **TRAINER, "text": "a" * (WIDEST + 1)},
    {"agent": "exited", "role": "agent", "id": 1, "status": 0},
    {"agent": "exited", **TRAINER},
    {"agent": "lost", "process": "a\x1b[2J", "status": 0},
    {"agent": "stopped", **TRAINER, "process": "a\x1b[2J", "seconds": 3},
    {"agent": "exited", **TRAINER, "status": -1},
    {"agent": "exited", **TRAINER, "status": "0"},
    {"agent": "trace", "name": "../../x.jsonl", "text": ""},
    {"agent": "trace", "name": "/tmp/x.jsonl", "text": ""},
    {"agent": "trace", "name": ".jsonl", "text": ""},
    {"agent": "trace", "name": "a.jsonl\n", "text": ""},
    {"agent": "trace", "name": "a.py", "text": ""},
    {"agent": "trace", "name": "a.jsonl", "text": None},
    {"agent": "ports", "ports": ["22"], "problem": None},
    {"agent": "ports", "ports": [70000], "problem": None},
    HELLO | {"graph": None},
    HELLO | {"graph": {}},
    HELLO | {"cpus": 0},
    HELLO | {"keys": {"server": REQUEST}},
    HELLO | {"keys": {"server": REQUEST, "client": REQUEST, "agent": REQUEST}},
    *(
        HELLO | {"keys": {"server": REQUEST, "client": text}}
        for text in (
            7,
            "",
            f"{REQUEST}\n",
            REQUEST * 2,
            f"x{REQUEST}",
            REQUEST.replace("A", "À"),
            REQUEST.replace("\n", f"\n{'A' * 63}\n" * 10),
        )
    ),
    HELLO | {"torch": None},
    HELLO | {"interface": "\x1b[2J"},
]


@pytest.mark.parametrize("message", GOOD)
def test_what_agents_say_is_taken_in(message: dict[str, Any]) -> None:
    said = parse_message(json.dumps(message).encode(), 1, IDS)
    assert said is not None
    said["agent"] = said.pop("kind")
    assert said == {"role": "agent", "id": 1} | message


@pytest.mark.parametrize("message", BAD)
def test_what_no_agent_says_is_refused(message: dict[str, Any]) -> None:
    with pytest.raises(BadMessage):
        parse_message(json.dumps(message).encode(), 1, IDS)


words = st.sampled_from([value for message in GOOD + BAD for value in message.values()])
keys = st.sampled_from(sorted({key for message in GOOD for key in message}))
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | words,
    lambda inner: st.lists(inner) | st.dictionaries(keys | st.text(), inner),
    max_leaves=8,
)
lines = st.binary() | anything.map(lambda value: json.dumps(value).encode())
almost = st.tuples(st.sampled_from(GOOD), keys, anything).map(
    lambda parts: json.dumps(parts[0] | {parts[1]: parts[2]}).encode()
)


@given(lines | almost)
def test_a_line_is_news_or_none_or_refused(line: bytes) -> None:
    try:
        said = parse_message(line, 1, IDS)
    except BadMessage:
        return
    if said is not None:
        assert said["id"] in IDS[said["role"]]
        assert (f"{said['role']}-{said['id']}{said.get('name', '')}").isprintable()
        assert "/" not in said.get("name", "")
        said.get("text", "").encode("utf8")


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b'{"agent": ' * 100_000, b"9" * 10_000, b"\xff\0", b"[]", b'{"a": 1}']
)
def test_what_json_cannot_hold_is_no_news(line: bytes) -> None:
    assert parse_message(line, 1, IDS) is None


class Terminal(io.TextIOWrapper):
    """One that knows ASCII only."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "ascii")


def supervisor_of(folder: Path, script: str) -> JobSupervisor:
    for name in ("logs", "events"):
        (folder / name).mkdir()
    table = StatusTable(["10.0.0.1", "10.0.0.2"], {"server": 2, "trainer": 1}, Terminal())
    supervisor = JobSupervisor(["10.0.0.1", "10.0.0.2"], folder / "logs", table, folder / "events")
    supervisor.begin(["/bin/sh", "-c", "cat >/dev/null"], os.environ)
    supervisor.begin(["/bin/sh", "-c", script], os.environ)
    return supervisor


@pytest.mark.parametrize("line", [json.dumps(BAD[3]), json.dumps(BAD[16]), "x" * LONGEST])
def test_a_host_that_lies_ends_the_job(tmp_path: Path, line: str) -> None:
    (tmp_path / "said").write_text(line + "\n")
    script = f"cat {shlex.quote(str(tmp_path / 'said'))}; exec cat >/dev/null"
    supervisor = supervisor_of(tmp_path, script)
    with pytest.raises(LaunchError) as caught:
        supervisor.wait_for("hello", "agent", 2, 60.0, "no hello")
    supervisor.end()
    first = str(caught.value).splitlines()[0]
    assert first.startswith("10.0.0.2 (machine 1): no agent ") and len(first) < 400
    assert caught.value.host == "10.0.0.2" and caught.value.status == 1
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert files <= {"said", "logs", "events", "logs/agent-0.log", "logs/agent-1.log"}


def test_a_greeting_without_end_is_cut(tmp_path: Path) -> None:
    """It neither fills the memory nor the disk, and what follows is received."""
    hello = shlex.quote(json.dumps(HELLO))
    text = shlex.quote(json.dumps({"agent": "line", **TRAINER, "text": "안녕 \ud800"}))
    many = f"head -c {3 * LONGEST} /dev/zero | tr '\\0' y | fold -w 100; echo"
    supervisor = supervisor_of(
        tmp_path, f"{many}; printf '%s\\n' {text} {hello}; exec cat >/dev/null"
    )
    while not supervisor._received["hello", "agent"]:
        supervisor._listen(60.0)
    supervisor.end()
    assert 0.9 * LONGEST < (tmp_path / "logs" / "agent-1.log").stat().st_size <= 1.1 * LONGEST
    assert (tmp_path / "logs" / "trainer-1.log").read_text("utf8") == "안녕 ?\n"
