"""Save and resume a distributed job: each machine saves its rows, each trainer its state.

Machines need not share a disk, so a checkpoint is a folder on every machine. Staging folders are
renamed once all machines have written theirs, and older checkpoints are removed once all have
renamed: at any time one checkpoint is complete on all machines, and a restarted job loads it. The
next save removes the staging folders of killed jobs.

Rows are saved with the IDs of the graph before it was partitioned, so they move to other machines,
another partition of the graph, or one process. The first trainer of each machine reads files; where
machines share no disk, every folder must be on one of them, and a state of a trainer on each.

With the same partition and number of trainers, a run resumes exactly where it was. With others it
can resume between two epochs only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from gnnlab.dataloading.epochs import Loader
from gnnlab.distributed import context
from gnnlab.distributed.embedding import DistEmbedding
from gnnlab.distributed.inference import ROWS, own_ids
from gnnlab.distributed.optim import SparseOptimizer
from gnnlab.distributed.tensor import DistTensor, original_ids
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, file_error
from gnnlab.graph.names import describe
from gnnlab.launch import environment
from gnnlab.parallel import checkpoint as single
from gnnlab.parallel.rendezvous import notify_agent
from gnnlab.system.staging import staging_folder

_FORMAT = "gnnlab.distributed-checkpoint/1"
_FIELDS = {"save": str, "states": dict, "values": dict, "generators": dict, "num_ranks": int}
_ROWS = {"save": str, "rows": dict, "ids": dict, "sizes": dict}
_PART = re.compile(r"part-(\d+)-of-(\d+)\.pt")
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
        Under names of your choice: models, optimizers, loaders, any object with a ``state_dict()``;
        :class:`DistEmbedding`, :class:`DistTensor` and sparse optimizers, whose rows are saved by
        their owners; and plain values. The state of the random generators is added.

    Raises
    ------
    GNNLabError
        A machine could not write: its disk may be full. The previous checkpoint is kept.

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
    number = 1 + max(map(int, place.meet(str(max(map(_number, place.all_folders()), default=0)))))
    with ExitStack() as stack:

        def prepare() -> str:
            if not place.leads:
                return ""
            place.folder.mkdir(parents=True, exist_ok=True)
            made = stack.enter_context(staging_folder(place.folder, ".", _STAGING))
            (made / str(number)).mkdir()  # with default permissions
            return made.name

        names = place.together(prepare, failure)
        staging, save = place.folder / names[place.leader] / str(number), names[0]

        def write() -> None:
            state = {"save": save, **_own_state(parts, place)}
            single.write_state(staging / f"rank-{place.rank}.pt", state)
            if place.leads:
                for part in place.parts:
                    file = staging / f"part-{part}-of-{place.num_parts}.pt"
                    single.write_state(file, {"save": save, **_rows(parts, part)})

        def name() -> None:
            if place.leads:
                os.replace(staging, place.folder / str(number))

        place.together(write, failure)
        place.together(name, failure)
    if place.leads:
        for old in place.all_folders():
            if _number(old) < number:
                shutil.rmtree(old, ignore_errors=True)


def load_checkpoint(folder: str | os.PathLike[str], /, **parts: Any) -> dict[str, Any]:
    """Restore a job from the newest checkpoint that is complete on all machines.

    All trainers must call this, with parts of the same names. The partition, the machines and the
    trainers may be others than those that saved it, if the graph is the same.

    Parameters
    ----------
    folder : path
        With all saved folders ``machine-*`` on a shared disk, or each on any machine of this job.
    **parts
        Objects to restore, under the names that they were saved with.

    Returns
    -------
    dict
        The plain values.

    Raises
    ------
    NotFound
        No checkpoint is complete on the machines, or it lacks a part of that name.
    InvalidInput
        It is of another graph, or was saved mid-epoch with other trainers or another partition.
    """
    place = _Place(folder)
    number, files = _choose(place)
    failure = f"checkpoint {number} in {folder} was not loaded"
    contents: dict[str, Any] = {}
    rows: list[dict[str, Any]] = []

    def read() -> str:
        state, is_own = _read_state(place, number, parts)
        contents.update(state)
        rows.extend(_read_rows(file, place, parts) for file in files)
        saves = {content["save"] for content in (state, *rows)}
        return json.dumps([is_own, any(content["is_moved"] for content in rows), sorted(saves)])

    own, moved, saves = zip(*map(json.loads, place.together(read, failure)), strict=True)
    if len({name for names in saves for name in names}) > 1:
        raise InvalidInput(
            f"{folder}: the files of checkpoint {number} are of several jobs; keep those of one"
        )
    # Created by all trainers together: policy → original ID → ID of this partition.
    new_ids = {t.part_policy.policy_str: t for _, t in _tensors(parts)} if any(moved) else {}
    new_ids = {policy: _new_ids(tensor) for policy, tensor in new_ids.items()}

    def take() -> None:
        same = all(own) and not any(moved)
        for name, part in parts.items():
            with single.restoring(f"{name} in {contents['file']}"):
                _take_state(name, part, contents["states"][name], same)
        if same:
            with single.restoring(f"the random generators in {contents['file']}"):
                single.set_generators(contents["generators"])
        for content in rows:
            _take_rows(content, parts, new_ids)

    place.together(take, failure)
    return dict(contents["values"])


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


def _choose(place: _Place) -> tuple[int, list[Path]]:
    """Return the number of the newest complete checkpoint, and which files this process reads."""
    mine = {
        (_number(folder), int(named[2]), int(named[1])): file
        for folder in (place.all_folders() if place.leads else ())
        for file in folder.iterdir()
        if (named := _PART.fullmatch(file.name))
    }
    # (number, number of parts) → part → (whether on another machine, rank) of those who see it
    seen: dict[tuple[int, int], dict[int, list[tuple[bool, int]]]] = {}
    texts = place.meet(json.dumps([place.machine, list(mine)]))
    for rank, (machine, keys) in enumerate(map(json.loads, texts)):
        for number, num_parts, part in keys:
            if part < num_parts:
                readers = seen.setdefault((number, num_parts), {}).setdefault(part, [])
                readers.append((part != machine, rank))
    missing = {key: {*range(key[1])} - {*seen[key]} for key in seen}
    complete = [key for key in seen if not missing[key]]
    if not complete:
        lacks = "; ".join(
            f"checkpoint {key[0]} lacks parts {describe(missing[key])}" for key in sorted(seen)
        )
        raise NotFound(
            f"{place.root}: no checkpoint is complete on the machines of this job (found: "
            f"{lacks or 'none'}). Copy the folders machine-* of all machines that saved it there"
        )
    number, num_parts = max(complete)
    reader = {part: min(ranks)[1] for part, ranks in seen[number, num_parts].items()}
    return number, [mine[number, num_parts, p] for p, rank in reader.items() if rank == place.rank]


def _read_state(
    place: _Place, number: int, parts: Mapping[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Read a trainer's state; return also whether it is this one's, of as many trainers."""
    folders = [folder for folder in place.all_folders() if _number(folder) == number]
    files = {_number(file): file for folder in folders for file in folder.glob("rank-*.pt")}
    if not files:
        raise NotFound(
            f"{place.root}: this machine has no state of a trainer of checkpoint {number}; copy a "
            "folder machine-* of another machine there"
        )
    file = files.get(place.rank, files[min(files)])
    state = single.read_state(file, _FORMAT, "save_checkpoint", _FIELDS)
    for name in parts:
        if name not in state["states"]:
            known = ", ".join(state["states"]) or "none"
            raise NotFound(f"{file} has no part {name!r}; its parts are: {known}")
    state["file"] = file
    return state, place.rank in files and state["num_ranks"] == place.num_ranks


