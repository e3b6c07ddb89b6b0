"""Stop and go on: a run that was interrupted ends as if it had not been, to the last bit.

What determines the rest of a run is the state of model and optimizer, where the loader stands, and
where the random generators stand. A checkpoint holds all of it in one file. The file is complete or
not there: it is written under another name and renamed at the end. Reading it runs no code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from gnnlab import random
from gnnlab.drafts import replacing
from gnnlab.errors import InvalidInput, NotFound

__all__ = ["load_checkpoint", "save_checkpoint"]

_FORMAT = "gnnlab.checkpoint/1"


def save_checkpoint(path: str | os.PathLike[str], /, **parts: Any) -> None:
    """Write the state of a run to a file, all of it or nothing.

    With a process group, every rank calls this; rank 0 writes, and all return when it is done.

    Parameters
    ----------
    path : path
        Replaced when it exists; the old file is there until the new one is complete.
    **parts
        By names of your choice: what has a ``state_dict()`` (model, optimizer, loader, scheduler),
        and plain values (numbers, strings, tensors, lists and dictionaries of them). The state of
        the random generators is always added.

    Examples
    --------
    >>> import gnnlab as dgl, tempfile, torch
    >>> file = tempfile.mkdtemp() + "/run.pt"
    >>> model = torch.nn.Linear(2, 2)
    >>> dgl.parallel.save_checkpoint(file, model=model, best_accuracy=0.9)
    >>> dgl.parallel.load_checkpoint(file, model=model)
    {'best_accuracy': 0.9}
    """
    content = {
        "format": _FORMAT,
        "states": {n: inner_model(p).state_dict() for n, p in parts.items() if has_state(p)},
        "values": {n: check_plain(n, p) for n, p in parts.items() if not has_state(p)},
        "generators": _on_all_ranks(get_generators()),
    }
    if _rank() == 0:
        write_state(path, content)
    if dist.is_initialized():
        dist.barrier()


def load_checkpoint(path: str | os.PathLike[str], /, **parts: Any) -> dict[str, Any]:
    """Bring a run to the state that :func:`save_checkpoint` wrote.

    Parameters
    ----------
    path : path
    **parts
        The objects whose state is wanted, under the names they were saved by; others are left out.
        Generators are set when there are as many ranks as wrote the checkpoint.

    Returns
    -------
    dict
        The plain values.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    NotFound
        The checkpoint has no part of that name.
    InvalidInput
        The file is damaged or no checkpoint, or a loader does not cut batches as it did then.
    """
    content = read_state(path, _FORMAT, "save_checkpoint")
    for name in parts:
        if name not in content["states"]:
            known = ", ".join(content["states"]) or "none"
            raise NotFound(f"{path} has no part {name!r}; its parts are: {known}")
    for name, part in parts.items():
        inner_model(part).load_state_dict(content["states"][name])
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    if len(content["generators"]) == world_size:
        set_generators(content["generators"][_rank()])
    return dict(content["values"])


def has_state(part: Any) -> bool:
    """Whether a part of a checkpoint is an object with a state, rather than a plain value."""
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def inner_model(part: Any) -> Any:
    """The model within DistributedDataParallel, so that a single process can load it too."""
    if isinstance(part, torch.nn.parallel.DistributedDataParallel):
        return part.module
    return part


def check_plain(name: str, value: Any) -> Any:
    """Return a value that a checkpoint can hold; raise InvalidInput for others."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            check_plain(f"{name}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            check_plain(f"{name}[{i}]", inner)
    elif not isinstance(value, torch.Tensor | str | int | float | bool | None):
        raise InvalidInput(
            f"{name} is a {type(value).__name__}, which a checkpoint does not hold; pass plain "
            "values, or an object with state_dict() and load_state_dict()"
        )
    return value


# --------------------------------------------------------------------------- generators
def get_generators() -> dict[str, Any]:
    """Return the state of all generators of random numbers."""
    states: dict[str, Any] = {"gnnlab": list(random.get_state()), "cpu": torch.get_rng_state()}
    if torch.cuda.is_initialized():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def set_generators(states: Mapping[str, Any]) -> None:
    """Take over what :func:`get_generators` returned."""
    random.set_state(states["gnnlab"])
    torch.set_rng_state(states["cpu"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states["cuda"])


def _on_all_ranks(value: Any) -> list[Any]:
    if not dist.is_initialized():
        return [value]
    values: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


# --------------------------------------------------------------------------------- file
def write_state(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write plain values and tensors, with their format's name under "format", all or nothing.

    Drafts that killed processes left for the same path are removed.
    """
    try:
        with replacing(Path(path)) as file:
            torch.save(content, file)
    except (OSError, RuntimeError) as error:
        # torch's writer covers what the disk said (full, say) with an error of its own.
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        advice = "what was saved before is still there; free some space, or save elsewhere"
        raise OSError(cause.errno, f"{cause.strerror} ({advice})", str(path)) from None


def read_state(path: str | os.PathLike[str], kind: str, writer: str) -> dict[str, Any]:
    """Read what :func:`write_state` wrote; ``writer`` is who writes files of this format."""
    damaged = f"{path} is damaged, cut short or not a file of {writer}"
    with open(path, "rb") as file:
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # of any class: what torch reads tells it what to do
            raise InvalidInput(f"{damaged} ({error})") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise InvalidInput(f"{damaged}; torch.load(…, weights_only=True) may open it")
    return content
