"""The accelerators of this machine, such as GPUs; only this module and helpers/fork.py name any.

Everywhere else a device is the CPU or not: compiled kernels run on the CPU, torch operators on all
other devices. So a device works as far as torch does on it: those of NVIDIA and AMD ("cuda"), Intel
("xpu"), Apple ("mps"), and those of backends outside torch.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any

import torch

from gnnlab.errors import InvalidInput

__all__ = ["count", "group_backend", "is_initialized", "kind", "read_device", "set_device"]
__all__ += ["has_streams", "pinned", "runs_triton"]


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


def has_streams(device: torch.device) -> bool:
    """Whether a device works on several queues at a time."""
    return device.type != "cpu" and hasattr(getattr(torch, device.type, None), "Stream")


def pinned(num_bytes: int) -> torch.Tensor:
    """Allocate bytes of main memory that accelerators can read by themselves."""
    return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=True)


@cache
def runs_triton(device: torch.device) -> bool:
    """Whether Triton is installed and compiles kernels for a device."""
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (7, 0)
