"""Simulate a cluster of K machines in one process.

``simulate`` opens a partitioned graph, or partitions one, and describes the machines. ``run`` calls
a script or a function once for each trainer. Simulated trainers compute what real trainers compute,
and the bytes between machines are counted exactly; only the time is predicted.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gnnlab.parallel.ddp
from gnnlab.dataloading.executors import chosen_by
from gnnlab.distributed import context
from gnnlab.distributed.cache import check_policy
from gnnlab.distributed.context import Context, ProcessState
from gnnlab.distributed.job import JobSettings
from gnnlab.distributed.traffic import Traffic
from gnnlab.errors import InvalidInput, check_file
from gnnlab.graph.graph import Graph
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part
from gnnlab.partition.partition import partition_graph
from gnnlab.simulate import group
from gnnlab.simulate.data_parallel import SimulatedDataParallel
from gnnlab.simulate.design import Design
from gnnlab.simulate.executors import Recorded, SimulatedSamplers
from gnnlab.simulate.network import Network
from gnnlab.simulate.optrace import Recorder
from gnnlab.simulate.replay import Machines
from gnnlab.simulate.result import SimulationResult, check_cores, check_slowdown
from gnnlab.simulate.scheduler import Scheduler, VirtualRank
from gnnlab.simulate.simulated_transport import Cluster, SimulatedTransport


class Simulation:
    """A simulated cluster; :meth:`run` runs trainers on it.

    Parameters
    ----------
    graph : path or Graph
        The JSON file that ``partition_graph`` wrote, or a graph, which is then partitioned into
        ``machines`` parts in a temporary folder, under the name "graph".
    machines : int, optional
        Number of machines K; by default the number of parts.
    trainers_per_machine, samplers_per_trainer, servers_per_machine : int
        Numbers of processes, as for ``gnnlab launch``.
    network : Network, optional
        Gigabit Ethernet by default.
    cores : float, optional
        Processor cores of a machine; by default one for each trainer, sampler and server.
    shared_cores : float, optional
        Cores that all machines share, where one computer runs them all.
    slowdown : dict, optional
        Kind of work ("sample", "fetch", "compute", "serve") → how many times the processor seconds
        measured here it takes on the machines, for instance if they are slower, or if processes
        share memory bandwidth and caches there. 1 by default.
    threads : int
        Number of threads that each trainer computes with.
    cache_bytes : int
        Bytes of each process for caching rows of other machines; see ``DistGraph``.
    cache_policy : str
        Which rows to cache; see ``DistGraph``.
    replicates_structure : bool
        Count as if every machine had the structure of the whole graph: sampling sends nothing.
    first_layer : int
        Count as if features were split by column over machines, which send each other partial
        activations of the first layer, of this width, instead of features; 0 for no such split.
        See :mod:`gnnlab.simulate.design`.
    macro_batches : int
        Count as if a trainer fetched the features of so many mini-batches together, each row once:
        those that the sampler names (``prefetch_node_feats``).
    part_method : str or callable, optional
        How a graph is partitioned; see ``partition_graph``.
    features : dict, optional
        Feature → (shape of a row, dtype). These node features replace those of the same name. They
        are zeros that take no memory, but their bytes are counted.

    Attributes
    ----------
    part_config : Path
        The JSON file of the graph.
    num_machines, num_ranks : int
        Numbers of machines and of trainers.

    Examples
    --------
    >>> import gnnlab as dgl, torch
    >>> from gnnlab.simulate import simulate
    >>> g = dgl.rand_graph(100, 1000)
    >>> g.ndata["x"] = torch.randn(100, 8)
    >>> def count(batch_size):
    ...     dgl.distributed.initialize()
    ...     g = dgl.distributed.DistGraph("graph")
    ...     nodes = dgl.distributed.node_split(torch.arange(100), g.get_partition_book())
    ...     sampler = dgl.dataloading.NeighborSampler([4, 4])
    ...     loader = dgl.distributed.DistNodeDataLoader(g, nodes, sampler, batch_size=batch_size)
    ...     return sum(len(blocks[0].srcdata["x"]) for _, _, blocks in loader)
    >>> result = simulate(g, machines=4, part_method="random").run(count, 25)
    >>> len(result.returned), result.traffic.total("features").requests
    (4, 12)
    """

    def __init__(
        self,
        graph: Any,
        machines: int | None = None,
        trainers_per_machine: int = 1,
        *,
        samplers_per_trainer: int = 0,
        servers_per_machine: int = 1,
        network: Network | None = None,
        cores: float | None = None,
        shared_cores: float | None = None,
        slowdown: Mapping[str, float] | None = None,
        threads: int = 1,
        cache_bytes: int = 0,
        cache_policy: str = "access",
        replicates_structure: bool = False,
        first_layer: int = 0,
        macro_batches: int = 1,
        part_method: Any = None,
        features: dict[str, tuple[tuple[int, ...], torch.dtype]] | None = None,
    ) -> None:
        at_least = {
            "machines": (machines, 1),
            "trainers_per_machine": (trainers_per_machine, 1),
            "servers_per_machine": (servers_per_machine, 1),
            "samplers_per_trainer": (samplers_per_trainer, 0),
            "threads": (threads, 1),
            "cache_bytes": (cache_bytes, 0),
            "first_layer": (first_layer, 0),
            "macro_batches": (macro_batches, 1),
        }
        for name, (value, least) in at_least.items():
            if value is not None and (not isinstance(value, int) or value < least):
                raise InvalidInput(f"{name} must be an integer from {least}; found {value!r}")
        if macro_batches > 1 and samplers_per_trainer:
            raise InvalidInput(
                "macro_batches needs samplers_per_trainer=0: the batches of a macro-batch would be "
                "made by different samplers"
            )
        check_cores(cores=cores, shared_cores=shared_cores)
        check_slowdown(slowdown or {})
        self.trainers_per_machine = trainers_per_machine
        self.samplers_per_trainer = samplers_per_trainer
        self.servers_per_machine = servers_per_machine
        self.network = network or Network()
        self.threads, self.cache_bytes = threads, cache_bytes
        self.cache_policy = check_policy(cache_policy)
        self.design = Design(bool(replicates_structure), first_layer, macro_batches)
        is_foreign = not isinstance(graph, Graph)
        if isinstance(graph, Graph):
            graph = self._partition(graph, machines, part_method)
        self.config = read_config(graph, num_parts=machines)
        self.part_config = self.config.path
        self.num_machines = self.config.num_parts
        self.num_ranks = self.num_machines * trainers_per_machine
        if cores is None:  # without samplers, each trainer has a prefetch thread
            cores = trainers_per_machine * (1 + max(1, samplers_per_trainer)) + servers_per_machine
        self.machines = Machines(self.num_machines, cores, shared_cores, slowdown or {})
        self._parts = [
            open_part(self.config, k, verify=is_foreign) for k in range(self.num_machines)
        ]
        for name, (shape, dtype) in (features or {}).items():
            self._replace_feature(name, shape, dtype)

    def _partition(self, graph: Graph, machines: int | None, method: Any) -> Path:
        if machines is None:
            raise InvalidInput("the graph is not partitioned; pass machines=…, the number of parts")
        self._folder = tempfile.TemporaryDirectory(prefix="gnnlab-simulate-")
        with redirect_stdout(StringIO()):
            partition_graph(graph, "graph", machines, self._folder.name, part_method=method)
        return Path(self._folder.name) / "graph.json"

    def _replace_feature(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Replace a feature by zeros, on the node types that have it, or on all if none has it."""
        types = [t for t, nodes in self._parts[0].nodes.items() if name in nodes.data]
        for part in self._parts:
            for ntype in types or part.nodes:
                zeros = torch.zeros((1, *shape), dtype=dtype)
                nodes = part.nodes[ntype]
                nodes.data[name] = zeros.expand(nodes.num_inner, *shape)

    # ---------------------------------------------------------------------- running
    def run(
        self,
        what: str | os.PathLike[str] | Callable[..., Any],
        *args: Any,
        timeout: float = 3600.0,
        **kwargs: Any,
    ) -> SimulationResult:
        """Run a script, or call a function, once for each trainer.

        Parameters
        ----------
        what : path or callable
            A script runs as ``__main__`` with ``args`` as its command-line arguments. A function is
            called with all arguments. Either calls ``initialize`` first, as in a real job.
        *args, **kwargs
            For a script, one list may hold all command-line arguments.
        timeout : float
            Seconds after which the run fails.
        """
        if len(args) == 1 and isinstance(args[0], list) and not callable(what):
            args = tuple(args[0])
        cluster = Cluster(self.config, self._parts, self.servers_per_machine)
        scheduler = Scheduler([self._environment(rank) for rank in range(self.num_ranks)])
        transports: list[SimulatedTransport] = []
        clock = () if self.threads == 1 else (time.perf_counter,)
        for each in scheduler.ranks:
            each.recorder = Recorder(each.rank, each.rank // self.trainers_per_machine, *clock)

        def run_rank(rank: int) -> Any:
            me = scheduler.ranks[rank]
            torch.set_num_threads(self.threads)
            process = ProcessState(join=lambda: self._join(me, cluster, transports))
            with context.playing(process), chosen_by(partial(Recorded, me.recorder)):
                me.recorder.start()
                try:
                    found = what(*args, **kwargs) if callable(what) else _run_script(what)
                except SystemExit as end:
                    if end.code not in (None, 0):
                        raise
                    found = None
                finally:
                    me.recorder.lap()
                if process.context is not None:
                    context.exit_client()
                return found

        with ExitStack() as around:
            around.enter_context(_replacements())
            around.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(self.threads)
            around.callback(gc.unfreeze)
            gc.freeze()  # scanning existing objects for garbage would count as work
            if not callable(what):  # its arguments, and modules of its folder
                folder = Path(what).resolve().parent
                around.callback(_forget_modules, folder, set(sys.modules))
                around.callback(sys.path.__setitem__, slice(None), list(sys.path))
                sys.path.insert(0, str(folder))
                around.callback(setattr, sys, "argv", sys.argv)
                sys.argv = [str(what), *map(str, args)]
            returned = scheduler.run(run_rank, timeout)
        tracks = [track for each in scheduler.ranks for track in each.recorder.tracks.values()]
        traffic = Traffic(self.num_machines)
        for transport in transports:
            traffic.update(transport.traffic)
        return SimulationResult(self.network, self.machines, tracks, traffic, returned)

    def _job(self, rank: int, role: str = "trainer") -> JobSettings:
        machine, local_rank = divmod(rank, self.trainers_per_machine)
        servers = self.num_machines * self.servers_per_machine
        return JobSettings(
            id="simulated0000000",  # as long as an ID of gnnlab launch
            role=role,
            machine=machine,
            num_machines=self.num_machines,
            server=-1,
            num_servers=self.servers_per_machine,
            rank=rank,
            num_ranks=self.num_ranks,
            local_rank=local_rank,
            num_samplers=self.samplers_per_trainer,
            addresses=tuple(("simulated", number) for number in range(servers)),
            part_config=str(self.part_config),
            keys=None,
            timeout=0.0,
        )

    def _environment(self, rank: int) -> dict[str, str]:
        """Return the environment variables that torchrun and launch set for a trainer."""
        machine, local_rank = divmod(rank, self.trainers_per_machine)
        return {
            "RANK": str(rank),
            "LOCAL_RANK": str(local_rank),
            "WORLD_SIZE": str(self.num_ranks),
            "LOCAL_WORLD_SIZE": str(self.trainers_per_machine),
            "GROUP_RANK": str(machine),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "0",
            "DGL_CONF_PATH": str(self.part_config),
            "GNNLAB_CACHE_BYTES": str(self.cache_bytes),
            "GNNLAB_CACHE_POLICY": self.cache_policy,
        }

    def _join(
        self, me: VirtualRank, cluster: Cluster, transports: list[SimulatedTransport]
    ) -> Context:
        """Connect and make the samplers, as ``initialize`` does in a real trainer."""

        def connect(role: str) -> SimulatedTransport:
            job = self._job(me.rank, role)
            transport = SimulatedTransport(job, cluster, me, me.recorder, self.design)
            transports.append(transport)
            return transport

        samplers = None
        if self.samplers_per_trainer:
            processes = [
                ProcessState(Context(role="sampler", mode="distributed", remote=connect("sampler")))
                for _ in range(self.samplers_per_trainer)
            ]
            samplers = SimulatedSamplers(processes, me.recorder)
        return Context("trainer", "distributed", connect("trainer"), samplers)

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        values = {"graph": self.config.graph_name, "num_machines": self.num_machines}
        values |= {"num_ranks": self.num_ranks, "network": self.network}
        return cells.page(type(self).__name__, values)

    def __repr__(self) -> str:
        """Show graph, machines, trainers and network."""
        return (
            f"Simulation(graph={self.config.graph_name!r}, machines={self.num_machines}, "
            f"trainers={self.num_ranks}, network={self.network})"
        )


simulate = Simulation


# ------------------------------------------------------------- replaced during a run
@contextmanager
def _replacements() -> Iterator[None]:
    """Replace torch.distributed and DistributedDataParallel for virtual ranks."""
    functions = {**{name: group.refusal(name) for name in group.REFUSED}, **group.FUNCTIONS}
    originals = (
        (torch.nn.parallel, torch.nn.parallel.DistributedDataParallel),
        (gnnlab.parallel.ddp, gnnlab.parallel.ddp.DistributedDataParallel),
    )
    with ExitStack() as stack:
        stack.enter_context(group.replaced(dist, functions))
        stack.enter_context(group.replaced(dist.distributed_c10d, {"rendezvous": _refuse_real}))
        # Functions of a notebook may have imported the class before the run.
        stack.enter_context(group.replaced(originals[0][1], {"__init__": _become_simulated}))
        for module, original in originals:
            stack.callback(setattr, module, "DistributedDataParallel", original)
            module.DistributedDataParallel = SimulatedDataParallel  # type: ignore[attr-defined]
        yield


def _refuse_real(me: VirtualRank, *args: Any, **kwargs: Any) -> Any:
    raise InvalidInput("call torch.distributed.init_process_group, not a name imported from there")


def _become_simulated(me: VirtualRank, model: Any, *args: Any, **kwargs: Any) -> None:
    model.__class__ = SimulatedDataParallel
    model.__init__(*args, **kwargs)


def _forget_modules(folder: Path, known: set[str]) -> None:
    """Have modules of a folder imported anew by the next run, since their files may change."""
    for name in set(sys.modules) - known:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).parent == folder:
            del sys.modules[name]


def _run_script(script: Any) -> Any:
    """Run a script in a module of its own, since several threads run it in turns."""
    path = Path(script)
    check_file(path, f"paths of scripts are relative to {Path.cwd()}")
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    code = compile(path.read_bytes(), str(path), "exec")
    exec(code, module.__dict__)
