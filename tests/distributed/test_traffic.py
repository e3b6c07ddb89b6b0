"""Counting messages between machines."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from gnnlab.distributed.traffic import Count, Traffic


def test_matrix_and_totals() -> None:
    """Machine 0 asks 1 for features and 2 for edges; 2 asks 0; what 1 asks itself stays there."""
    traffic = Traffic(3)
    traffic.add(0, 1, "features", Count(1, 10, 100, 4000))
    traffic.add(0, 1, "features", Count(1, 20, 200, 8000))
    traffic.add(0, 2, "structure", Count(1, 5, 50, 500))
    traffic.add(2, 0, "gradients", Count(2, 7, 900, 30))
    traffic.add(1, 1, "gradients", Count(1, 7, 999, 15))
    assert traffic.matrix().tolist() == [[0, 12000, 500 + 900], [300, 0, 0], [50 + 30, 0, 0]]
    assert traffic.matrix("features").tolist() == [[0, 12000, 0], [300, 0, 0], [0, 0, 0]]
    assert traffic.total() == Count(5, 42, 1250, 12530)
    assert traffic.total("gradients") == Count(2, 7, 900, 30)
    assert [key for *key, _ in traffic.items()] == [
        [0, 1, "features"], [0, 2, "structure"], [2, 0, "gradients"]
    ]  # fmt: skip
    assert len(list(traffic.items(local=True))) == 4
    again = Traffic.from_list(3, traffic.to_list())
    assert again.to_list() == traffic.to_list()
    again.update(traffic)
    assert again.total() == Count(10, 84, 2500, 25060)
    assert "features 12,300 bytes" in repr(traffic)


def test_threads_lose_nothing() -> None:
    traffic = Traffic(2)

    def count(_: int) -> None:
        for _ in range(2000):
            traffic.add(0, 1, "control", Count(1, 1, 1, 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(4)))
    assert traffic.total() == Count(8000, 8000, 8000, 8000)


def test_a_count_within_a_count() -> None:
    """A tensor is freed while its thread counts: that sends a message, which is counted too."""
    traffic = Traffic(2)

    class Freeing(Count):
        def add(self, other: Count) -> None:
            traffic.add(1, 0, "control", Count(1))
            super().add(other)

    traffic._counts[0, 1, "control"] = Freeing()
    thread = threading.Thread(target=traffic.add, args=(0, 1, "control", Count(1)), daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive() and traffic.total() == Count(2)
