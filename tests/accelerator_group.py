"""Collective operations of ranks with a pretend device each, through gloo.

A process group written in Python: it gives gloo the tensors of the CPU that are inside.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


class OverGloo(dist.ProcessGroup):
    """A process group for pretend devices: what is inside goes through gloo."""

    def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    supports_splitting = False

    def getBackendName(self) -> str:
        return "pretend"

    def _get_backend(self, device: torch.device) -> OverGloo:
        return self


def _collective(name: str) -> Any:
    def call(self: OverGloo, *args: Any, **options: Any) -> Any:
        def enter(value: Any) -> Any:
            if isinstance(value, list):
                return [enter(part) for part in value]
            return value.inside if hasattr(value, "inside") else value

        getattr(self.gloo, name)(*map(enter, args), **options).wait()
        done: torch.futures.Future[Any] = torch.futures.Future()
        done.set_result(args[0] if args and isinstance(args[0], list) else [])
        return torch._C._distributed_c10d._create_work_from_future(done)

    return call


for _name in ("allreduce", "broadcast", "allgather", "barrier", "reduce", "scatter", "gather"):
    setattr(OverGloo, _name, _collective(_name))


def register(device: str) -> None:
    dist.Backend.register_backend(device, OverGloo, devices=[device])
