"""Lesson 09: launching a job on many machines."""

from __future__ import annotations

import tempfile
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import numpy as np

from gnnlab.exercises.judging import Wrong, expect, expect_each, function, number
from gnnlab.launch.ip_config import read_ip_config


def exercise_1(answer: Any) -> None:
    if not isinstance(answer, str):
        raise Wrong("1 text")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ip_config.txt")
        path.write_text(answer, encoding="utf8")
        found = [(host.address, host.port) for host in read_ip_config(path)]
    known = {
        (("10.0.0.2", None), ("10.0.0.1", 31000)): "1 order",
        (("10.0.0.1", 31000), ("10.0.0.2", 31000)): "1 port",
        (("10.0.0.1", 31000), ("10.0.0.2", 30050)): "1 port",
        (("10.0.0.1", 31000),): "1 machines",
        (("10.0.0.1", None), ("10.0.0.2", None)): "1 no port",
    }
    if found != [("10.0.0.1", 31000), ("10.0.0.2", None)]:
        raise Wrong(known.get(tuple(found), ""))


def exercise_2(answer: Any) -> None:
    known: dict[Hashable, str] = {
        (2, 2, 3): "2 machines",
        (2, 2, 6): "2 machines",
        (8, 8, 12): "2 trainer",
        (8, 8, 3): "2 trainer",
        (8, 8, 6): "2 trainer",
        (8, 24, 8): "2 order",
    }
    expect_each(answer, [8, 8, 24], known)


def exercise_3(answer: Any) -> None:
    known = {11: "3 up", 11.11: "3 up", 11.1: "3 up", 5: "3 save", 6: "3 save", 9.09: "3 save"}
    expect(answer, 12, known, tolerance=0.002)


def exercise_4(answer: Any) -> None:
    serve, rows = function(answer), np.arange(12.0).reshape(6, 2) / 7
    for ids in ([3, 0, 3], [5], [1, 2, 3, 4]):
        found = serve(np.array(ids).tobytes(), rows)
        if not isinstance(found, bytes | bytearray):
            raise Wrong("4 bytes")
        if found != rows[ids].tobytes():
            raise Wrong("4 refused" if not found else "4 rows")
    bad: dict[str, list[bytes]] = {
        "4 length": [b"abc", bytes(12)],
        "4 large": [np.array([6]).tobytes(), np.array([0, 99]).tobytes()],
        "4 negative": [np.array([2, -1]).tobytes(), np.array([-6]).tobytes()],
        "4 empty": [b""],
    }
    for reason, requests in bad.items():
        if any(serve(request, rows) != b"" for request in requests):
            raise Wrong(reason)


def exercise_5(answer: Any) -> None:
    newest = function(answer)
    for right, complete, known in (
        (3, [[1, 3], [2, 3]], {}),
        (2, [[2, 3], [1, 2]], {3: "5 all", 1: "5 newest"}),
        (-1, [[1], [2], [1, 2]], {2: "5 all", 1: "5 all"}),
        (10, [[9, 10], [10, 9]], {9: "5 newest"}),
        (1, [[0, 1, 4], [1, 0, 5], [4, 1, 0]], {0: "5 newest", 5: "5 all", 4: "5 all"}),
        (0, [[0], [0, 1]], {-1: "5 zero", 1: "5 all"}),
        (-1, [[], []], {}),
        (1, [[1, 2], [1, 2], [1]], {2: "5 all"}),
    ):
        found = newest([list(numbers) for numbers in complete])
        if found is None:
            raise Wrong("5 none")
        if number(found) != right:
            raise Wrong(known.get(int(found), "5 none" if right == -1 else ""))
