"""SIGUSR1 to the launcher: all trainers hear of it at the same step, and the job ends well."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import gnnlab as dgl
from tests.helpers import THOROUGH, _descendants, _end
from tests.launch.started import Started

TRAINERS = 2 if THOROUGH else 1  # on each machine
SCRIPT = """
import sys, time
import gnnlab as dgl
from gnnlab.distributed import should_stop

dgl.distributed.initialize()
g = dgl.distributed.DistGraph("path")
for epoch in range(10_000):
    if epoch == 3 and g.rank() == 0:
        print("epoch 3", flush=True)
    time.sleep(0.02 * g.rank())
    if should_stop():
        break
print("stopped after", epoch)
"""


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Started]:
    path = dgl.graph(([0, 1, 2, 3], [1, 2, 3, 4]))
    dgl.distributed.partition_graph(path, "path", 2, tmp_path, part_method="random")
    (tmp_path / "train.py").write_text(SCRIPT)
    words = ["--workspace", str(tmp_path), "--part_config", "path.json", "--local"]
    words += ["--num_trainers", str(TRAINERS), "python train.py"]
    started = Started(tmp_path / "run", words, {})
    yield started
    _end(_descendants(started.token))


def test_all_trainers_stop_at_the_same_step(job: Started) -> None:
    job.wait_for_text("epoch 3")
    job.process.send_signal(signal.SIGUSR1)
    status, errors = job.end()
    assert status == 0, errors
    said = job.output.read_text()
    assert "the trainers are asked to save and stop" in said
    assert "stopped when it was asked to, after" in said
    epochs = re.findall(r"stopped after (\d+)", said)
    assert len(epochs) == 2 * TRAINERS and len(set(epochs)) == 1 and 3 <= int(epochs[0]) < 9999
