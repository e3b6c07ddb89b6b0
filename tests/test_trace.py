"""Events: recorded where time goes, read back, added up and shown; nothing where nobody asks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab import trace
from gnnlab.dataloading import DataLoader, NeighborSampler
from gnnlab.errors import InvalidInput
from gnnlab.trace import Event
from tests.accelerator import DEVICE, GPU, NAME, no_waits
from tests.helpers import HAS_GPU, run_script


@pytest.fixture
def folder(tmp_path):
    """Where events are recorded; recording ends with the test."""
    yield tmp_path / "trace"
    trace.stop()


def kinds(events: list[Event], *names: str) -> list[Any]:
    return [(e.kind, e.step) for e in events if not names or e.kind in names]


def test_a_span_is_one_event(folder: Path) -> None:
    before = time.time()
    trace.start(folder, rank=3, role="server", machine=2)
    with trace.span("serve", step=7, rows=5, message="Pull"):
        time.sleep(0.01)
    with pytest.raises(ValueError), trace.span("compute"):
        raise ValueError
    trace.stop()
    first, second = trace.read(folder)
    assert first.kind == "serve" and first.info == {"rows": 5, "message": "Pull"}
    assert (first.rank, first.role, first.machine, first.step) == (3, "server", 2, 7)
    assert before - 1 < first.start < time.time() and first.seconds > 0.009
    assert second.start >= first.start + first.seconds
    assert second.step == 7, "an event belongs to the step that its thread has named last"


@pytest.mark.gpu
def test_a_span_is_timed_on_the_device_too(folder: Path) -> None:
    x = torch.ones(2, device=GPU)
    trace.start(folder)
    with trace.span("compute", step=0), trace.span("wait"):
        x += 1
    with no_waits():  # the clocks have been compared, once
        for step in (1, 2):
            with trace.span("compute", step=step, rows=2):
                x += 1
    with pytest.raises(ValueError), trace.span("copy"):
        raise ValueError
    trace.stop()
    events = trace.read(folder)
    assert {(e.kind, e.step) for e in events if e.role == "trainer"} == {
        *(("compute", step) for step in range(3)),
        *(("wait", 0), ("copy", 2)),
    }
    device = [event for event in events if event.role == "device"]
    assert kinds(device) == [("compute", step) for step in range(3)]
    host = [event for event in events if event.role == "trainer" and event.kind == "compute"]
    for mine, theirs in zip(device, host, strict=True):
        assert abs(mine.start - theirs.start) < 60
        assert (mine.info, mine.rank) == (theirs.info, theirs.rank)


@pytest.mark.gpu
@pytest.mark.skipif(GPU != NAME, reason=HAS_GPU)
def test_a_device_that_is_behind_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DEVICE.Event, "query", lambda event: False)
    torch.ones(2, device=GPU)
    trace.start(folder)
    for step in range(2):
        with trace.span("sample", step=step):
            pass
    assert kinds(trace.read(folder)) == [("sample", 0), ("sample", 1)]
    trace.stop()  # waits
    assert [event.role for event in trace.read(folder)].count("device") == 2


def test_nothing_happens_where_nobody_asks(folder: Path) -> None:
    assert not trace.is_on()
    assert trace.span("compute", step=1) is trace.span("sample"), "one object for all"
    batches = iter([1])
    assert trace.steps(batches) is batches and trace.waiting(batches) is batches
    trace.record("compute", 0.0)
    assert not folder.exists()


@pytest.mark.parametrize("how", [{"prefetch": 0}, {"prefetch": 2}, {"num_workers": 2}])
def test_loaders_record_their_steps(folder: Path, how: dict[str, int]) -> None:
    g, sampler = dgl.rand_graph(50, 200), NeighborSampler([3, 3])
    loader = DataLoader(g, range(50), sampler, batch_size=20, **how)
    before = [[block.num_edges() for block in blocks] for _, _, blocks in loader]
    dgl.seed(0)
    trace.start(folder)
    for number, _ in enumerate(loader):
        with trace.span("allreduce"):
            time.sleep(0.002)
        if number == 1:
            break
    after = [[block.num_edges() for block in blocks] for _, _, blocks in loader]
    del loader
    trace.stop()
    assert len(after) == len(before) == 3
    events = trace.read(folder)
    main = [e for e in events if e.role == "trainer" and "lane" not in e.info]
    assert kinds(main, "compute") == [("compute", s) for s in (0, 1, 0, 1, 2)]
    assert kinds(main, "allreduce") == [("allreduce", 0), ("allreduce", 1)]
    assert all(e.seconds >= 0.002 for e in [e for e in main if e.kind == "compute"][:2])
    sampled = [e for e in events if e.kind == "sample"]
    assert {e.step for e in sampled} == {0, 1, 2}
    lanes = {e.info.get("lane", "") for e in sampled}
    if how == {"prefetch": 0}:
        assert lanes == {""} and not kinds(events, "wait")
    else:
        assert kinds(main, "wait") == [("wait", s) for s in (0, 1, 0, 1, 2)]
        assert len(lanes) == (1 if "prefetch" in how else 4), "workers start anew each epoch"
        assert "" not in lanes
        assert {e.role for e in sampled} == {"trainer" if "prefetch" in how else "sampler"}
    parts = trace.seconds(main)
    assert parts["allreduce"] >= 0.004
    whole = main[-1].start + main[-1].seconds - main[0].start
    assert sum(parts.values()) <= whole + 1e-4


def test_a_loader_holds_no_batch(folder: Path) -> None:
    """What was handed out is freed when its user lets go, recorded or not."""
    freed: list[int] = []

    class Batch:
        def __del__(self) -> None:
            freed.append(1)

    trace.start(folder)
    batches = trace.steps(trace.waiting(Batch() for _ in range(2)))
    batch = next(batches)
    del batch
    assert freed == [1]
    assert len(list(batches)) == 1


def test_a_killed_process_leaves_its_events(folder: Path) -> None:
    run_script(
        f"""
        import os, signal
        from gnnlab import trace
        trace.start({str(folder)!r}, rank=1)
        with trace.span("sample", 0):
            pass
        if os.fork() == 0:
            with trace.span("sample", 1):
                pass
            os.kill(os.getpid(), signal.SIGKILL)
        os.wait()
        os._exit(0)
        """
    )
    found = [(e.step, e.role, e.rank) for e in trace.read(folder)]
    assert found == [(0, "trainer", 1), (1, "sampler", 1)]
    assert len(list(folder.iterdir())) == 2


def test_what_is_no_trace(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        trace.read(folder)
    folder.mkdir()
    with pytest.raises(InvalidInput, match=r"holds no traces.*launch --trace"):
        trace.read(folder)
    trace.start(folder)
    with trace.span("sample"):
        pass
    (file,) = folder.iterdir()
    with file.open("a") as f:
        f.write('{"kind":"co')
    assert len(trace.read(folder)) == 1, "a process was killed while it wrote"
    for nonsense in (b"{}\n", b"7\n", b'{"colour":3}\n', b"\xff\n"):
        (folder / "other.jsonl").write_bytes(nonsense)
        with pytest.raises(InvalidInput, match=r"other.jsonl:1 is not an event"):
            trace.read(folder)


def test_a_full_disk_ends_the_trace_and_not_the_program(folder: Path) -> None:
    trace.start(folder)
    assert trace._writer is not None
    trace._writer.close()
    trace._writer._file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115
    with pytest.warns(UserWarning, match="recording of events stopped"), trace.span("sample"):
        pass
    assert not trace.is_on()


def test_a_folder_that_is_gone_ends_the_trace_of_a_child(folder: Path) -> None:
    run_script(
        f"""
        import os, shutil, warnings
        from gnnlab import trace
        trace.start({str(folder)!r})
        shutil.rmtree({str(folder)!r})
        if os.fork() == 0:
            with warnings.catch_warnings(record=True), trace.span("sample", 1):
                pass
            os._exit(0 if not trace.is_on() else 1)
        assert os.wait()[1] == 0
        """
    )


def test_seconds_count_each_moment_once() -> None:
    """Two processes; in the first: compute 0–10 holds fetch 1–4, which holds wait 2–3.

    compute  ----------
    fetch     ---
    wait       -
    """
    events = [
        Event("compute", 0.0, 10.0, rank=0),
        Event("fetch", 1.0, 3.0, rank=0),
        Event("wait", 2.0, 1.0, rank=0),
        Event("fetch", 10.0, 1.0, rank=0),
        Event("compute", 0.0, 4.0, rank=1),
        Event("sample", 0.0, 9.0, rank=0, info={"lane": "ahead"}),
    ]
    expected = {"compute": 7.0 + 4.0, "fetch": 2.0 + 1.0, "wait": 1.0, "sample": 9.0}
    assert trace.seconds(reversed(events)) == expected
    assert trace.seconds([]) == {}


def test_the_file_for_perfetto(tmp_path: Path) -> None:
    events = [
        Event("serve", 100.5, 0.25, rank=1, role="server", machine=1, info={"rows": 3}),
        Event("sample", 100.0, 0.5, rank=1, role="sampler", step=2, info={"lane": "process 9"}),
        Event("compute", 101.0, 1.0, rank=1, step=2),
        Event("compute", 101.0, 1.0, rank=0, step=2),
    ]
    trace.write_chrome(events, tmp_path / "trace.json")
    found = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["name"], e["args"]["name"]): e["tid"] for e in found if e["ph"] == "M"}
    assert names == {
        (0, "process_name", "machine 0"): 0,
        (1, "process_name", "machine 1"): 0,
        (0, "thread_name", "trainer 0"): 0,
        (0, "thread_name", "trainer 1"): 1,
        (0, "thread_name", "sampler 1, process 9"): 2,
        (1, "thread_name", "server 1"): 3,
    }
    bars = [e for e in found if e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["pid"], e["tid"]) for e in bars] == [
        ("serve", 0.5e6, 0.25e6, 1, 3),
        ("sample", 0.0, 0.5e6, 0, 2),
        ("compute", 1e6, 1e6, 0, 1),
        ("compute", 1e6, 1e6, 0, 0),
    ]
    assert [e["args"] for e in bars[:2]] == [{"rows": 3}, {"step": 2, "lane": "process 9"}]
