"""A pretend accelerator: a device backend of torch, written in Python, for machines without a GPU.

torch sends each operator to the backend of the device where its tensors are. A backend is therefore
(1) a device type with a name and a number of devices, (2) tensors that say that they are there, and
(3) an implementation of each operator. torch keeps one device type for backends outside torch,
``PrivateUse1``; :func:`register` names it "pretend". A tensor of ``pretend:1`` is a
:class:`DeviceTensor`, which holds a tensor of the CPU that no other code sees, and :func:`_run` is
the implementation of all operators: it computes with the tensors inside and wraps the results.

So values are the CPU's, and the rest is as on a GPU: tensors have no numpy array, do not mix with
those of the CPU or of another device, and are unusable in a forked child. Time and memory are not
those of a GPU, but what costs time there is counted (:func:`counting`): ``operators`` that a GPU
has to run, which are all but views and allocations; all that are ``dispatched``, for some
microseconds of the host each; ``waits`` of the host for a number, for the size of a result or for a
copy, which :func:`no_waits` forbids, as ``torch.cuda.set_sync_debug_mode("error")`` does; and the
bytes that are copied ``to_device`` and ``to_host``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch.utils import backend_registration
from torch.utils._pytree import tree_leaves, tree_map_only

from gnnlab.ops import autograd
from gnnlab.system import accelerators
from tests import accelerator_cells, accelerator_group, accelerator_streams

NAME, NUM_DEVICES = "pretend", 4
GPU = "cuda" if torch.cuda.is_available() else NAME  # where tests marked ``gpu`` run

# The result's size depends on values, or a value is read.
_WAITING = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"}
_WAITING |= {"_local_scalar_dense", "equal"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_ALLOCATING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach"}

# ``torch.pretend``, as there is ``torch.cuda``: what torch asks, and the settings of this process.
DEVICE: Any = SimpleNamespace(
    plugged=False,  # torch cannot forget a backend, but there may be no devices
    used_by=0,  # process that has used a device
    current=threading.local(),  # .index: each thread begins with device 0
    counts=Counter(),
    may_wait=True,
    is_available=lambda: DEVICE.plugged,
    device_count=lambda: NUM_DEVICES * DEVICE.plugged,
    is_initialized=lambda: DEVICE.plugged and DEVICE.used_by > 0,
    _is_in_bad_fork=lambda: DEVICE.used_by not in (0, os.getpid()),
    current_device=lambda: getattr(DEVICE.current, "index", 0),
    set_device=lambda device: _use(torch.device(device).index or 0),
    get_rng_state=lambda device=None: torch.get_rng_state(),  # random numbers come from the CPU
    set_rng_state=lambda state, device=None: torch.set_rng_state(state),
    manual_seed_all=lambda seed: None,
    Stream=accelerator_streams.Stream,
    current_stream=accelerator_streams.current_stream,
    set_stream=lambda stream: _enter(stream),
    stream=accelerator_streams.on_stream,
)


def _use(index: int) -> None:
    DEVICE.used_by, DEVICE.current.index = os.getpid(), index


def _enter(stream: Any) -> None:
    """Work in a stream from now on, and on its device, as on a GPU."""
    accelerator_streams.set_stream(stream)
    _use(stream.device.index)


class _Event:
    """A point of time on a device, which is never behind."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.time = 0.0

    def record(self) -> None:
        self.time, self.device = time.perf_counter(), torch.device(NAME, DEVICE.current_device())

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        _count("synchronize", waits=1)

    def elapsed_time(self, end: _Event) -> float:
        return (end.time - self.time) * 1e3


DEVICE.Event = _Event


OWN_GPU_OPS = autograd._gpu_ops


