"""The helper that starts processes notices what tests rely on it to notice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers import run_ranks, run_script

needs_shm = pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm on this system")


def failure(
    source: str, ranks: int = 1, timeout: float = 30, env: dict[str, str] | None = None
) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        run_ranks(source, ranks, env=env, timeout=timeout)
    return str(caught.value)


def test_returns_what_was_printed() -> None:
    source = "import os, sys; print(os.environ['COLOUR'], sys.argv[1])"
    assert run_script(source, args=["two"], env={"COLOUR": "blue"}) == "blue two\n"


def test_each_rank_knows_its_place() -> None:
    source = "import os; print(os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
    assert run_ranks(source, 2) == ["0 of 2\n", "1 of 2\n"]


def test_shows_the_failing_rank_and_ends_the_other() -> None:
    """Had it waited for the other, the deadline would be what it tells of."""
    text = failure(
        """
        import os, time
        if os.environ["RANK"] == "1":
            raise RuntimeError("rank one is unwell")
        time.sleep(60)
        """,
        ranks=2,
    )
    assert "process 1 of 2 ended with status 1" in text
    assert "rank one is unwell" in text


def test_ends_what_hangs() -> None:
    assert "still ran after 1 s" in failure("import time; time.sleep(60)", timeout=1)


def test_notices_a_process_left_behind() -> None:
    """Even one that left the session of its parent."""
    text = failure(
        """
        import subprocess, sys
        child = [sys.executable, "-c", "import time; time.sleep(60)"]
        print(subprocess.Popen(child, start_new_session=True).pid)
        """
    )
    assert "left behind: processes [" in text
    pid = int(text.splitlines()[1])
    assert not Path(f"/proc/{pid}/status").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


@needs_shm
@pytest.mark.parametrize("of_a_job", [False, True])
def test_notices_shared_memory_left_behind(of_a_job: bool) -> None:
    """Memory of jobs is looked for by the job's name; all else by being there."""
    job = f"leak-{os.getpid()}"
    name = f"gnnlab-{job}-feat" if of_a_job else job
    try:
        source = f"open('/dev/shm/{name}', 'w').write('x')"
        text = failure(source, env={"GNNLAB_JOB": job} if of_a_job else None)
    finally:
        Path("/dev/shm", name).unlink()
    assert f"shared memory ['{name}']" in text


@needs_shm
def test_memory_of_another_job_is_not_this_tests_business() -> None:
    name = f"gnnlab-other-{os.getpid()}"
    try:
        run_script(f"open('/dev/shm/{name}', 'w').write('x')", env={"GNNLAB_JOB": "mine"})
        assert Path("/dev/shm", name).exists()
    finally:
        Path("/dev/shm", name).unlink()
