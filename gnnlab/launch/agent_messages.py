"""The messages from an agent to the launcher, and the validation of each line.

A host's output is not trusted: its login shell prints greetings, and a broken or hostile host may
print anything. A line that is not a message is shown to the user. A line with the key "agent"
must be exactly what an agent of this version sends about its own processes; any other ends the job.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from typing import Any

from gnnlab.errors import GNNLabError

BEAT = 1.0  # seconds between two heartbeats of launcher and agents
SILENCE = 4.5  # seconds without a heartbeat after which the peer counts as lost
WIDEST = 1 << 16  # characters of a text; JSON escapes each by twelve bytes at most
LONGEST = 1 << 20  # bytes of a line
_ROLES = ("agent", "server", "trainer")
_TRACE = re.compile(r"[\w-]{1,200}\.jsonl", re.ASCII)
_REQUEST = re.compile(
    "-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=]{1,64}\n)+"
    "-----END CERTIFICATE REQUEST-----\n"
)


class Messages:
    """Writes messages to standard output, which is for messages alone; prints then go to stderr."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self.is_closed = False  # True: send nothing more

    def send(self, kind: str, **about: Any) -> None:
        """Send a message; called from any thread. A reader that is gone is noticed elsewhere."""
        with self._lock, suppress(OSError):
            if not self.is_closed:
                self._file.write(json.dumps({"agent": kind, **about}).encode() + b"\n")
                self._file.flush()


class BadMessage(GNNLabError):
    """A line has the form of an agent's message, but no agent sends such a message."""


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value <= most


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= WIDEST


def _line(value: Any) -> bool:
    return _text(value) and "\n" not in value


def _word(value: Any) -> bool:
    return _line(value) and len(value) <= 300 and value.isprintable()


def _nothing(value: Any) -> bool:
    return value is None


def _graph(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() == {"num_parts", "graph_name", "IDs"}
        and _whole(0, 1 << 31)(value["num_parts"])
        and isinstance(value["graph_name"], str | None)  # any text: it is only shown as repr
        and len(value["graph_name"] or "") <= 300
        and _word(value["IDs"])
    )


def _keys(value: Any) -> bool:
    """Accept requests for certificates of this host's servers and of its clients, or none."""
    return isinstance(value, dict) and (
        not value or (value.keys() == {"server", "client"} and all(map(_request, value.values())))
    )


def _request(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 2000 and bool(_REQUEST.fullmatch(value))


def _ports(value: Any) -> bool:
    return isinstance(value, list) and len(value) < 1 << 16 and all(map(_whole(1, 65535), value))


_HOST = {
    **dict.fromkeys(("python", "torch", "gnnlab", "interface", "address"), _word),
    "keys": _keys,
    "cpus": _whole(1, 1 << 16),
}
_OF_PROCESSES = {"role": lambda value: value in _ROLES[1:], "id": _whole(0, 1 << 31)}
# Kind of message -> its fields and their checks; no other field is allowed.
_KINDS: dict[str, list[dict[str, Callable[[Any], bool]]]] = {
    "beat": [{}],
    "hello": [
        _HOST | {"graph": _graph, "problem": _nothing},
        _HOST | {"graph": _nothing, "problem": _text},
    ],
    "ports": [{"ports": _ports, "problem": _nothing}, {"problem": _text}],
    "line": [_OF_PROCESSES | {"text": _line}],
    **{kind: [_OF_PROCESSES] for kind in ("started", "ready", "waiting", "met", "stopping")},
    "failing": [_OF_PROCESSES],
    "exited": [_OF_PROCESSES | {"status": _whole(0, 255)}],
    # Without a role, the agent itself.
    "stopped": [
        form | {"process": _word, "seconds": _whole(0, 1 << 31)} for form in (_OF_PROCESSES, {})
    ],
    # One of the agent's processes, from another one.
    "lost": [{"process": _word, "status": _whole(0, 255)}],
    "trace": [
        {
            "name": lambda value: isinstance(value, str) and bool(_TRACE.fullmatch(value)),
            "text": _text,
        }
    ],
}


def parse_message(
    line: bytes, machine: int, ids: Mapping[str, Container[int]]
) -> dict[str, Any] | None:
    """Parse a line of at most :data:`LONGEST` bytes from a host.

    ``ids`` are those of the processes on this host, by role. The result has ``kind``, ``role``,
    ``id`` and the fields of the message; text can be encoded as UTF-8. It is None for a line that
    is not a message; one that no agent sends raises :class:`BadMessage`.
    """
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict) or "agent" not in said:
        return None
    kind = said.pop("agent")
    forms = _KINDS.get(kind, []) if isinstance(kind, str) else []
    fits = any(
        said.keys() == form.keys() and all(check(said[name]) for name, check in form.items())
        for form in forms
    )
    if not fits or ("role" in said and said["id"] not in ids.get(said["role"], ())):
        raise BadMessage(f"no agent of this version sends {line[:200].decode('utf8', 'replace')!r}")
    for name in ("text", "problem"):
        if isinstance(said.get(name), str):  # a lone surrogate cannot be printed
            said[name] = said[name].encode("utf8", "replace").decode("utf8")
    return {"kind": kind, "role": "agent", "id": machine} | said