class DeviceTensor(torch.Tensor):
    """A tensor of a pretend device; ``inside`` holds its values."""

    @staticmethod
    def __new__(cls, inside: torch.Tensor, index: int) -> DeviceTensor:
        if DEVICE._is_in_bad_fork():
            raise RuntimeError("Cannot re-initialize pretend devices in a forked child")
        DEVICE.used_by = os.getpid()
        # torch has a thread for the gradients of each device, and counts one device for a backend
        # in Python; without threads it does not need to count. This holds for the present thread.
        torch.autograd.set_multithreading_enabled(False)
        layout = (None, None) if inside.is_sparse else (inside.stride(), inside.storage_offset())
        made = torch.Tensor._make_wrapper_subclass(  # without data; knows shape, dtype, device
            cls, inside.shape, *layout, dtype=inside.dtype, device=torch.device(NAME, index)
        )
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, *args, **(kwargs or {}))

    def record_stream(self, stream: Any) -> None:
        accelerator_streams.of(self.inside).recorded.add(stream)

    # What torch refuses to subclasses of Tensor, or does otherwise.
    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __format__(self, form: str) -> str:
        return format(self.item() if self.ndim == 0 else repr(self), form)

    def numpy(self, **options: Any) -> Any:
        raise TypeError(f"can't convert a tensor of {self.device} to numpy: use Tensor.cpu()")

    def __reduce_ex__(self, protocol: Any) -> Any:
        arguments = self.detach().cpu(), self.dtype, str(self.device), self.requires_grad
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, arguments

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{self.inside!r} on {self.device}"