def _read_rows(file: Path, place: _Place, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Read the rows of a part, check that they fit, and note where they belong."""
    content = single.read_state(file, _FORMAT, "save_checkpoint", _ROWS)
    part, num_parts = map(int, _PART.fullmatch(file.name).groups())  # type: ignore[union-attr]
    content["is_moved"] = num_parts != place.num_parts
    for name, tensor in _tensors(parts):
        policy, saved = tensor.part_policy, content["rows"].get(name)
        size = content["sizes"].get(policy.policy_str, len(tensor))
        if size != len(tensor):
            raise InvalidInput(
                f"{file} is of another graph: {name} has {size:,} rows of {policy.policy_str}, "
                f"and {len(tensor):,} here"
            )
        lo, hi = policy.ranges[part : part + 2].tolist() if part < place.num_parts else (0, 0)
        known = content["ids"].get(policy.policy_str)
        shape = (hi - lo if known is None else len(known), *tensor.shape[1:])
        if saved is None or saved.dtype != tensor.dtype or tuple(saved.shape) != shape:
            found = "nothing" if saved is None else f"{saved.dtype} of shape {tuple(saved.shape)}"
            raise InvalidInput(
                f"{file}: {name} needs {tensor.dtype} of shape {shape}; found {found}"
            )
        if known is not None and not content["is_moved"]:
            content["is_moved"] = not torch.equal(known, original_ids(tensor)[lo:hi])
    content["part"] = part
    return content


def _new_ids(tensor: DistTensor) -> DistTensor:
    """Return the inverse of :func:`original_ids`; all trainers must call this."""
    policy, originals = tensor.part_policy, original_ids(tensor)
    found = DistTensor((len(tensor),), torch.int64, part_policy=policy, is_gdata=False)
    for ids in own_ids(policy).split(ROWS):
        found[originals[ids]] = ids
    tensor.client.barrier()
    return found


def _take_rows(
    content: dict[str, Any], parts: Mapping[str, Any], new_ids: Mapping[str, DistTensor]
) -> None:
    for name, tensor in _tensors(parts):
        policy, saved = tensor.part_policy, content["rows"].pop(name)
        if policy.policy_str in new_ids:
            table, originals = new_ids[policy.policy_str], content["ids"][policy.policy_str]
            for rows, ids in zip(saved.split(ROWS), originals.split(ROWS), strict=True):
                tensor[table[ids]] = rows
        else:
            lo, hi = policy.ranges[content["part"] :][:2].tolist()
            tensor[lo:hi] = saved


class _Place:
    """Checkpoint folder of this process, and synchronization with the other trainers."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        transport = context.client_of().transport
        remote = self._remote = context.current().remote
        self.rank, self.num_ranks = context.rank(), context.num_trainers()
        self.num_parts = transport.num_parts
        self.parts = [transport.local_part] if remote else list(range(transport.num_parts))
        local_rank = remote.job.local_rank if remote else 0
        self.leads, self.leader = local_rank == 0, self.rank - local_rank
        self.root, self.machine = Path(folder), transport.local_part
        self.folder = self.root / f"machine-{self.machine}"

    def meet(self, text: str = "") -> tuple[str, ...]:
        """Wait for all trainers; return the text of each."""
        return self._remote.meet("checkpoint", text) if self._remote else (text,)

    def together(self, work: Callable[[], str | None], failure: str) -> list[str]:
        """Run ``work`` on every trainer, and return each result; if it fails on any, all raise."""
        problem: Exception | None = None
        try:
            said = f"+{work() or ''}"
        except Exception as error:
            problem, said = error, f"-{type(error).__name__}: {error}"
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

    def all_folders(self) -> list[Path]:
        """Return the folders of checkpoints that this machine sees, also those of others."""
        return [path for path in self.root.glob("machine-*/*") if path.name.isdigit()]


def _number(path: Path) -> int:
    """Return 5 for 5, and 2 for rank-2.pt."""
    return int(path.stem.rpartition("-")[2])


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
    rows, ids, sizes = {}, {}, {}
    for name, tensor in _tensors(parts):
        policy = tensor.part_policy
        lo, hi = policy.ranges[number : number + 2].tolist()
        rows[name], sizes[policy.policy_str] = tensor[lo:hi], len(tensor)
        if policy.policy_str not in ids:
            ids[policy.policy_str] = original_ids(tensor)[lo:hi]
    return {"format": _FORMAT, "rows": rows, "ids": ids, "sizes": sizes}


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
        "states": states,
        "values": values,
        "generators": single.get_generators(),
    }


def _take_state(name: str, part: Any, state: Any, same: bool) -> None:
    if isinstance(part, DistTensor | DistEmbedding):
        return
    if isinstance(part, SparseOptimizer):
        part.load_progress(state)
        return
    if isinstance(part, Loader) and not same:
        if state["batch"]:
            raise InvalidInput(
                f"{name} stood at batch {state['batch']} of an epoch, whose batches depend on the "
                "number of trainers and on the partition. Go on with the same, or save between "
                "two epochs"
            )
        state = {**state, "cut": part.state_dict()["cut"], "key": None}
    single.inner_model(part).load_state_dict(state)
