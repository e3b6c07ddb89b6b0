"""Checkpoints: a run that is interrupted and resumed gives the same result, to the last bit.

The rest of a run is determined by the state of model and optimizer, the position of the loader, and
the state of the random generators. A checkpoint holds all of them in one file, which is written
atomically: under another name, then renamed. Reading it runs no code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from gnnlab import accelerators, random
from gnnlab.errors import InvalidInput, NotFound
from gnnlab.staging import replacing

__all__ = ["load_checkpoint", "save_checkpoint"]

_FORMAT = "gnnlab.checkpoint/1"


def save_checkpoint(path: str | os.PathLike[str], /, **parts: Any) -> None:
    """Write the state of a run to a file, atomically.

    In a process group, every rank calls this; rank 0 writes, and all return when it has finished.

    Parameters
    ----------
    path : path
        Replaced if it exists; the old file stays until the new one is complete.
    **parts
        By names of your choice: objects with a ``state_dict()`` (model, optimizer, loader,
        scheduler), and plain values (numbers, strings, tensors, lists and dictionaries of them).
        The state of the random generators is always added.

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
    """Restore the state that :func:`save_checkpoint` wrote.

    Parameters
    ----------
    path : path
    **parts
        Objects to restore, under the names they were saved by; other objects of the file are
        skipped. Generators are set if there are as many ranks as wrote the checkpoint.

    Returns
    -------
    dict
        The plain values of the checkpoint.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    NotFound
        The checkpoint has no object of that name.
    InvalidInput
        The file is damaged or not a checkpoint, or a loader's batches differ from those saved.
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
    """Whether a value is an object with a ``state_dict``, not a plain value."""
    return hasattr(part, "state_dict") and hasattr(part, "load_state_dict")


def inner_model(part: Any) -> Any:
    """Return the model inside DistributedDataParallel, so that one process can load it too."""
    if isinstance(part, torch.nn.parallel.DistributedDataParallel):
        return part.module
    return part


def check_plain(name: str, value: Any) -> Any:
    """Return the value if a checkpoint can hold it; raise InvalidInput otherwise."""
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
    """Return the state of all random number generators."""
    states: dict[str, Any] = {"gnnlab": list(random.get_state()), "cpu": torch.get_rng_state()}
    kind = accelerators.kind()
    if kind is not None and accelerators.is_initialized():
        states[kind] = torch.get_device_module(kind).get_rng_state()
    return states


def set_generators(states: Mapping[str, Any]) -> None:
    """Restore the states that :func:`get_generators` returned."""
    random.set_state(states["gnnlab"])
    torch.set_rng_state(states["cpu"])
    kind = accelerators.kind()
    if kind is not None and kind in states:
        torch.get_device_module(kind).set_rng_state(states[kind])


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
    """Write plain values and tensors atomically, with the format's name under "format".

    Drafts that killed processes left for the same path are removed.
    """
    try:
        with replacing(Path(path)) as file:
            torch.save(content, file)
    except (OSError, RuntimeError) as error:
        # torch's writer replaces the disk's error, such as "no space left", by one of its own.
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        advice = "what was saved before is still there; free some space, or save elsewhere"
        raise OSError(cause.errno, f"{cause.strerror} ({advice})", str(path)) from None


def read_state(path: str | os.PathLike[str], kind: str, writer: str) -> dict[str, Any]:
    """Read a file of :func:`write_state`; ``writer`` names the function for error messages."""
    damaged = f"{path} is damaged, cut short or not a file of {writer}"
    with open(path, "rb") as file:
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # of any class, depending on the damage
            raise InvalidInput(f"{damaged} ({error})") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise InvalidInput(f"{damaged}; torch.load(…, weights_only=True) may open it")
    return content
