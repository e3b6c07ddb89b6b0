"""Lesson 07: a cluster on a laptop."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch

from gnnlab.exercises.judging import Wrong, expect, expect_each, function, number


def exercise_1(answer: Any) -> None:
    known: dict[Hashable, str] = {
        (3, 1): "1 order",
        (0, 1): "1 one layer",
        (0, 3): "1 structure",
        (3, 3): "1 last layer",
        (1, 2): "1 on the way",
        (4, 7): "1 local",
        (5, 7): "1 local",
    }
    expect_each(answer, [1, 3], known)


def exercise_2(answer: Any) -> None:
    known = {33.6: "2 twice", 34: "2 twice", 38.4: "2 twice", 76.8: "2 share", 8.4: "2 bits"}
    known |= {
        8: "2 bits",
        16.8: "2 four",
        0.0672: "2 seconds",
        537.6: "2 one link",
        0.067: "2 seconds",
    }
    expect(answer, 67, known, tolerance=0.0075)


def exercise_3(answer: Any) -> None:
    bound = function(answer)
    for rows in ([[0, 300, 200], [40, 0, 60], [1, 2, 0]], [[0, 100], [125, 0]], [[0, 7], [0, 0]]):
        matrix, bandwidth = torch.tensor(rows), 2000
        received, sent = matrix.sum(1), matrix.sum(0)
        both = (received + sent).max().item()
        known = {
            both / bandwidth: "3 bits",
            8 * received.max().item() / bandwidth: "3 one way",
            8 * sent.max().item() / bandwidth: "3 one way",
            8 * max(received.max(), sent.max()).item() / bandwidth: "3 shared",
            8 * (received.max() + sent.max()).item() / bandwidth: "3 machine",
            8 * matrix.sum().item() / bandwidth: "3 total",
            8 * 2 * matrix.sum().item() / bandwidth: "3 total",
        }
        expect(bound(matrix, bandwidth), 8 * both / bandwidth, known)


def exercise_4(answer: Any) -> None:
    choose = function(answer)
    first = [1, 2, 4, 8], [8, 5, 4, 1.9]  # shares of the ideal: 1, 0.8, 0.5, 0.53
    second = [1, 2, 4, 16], [10, 6, 2.5, 1.25]  # 1, 0.83, 1, 0.5
    for (machines, seconds), share, right, known in (
        (first, 0.52, 8, {2: "4 stops", 1: "4 largest", 3: "4 number"}),
        (first, 0.6, 2, {8: "4 ideal", 1: "4 largest"}),
        (second, 0.5, 16, {4: "4 equal"}),
        (second, 1, 4, {16: "4 ideal", 1: "4 stops", 2: "4 number"}),
        (first, 1, 1, {8: "4 ideal"}),
        (first, 0.5, 8, {}),
    ):
        found = number(choose(list(machines), list(seconds), share))
        if found != right:
            raise Wrong(known.get(int(found), ""))
