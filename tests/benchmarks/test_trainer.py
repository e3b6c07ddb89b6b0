"""The processes that measure the pace of a trainer and its sampler."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

import gnnlab as dgl
from benchmarks import namespaces

# The sampler computes 0.1 s longer for each batch that it sends.
CODE = """
import sys, time
from benchmarks import trainer

def slowly(*words, send=trainer.send):
    begin = time.thread_time()
    while time.thread_time() - begin < 0.1:
        pass
    send(*words)

trainer.send, trainer.SECONDS = slowly, 0.5
trainer.main(sys.argv[1], 40, 0, sys.argv[2], int(sys.argv[3]))
"""


@pytest.mark.thorough("measures, which takes its time")
def test_what_passing_a_batch_costs_counts_for_the_sampler(tmp_path: Path) -> None:
    g = dgl.rand_graph(400, 4000)
    g.ndata["feat"], g.ndata["label"] = torch.randn(400, 8), torch.arange(400) % 3
    g.ndata["train_mask"] = torch.ones(400, dtype=torch.bool)
    dgl.distributed.partition_graph(g, "g", 1, tmp_path)
    with ExitStack() as stack:
        pair = {}
        for role, line in zip(("trainer", "sampler"), socket.socketpair(), strict=True):
            with line, socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
                process = namespaces.python(
                    CODE, tmp_path / "g.json", role, line.fileno(), inherits=(line.fileno(),),
                    WORLD_SIZE=1, RANK=0, MASTER_ADDR="127.0.0.1", MASTER_PORT=port,
                )  # fmt: skip
            pair[role] = stack.enter_context(process)
            stack.callback(process.kill)
        assert {namespaces.hear(process) for process in pair.values()} == {"ready\n"}
        for _ in range(2):
            for process in pair.values():
                print(file=process.stdin, flush=True)
            found = {
                role: json.loads(namespaces.hear(process).removeprefix("FOUND "))
                for role, process in pair.items()
            }
            assert found["sampler"]["sample"] > 0.1 > found["trainer"]["compute"] > 0
