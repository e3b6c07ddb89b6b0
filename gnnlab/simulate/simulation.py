"""A cluster in one process: the user's script runs as on K machines.

``simulate`` takes a graph in parts, or cuts one, and says which machines there are. ``run`` starts
a script, or a function, once for each trainer. They compute what real trainers compute and move,
byte for byte, what real ones move; only the time is computed.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import gnnlab.parallel.ddp
from gnnlab.dataloading.loader import DataLoader
from gnnlab.distributed import context
from gnnlab.distributed.context import Context, Process
from gnnlab.distributed.job import Job
from gnnlab.distributed.traffic import Traffic
from gnnlab.errors import InvalidInput
from gnnlab.graph.graph import Graph
from gnnlab.partition.files import read_config
from gnnlab.partition.part import open_part
from gnnlab.partition.partition import partition_graph
from gnnlab.simulate import group
from gnnlab.simulate.network import Network
from gnnlab.simulate.parallel import SimulatedDataParallel
from gnnlab.simulate.replay import Machines
from gnnlab.simulate.result import Result, check_cores
from gnnlab.simulate.samplers import SimulatedSamplers, ahead_of, passes
from gnnlab.simulate.stage import Player, Stage
from gnnlab.simulate.tape import Recorder
from gnnlab.simulate.transport import Cluster, Simulated

__all__ = ["Simulation", "simulate"]


def simulate(
    graph: Any,
    machines: int | None = None,
    trainers_per_machine: int = 1,
    *,
    samplers_per_trainer: int = 0,
    servers_per_machine: int = 1,
    network: Network | None = None,
    cores: float | None = None,
    shared_cores: float | None = None,
    threads: int = 1,
    cache_bytes: int = 0,
    part_method: Any = "metis",
    features: dict[str, tuple[tuple[int, ...], torch.dtype]] | None = None,
) -> Simulation:
    """Say which machines there are; :meth:`Simulation.run` uses them.

    Parameters
    ----------
    graph : path or Graph
        The JSON file that ``partition_graph`` wrote, or a graph, which is then cut into
        ``machines`` parts in a temporary folder, under the name "graph".
    machines : int, optional
        K; that of the parts by default.
    trainers_per_machine, samplers_per_trainer, servers_per_machine : int
        Processes, as ``launch`` starts them.
    network : Network, optional
        Gigabit Ethernet by default.
    cores : float, optional
        Processor cores of a machine; by default one for each trainer, sampler and server.
    shared_cores : float, optional
        Cores that all machines have together, where one computer plays them all.
    threads : int
        With how many threads a trainer computes.
    cache_bytes : int
        Memory of each process for rows of other machines; see ``DistGraph``.
    part_method : str or callable
        How a graph is cut; see ``partition_graph``.
    features : dict, optional
        Feature → (shape of a row, dtype). Such node features are all zeros and take no memory,
        whatever the graph has under the name; they are counted as if they were there. So one can
        ask what wider or narrower features would cost.

    Returns
    -------
    Simulation

    Raises
    ------
    InvalidInput
        The numbers do not fit each other.

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
    return Simulation(
        graph,
        machines,
        trainers_per_machine,
        samplers_per_trainer=samplers_per_trainer,
        servers_per_machine=servers_per_machine,
        network=network or Network(),
        cores=cores,
        shared_cores=shared_cores,
        threads=threads,
        cache_bytes=cache_bytes,
        part_method=part_method,
        features=features or {},
    )


