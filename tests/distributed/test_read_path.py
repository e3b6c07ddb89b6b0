"""How many files a reader has to open to follow a remote read from the trainer to the rows."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import torch

import gnnlab as dgl
from gnnlab.distributed import startup
from tests.distributed.live import make_job, serving

PACKAGE = str(Path(dgl.__file__).parent) + "/"


def test_a_remote_read_calls_few_files(tmp_path: Path) -> None:
    """``g.ndata["feat"][ids]`` with IDs of the other machine, on the trainer and on the server."""
    ring = dgl.graph((torch.arange(40), (torch.arange(40) + 1) % 40))
    ring.ndata["feat"] = torch.arange(80.0).view(40, 2)
    dgl.distributed.partition_graph(ring, "ring", 2, tmp_path, part_method="random")
    called: dict[str, set[str]] = {"trainer": set(), "server": set()}
    main, is_on = threading.get_ident(), False

    def note(frame: Any, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if is_on and event == "call" and file.startswith(PACKAGE):
            side = "trainer" if threading.get_ident() == main else "server"
            called[side].add(file.removeprefix(PACKAGE))

    job = make_job(tmp_path / "ring.json")
    threading.setprofile(note)  # for the threads of the servers
    try:
        with serving(job):
            startup.join(job)
            g = dgl.distributed.DistGraph("ring", part_config=tmp_path / "ring.json")
            ids = g.get_partition_book().partid2nids(1)[:5]
            expected = g.ndata["feat"][ids]
            sys.setprofile(note)
            is_on = True
            found = g.ndata["feat"][ids]
            is_on = False
            sys.setprofile(None)
            dgl.distributed.exit_client()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert torch.equal(found, expected)
    own = {
        side: [f for f in files if f.startswith("distributed/")] for side, files in called.items()
    }
    assert len(own["trainer"]) <= 8 and len(own["server"]) <= 7
    # With what is below: views, partition book, kernels, trace and a lock.
    assert len(called["trainer"]) <= 13 and len(called["server"]) <= 9
