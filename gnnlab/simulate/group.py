"""torch.distributed among the players of a simulation.

While a simulation runs, the functions of ``torch.distributed`` that training uses meet among its
threads instead of its processes. Threads that play nothing find them as they were. A ring that sums
up, as gloo's does, sends 2 (R − 1) / R times the bytes of a tensor from each of R ranks to the next
one; that is what a replay assumes for every call that moves tensors.
"""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from gnnlab.errors import InvalidInput
from gnnlab.simulate.stage import Player, player
from gnnlab.simulate.tape import Meet

__all__ = ["FUNCTIONS", "REFUSED", "replaced", "together"]

_OPERATIONS: dict[Any, Callable[[torch.Tensor], torch.Tensor]] = {
    dist.ReduceOp.SUM: lambda values: values.sum(0),
    dist.ReduceOp.PRODUCT: lambda values: values.prod(0),
    dist.ReduceOp.MIN: lambda values: values.amin(0),
    dist.ReduceOp.MAX: lambda values: values.amax(0),
}


class _Done:
    """What ``async_op=True`` returns: the call is over when it returns."""

    def wait(self, timeout: Any = None) -> bool:
        """Return at once."""
        return True

    def is_completed(self) -> bool:
        """Yes."""
        return True


def together(
    me: Player, what: str, value: Any, num_bytes: int = 0, kind: str = "allreduce"
) -> list[Any]:
    """Give a value, which must not change later, and return those of all ranks.

    Parameters
    ----------
    me : Player
    what : str
        The call; all ranks must make the same ones in the same order.
    value : object
    num_bytes : int
        What a ring would have to sum up; 0 where ranks only meet.
    kind : str
        How the time is called.
    """
    if not me.in_group:
        raise InvalidInput(
            f"{what}: there is no process group; call torch.distributed.init_process_group('gloo') "
            "before"
        )
    me.num_calls += 1
    with me.recorder.pause():
        number, values = me.meet(f"{what} of torch.distributed (call {me.num_calls})", value)
        me.recorder.add(Meet(kind, number, num_bytes, me.recorder.step))
    return values


def _tensors(me: Player, what: str, tensor: torch.Tensor, share: float = 1.0) -> torch.Tensor:
    """Tensors of all ranks, stacked."""
    size = int(tensor.numel() * tensor.element_size() * share)
    values = together(me, what, tensor.detach().clone(), size)
    shapes = {(tuple(each.shape), each.dtype) for each in values}
    if len(shapes) > 1:
        raise InvalidInput(f"{what}: ranks gave tensors of different shape or dtype: {shapes}")
    return torch.stack(values)


def _check(what: str, group: Any) -> None:
    if group is not None:
        raise InvalidInput(f"{what}: a simulation has one group, of all ranks; leave out group=")


def _init_process_group(
    me: Player,
    backend: str | None = None,
    init_method: Any = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **kwargs: Any,
) -> None:
    ranks = len(me.stage.players)
    if backend is not None and "gloo" not in str(backend):
        raise InvalidInput(f"a simulation computes on the CPU, with gloo; found {backend!r}")
    if rank not in (-1, me.rank) or world_size not in (-1, ranks):
        raise InvalidInput(
            f"this is rank {me.rank} of {ranks}; found rank={rank} and world_size={world_size}"
        )
    if me.in_group:
        raise InvalidInput("init_process_group was called twice; destroy the first group before")
    me.in_group = True
    together(me, "init_process_group", None, kind="wait")


def _destroy_process_group(me: Player, group: Any = None) -> None:
    _check("destroy_process_group", group)
    me.in_group = False


