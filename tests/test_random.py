"""Base seed and streams."""

import threading

from gnnlab import random
from gnnlab.helpers import block_sampler, ddp_loader


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


def test_the_hash_stays_and_is_that_of_both_helpers():
    """Batches that were named with it can be made again, with the library and with a copy."""
    for fold in (random.fold, block_sampler.fold, ddp_loader.fold):
        assert fold(0) == 16294208416658607535  # the first output of splitmix64 for seed 0
        assert fold(1, 2) == 13608149317741381227 != fold(2, 1)
        assert fold(-1, 1 << 70) == 6755974106381971767
