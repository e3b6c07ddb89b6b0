"""Checkpoints: a run that is interrupted and resumed gives the same result, to the last bit.

The rest of a run is determined by the state of model and optimizer, the position of the loader, and
the state of the random generators. A checkpoint holds all of them in one file, which is written
atomically: under another name, then renamed. Reading it runs no code.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import torch
import torch.distributed as dist

from gnnlab import random
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, reading, writing
from gnnlab.system import accelerators
from gnnlab.system.staging import replacing

_FORMAT = "gnnlab.checkpoint/1"
_SUM = b"gnnlab.crc32"  # followed by 4 bytes, the end of the file
_BLOCK = 1 << 24


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
    """Restore the state that :func:`save_checkpoint` wrote, and return its plain values.

    Parameters
    ----------
    **parts
        Objects to restore, under the names they were saved by; other objects of the file are
        skipped. Generators are set if there are as many ranks as wrote the checkpoint.

    Raises
    ------
    InvalidInput
        The file is damaged (a checksum covers it) or not a checkpoint, or a state does not fit:
        the model has other parameters, or the loader other batches.
    """
    fields = {"states": dict, "values": dict, "generators": list}
    content = read_state(path, _FORMAT, "save_checkpoint", fields)
    for name in parts:
        if name not in content["states"]:
            known = ", ".join(content["states"]) or "none"
            raise NotFound(f"{path} has no part {name!r}; its parts are: {known}")
    for name, part in parts.items():
        with restoring(f"{name} in {path}"):
            inner_model(part).load_state_dict(content["states"][name])
    world_size = dist.get_world_size() if dist.is_initialized() else 1
    if len(content["generators"]) == world_size:
        with restoring(f"the random generators in {path}"):
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
    values = [value] * (dist.get_world_size() if dist.is_initialized() else 1)
    if dist.is_initialized():
        dist.all_gather_object(values, value)
    return values


def _rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


# --------------------------------------------------------------------------------- file
class _Sum:
    """A file that sums what is written to it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.crc = file, 0

    def write(self, data: Any) -> int:
        self.crc = zlib.crc32(data, self.crc)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


def write_state(path: str | os.PathLike[str], content: dict[str, Any]) -> None:
    """Write plain values and tensors atomically, with the format's name under "format".

    The checksum of the file is behind what ``torch.save`` writes, where other readers do not look.
    Drafts that killed processes left for the same path are removed.
    """
    with writing(path), replacing(Path(path)) as file:
        summed: Any = _Sum(file)
        try:
            torch.save({**content, "has_sum": True}, summed)
        except RuntimeError as error:
            # torch's writer replaces the disk's error, such as "no space left", by one of its own.
            if isinstance(error.__context__, OSError):
                raise error.__context__ from None
            raise
        file.write(_SUM + summed.crc.to_bytes(4, "little"))


def read_state(
    path: str | os.PathLike[str], kind: str, writer: str, fields: Mapping[str, type]
) -> dict[str, Any]:
    """Read a file of :func:`write_state` with this format, which must have these fields.

    ``writer`` is the name of the function that writes such files, for error messages.
    """
    damaged = f"{path} is damaged, cut short or not a file of {writer}"
    with reading(path), open(path, "rb") as file:
        crc, end = 0, b""
        while block := file.read(_BLOCK):
            block, end = (end + block)[: -len(_SUM) - 4], (end + block)[-len(_SUM) - 4 :]
            crc = zlib.crc32(block, crc)
        has_sum = end.startswith(_SUM)
        if has_sum and end != _SUM + crc.to_bytes(4, "little"):
            raise InvalidInput(f"{damaged}: its checksum differs; write or copy it again")
        file.seek(0)
        try:
            content = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # of any class, depending on the damage
            raise InvalidInput(f"{damaged} ({error})") from None
    if not isinstance(content, dict) or content.get("format") != kind:
        raise InvalidInput(f"{damaged}; torch.load(…, weights_only=True) may open it")
    if content.pop("has_sum", False) and not has_sum:
        raise InvalidInput(f"{damaged}: its checksum is missing; write or copy it again")
    for name, expected in fields.items():
        if not isinstance(content.get(name), expected):
            raise InvalidInput(f"{damaged}: it lacks {name!r}, a {expected.__name__}")
    return content


@contextmanager
def restoring(what: str) -> Iterator[None]:
    """Raise an error of the block, which loads a state, as InvalidInput that says of ``what``."""
    try:
        yield
    except GNNLabError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        reason = f"{error} is missing" if type(error) is KeyError else error
        raise InvalidInput(f"the state of {what} does not fit ({reason})") from error