class Simulation:
    """Machines that a process plays; made by :func:`simulate`.

    Attributes
    ----------
    part_config : Path
        The JSON file of the graph.
    num_machines, num_ranks : int
    """

    def __init__(
        self, graph: Any, machines: int | None, trainers_per_machine: int, **options: Any
    ) -> None:
        self.options = options
        self.trainers_per_machine = trainers_per_machine
        self.samplers_per_trainer = options["samplers_per_trainer"]
        self.servers_per_machine = options["servers_per_machine"]
        self._check(machines)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if isinstance(graph, Graph):
            graph = self._cut(graph, machines)
        self.config = read_config(graph, num_parts=machines)
        self.part_config = self.config.path
        self.num_machines = self.config.num_parts
        self.num_ranks = self.num_machines * trainers_per_machine
        self._parts = [open_part(self.config, k, verify=False) for k in range(self.num_machines)]
        for name, (shape, dtype) in options["features"].items():
            self._pretend(name, shape, dtype)

    def _check(self, machines: int | None) -> None:
        whole = {
            "machines": (machines, 1),
            "trainers_per_machine": (self.trainers_per_machine, 1),
            "servers_per_machine": (self.servers_per_machine, 1),
            "samplers_per_trainer": (self.samplers_per_trainer, 0),
            "threads": (self.options["threads"], 1),
            "cache_bytes": (self.options["cache_bytes"], 0),
        }
        for name, (value, least) in whole.items():
            if value is not None and (not isinstance(value, int) or value < least):
                raise InvalidInput(f"{name} must be a whole number from {least}; found {value!r}")
        check_cores(**{name: self.options[name] for name in ("cores", "shared_cores")})

    def _cut(self, graph: Graph, machines: int | None) -> Path:
        if machines is None:
            raise InvalidInput("into how many parts is the graph to be cut? Say machines=…")
        self._folder = tempfile.TemporaryDirectory(prefix="gnnlab-simulate-")
        method = self.options["part_method"]
        with redirect_stdout(StringIO()):
            partition_graph(graph, "graph", machines, self._folder.name, part_method=method)
        return Path(self._folder.name) / "graph.json"

    def _pretend(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        """Give all nodes that have a feature, or all, one of zeros in its place."""
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
    ) -> Result:
        """Run a script, or call a function, once for each trainer.

        Parameters
        ----------
        what : path or callable
            A script is run under the name ``__main__``, with ``args`` as words of its command line.
            A function is called with all arguments. Either begins with ``initialize``, as in a real
            job.
        *args, **kwargs
            One list of words may stand for all words of a command line.
        timeout : float
            Seconds after which the run is given up.

        Returns
        -------
        Result

        Raises
        ------
        SimulationError
            A trainer failed, or trainers wait for each other for ever; it names the rank and shows
            the traceback.
        """
        if len(args) == 1 and isinstance(args[0], list) and not callable(what):
            args = tuple(args[0])
        cluster = Cluster(self.config, self._parts, self.servers_per_machine)
        stage = Stage([self._environment(rank) for rank in range(self.num_ranks)])
        transports: list[Simulated] = []
        for each in stage.players:
            each.recorder = self._recorder(each.rank)

        def play(rank: int) -> Any:
            me = stage.players[rank]
            torch.set_num_threads(self.options["threads"])
            process = Process(join=lambda: self._join(me, cluster, transports))
            with context.playing(process):
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
            around.enter_context(_threads(self.options["threads"]))
            around.enter_context(_frozen())
            if not callable(what):
                around.enter_context(_command_line(what, args))
            returned = stage.run(play, timeout)
        lanes = [lane for each in stage.players for lane in each.recorder.lanes.values()]
        traffic = Traffic(self.num_machines)
        for transport in transports:
            traffic.update(transport.traffic)
        return Result(self.options["network"], self._machines(), lanes, traffic, returned)

    def _machines(self) -> Machines:
        cores = self.options["cores"]
        if cores is None:
            each = 1 + max(1, self.samplers_per_trainer)  # a prefetch thread where no samplers are
            cores = self.trainers_per_machine * each + self.servers_per_machine
        return Machines(self.num_machines, cores, self.options["shared_cores"])

    def _recorder(self, rank: int) -> Recorder:
        machine = rank // self.trainers_per_machine
        if self.options["threads"] == 1:
            return Recorder(rank, machine)
        return Recorder(rank, machine, time.perf_counter)

    def _job(self, rank: int, role: str = "trainer") -> Job:
        machine, local_rank = divmod(rank, self.trainers_per_machine)
        servers = self.num_machines * self.servers_per_machine
        return Job(
            id="simulated0000000",  # as long as those that launch gives
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
        """What torchrun and launch tell a trainer."""
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
            "GNNLAB_CACHE_BYTES": str(self.options["cache_bytes"]),
        }

    def _join(self, me: Player, cluster: Cluster, transports: list[Simulated]) -> Context:
        """What ``initialize`` does in a simulated trainer: connect, and start samplers."""

        def connect(role: str) -> Simulated:
            transport = Simulated(self._job(me.rank, role), cluster, me, me.recorder)
            transports.append(transport)
            return transport

        samplers = None
        if self.samplers_per_trainer:
            processes = [
                Process(Context(role="sampler", mode="distributed", remote=connect("sampler")))
                for _ in range(self.samplers_per_trainer)
            ]
            samplers = SimulatedSamplers(processes, me.recorder)
        return Context("trainer", "distributed", connect("trainer"), samplers)

    def __repr__(self) -> str:
        """Say what is simulated."""
        return (
            f"Simulation(graph={self.config.graph_name!r}, machines={self.num_machines}, "
            f"trainers={self.num_ranks}, network={self.options['network']})"
        )


