"""Lesson 10: a scaling study."""

from __future__ import annotations

from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, expect_each, function, number, sequence
from gnnlab.simulate.network import Network

TEN_GBIT = Network(bandwidth=10e9, latency=1e-4, overhead=0.08, per_request=1e-4, per_byte=5e-10)
ROW, GRADIENTS = 400, 302_268  # bytes in the lesson's job
SEEDS, BATCH = 10_000_000, 128


def exercise_1(answer: Any) -> None:
    known = {750_000: "1 itself", 916_000: "1 again", 1056: "1 one seed"}
    expect(answer, 1_056_000, known)


def exercise_2(answer: Any) -> None:
    known = {30.72: "2 IDs", 41.6: "2 remote", 3.9: "2 bits", 0.0312: "2 seconds"}
    known |= {8.16: "2 row", 40.96: "2 remote", 33.913: "2 full", 3.84: "2 bits"}
    expect(answer, 31.2, known, tolerance=0.002)


def exercise_3(answer: Any) -> None:
    known = {1.25: "3 bits", 10e9: "3 unit", 10_000: "3 unit", 0.01: "3 ms", 1.25e9: "3 bits"}
    expect(answer, 10, known, tolerance=0.005)


def exercise_4(answer: Any) -> None:
    rate, counts = function(answer), [0.0, 5.0, 1.0, 0.0, 4.0]
    known = {0.5: "4 order", 0: "4 least", 9: "4 rate", 1: "4 off", 4.5: "4 rate", 0.4: "4 rows"}
    expect(rate(torch.tensor(counts), 2), 0.9, known, tolerance=1e-5)
    for size, right in ((0, 0.0), (1, 0.5), (5, 1.0)):
        expect(rate(torch.tensor(counts), size), right, tolerance=1e-5)
    expect(rate(torch.arange(1.0, 9.0), 3), 21 / 36, tolerance=1e-5)


def exercise_5(answer: Any) -> None:
    choose = function(answer)
    offers = [(7.0, 2.0, "a"), (4.0, 5.0, "b"), (6.0, 3.0, "c"), (4.5, 3.5, "d")]
    offers += [(8.0, 3.2, "e")]
    others = [(2.0, 9.0, "x"), (3.0, 1.0, "y"), (1.0, 8.0, "z")]
    for given, limit, right in (
        (offers, 3.6, "d"),
        (offers, 3, "c"),
        (offers, 2, "a"),
        (offers, 9, "b"),
        (others, 8, "z"),
        (others, 1, "y"),
        (offers, 1, None),
    ):
        found = choose(list(given), limit)
        if isinstance(found, tuple | list):
            raise Wrong("5 tuple")
        if found != right:
            in_time = [offer for offer in given if offer[1] < limit]
            known = {
                min(given)[2]: "5 late",
                min(given, key=lambda offer: offer[1])[2]: "5 fastest",
                min(in_time, default=(0, 0, None))[2]: "5 within",
            }
            raise Wrong("5 none" if right is None else known.get(found, ""))


def exercise_6(answer: Any) -> None:
    pairs = [[number(x) for x in sequence(pair, 2)] for pair in sequence(answer, 3)]
    found = [[round(x) for x in pair] for pair in pairs]
    known = [
        {(2, 3): "6 up", (2, 2): "6 half", (1, 2): "6 half"},
        {(72, 108): "6 each"},
        {(9, 37): "6 trainers", (6, 12): "6 remote", (16, 36): "6 remote", (4, 9): "6 random"},
    ]
    for (low, high), reasons in zip(found, known, strict=True):
        if why := reasons.get((low, high)):
            raise Wrong(why)
    if [pair[::-1] for pair in found] == [[3, 4], [18, 27], [2, 9]]:
        raise Wrong("6 order")
    expect_each([x for pair in found for x in pair], [3, 4, 18, 27, 2, 9])


def exercise_7(answer: Any) -> None:
    seconds, steps = function(answer), 250_000 / 128
    for rows, gigabytes, row in ((3e7, 2.3, 2e-6), (1e7, 1.15, 1e-6), (0, 0, 1e-6)):
        work, sending, more = rows * row, gigabytes / 1.15, 0.002 * steps
        known = {
            work + sending: "7 more",
            work + sending + 4 * more: "7 trainers",
            work + sending + 1000 * more: "7 ms",
            work + 8 * sending + more: "7 bits",
            work + gigabytes / 10 + more: "7 bits",
            work + gigabytes / 1.25 + more: "7 headers",
            max(work, sending) + more: "7 sum",
        }
        expect(seconds(rows, gigabytes, row), work + sending + more, known, tolerance=0.002)


def exercise_8(answer: Any) -> None:
    hours = function(answer)
    for machines, share, row in ((47, 0.6, 1.2e-6), (5, 0.5, 2e-6), (1, 0.0, 1e-6)):
        rows, steps = BATCH * 93, SEEDS / BATCH / 3600
        sending = _moving(rows * share, machines)
        right = steps * (rows * row + sending)
        known = {
            right / machines: "8 machines",
            right * machines: "8 divided",
            right * 3600: "8 seconds",
            steps * sending: "8 work",
            steps * (rows * row + _moving(rows, machines)): "8 remote",
            steps * (93 * row + _moving(93 * share, machines)): "8 seeds",
            right * BATCH: "8 batches",
        }
        expect(hours(machines, share, row), right, known, tolerance=0.002)


def _moving(remote: float, machines: int) -> float:
    """Seconds that the lesson's formula gives for requests, features and the all-reduce."""
    if machines == 1:
        return 0.0
    speed = min(TEN_GBIT.bytes_per_second, 1 / TEN_GBIT.per_byte)
    asking = 2 * (2 * TEN_GBIT.latency + (machines - 1) * TEN_GBIT.per_request)
    ring = 2 * (machines - 1) * (GRADIENTS / machines / speed + TEN_GBIT.latency)
    return asking + remote * (8 + ROW) / speed + ring
