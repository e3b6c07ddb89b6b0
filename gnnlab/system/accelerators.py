"""The accelerators of this machine, such as GPUs; besides, only helpers, which stand alone, ask.

Everywhere else a device is the CPU or not: compiled kernels run on the CPU, torch operators on all
other devices. So a device works as far as torch does on it: those of NVIDIA and AMD ("cuda"), Intel
("xpu"), Apple ("mps"), and those of backends outside torch.
"""

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch

from gnnlab.errors import InvalidInput


def kind() -> str | None:
    """Return the device type of this machine's accelerators, None if there are none.

    Does not initialize them: after torch's ``is_available()``, no forked child could use CUDA.
    """
    found = torch.accelerator.current_accelerator() if count() else None
    return None if found is None else found.type


def count() -> int:
    """Return the number of accelerators; does not initialize them."""
    return torch.accelerator.device_count()


def is_initialized() -> bool:
    """Whether this process has used an accelerator."""
    found = torch.accelerator.current_accelerator()
    if found is None:
        return False
    module = torch.get_device_module(found)
    return bool(getattr(module, "is_initialized", lambda: False)())


def read_device(device: Any) -> torch.device:
    """Read a device: a number is that of an accelerator; a type alone is its current device."""
    if isinstance(device, int):
        return torch.device(kind() or "cuda", device)
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError):
        raise InvalidInput(
            f'a device is "cpu", "cuda", "cuda:0" or a torch.device; found {device!r}'
        ) from None
    if device.type != "cpu" and device.index is None and device.type == kind():
        module = torch.get_device_module(device)
        ask = getattr(module, "current_device", torch.accelerator.current_device_index)
        return torch.device(device.type, ask())
    return device


def set_device(device: torch.device) -> None:
    """Make an accelerator the current device of this thread."""
    torch.get_device_module(device).set_device(device)


def keep_device() -> Callable[[], object]:
    """Return a function that sets this thread's current device in the thread that calls it.

    Without it a new thread has device 0, and "cuda" there is not the "cuda" of a rank.
    """
    if not is_initialized():
        return lambda: None  # device 0 in all threads
    return partial(set_device, read_device(str(kind())))


def mark() -> Any:
    """Record a point of time on the current stream: an event like those of ``torch.cuda``."""
    event = torch.get_device_module(torch.accelerator.current_accelerator()).Event
    marked = event(enable_timing=True)
    marked.record()
    return marked


def unique_name(device: torch.device) -> str:
    """Return what tells an accelerator from all others, also of other machines."""
    describe = getattr(torch.get_device_module(device), "get_device_properties", str)
    return str(getattr(describe(device), "uuid", f"{socket.gethostname()}, {device}"))


def group_backend(device: torch.device | str) -> str | None:
    """Return the backend of ``torch.distributed`` between accelerators, None if there is none."""
    import torch.distributed as dist

    name = dist.Backend.default_device_backend_map.get(torch.device(device).type, "gloo")
    return name if name != "gloo" and dist.is_backend_available(name) else None


def has_streams(device: torch.device) -> bool:
    """Whether a device works on several queues at a time."""
    return device.type != "cpu" and hasattr(getattr(torch, device.type, None), "Stream")


def pinned(num_bytes: int) -> torch.Tensor:
    """Allocate bytes of main memory that accelerators can read by themselves."""
    return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)


def can_record(device: torch.device) -> bool:
    """Whether :func:`recorded` records on this device."""
    return device.type == "cuda"


def recorded(body: Callable[[], torch.Tensor], device: torch.device) -> Callable[[], torch.Tensor]:
    """Record the kernels that ``body`` launches; return a function that launches them again.

    Its result is the tensor that ``body`` returned, with new values. Without CUDA, return ``body``.
    """
    if not can_record(device):
        return body
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(device), torch.cuda.graph(graph, capture_error_mode="thread_local"):
        result = body()

    def launch() -> torch.Tensor:
        graph.replay()
        return result

    return launch


def is_fast(device: torch.device) -> bool:
    """Whether to use what is faster on a device, but has not run on a real one yet.

    Set ``GNNLAB_FAST_GPU=1`` in the environment for that.
    """
    return device.type != "cpu" and os.environ.get("GNNLAB_FAST_GPU") == "1"


@cache
def runs_triton(device: torch.device) -> bool:
    """Whether to run kernels in Triton, which must be installed and compile for the device."""
    if not is_fast(device) or device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (7, 0)