# ------------------------------------------------------------- what a run puts in place
@contextmanager
def _replacements() -> Iterator[None]:
    """torch.distributed, DistributedDataParallel and loaders, for the threads of players."""
    functions = {**{name: group.refusal(name) for name in group.REFUSED}, **group.FUNCTIONS}
    originals = (
        (torch.nn.parallel, torch.nn.parallel.DistributedDataParallel),
        (gnnlab.parallel.ddp, gnnlab.parallel.ddp.DistributedDataParallel),
    )
    with ExitStack() as stack:
        stack.enter_context(group.replaced(dist, functions))
        stack.enter_context(group.replaced(DataLoader, _loaders()))
        # Functions of a notebook may have imported the class before.
        stack.enter_context(group.replaced(originals[0][1], {"__init__": _become_simulated}))
        for module, _ in originals:
            module.DistributedDataParallel = SimulatedDataParallel  # type: ignore[attr-defined]
        try:
            yield
        finally:
            for module, original in originals:
                module.DistributedDataParallel = original  # type: ignore[attr-defined]


def _become_simulated(me: Player, model: Any, *args: Any, **kwargs: Any) -> None:
    model.__class__ = SimulatedDataParallel
    model.__init__(*args, **kwargs)


def _loaders() -> dict[str, Callable[..., Any]]:
    begin, make = DataLoader.__iter__, DataLoader._make

    def iterate(me: Player, loader: DataLoader) -> Iterator[Any]:
        return passes(me.recorder, begin(loader))

    def make_one(me: Player, loader: DataLoader, name: Any) -> Any:
        with me.recorder.making(None, name[1]):
            return make(loader, name)

    def from_thread(me: Player, loader: DataLoader, names: list[Any]) -> Iterator[Any]:
        def made(number: int) -> Any:
            return make(loader, names[number])

        return ahead_of(me.recorder, made, len(names), ["prefetch"], loader.prefetch)

    def from_workers(me: Player, loader: DataLoader, names: list[Any]) -> Any:
        raise InvalidInput(
            "a simulation has no worker processes of torch (num_workers); distributed jobs have "
            "samplers: simulate(…, samplers_per_trainer=…)"
        )

    return {
        "__iter__": iterate,
        "_make": make_one,
        "_from_thread": from_thread,
        "_from_workers": from_workers,
    }


@contextmanager
def _frozen() -> Iterator[None]:
    """Keep the garbage collector from what is there: looking through it would count as work."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _command_line(script: Any, words: Sequence[Any]) -> Iterator[None]:
    """Let scripts see their words, and find modules beside them."""
    argv, path = sys.argv, list(sys.path)
    sys.argv = [str(script), *map(str, words)]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, path


def _run_script(script: Any) -> Any:
    """Run a script in a module of its own: several threads run it by turns."""
    path = Path(script)
    if not path.is_file():
        raise InvalidInput(f"there is no script {path}; it is looked for from {Path.cwd()}")
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    code = compile(path.read_text("utf8"), str(path), "exec")
    exec(code, module.__dict__)
