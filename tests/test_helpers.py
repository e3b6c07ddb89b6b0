"""The helper that starts processes notices what tests rely on it to notice."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests import helpers
from tests.helpers import free_port, run_ranks, run_script
from tests.nursery import IS_POSSIBLE


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left behind on purpose does not go by itself."""
    monkeypatch.setattr(helpers, "GRACE", 0.5)


def failure(
    source: str, ranks: int = 1, timeout: float = 100, env: dict[str, str] | None = None
) -> str:
    with pytest.raises(pytest.fail.Exception) as caught:
        run_ranks(source, ranks, env=env, timeout=timeout)
    return str(caught.value)


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


@pytest.mark.thorough("tests what other tests stand on")
@pytest.mark.usefixtures("impatient")
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


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of shared memory, in which tests beside this one find nothing left."""
    monkeypatch.setattr(helpers, "SHARED_MEMORY", tmp_path)
    return tmp_path


@pytest.mark.thorough("tests what other tests stand on")
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", ["gnnlab-mine-feat", "torch_1_2"])
def test_notices_shared_memory_left_behind(memory: Path, name: str) -> None:
    """Memory of jobs is looked for by the job's name; all else by being there."""
    text = failure(f"open('{memory}/{name}', 'w').write('x')", env={"GNNLAB_JOB": "mine"})
    assert f"shared memory ['{name}']" in text


@pytest.mark.usefixtures("impatient")
@pytest.mark.skipif(not IS_POSSIBLE, reason="needs Linux")
def test_notices_a_semaphore_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody is left who would remove it; one of another test may come and stay."""
    monkeypatch.setattr(helpers, "FRESH", False)
    source = """
        import multiprocessing, os, signal
        from multiprocessing import resource_tracker

        if os.environ["WHOSE"] == "another's":
            multiprocessing.current_process()._config["semprefix"] = "/mpother"
        lock = multiprocessing.get_context("spawn").Lock()
        print(lock._semlock.name)
        os.kill(resource_tracker._resource_tracker._pid, signal.SIGKILL)
        os._exit(0)
        """
    left = run_script(source, env={"WHOSE": "another's"}).strip()
    text = failure(source, env={"WHOSE": "mine"})
    mine = text.splitlines()[1]
    for name in (left, mine):
        (Path("/dev/shm") / f"sem.{name[1:]}").unlink()
    assert f"shared memory ['sem.{mine[1:]}']" in text


def test_ports_come_once() -> None:
    ports = [free_port() for _ in range(20)]
    assert len(set(ports)) == 20
    with socket.create_server(("127.0.0.3", ports[-1] + 1)):
        assert free_port() != ports[-1] + 1
