"""A partitioned graph for a judge, apart from those that the reader has opened."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator
from typing import Any

from gnnlab.distributed import DistGraph, initialize, partition_graph
from gnnlab.distributed.context import ProcessState, exit_client, playing
from gnnlab.graph.graph import Graph


@contextlib.contextmanager
def partitioned(g: Graph, num_parts: int, owner: Any) -> Iterator[DistGraph]:
    """Cut a graph by owners, and open it as a process of its own would."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            partition_graph(g, "judged", num_parts, folder, part_method=lambda g, k: owner)
        with playing(ProcessState()):
            initialize()
            try:
                yield DistGraph("judged", part_config=f"{folder}/judged.json")
            finally:
                exit_client()