def _all_reduce(
    me: Player, tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    _check("all_reduce", group)
    if op not in _OPERATIONS:
        raise InvalidInput(f"all_reduce: gloo has SUM, PRODUCT, MIN and MAX; found {op}")
    found = _OPERATIONS[op](_tensors(me, "all_reduce", tensor))
    _fill(tensor, found)
    return _Done() if async_op else None


def _reduce(
    me: Player,
    tensor: Any,
    dst: int = 0,
    op: Any = dist.ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    before = tensor.detach().clone()
    found = _all_reduce(me, tensor, op, group, async_op)
    if me.rank != dst:
        _fill(tensor, before)
    return found


def _all_gather(
    me: Player, tensor_list: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    _check("all_gather", group)
    found = _tensors(me, "all_gather", tensor, share=len(tensor_list) / 2)
    for into, value in zip(tensor_list, found, strict=True):
        _fill(into, value)
    return _Done() if async_op else None


def _all_gather_into_tensor(
    me: Player, output: Any, tensor: Any, group: Any = None, async_op: bool = False
) -> Any:
    _check("all_gather_into_tensor", group)
    found = _tensors(me, "all_gather_into_tensor", tensor, share=len(me.stage.players) / 2)
    _fill(output, found.reshape(output.shape))
    return _Done() if async_op else None


def _all_gather_object(me: Player, object_list: Any, obj: Any, group: Any = None) -> None:
    _check("all_gather_object", group)
    packed = pickle.dumps(obj)
    size = len(packed) * len(me.stage.players) // 2
    for i, each in enumerate(together(me, "all_gather_object", packed, size)):
        object_list[i] = pickle.loads(each)


def _broadcast(
    me: Player, tensor: Any, src: int = 0, group: Any = None, async_op: bool = False
) -> Any:
    _check("broadcast", group)
    _fill(tensor, _tensors(me, "broadcast", tensor, share=0.5)[src])
    return _Done() if async_op else None


def _broadcast_object_list(
    me: Player, object_list: Any, src: int = 0, group: Any = None, device: Any = None
) -> None:
    _check("broadcast_object_list", group)
    packed = pickle.dumps(list(object_list))
    object_list[:] = pickle.loads(
        together(me, "broadcast_object_list", packed, len(packed) // 2)[src]
    )


def _barrier(me: Player, group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:
    _check("barrier", group)
    together(me, "barrier", None, kind="wait")
    return _Done() if async_op else None


def _get_rank(me: Player, group: Any = None) -> int:
    _check("get_rank", group)
    return me.rank if me.in_group else _no_group("get_rank")


def _get_world_size(me: Player, group: Any = None) -> int:
    _check("get_world_size", group)
    return len(me.stage.players) if me.in_group else _no_group("get_world_size")


def _get_backend(me: Player, group: Any = None) -> str:
    return "gloo" if me.in_group else _no_group("get_backend")


def _no_group(what: str) -> Any:
    raise InvalidInput(f"{what}: there is no process group; call init_process_group('gloo') before")


def _fill(tensor: torch.Tensor, values: torch.Tensor) -> None:
    with torch.no_grad():
        tensor.copy_(values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "all_gather_object": _all_gather_object,
    "all_gather_single": _all_gather_into_tensor,  # newer versions of torch call it so
    "all_reduce": _all_reduce,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "broadcast_object_list": _broadcast_object_list,
    "destroy_process_group": _destroy_process_group,
    "get_backend": _get_backend,
    "get_rank": _get_rank,
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
    """Put functions in the place of others, for the threads of players alone.

    Parameters
    ----------
    owner : module or class
    functions : dict
        Name → function; its first argument is the :class:`Player`.
    """
    originals = {name: getattr(owner, name) for name in functions if hasattr(owner, name)}
    for name, original in originals.items():
        setattr(owner, name, _for_players(original, functions[name]))
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(owner, name, original)


def _for_players(original: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        me = player()
        return original(*args, **kwargs) if me is None else function(me, *args, **kwargs)

    return call


def refusal(name: str) -> Callable[..., Any]:
    """Return a function that says that a simulation does not have it."""

    def refuse(me: Player, *args: Any, **kwargs: Any) -> Any:
        raise InvalidInput(
            f"a simulation has no torch.distributed.{name}; it has {', '.join(sorted(FUNCTIONS))}"
        )

    return refuse
