"""Base seed and streams."""

from __future__ import annotations

import threading

from gnnlab import random


def keys(count: int) -> list[int]:
    return [random.next_key() for _ in range(count)]


def test_seed_starts_the_count_anew():
    random.seed(3)
    first = keys(3)
    assert len(set(first)) == 3
    random.seed(3)
    assert keys(3) == first
    random.seed(4)
    assert not set(keys(3)) & set(first)


def test_a_stream_is_named_by_its_parts_alone():
    random.seed(0)
    with random.stream(1, 2, 3):
        inside = keys(2)
        with random.stream(9):
            assert not set(keys(2)) & set(inside)
        third = keys(1)
    random.seed(5)
    with random.stream(1, 2, 3):
        assert keys(3) == inside + third
    with random.stream(1, 3, 2):
        assert not set(keys(3)) & set(inside + third)


def test_a_stream_belongs_to_its_thread():
    found: list[int] = []
    with random.stream(1):
        expected = random.next_key()
    with random.stream(2):
        worker = threading.Thread(target=lambda: found.append(random.next_key()))
        random.seed(0)
        worker.start()
        worker.join()
    random.seed(0)
    assert found == [random.next_key()] and found != [expected]


def test_seeds_are_taken_modulo_64_bits():
    random.seed(-1)
    assert random.get_state()[0] == 2**64 - 1
    random.seed(0)
