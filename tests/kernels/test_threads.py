from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import pytest

from gnnlab.kernels import threads
from tests.helpers import run_script


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize(("size", "grain"), [(0, 1), (1, 1), (10, 3), (10, 100), (64, 1)])
def test_every_item_is_worked_on_once(
    size: int, grain: int, count: int, torch_threads: Callable[[int], None]
) -> None:
    torch_threads(count)
    chunks: list[tuple[int, int]] = []
    threads.run_chunks(lambda lo, hi: chunks.append((lo, hi)), size, grain)
    assert sorted(i for lo, hi in chunks for i in range(lo, hi)) == list(range(size))
    if count > 1:
        assert all(lo % grain == 0 for lo, _ in chunks)
    else:
        assert len(chunks) <= 1


def test_one_chunk_stays_in_the_callers_thread(torch_threads: Callable[[int], None]) -> None:
    torch_threads(4)
    seen: list[int] = []
    threads.run_chunks(lambda lo, hi: seen.append(threading.get_ident()), 10, 10)
    assert seen == [threading.get_ident()]


def test_several_threads_take_part(torch_threads: Callable[[int], None]) -> None:
    torch_threads(2)
    together = threading.Barrier(2, timeout=60)
    threads.run_chunks(lambda lo, hi: together.wait(), 2, 1)


def test_the_first_error_is_raised_and_the_rest_left_out(
    torch_threads: Callable[[int], None],
) -> None:
    torch_threads(2)
    done: list[int] = []
    both = threading.Barrier(2, timeout=60)

    def work(lo: int, hi: int) -> None:
        if lo < 2:
            both.wait()  # two threads are at work
        if lo == 2:
            raise IndexError("chunk")
        time.sleep(0.001)
        done.append(lo)

    with pytest.raises(IndexError, match="chunk"):
        threads.run_chunks(work, 1000, 1)
    assert {0, 1} <= set(done) and len(done) < 500


def test_nested_and_concurrent_calls_end(torch_threads: Callable[[int], None]) -> None:
    torch_threads(2)
    total = []

    def outer(lo: int, hi: int) -> None:
        threads.run_chunks(lambda a, b: total.append(b - a), 20, 1)

    callers = [
        threading.Thread(target=threads.run_chunks, args=(outer, 8, 1), daemon=True)
        for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(30)
    assert sum(total) == 4 * 8 * 20


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_has_a_pool_of_its_own(torch_threads: Callable[[int], None]) -> None:
    torch_threads(2)

    def meet() -> None:
        barrier = threading.Barrier(2, timeout=60)
        threads.run_chunks(lambda lo, hi: barrier.wait(), 2, 1)

    meet()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            meet()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    meet()


def test_a_fork_waits_for_a_thread_that_compiles() -> None:
    run_script(
        """
        import os, threading, time
        import gnnlab.kernels.sample
        from numba.core.compiler_lock import global_compiler_lock as compiling

        begun = threading.Event()

        def compile_slowly():
            with compiling:
                begun.set()
                time.sleep(0.5)

        threading.Thread(target=compile_slowly).start()
        begun.wait()
        child = os.fork()
        if child == 0:
            with compiling:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        with compiling:
            pass
        """,
        timeout=60,
    )
