"""Save and resume a distributed job: each machine saves its rows, each trainer its state.

Machines need not share a disk, so a checkpoint is a folder on every machine. Staging folders are
renamed once all machines have written theirs, and older checkpoints are removed once all have
renamed: at any time one checkpoint is complete on all machines, and a restarted job loads it. The
next save removes the staging folders of killed jobs.

With the same number of trainers, a run resumes exactly where it was. With another number it can
resume between two epochs only.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from gnnlab.dataloading.epochs import Loader
from gnnlab.distributed import context
from gnnlab.distributed.embedding import DistEmbedding
from gnnlab.distributed.optim import SparseOptimizer
from gnnlab.distributed.tensor import DistTensor
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, file_error
from gnnlab.launch import environment
from gnnlab.parallel import checkpoint as single
from gnnlab.parallel.rendezvous import notify_agent
from gnnlab.system.staging import staging_folder

_FORMAT = "gnnlab.distributed-checkpoint/1"
_FIELDS = {"states": dict, "values": dict, "generators": dict, "num_ranks": int, "num_parts": int}
_STAGING = ".draft"
_STOP = "stop"  # the file that an agent makes; launch/agent.py


def save_checkpoint(folder: str | os.PathLike[str], /, **parts: Any) -> None:
    """Save the state of a job atomically, each machine its share.

    All trainers must call this, with parts of the same names.

    Parameters
    ----------
    folder : path
        On the disk of each machine, or on one that they share.
    **parts
        Under names of your choice: models, optimizers, loaders, any object with a
        ``state_dict()``; :class:`DistEmbedding`, :class:`DistTensor` and sparse optimizers, whose
        rows are saved by their owners; and plain values. The state of the random generators is
        always added.

    Raises
    ------
    GNNLabError
        A machine could not write, for instance because its disk is full. The previous checkpoint
        is kept.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> folder = tempfile.mkdtemp()
    >>> path = dgl.graph(([0, 1, 2, 3, 4], [1, 2, 3, 4, 5]))
    >>> dgl.distributed.partition_graph(path, "path", 2, folder, part_method="random")
    path: ...
    >>> dgl.distributed.initialize()
    >>> g = dgl.distributed.DistGraph("path", part_config=f"{folder}/path.json")
    >>> h = dgl.distributed.DistTensor((6, 1), torch.float32, "h")
    >>> h[:] = 5.0
    >>> dgl.distributed.save_checkpoint(f"{folder}/run", h=h, epoch=3)
    >>> h[:] = 0.0
    >>> dgl.distributed.load_checkpoint(f"{folder}/run", h=h)
    {'epoch': 3}
    >>> h[0:2].flatten()
    tensor([5., 5.])
    """
    place = _Place(folder)
    failure = (
        f"no checkpoint was written to {folder}, and one before is as it was; free some space on "
        "the disk that is named, or save elsewhere"
    )
    number = 1 + max(map(int, place.meet(str(max(place.numbers(), default=0)))))
    with ExitStack() as stack:

        def prepare() -> str:
            if not place.leads:
                return ""
            place.folder.mkdir(parents=True, exist_ok=True)
            made = stack.enter_context(staging_folder(place.folder, ".", _STAGING))
            (made / str(number)).mkdir()  # with default permissions
            return made.name

        names = place.together(prepare, failure)
        staging = place.folder / names[place.leader] / str(number)

        def write() -> None:
            single.write_state(staging / f"rank-{place.rank}.pt", _own_state(parts, place))
            if place.leads:
                for part in place.parts:
                    single.write_state(staging / f"part-{part}.pt", _rows(parts, part))

        def name() -> None:
            if place.leads:
                os.replace(staging, place.folder / str(number))

        place.together(write, failure)
        place.together(name, failure)
    if place.leads:
        for old in place.numbers():
            if old < number:
                shutil.rmtree(place.folder / str(old), ignore_errors=True)


def load_checkpoint(folder: str | os.PathLike[str], /, **parts: Any) -> dict[str, Any]:
    """Restore a job from the newest checkpoint that is complete on all machines.

    All trainers must call this, with parts of the same names.

    Parameters
    ----------
    folder : path
    **parts
        Objects to restore, under the names that they were saved with.

    Returns
    -------
    dict
        The plain values.

    Raises
    ------
    NotFound
        No checkpoint is complete on all machines, or it lacks a part of that name.
    InvalidInput
        It is of another partition, or was saved mid-epoch with another number of trainers.
    """
    place = _Place(folder)
    found = place.meet(" ".join(map(str, place.numbers())))
    common = set.intersection(*(set(map(int, text.split())) for text in found))
    if not common:
        has = "; ".join(f"rank {rank}: {text or 'none'}" for rank, text in enumerate(found))
        raise NotFound(f"{folder}: no checkpoint is complete on all machines ({has})")
    newest = place.folder / str(max(common))
    values: dict[str, Any] = {}

    def load() -> None:
        values.update(_load(place, newest, parts))

    place.together(load, f"{newest} was not loaded")
    return values


def should_stop() -> bool:
    """Return whether the job is about to be ended; the same answer for all trainers.

    Slurm announces that if asked: with ``#SBATCH --signal=B:USR1@120``, SIGUSR1 comes two minutes
    before to the launcher, which tells its agents.

    All trainers must call this equally often, where they could save a checkpoint: after each epoch,
    or every few hundred batches. It waits for all of them.

    Returns
    -------
    bool
        True: save a checkpoint and return from the script. The launcher then asks Slurm to queue
        the job again. Always False without a launcher.

    Examples
    --------
    >>> import gnnlab as dgl
    >>> dgl.distributed.initialize()
    >>> dgl.distributed.should_stop()
    False
    """
    folder = os.environ.get(environment.OUTPUT)
    told = _STOP if folder and os.path.exists(os.path.join(folder, _STOP)) else ""
    remote = context.current().remote
    is_told = _STOP in (remote.meet("should_stop", told) if remote else (told,))
    if is_told:
        notify_agent("stopping")
    return is_told


def _load(place: _Place, newest: Path, parts: Mapping[str, Any]) -> dict[str, Any]:
    alike = (newest / f"rank-{place.rank}.pt").exists()
    ranks = sorted(int(p.stem.removeprefix("rank-")) for p in newest.glob("rank-*.pt"))
    if not ranks:
        raise InvalidInput(
            f"{newest} holds no state of a trainer; remove the folder on all machines, and the "
            "checkpoint before is loaded, where there is one"
        )
    source = newest / f"rank-{place.rank if alike else ranks[0]}.pt"
    content = single.read_state(source, _FORMAT, "save_checkpoint", _FIELDS)
    same_ranks = content["num_ranks"] == place.num_ranks and alike
    if content["num_parts"] != place.num_parts:
        raise InvalidInput(
            f"{newest} is of {content['num_parts']} parts; this job has {place.num_parts}. Rows "
            "belong to parts: load it with the partition that it was written with"
        )
    for name, part in parts.items():
        if name not in content["states"]:
            known = ", ".join(content["states"]) or "none"
            raise NotFound(f"{newest} has no part {name!r}; its parts are: {known}")
        with single.restoring(f"{name} in {source}"):
            _take_state(name, part, content["states"][name], same_ranks)
    if place.leads:
        for number in place.parts:
            file = newest / f"part-{number}.pt"
            rows = single.read_state(file, _FORMAT, "save_checkpoint", {"rows": dict})
            for name, tensor in _tensors(parts):
                lo, hi = tensor.part_policy.ranges[number : number + 2].tolist()
                tensor[lo:hi] = _check_rows(newest, name, tensor, hi - lo, rows["rows"])
    if same_ranks:
        with single.restoring(f"the random generators in {source}"):
            single.set_generators(content["generators"])
    return dict(content["values"])


class _Place:
    """Checkpoint folder of this process, and synchronization with the other trainers."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        transport = context.client_of().transport
        remote = context.current().remote
        self._remote = remote
        self.rank, self.num_ranks = context.rank(), context.num_trainers()
        self.num_parts = transport.num_parts
        self.parts = [transport.local_part] if remote else list(range(transport.num_parts))
        local_rank = remote.job.local_rank if remote else 0
        self.leads, self.leader = local_rank == 0, self.rank - local_rank
        self.folder = Path(folder) / f"machine-{transport.local_part}"

    def meet(self, text: str = "") -> tuple[str, ...]:
        """Wait for all trainers; return the text of each."""
        return self._remote.meet("checkpoint", text) if self._remote else (text,)

    def together(self, work: Callable[[], str | None], failure: str) -> list[str]:
        """Run ``work`` on every trainer; if it fails on any, all raise.

        Returns
        -------
        list of str
            The result of ``work`` on each trainer.
        """
        problem: Exception | None = None
        said = ""
        try:
            said = work() or ""
        except Exception as error:
            problem = error
        said = f"+{said}" if problem is None else f"-{type(problem).__name__}: {problem}"
        texts = self.meet(said)
        if isinstance(problem, GNNLabError) and not isinstance(problem, OSError):
            raise problem
        for rank, text in enumerate(texts):
            if text.startswith("-"):
                message = f"{failure}: rank {rank} failed ({text[1:]})"
                if isinstance(problem, OSError):
                    disk = OSError(problem.errno, "")
                    where = problem.filename or self.folder
                    raise file_error(disk, where, message, code="rank_not_done") from problem
                raise GNNLabError(message, code="rank_not_done") from problem
        return [text[1:] for text in texts]

    def numbers(self) -> list[int]:
        """Return the numbers of the complete checkpoints on this machine."""
        if not os.path.isdir(self.folder):
            return []
        return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdigit())


