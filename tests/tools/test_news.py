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

from gnnlab.tools.board import Board
from gnnlab.tools.news import LONGEST, WIDEST, BadNews, read_news
from gnnlab.tools.overseer import LaunchError, Overseer

IDS = {"agent": range(1, 2), "server": range(2, 4), "trainer": range(1, 2), "torchrun": range(1, 2)}
HELLO: dict[str, Any] = {
    "news": "hello",
    **dict.fromkeys(("python", "torch", "gnnlab", "host", "interface"), "x"),
    "pid": 7,
    "cpus": 2,
    "graph": {"num_parts": 2, "graph_name": "toy", "IDs": "ab"},
    "problem": None,
}
TRAINER = {"role": "trainer", "id": 1}
GOOD: list[dict[str, Any]] = [
    {"news": "beat"},
    HELLO,
    HELLO | {"graph": None, "problem": "no part1"},
    HELLO | {"graph": {"num_parts": 2, "graph_name": "그래프-1\u00a0\u200d😀", "IDs": "ab"}},
    {"news": "ports", "ports": [1, 65535], "problem": None},
    {"news": "ports", "problem": "in use"},
    {"news": "line", **TRAINER, "text": "epoch 1"},
    {"news": "started", **TRAINER, "pid": 5},
    {"news": "ready", "role": "server", "id": 3},
    {"news": "waiting", **TRAINER},
    {"news": "met", **TRAINER},
    {"news": "lost", "process": "guard (process 7)", "status": 0},
    {"news": "exited", **TRAINER, "status": 255},
    {"news": "stopped", **TRAINER, "process": "process 7: python x.py", "seconds": 3},
    {"news": "stopped", "process": "process 7: python", "seconds": 3},
    {"news": "trace", "name": "machine1-server-2-99.jsonl", "text": "{}\n"},
]
BAD: list[dict[str, Any]] = [
    {"news": "exploded"},
    {"news": ["line"]},
    {"news": "beat", "more": 1},
    {"news": "line", "role": "../../../tmp/x", "id": 1, "text": "a"},
    {"news": "line", "role": "trainer", "id": "/../../x", "text": "a"},
    {"news": "line", "role": "trainer", "id": 0, "text": "that of another host"},
    {"news": "line", "role": "trainer", "id": True, "text": "a"},
    {"news": "line", "role": "trainer", "id": 1.0, "text": "a"},
    {"news": "line", "role": ["trainer"], "id": 1, "text": "a"},
    {"news": "line", **TRAINER, "text": 7},
    {"news": "line", **TRAINER, "text": "a\n127.0.0.9 trainer 3 | b"},
    {"news": "line", **TRAINER, "text": "a" * (WIDEST + 1)},
    {"news": "exited", "role": "agent", "id": 1, "status": 0},
    {"news": "exited", **TRAINER},
    {"news": "lost", "process": "a\x1b[2J", "status": 0},
    {"news": "stopped", **TRAINER, "process": "a\x1b[2J", "seconds": 3},
    {"news": "exited", **TRAINER, "status": -1},
    {"news": "exited", **TRAINER, "status": "0"},
    {"news": "trace", "name": "../../x.jsonl", "text": ""},
    {"news": "trace", "name": "/tmp/x.jsonl", "text": ""},
    {"news": "trace", "name": ".jsonl", "text": ""},
    {"news": "trace", "name": "a.jsonl\n", "text": ""},
    {"news": "trace", "name": "a.py", "text": ""},
    {"news": "trace", "name": "a.jsonl", "text": None},
    {"news": "ports", "ports": ["22"], "problem": None},
    {"news": "ports", "ports": [70000], "problem": None},
    HELLO | {"graph": None},
    HELLO | {"graph": {}},
    HELLO | {"cpus": 0},
    HELLO | {"torch": None},
    HELLO | {"host": "\x1b[2J"},
]


@pytest.mark.parametrize("news", GOOD)
def test_what_agents_say_is_taken_in(news: dict[str, Any]) -> None:
    said = read_news(json.dumps(news).encode(), 1, IDS)
    assert said == {"role": "agent", "id": 1} | news


@pytest.mark.parametrize("news", BAD)
def test_what_no_agent_says_is_refused(news: dict[str, Any]) -> None:
    with pytest.raises(BadNews, match="no agent of this version sends"):
        read_news(json.dumps(news).encode(), 1, IDS)


words = st.sampled_from([value for news in GOOD + BAD for value in news.values()])
keys = st.sampled_from(sorted({key for news in GOOD for key in news}))
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
        said = read_news(line, 1, IDS)
    except BadNews:
        return
    if said is not None:
        assert said["id"] in IDS[said["role"]]
        assert (f"{said['role']}-{said['id']}{said.get('name', '')}").isprintable()
        assert "/" not in said.get("name", "")
        said.get("text", "").encode("utf8")


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"news": ' * 100_000, b"9" * 10_000, b"\xff\0"])
def test_what_json_cannot_hold_is_no_news(line: bytes) -> None:
    assert read_news(line, 1, IDS) is None


class Terminal(io.TextIOWrapper):
    """One that knows ASCII only."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "ascii")


def overseer_of(folder: Path, script: str) -> Overseer:
    for name in ("logs", "events"):
        (folder / name).mkdir()
    board = Board(["10.0.0.1", "10.0.0.2"], {"server": 2, "trainer": 1}, Terminal())
    overseer = Overseer(["10.0.0.1", "10.0.0.2"], folder / "logs", board, folder / "events")
    overseer.begin(["/bin/sh", "-c", "cat >/dev/null"], os.environ)
    overseer.begin(["/bin/sh", "-c", script], os.environ)
    return overseer


@pytest.mark.parametrize("line", [json.dumps(BAD[3]), json.dumps(BAD[16]), "x" * LONGEST])
def test_a_host_that_lies_ends_the_job(tmp_path: Path, line: str) -> None:
    (tmp_path / "said").write_text(line + "\n")
    script = f"cat {shlex.quote(str(tmp_path / 'said'))}; exec cat >/dev/null"
    overseer = overseer_of(tmp_path, script)
    with pytest.raises(LaunchError) as caught:
        overseer.wait_for("hello", "agent", 2, 60.0, "no hello")
    overseer.end()
    first = str(caught.value).splitlines()[0]
    assert first.startswith("10.0.0.2 (machine 1): no agent ") and len(first) < 400
    assert caught.value.host == "10.0.0.2" and caught.value.status == 1
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert files <= {"said", "logs", "events", "logs/agent-0.log", "logs/agent-1.log"}


def test_a_greeting_without_end_is_cut(tmp_path: Path) -> None:
    """It neither fills the memory nor the disk, and what follows is heard."""
    hello = shlex.quote(json.dumps(HELLO))
    text = shlex.quote(json.dumps({"news": "line", **TRAINER, "text": "안녕 \ud800"}))
    many = f"head -c {3 * LONGEST} /dev/zero | tr '\\0' y | fold -w 100; echo"
    overseer = overseer_of(tmp_path, f"{many}; echo {text}; echo {hello}; exec cat >/dev/null")
    while not overseer._heard["hello", "agent"]:
        overseer._listen(60.0)
    overseer.end()
    assert 0.9 * LONGEST < (tmp_path / "logs" / "agent-1.log").stat().st_size <= 1.1 * LONGEST
    assert (tmp_path / "logs" / "trainer-1.log").read_text("utf8") == "안녕 ?\n"
