"""DistributedDataParallel among the virtual ranks of a simulation.

All ranks begin with the parameters of rank 0, and after each backward pass gradients are averaged
over the ranks. This is what ``torch.nn.parallel.DistributedDataParallel`` computes, but without its
buckets: all gradients are exchanged at once, after the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from gnnlab.errors import InvalidInput
from gnnlab.simulate.group import exchange
from gnnlab.simulate.scheduler import VirtualRank, current_rank


class SimulatedDataParallel(torch.nn.Module):
    """A model whose gradients are the means over all ranks.

    With ``broadcast_buffers`` each forward pass first copies the buffers of rank 0 to all ranks;
    with ``find_unused_parameters`` parameters may get no gradient in a backward pass. A simulation
    runs on the CPU: device IDs must be None. Other options are ignored: they change no gradient.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        *,
        find_unused_parameters: bool = False,
        static_graph: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if device_ids or any(p.device.type != "cpu" for p in module.parameters()):
            raise InvalidInput("a simulation runs on the CPU; keep model and data there")
        self.module, self.process_group = module, process_group
        self.find_unused_parameters = find_unused_parameters or static_graph
        self.broadcast_buffers = broadcast_buffers
        self.require_backward_grad_sync = True
        self._trained = [p for p in module.parameters() if p.requires_grad]
        if not self._trained:
            raise InvalidInput("the module has no parameter that requires a gradient")
        self._synchronize = False
        self._reached: set[int] = set()
        state = [*module.parameters(), *module.buffers()]
        self._from_rank_0(_me(), "DistributedDataParallel", state)
        for number, parameter in enumerate(self._trained):
            parameter.register_post_accumulate_grad_hook(lambda _, n=number: self._reach(n))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        me, buffers = _me(), list(self.module.buffers())
        if buffers and self.broadcast_buffers and self.require_backward_grad_sync:
            self._from_rank_0(me, "buffers of DistributedDataParallel", buffers)
        self._synchronize = torch.is_grad_enabled() and self.require_backward_grad_sync
        self._reached.clear()
        return self.module(*inputs, **kwargs)

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Accept a hook that sends gradients, and do not call it: here nothing is sent."""

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate the gradients of backward passes inside on each rank, without averaging."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _from_rank_0(self, me: VirtualRank, what: str, tensors: list[torch.Tensor]) -> None:
        size = sum(t.numel() * t.element_size() for t in tensors)
        values = exchange(me, what, [t.detach().clone() for t in tensors], size // 2)
        shapes = [[tuple(t.shape) for t in given] for given in values]
        if shapes[me.rank] != shapes[0]:
            raise InvalidInput(
                f"{what}: the model of rank {me.rank} has other shapes than that of rank 0"
            )
        with torch.no_grad():
            for mine, theirs in zip(tensors, values[0], strict=True):
                mine.copy_(theirs)

    def _reach(self, number: int) -> None:
        """Record that the backward pass has computed the gradient of a parameter."""
        if not self._synchronize:
            return
        if not self._reached:
            engine: Any = torch.autograd.Variable._execution_engine  # type: ignore[attr-defined]
            engine.queue_callback(self._reduce)  # called after the whole backward pass
        self._reached.add(number)

    def _reduce(self) -> None:
        me = _me()
        self._synchronize = False
        missing = len(self._trained) - len(self._reached)
        if missing and not self.find_unused_parameters:
            raise InvalidInput(
                f"{missing} of {len(self._trained)} parameters got no gradient: no loss depends on "
                "them. DistributedDataParallel(…, find_unused_parameters=True) allows that"
            )
        mine = [
            p.grad / len(me.scheduler.ranks) if n in self._reached and p.grad is not None else None
            for n, p in enumerate(self._trained)
        ]
        size = sum(p.numel() * p.element_size() for p in self._trained)
        values = exchange(me, "gradients", mine, size)
        with me.recorder.pause(), torch.no_grad():
            for number, parameter in enumerate(self._trained):
                given = [g for of_rank in values if (g := of_rank[number]) is not None]
                if not given:
                    continue
                total = given[0].clone()
                for other in given[1:]:
                    total += other
                parameter.grad = total


def _me() -> VirtualRank:
    me = current_rank()
    if me is None:
        raise InvalidInput(
            "this model was made in a simulation that has ended; make it again outside of it"
        )
    return me
