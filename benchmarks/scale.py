"""Measure the simulator: one epoch on many machines, its time and its memory.

    python -m benchmarks.scale --size M --machines 64

Sampling is real, features are counted and not stored, and gradients of a small model are averaged,
so that trainers go step by step. The graph is cut by LDG; cutting is measured too.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import gnnlab as dgl
from benchmarks import data
from benchmarks.tasks import CLASSES
from gnnlab.distributed import DistGraph, DistNodeDataLoader, initialize, node_split
from gnnlab.simulate import Network, simulate


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--size", default="M", help="T, S or M (default M)")
    parser.add_argument("--machines", type=int, default=64)
    parser.add_argument("--batch_size", type=int, default=1000, help="of each trainer")
    parser.add_argument("--fan_out", default="15,10,5", help="default %(default)s")
    parser.add_argument("--width", type=int, default=100, help="of a feature, float32")
    parser.add_argument("--bandwidth", type=float, default=1e10, help="bits/s (default 1e10)")
    options = parser.parse_args(arguments)
    fanouts = [int(text) for text in options.fan_out.split(",")]
    with tempfile.TemporaryDirectory(prefix="gnnlab-scale-") as folder:
        with _measured("cut by LDG"):
            part_config = _cut(options.size, options.machines, Path(folder))
        simulation = simulate(
            part_config,
            network=Network(bandwidth=options.bandwidth),
            features={"feat": ((options.width,), torch.float32)},
        )
        with _measured("run"):
            result = simulation.run(_epoch, fanouts, options.batch_size, options.width)
        with _measured("replay"):
            print(f"predicted epoch: {result.epoch_seconds:.3f} s; {result.epochs[0].parts}")
        with _measured("what limits"):
            print(f"limit: {result.limit}; {result.savings}")
    print(f"seeds, input nodes of rank 0: {result.returned[0]}; {result.traffic}")
    return 0


@contextlib.contextmanager
def _measured(what: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {time.perf_counter() - begin:.1f} s, peak memory {peak:.1f} GiB", flush=True)


def _cut(size: str, machines: int, folder: Path) -> Path:
    source = data.folder_of(size)
    src, dst, train = (np.load(source / f"{name}.npy") for name in ("src", "dst", "train"))
    g = dgl.graph((src, dst), num_nodes=data.SIZES[size][0])
    g.ndata["train_mask"] = torch.zeros(g.num_nodes(), dtype=torch.bool)
    g.ndata["train_mask"][torch.from_numpy(train)] = True
    with contextlib.redirect_stdout(io.StringIO()):
        dgl.distributed.partition_graph(g, "g", machines, folder, part_method="ldg")
    return folder / "g.json"


def _epoch(fanouts: list[int], batch_size: int, width: int) -> tuple[int, int]:
    """Sample, read features and average gradients; return numbers of seeds and of input nodes."""
    initialize()
    torch.distributed.init_process_group("gloo")
    g = DistGraph("g")
    nodes = node_split(g.ndata["train_mask"], g.get_partition_book())
    sampler = dgl.dataloading.NeighborSampler(fanouts, prefetch_node_feats=["feat"])
    loader = DistNodeDataLoader(g, nodes, sampler, batch_size=batch_size, shuffle=True, seed=0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(width, CLASSES))
    inputs = 0
    for input_nodes, seeds, blocks in loader:
        inputs += len(input_nodes)
        model(blocks[0].srcdata["feat"][: len(seeds)]).sum().backward()
    return len(nodes), inputs


if __name__ == "__main__":
    sys.exit(main())
