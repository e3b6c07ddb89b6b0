"""The accelerators of this machine, such as GPUs; only this module and helpers/fork.py name any.

Everywhere else a device is the CPU or not: compiled kernels run on the CPU, torch operators on all
other devices. So a device works as far as torch does on it: those of NVIDIA and AMD ("cuda"), Intel
("xpu"), Apple ("mps"), and those of backends outside torch.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from gnnlab.errors import InvalidInput

__all__ = ["can_record", "count", "group_backend", "is_fast", "is_initialized", "kind"]
__all__ += ["read_device", "recorded", "runs_triton", "set_device"]


def kind() -> str | None:
    """Return the device type of this machine's accelerators, None if there are none."""
    found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
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
    """Read a device: a number is that of an accelerator; a type alone is its current device.

    Examples
    --------
    >>> from gnnlab import accelerators
    >>> accelerators.read_device("cpu")
    device(type='cpu')
    """
    if isinstance(device, int):
        return torch.device(kind() or "cuda", device)
    try:
        device = torch.device(device)
    except (RuntimeError, TypeError):
        raise InvalidInput(
            f'a device is "cpu", "cuda", "cuda:0" or a torch.device; found {device!r}'
        ) from None
    if device.type == kind() and device.index is None:
        return torch.device(device.type, torch.accelerator.current_device_index())
    return device


def set_device(device: torch.device) -> None:
    """Make an accelerator the current device of this process."""
    torch.get_device_module(device).set_device(device)


def group_backend(device: torch.device | str) -> str | None:
    """Return the backend of ``torch.distributed`` between accelerators, None if there is none."""
    import torch.distributed as dist

    name = dist.Backend.default_device_backend_map.get(torch.device(device).type, "gloo")
    return name if name != "gloo" and dist.is_backend_available(name) else None


def can_record(device: torch.device) -> bool:
    """Whether :func:`recorded` records on this device."""
    return device.type == "cuda"


def recorded(body: Callable[[], torch.Tensor], device: torch.device) -> Callable[[], torch.Tensor]:
    """Record the kernels that ``body`` launches; return a function that launches them again.

    Its result is the tensor that ``body`` returned, with new values. On other devices than those of
    CUDA, return ``body`` itself.
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
