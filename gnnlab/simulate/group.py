"""torch.distributed among the virtual ranks of a simulation.

While a simulation runs, the functions of ``torch.distributed`` that training uses synchronize the
threads of its virtual ranks; in all other threads they work as before. In a ring all-reduce, as in
gloo, each of R ranks sends 2 (R − 1) / R times the bytes of a tensor to the next rank. The replay
times every call that moves tensors as such a ring.
"""

from __future__ import annotations

import functools
import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from gnnlab.errors import InvalidInput
from gnnlab.simulate.optrace import Collective
from gnnlab.simulate.scheduler import VirtualRank, current_rank

_OPERATIONS: dict[Any, Callable[[torch.Tensor], torch.Tensor]] = {
    dist.ReduceOp.SUM: lambda values: values.sum(0),
    dist.ReduceOp.PRODUCT: lambda values: values.prod(0),
    dist.ReduceOp.MIN: lambda values: values.amin(0),
    dist.ReduceOp.MAX: lambda values: values.amax(0),
}


class _CompletedWork:
    """The handle that ``async_op=True`` returns; the call has completed before it returns."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True immediately."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True


def exchange(
    me: VirtualRank, what: str, value: Any, num_bytes: int = 0, kind: str = "allreduce"
) -> list[Any]:
    """Contribute a value, which must not change later; return the values of all ranks.

    All ranks must make the same calls in the same order, ``what``. ``num_bytes`` are those that a
    ring all-reduce would sum for this call, 0 for a barrier; ``kind`` is the replayed event's.
    """
    if not me.in_group:
        _no_group(what)
    me.num_calls += 1
    with me.recorder.pause():
        point = f"{what} of torch.distributed (call {me.num_calls})"
        number, values = me.rendezvous(point, value)
        me.recorder.add(Collective(kind, number, num_bytes, me.recorder.step))
    return values


def _tensors(me: VirtualRank, what: str, tensor: torch.Tensor, share: float = 1.0) -> torch.Tensor:
    """Return the tensors of all ranks, stacked."""
    size = int(tensor.numel() * tensor.element_size() * share)
    values = exchange(me, what, tensor.detach().clone(), size)
    shapes = {(tuple(each.shape), each.dtype) for each in values}
    if len(shapes) > 1:
        raise InvalidInput(f"{what}: ranks gave tensors of different shape or dtype: {shapes}")
    return torch.stack(values)


def _init_process_group(
    me: VirtualRank,
    backend: str | None = None,
    init_method: Any = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **kwargs: Any,
) -> None:
    ranks = len(me.scheduler.ranks)
    if backend is not None and "gloo" not in str(backend):
        raise InvalidInput(f"a simulation runs on the CPU with backend gloo; found {backend!r}")
    if rank not in (-1, me.rank) or world_size not in (-1, ranks):
        raise InvalidInput(
            f"this is rank {me.rank} of {ranks}; found rank={rank} and world_size={world_size}"
        )
    if me.in_group:
        raise InvalidInput("init_process_group was called twice; call destroy_process_group first")
    me.in_group = True
    exchange(me, "init_process_group", None, kind="wait")


def _destroy_process_group(me: VirtualRank, group: Any = None) -> None:
    me.in_group = False


def _all_reduce(
    me: VirtualRank,
    tensor: Any,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> None:
    if op not in _OPERATIONS:
        raise InvalidInput(f"all_reduce: gloo supports SUM, PRODUCT, MIN and MAX; found {op}")
    _fill(tensor, _OPERATIONS[op](_tensors(me, "all_reduce", tensor)))


def _reduce(
    me: VirtualRank,
    tensor: Any,
    dst: int = 0,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> None:
    before = tensor.detach().clone()
    _all_reduce(me, tensor, op)
    if me.rank != dst:
        _fill(tensor, before)


def _all_gather(
    me: VirtualRank, tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> None:
    found = _tensors(me, "all_gather", tensor, share=len(tensor_list) / 2)
    for into, value in zip(tensor_list, found, strict=True):
        _fill(into, value)


def _all_gather_into_tensor(
    me: VirtualRank, output: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> None:
    found = _tensors(me, "all_gather_into_tensor", tensor, share=len(me.scheduler.ranks) / 2)
    _fill(output, found.reshape(output.shape))


def _all_gather_object(me: VirtualRank, object_list: Any, obj: Any, group: Any = None) -> None:
    packed = pickle.dumps(obj)
    size = len(packed) * len(me.scheduler.ranks) // 2
    for i, each in enumerate(exchange(me, "all_gather_object", packed, size)):
        object_list[i] = pickle.loads(each)


def _broadcast(
    me: VirtualRank, tensor: Any, src: int = 0, group: Any = None, async_op: bool = False
) -> None:
    _fill(tensor, _tensors(me, "broadcast", tensor, share=0.5)[src])


def _broadcast_object_list(
    me: VirtualRank, object_list: Any, src: int = 0, group: Any = None, device: Any = None
) -> None:
    packed = pickle.dumps(list(object_list))
    object_list[:] = pickle.loads(
        exchange(me, "broadcast_object_list", packed, len(packed) // 2)[src]
    )


def _barrier(
    me: VirtualRank, group: Any = None, async_op: bool = False, device_ids: Any = None
) -> None:
    exchange(me, "barrier", None, kind="wait")


def _get_world_size(me: VirtualRank, group: Any = None) -> int:
    return len(me.scheduler.ranks) if me.in_group else _no_group("get_world_size")


def _no_group(what: str) -> Any:
    raise InvalidInput(f"{what}: there is no process group; call init_process_group('gloo') first")


def _fill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "all_gather_object": _all_gather_object,
    "all_gather_single": _all_gather_into_tensor,  # its name in newer versions of torch
    "all_reduce": _all_reduce,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "broadcast_object_list": _broadcast_object_list,
    "destroy_process_group": _destroy_process_group,
    "get_backend": lambda me, group=None: "gloo" if me.in_group else _no_group("get_backend"),
    "get_rank": lambda me, group=None: me.rank if me.in_group else _no_group("get_rank"),
    "get_world_size": _get_world_size,
    "init_process_group": _init_process_group,
    "is_initialized": lambda me: me.in_group,
    "reduce": _reduce,
}
REFUSED = (
    *("all_to_all", "all_to_all_single", "batch_isend_irecv", "gather", "gather_object"),
    *("irecv", "isend", "monitored_barrier", "new_group", "new_subgroups", "recv"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send"),
    *("split_group",),
)


@contextmanager
def replaced(owner: Any, functions: dict[str, Callable[..., Any]]) -> Iterator[None]:
    """Replace functions of a module or class, by name, in the threads of virtual ranks only.

    The first argument of each is the :class:`VirtualRank`. Its parameters ``group`` and
    ``async_op``, if it has them, are handled here.
    """
    originals = {name: getattr(owner, name) for name in functions if hasattr(owner, name)}
    for name, original in originals.items():
        setattr(owner, name, _for_virtual_ranks(original, functions[name]))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


def _for_virtual_ranks(original: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(function)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        me = current_rank()
        if me is None:
            return original(*args, **kwargs)
        given = signature.bind(me, *args, **kwargs).arguments
        if given.get("group") is not None:
            raise InvalidInput(
                f"{original.__name__}: a simulation has one process group, of all ranks; leave out "
                "group="
            )
        result = function(me, *args, **kwargs)
        return _CompletedWork() if given.get("async_op") else result

    return call


def refusal(name: str) -> Callable[..., Any]:
    """Return a function that raises InvalidInput: a simulation does not support ``name``."""

    def refuse(me: VirtualRank, *args: Any, **kwargs: Any) -> Any:
        raise InvalidInput(
            f"a simulation does not support torch.distributed.{name}; it supports "
            f"{', '.join(sorted(FUNCTIONS))}"
        )

    return refuse
