"""The helpers that ``gnnlab export`` copies: small parts that work without the rest."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["HELPERS", "Helper"]


class Helper(NamedTuple):
    """What can be copied: modules of gnnlab, what they are for, three lines that use them."""

    modules: tuple[str, ...]
    purpose: str
    example: str


_RELATION = """import torch
from {package}.graph.relation import Relation
relation = Relation.from_edges(torch.tensor([1, 2, 3]), torch.tensor([0, 0, 1]), 4, 4)"""

HELPERS = {
    "checkpoint": Helper(
        ("parallel.checkpoint",),
        "checkpoints that are there whole or not at all; a resumed run continues bit by bit",
        "import torch\n"
        "from {package}.parallel.checkpoint import save_checkpoint, load_checkpoint\n"
        "model = torch.nn.Linear(2, 2)\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "save_checkpoint('run.pt', model=model, optimizer=optimizer)\n"
        "load_checkpoint('run.pt', model=model, optimizer=optimizer)",
    ),
    "csc": Helper(
        ("kernels.csc",),
        "sort edges by their destination in linear time, in threads",
        "import numpy as np\n"
        "from {package}.kernels.csc import group_by\n"
        "indptr, src = group_by(np.array([1, 0, 1]), np.array([5, 6, 7]), 2)",
    ),
    "fork": Helper(
        ("fork",),
        "forks that work with OpenMP, and refuse to where CUDA forbids it; one file, torch only",
        "import os, torch\n"
        "from {package}.fork import fix_openmp, protect_forks\n"
        "protect_forks()  # once, before processes are forked\n"
        "x = torch.ones(300, 300)\n"
        "work = fix_openmp(lambda: float((x @ x[0]).sum()))  # runs in the forked process\n"
        "print(work())  # OpenMP has threads now\n"
        "if not (child := os.fork()): os._exit(0 if work() == 90000 else 1)\n"
        "print(os.waitpid(child, 0)[1])  # 0: the child could compute",
    ),
    "layers": Helper(
        ("nn.sageconv", "nn.graphconv", "nn.gatconv", "sampling.arrays"),
        "SAGEConv, GraphConv and GATConv, with the sampler",
        f"{_RELATION}\n"
        "from {package}.sampling.arrays import sample_blocks\n"
        "from {package}.nn.sageconv import SAGEConv\n"
        "block, = sample_blocks(relation, torch.tensor([0, 1]), [2], key=7)\n"
        "h = SAGEConv(8, 2, 'mean')(block, torch.rand(4, 8)[block.src_ids])",
    ),
    "metis": Helper(
        ("partition.metis", "kernels.ldg", "graph.relation"),
        "cut a graph into parts with METIS, balancing several loads",
        f"{_RELATION}\n"
        "import numpy as np\n"
        "from {package}.kernels.ldg import undirected\n"
        "from {package}.partition.metis import metis\n"
        "sides = relation.csc(), relation.csr()\n"
        "sides = [(side.indptr.numpy(), side.indices.numpy()) for side in sides]\n"
        "part = metis(lambda dtype: undirected(*sides, dtype), np.ones((4, 1), int), 2, 'cut')",
    ),
    "processes": Helper(
        ("parallel.processes",),
        "start ranks from a notebook cell, see their output and errors, end them in every case",
        "from {package}.parallel.processes import launch_processes\n"
        "def work(rank, world_size): return rank * 10\n"
        "results = launch_processes(work, 2)",
    ),
    "rng": Helper(
        ("kernels.rng",),
        "random numbers without state: the same on any number of threads; for numba",
        "import numba, numpy as np\n"
        "from {package}.kernels.rng import draw, uniform\n"
        "throw = numba.njit(lambda i: uniform(draw(np.uint64(7), np.uint64(i))))",
    ),
    "sampler": Helper(
        ("sampling.arrays",),
        "neighbor sampling: mini-batches of blocks from an edge list",
        f"{_RELATION}\n"
        "from {package}.sampling.arrays import sample_blocks\n"
        "blocks = sample_blocks(relation, torch.tensor([0]), [2, 2], key=7)",
    ),
    "spmm": Helper(
        ("graph.relation", "ops.spmm", "ops.edge_softmax"),
        "message passing with gradients: sum, mean, max over in-edges, softmax per node",
        f"{_RELATION}\n"
        "from {package}.ops.spmm import spmm\n"
        "mean = spmm(relation, 'copy_lhs', 'mean', torch.rand(4, 8, requires_grad=True), None)",
    ),
    "timeline": Helper(
        ("plot.lanes", "trace"),
        "a picture of what each process did when, from the files of trace",
        "from {package} import trace_ as trace\n"
        "from {package}.plot.lanes import timeline\n"
        "trace.start('events')\n"
        "with trace.span('compute', step=1): pass  # your work\n"
        "trace.stop()\n"
        "timeline(trace.read('events')).figure.savefig('timeline.png')",
    ),
    "torch_sampler": Helper(
        ("kernels.sample_torch", "kernels.relabel_torch"),
        "neighbor sampling by torch operators alone, on a GPU too",
        "import torch\n"
        "from {package}.kernels.sample_torch import sample_neighbors\n"
        "indptr, indices = torch.tensor([0, 3, 3, 4]), torch.tensor([1, 2, 0, 1])\n"
        "ptr, slots, src = sample_neighbors(indptr, indices, torch.tensor([0]), 2, key=7)",
    ),
    "trace": Helper(
        ("trace",),
        "what each process did when, in files that Perfetto shows",
        "from {package} import trace_ as trace\n"
        "trace.start('events')\n"
        "with trace.span('compute', step=1): pass  # your work",
    ),
}