def _tensors(parts: Mapping[str, Any]) -> Iterator[tuple[str, DistTensor]]:
    """Yield the distributed tensors of the parts under unique names."""
    for name, part in parts.items():
        if isinstance(part, DistTensor):
            yield name, part
        elif isinstance(part, DistEmbedding):
            yield name, part.weight
        elif isinstance(part, SparseOptimizer):
            for i, states in enumerate(part.states):
                for j, state in enumerate(states):
                    yield f"{name}/{i}/{j}", state


def _rows(parts: Mapping[str, Any], number: int) -> dict[str, Any]:
    rows = {}
    for name, tensor in _tensors(parts):
        lo, hi = tensor.part_policy.ranges[number : number + 2].tolist()
        rows[name] = tensor[lo:hi]
    return {"format": _FORMAT, "rows": rows}


def _check_rows(
    where: Path, name: str, tensor: DistTensor, count: int, rows: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    saved, shape = rows.get(name), (count, *tensor.shape[1:])
    if saved is None or saved.dtype != tensor.dtype or tuple(saved.shape) != shape:
        found = "nothing" if saved is None else f"{saved.dtype} of shape {tuple(saved.shape)}"
        raise InvalidInput(f"{where}: {name} needs {tensor.dtype} of shape {shape}; found {found}")
    return saved


def _own_state(parts: Mapping[str, Any], place: _Place) -> dict[str, Any]:
    states: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, part in parts.items():
        if isinstance(part, DistTensor | DistEmbedding):
            states[name] = {}
        elif isinstance(part, SparseOptimizer):
            states[name] = part.progress()
        elif single.has_state(part):
            states[name] = single.inner_model(part).state_dict()
        else:
            values[name] = single.check_plain(name, part)
    return {
        "format": _FORMAT,
        "num_ranks": place.num_ranks,
        "num_parts": place.num_parts,
        "states": states,
        "values": values,
        "generators": single.get_generators(),
    }


def _take_state(name: str, part: Any, state: Any, same_ranks: bool) -> None:
    if isinstance(part, DistTensor | DistEmbedding):
        return
    if isinstance(part, SparseOptimizer):
        part.load_progress(state)
        return
    if isinstance(part, Loader) and not same_ranks:
        if state["batch"]:
            raise InvalidInput(
                f"{name} stood at batch {state['batch']} of an epoch, whose batches depend on the "
                "number of trainers. Go on with as many as before, or save between two epochs"
            )
        state = {**state, "cut": part.state_dict()["cut"], "key": None}
    single.inner_model(part).load_state_dict(state)
