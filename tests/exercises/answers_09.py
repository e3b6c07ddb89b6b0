"""Answers to the exercises of lesson 09, right and wrong."""

from __future__ import annotations

from typing import Any

import numpy as np


def serve(request: Any, rows: Any, least: int = 0, over: int = 0, shortest: int = 1) -> Any:
    if len(request) % 8 or len(request) < 8 * shortest:
        return b""
    ids = np.frombuffer(request, np.int64)
    if len(ids) and (ids.min() < least or ids.max() >= len(rows) + over):
        return b""
    return rows[ids].tobytes()


def serve_by_loop(request: Any, rows: Any) -> Any:
    ids = [
        int.from_bytes(request[i : i + 8], "little", signed=True) for i in range(0, len(request), 8)
    ]
    if len(request) % 8 or not all(0 <= i < len(rows) for i in ids):
        return b""
    return b"".join(rows[i].tobytes() for i in ids)


def newest(complete: Any) -> Any:
    return max(set(complete[0]).intersection(*complete), default=-1)


def newest_by_loop(complete: Any) -> Any:
    for number in sorted(complete[0], reverse=True):
        if all(number in numbers for numbers in complete):
            return np.int64(number)
    return -1


RIGHT: dict[int, list[Any]] = {
    1: [
        "10.0.0.1 31000\n10.0.0.2\n",
        "10.0.0.1 31000\n10.0.0.2",
        "10.0.0.1   31000 # a\n10.0.0.2 # b",
    ],
    2: [[8, 8, 24]],
    3: [12],
    4: [serve, serve_by_loop, lambda request, rows: bytearray(serve(request, rows))],
    5: [newest, newest_by_loop, lambda complete: float(newest(complete))],
}
WRONG: dict[int, list[tuple[Any, str]]] = {
    1: [
        ("10.0.0.2\n10.0.0.1 31000\n", "1 order"),
        ("10.0.0.1 31000\n10.0.0.2 31000\n", "1 port"),
        ("10.0.0.1\n10.0.0.2\n", "1 no port"),
        ("10.0.0.1 31000\n", "1 machines"),
        ("10.0.0.1 3100\n10.0.0.2\n", ""),
        (["10.0.0.1 31000", "10.0.0.2"], "1 text"),
        ("10.0.0.1 99999\n10.0.0.2\n", "InvalidInput"),
    ],
    2: [
        ([2, 2, 6], "2 machines"),
        ([8, 8, 12], "2 trainer"),
        ([8, 8, 3], "2 trainer"),
        ([8, 24, 8], "2 order"),
        ([8, 8, 32], "which"),
        ([8, 8], "length"),
    ],
    3: [(11, "3 up"), (11.11, "3 up"), (5, "3 save"), (13, ""), ("12", "not a number")],
    4: [
        (lambda request, rows: serve(request, rows, least=-6), "4 negative"),
        (lambda request, rows: serve(request[: len(request) // 8 * 8], rows), "4 length"),
        (lambda request, rows: serve(request, rows, shortest=2), "4 refused"),
        (lambda request, rows: serve(request, rows[::-1]), "4 rows"),
        (lambda request, rows: serve(request, rows) or b"no", "4 length"),
        (lambda request, rows: serve(request, rows) if request else b"empty", "4 empty"),
        (lambda request, rows: serve(request, rows, over=99), "IndexError"),
        (lambda request, rows: rows[np.frombuffer(request, np.int64)].tobytes(), "ValueError"),
        (lambda request, rows: rows[np.frombuffer(request, np.int64)], "4 bytes"),
    ],
    5: [
        (lambda complete: max((n for numbers in complete for n in numbers), default=-1), "5 all"),
        (lambda complete: min(set(complete[0]).intersection(*complete), default=-1), "5 newest"),
        (lambda complete: newest(complete) or -1, "5 zero"),
        (lambda complete: newest(complete[:2]), "5 all"),
        (lambda complete: max(set(complete[0]).intersection(*complete)), "ValueError"),
        (lambda complete: None if newest(complete) < 0 else newest(complete), "5 none"),
    ],
}
