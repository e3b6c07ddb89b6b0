"""How long a fresh interpreter takes: to import, and to its first sampled batch."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.drive import ROOT

_IMPORT = """
import time; began = time.perf_counter()
import {module}
print(time.perf_counter() - began)
"""
_FIRST_BATCH = """
import numpy as np, time, torch
import gnnlab as dgl
rng = np.random.default_rng(0)
src, dst = rng.integers(0, 10_000, (2, 200_000), dtype=np.int32)
began = time.perf_counter()
g = dgl.graph((src, dst), num_nodes=10_000)
sampler = dgl.dataloading.NeighborSampler([15, 10, 5])
sampler.sample_blocks(g, torch.arange(1024))
print(time.perf_counter() - began)
"""


def measure(rounds: int) -> list[dict]:
    """Time imports and first batches, in turn.

    Returns
    -------
    list of dict
        Results as those of :func:`benchmarks.drive.interleave`, in milliseconds. The cold first
        batch compiles every kernel it needs; it is measured once.
    """
    modules = ("torch", "gnnlab")
    for module in modules:
        _result(module, "import", _IMPORT, module=module)  # reads the files from the disk once
    results = [
        _result(module, "import", _IMPORT, module=module)
        for _ in range(rounds)
        for module in modules
    ]
    with tempfile.TemporaryDirectory() as cache:
        results.append(_result("gnnlab", "first batch, cold", _FIRST_BATCH, cache=cache))
        for _ in range(rounds):
            results.append(_result("gnnlab", "first batch, warm", _FIRST_BATCH, cache=cache))
    return results


def table(results: list[dict]) -> list[list[str]]:
    """Lay the results out: work, median in ms."""
    times: dict[str, list[float]] = {}
    for result in results:
        name = f"import {result['sys']}" if result["task"] == "import" else result["task"]
        times.setdefault(name, []).append(result["ms"])
    rows = [[name, f"{statistics.median(values):.0f}"] for name, values in times.items()]
    return [["start-up", "ms"], *rows]


def _result(system: str, task: str, source: str, cache: str = "", **words: str) -> dict:
    env = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    run = subprocess.run(
        [sys.executable, "-c", source.format(**words)],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    return {"sys": system, "task": task, "ms": float(run.stdout) * 1e3}