def _run(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator: count it, compute with the tensors inside, wrap the results."""
    name = func._schema.name[6:]
    if name == "_copy_from":  # how torch asks a backend for copy_
        func, name, args = torch.ops.aten.copy_.default, "copy_", (args[1], args[0], *args[2:])
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    ours = {id(x.inside): x for x in tensors if isinstance(x, DeviceTensor)}
    inside, options = tree_map_only(DeviceTensor, lambda x: x.inside, (args, kwargs))
    device = next((x.device for x in ours.values()), torch.device(NAME, DEVICE.current_device()))
    if kwargs.get("device") is not None:  # where the result is to be
        device, options["device"] = torch.device(kwargs["device"]), torch.device("cpu")
    index = DEVICE.current_device() if device.index is None else device.index
    stream, late = accelerator_streams.current_stream(torch.device(NAME, index)), None
    is_work = not (func.is_view or name in _ALLOCATING)
    for x in ours.values() if is_work else ():
        accelerator_streams.reads(x.inside, accelerator_streams.current_stream(x.device), name)
    if name in ("_to_copy", "copy_"):
        if (source := tensors[-1]).device.type != device.type:
            direction = "to_device" if device.type == NAME else "to_host"
            returns = kwargs.get("non_blocking", len(args) > 2 and args[2])  # before it is done
            _count(name, waits=not returns, **{direction: source.nbytes})
            late = source if returns and device.type == NAME else None
    else:
        _refuse_mixed(name, tensors, device)
        _count(name, waits=_waits(name, args, kwargs), to_host=8 * (name == "_local_scalar_dense"))
    _count(name, dispatched=1, operators=is_work)
    result = accelerator_cells.FUSED.get(name, func)(*inside, **options)

    def leave(value: torch.Tensor) -> torch.Tensor:
        if not func.is_view:
            accelerator_streams.writes(value, stream, id(value) not in ours, late)
        if (same := ours.get(id(value))) is None:
            return DeviceTensor(value, index)
        if same.shape != value.shape:  # changed in place, as by transpose_: tell the wrapper
            with torch._C._DisableTorchDispatch():
                func(*args, **kwargs)
        return same

    return tree_map_only(torch.Tensor, leave, result) if device.type == NAME else result


def _refuse_mixed(name: str, tensors: list[torch.Tensor], device: torch.device) -> None:
    for x in tensors:
        if x.device == device or (x.ndim == 0 and x.device.type == "cpu"):
            continue
        if name in _INDEXING and x.device.type == "cpu" and not x.is_floating_point():
            _count(name, waits=1, to_device=x.nbytes)
        elif tensors[0].device.type == NAME or name not in _ALLOCATING:
            raise RuntimeError(f"{name}: tensors on at least two devices, {device} and {x.device}")


def _waits(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    reads_size = name == "repeat_interleave" and kwargs.get("output_size") is None
    by_mask = name in _INDEXING and any(x is not None and x.dtype == torch.bool for x in args[1])
    return reads_size or by_mask or name in _WAITING


def _count(name: str, waits: int = 0, **counts: int) -> None:
    if waits and not DEVICE.may_wait:
        raise RuntimeError(f"called a synchronizing operation: {name}")
    DEVICE.counts.update(waits=waits, **counts)


def counting() -> Any:
    """Count what is done inside ``with``: operators, dispatched, waits, to_device, to_host."""
    return patch.object(DEVICE, "counts", Counter())


@contextmanager
def no_waits() -> Iterator[None]:
    """Make it an error to wait for the device."""
    set_cuda = torch.cuda.set_sync_debug_mode if GPU == "cuda" else str
    set_cuda("error")
    try:
        with patch.object(DEVICE, "may_wait", False):
            yield
    finally:
        set_cuda("default")


@contextmanager
def plugged() -> Iterator[None]:
    """Have a GPU inside ``with``: a pretend one where there is none."""
    if GPU != NAME:
        yield
        return
    register()
    accelerator_streams.reset()
    device = patch.multiple(DEVICE, plugged=True, current=threading.local())
    pinned = patch.object(accelerators, "pinned", accelerator_streams.pinned)
    with device, pinned, patch.object(torch.Tensor, "is_pinned", accelerator_streams.is_pinned):
        yield


def _gpu_ops(device: torch.device) -> ModuleType:
    """Operators of a GPU; with GNNLAB_FAST_GPU=1 it has Triton, whose kernels the CPU's replace."""
    if device.type != NAME or not accelerators.is_fast(device):
        return OWN_GPU_OPS(device)
    from tests import accelerator_kernels

    # Triton need not be installed; but if it is, the module may have been imported before.
    sys.modules.setdefault("gnnlab.kernels.segment_triton", accelerator_kernels)
    from gnnlab.ops import triton_ops

    triton_ops.segment_triton = accelerator_kernels
    return triton_ops


def launch(function: Callable[..., Any], *args: Any) -> Any:
    """Run a kernel that is no operator of torch: one launch, which torch does not dispatch."""
    device = next(x for x in tree_leaves(args) if isinstance(x, DeviceTensor)).device
    _refuse_mixed(
        function.__name__, [x for x in tree_leaves(args) if isinstance(x, torch.Tensor)], device
    )
    _count(function.__name__, operators=1)
    stream = accelerator_streams.current_stream(device)
    for x in tree_leaves(args):
        if isinstance(x, DeviceTensor):
            accelerator_streams.reads(x.inside, stream, function.__name__)
    result = function(*tree_map_only(DeviceTensor, lambda x: x.inside, args))
    for x in tree_leaves(result):
        if isinstance(x, torch.Tensor):
            accelerator_streams.writes(x, stream, True, None)
    return tree_map_only(torch.Tensor, lambda x: DeviceTensor(x, device.index), result)


@cache
def register() -> torch.library.Library:
    """Tell torch about the backend, for the rest of the process."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, DEVICE)
    library, aten = torch.library.Library("aten", "IMPL"), torch.ops.aten
    # torch calls __torch_dispatch__ for a DeviceTensor. It finds none where a tensor is made from
    # nothing, and some of its functions in C++ go straight to the backend.
    direct = [aten._copy_from.default, aten._local_scalar_dense.default]
    for schema in torch._C._jit_get_all_schemas():
        arguments = str(schema).split(" -> ")[0]
        if "Layout? layout" in arguments and "Tensor" not in arguments:
            packet = getattr(aten, schema.name[6:], None)
            direct.append(getattr(packet, schema.overload_name or "default", None))
    for func in filter(None, direct):
        library.impl(func, partial(_run, func), "PrivateUse1")
    accelerator_group.register(NAME)
    autograd._gpu_ops = _gpu_ops
    return library
