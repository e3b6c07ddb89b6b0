"""A pretend accelerator: a device backend of torch, written in Python, for machines without a GPU.

torch sends each operator to the backend of the device where its tensors are. A backend is therefore
(1) a device type with a name and a number of devices, (2) tensors that say that they are there, and
(3) an implementation of each operator. torch keeps one device type for backends outside torch,
``PrivateUse1``; :func:`register` names it "pretend". A tensor of ``pretend:1`` is a
:class:`DeviceTensor`, which holds a tensor of the CPU that no other code sees, and :func:`_run` is
the implementation of all operators: it computes with the tensors inside and wraps the results.

So values are the CPU's, and the rest is as on a GPU: tensors have no numpy array, do not mix with
those of the CPU or of another device, and are unusable in a forked child. Time and memory are not
those of a GPU, but what costs time there is counted (:func:`counting`):

* ``operators``: what a GPU has to run, that is all but views and allocations;
* ``dispatched``: all of them; each costs the host some microseconds;
* ``waits``: the host waits for the device, to read a number or the size of a result, or for a copy;
  an error inside :func:`no_waits`, as with ``torch.cuda.set_sync_debug_mode("error")``;
* ``to_device``, ``to_host``: bytes copied.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch.utils import backend_registration

NAME, NUM_DEVICES = "pretend", 4
GPU = "cuda" if torch.cuda.is_available() else NAME  # where tests marked ``gpu`` run

# The result's size depends on values, or a value is read.
_WAITING = {"nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive", "bincount"}
_WAITING |= {"_local_scalar_dense", "equal"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_ALLOCATING = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "detach"}


class _Device:
    """``torch.pretend``, as there is ``torch.cuda``."""

    plugged = False  # torch cannot forget a backend, but there may be no devices
    used_by = 0  # process that has used a device
    current = 0
    counts: Counter[str] | None = None
    may_wait = True
    get_rng_state = staticmethod(torch.get_rng_state)  # random numbers come from the CPU
    set_rng_state = staticmethod(torch.set_rng_state)

    def is_available(self) -> bool:
        return self.plugged

    def device_count(self) -> int:
        return NUM_DEVICES if self.plugged else 0

    def is_initialized(self) -> bool:
        return self.plugged and self.used_by != 0

    def _is_in_bad_fork(self) -> bool:
        return self.used_by not in (0, os.getpid())

    def current_device(self) -> int:
        return self.current

    def set_device(self, device: Any) -> None:
        self.current = device if isinstance(device, int) else torch.device(device).index or 0

    def manual_seed_all(self, seed: int) -> None:
        """Do nothing: torch seeds the CPU's generator, too."""


DEVICE = _Device()


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
        layout = inside.stride(), inside.storage_offset()
        if inside.is_sparse:
            layout = None, None
        made = torch.Tensor._make_wrapper_subclass(  # without data; knows shape, dtype, device
            cls, inside.shape, *layout, dtype=inside.dtype, device=torch.device(NAME, index)
        )
        made.inside = inside
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, *args, **(kwargs or {}))

    # What torch refuses to subclasses of Tensor, or does otherwise.
    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __format__(self, form: str) -> str:
        return format(self.item() if self.ndim == 0 else repr(self), form)

    def numpy(self, *, force: bool = False) -> Any:
        if force:
            return self.detach().cpu().numpy()
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu()"
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        arguments = self.detach().cpu(), self.dtype, str(self.device), self.requires_grad
        return torch._utils._rebuild_device_tensor_from_cpu_tensor, arguments

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"{self.inside!r} on {self.device}"


def _run(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operator: count it, compute with the tensors inside, wrap the results."""
    name, tensors = func._schema.name[6:], []
    if name == "_copy_from":  # how torch asks a backend for copy_
        func, name, args = torch.ops.aten.copy_.default, "copy_", (args[1], args[0], *args[2:])

    def enter(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            return value.inside if isinstance(value, DeviceTensor) else value
        return type(value)(map(enter, value)) if isinstance(value, list | tuple) else value

    inside, options = enter(args), {key: enter(value) for key, value in kwargs.items()}
    ours = [x for x in tensors if isinstance(x, DeviceTensor)]
    device = ours[0].device if ours else torch.device(NAME, DEVICE.current)
    if kwargs.get("device") is not None:  # where the result is to be
        device, options["device"] = torch.device(kwargs["device"]), torch.device("cpu")
    if name in ("_to_copy", "copy_"):
        source = tensors[-1]
        if source.device.type != device.type:
            direction = "to_device" if device.type == NAME else "to_host"
            blocks = not kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
            _count(name, **{direction: source.numel() * source.itemsize}, waits=blocks)
    else:
        _refuse_mixed(name, tensors, device)
        _count(name, waits=_waits(name, args, kwargs), to_host=8 * (name == "_local_scalar_dense"))
    _count(name, dispatched=1, operators=not (func.is_view or name in _ALLOCATING))
    result = func(*inside, **options)
    index = DEVICE.current if device.index is None else device.index
    known = {id(x.inside): x for x in ours}  # results of operators in place

    def leave(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            same = known.get(id(value))
            if same is not None and same.shape != value.shape:
                raise NotImplementedError(f"{name}: the shape of a tensor cannot change in place")
            return DeviceTensor(value, index) if same is None else same
        return type(value)(map(leave, value)) if isinstance(value, list | tuple) else value

    return leave(result) if device.type == NAME else result


def _refuse_mixed(name: str, tensors: list[torch.Tensor], device: torch.device) -> None:
    for x in tensors:
        if x.device == device or (x.ndim == 0 and x.device.type == "cpu"):
            continue
        if name in _INDEXING and x.device.type == "cpu" and not x.is_floating_point():
            _count(name, waits=1, to_device=x.numel() * x.itemsize)
        elif tensors[0].device.type == NAME or name not in _ALLOCATING:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{device} and {x.device}! ({name})"
            )


def _waits(name: str, args: Any, kwargs: dict[str, Any]) -> bool:
    if name == "repeat_interleave":
        return kwargs.get("output_size") is None
    given = args[1] if name in _INDEXING else ()
    return name in _WAITING or any(x is not None and x.dtype == torch.bool for x in given)


def _count(name: str, waits: int = 0, **counts: int) -> None:
    if waits and not DEVICE.may_wait:
        raise RuntimeError(f"called a synchronizing operation: {name}")
    if DEVICE.counts is not None:
        DEVICE.counts.update(waits=waits, **counts)


@contextmanager
def _set(**values: Any) -> Iterator[Any]:
    before = {name: getattr(DEVICE, name) for name in values}
    vars(DEVICE).update(values)
    try:
        yield DEVICE
    finally:
        vars(DEVICE).update(before)


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count what is done inside: operators, dispatched, waits, to_device, to_host."""
    with _set(counts=Counter()) as device:
        yield device.counts


@contextmanager
def no_waits() -> Iterator[None]:
    """Make it an error to wait for the device."""
    if GPU == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        with _set(may_wait=False):
            yield
    finally:
        if GPU == "cuda":
            torch.cuda.set_sync_debug_mode("default")


@contextmanager
def plugged() -> Iterator[None]:
    """Have a GPU inside: a pretend one where there is none."""
    if GPU == NAME:
        register()
    with _set(plugged=GPU == NAME, current=0):
        yield


def plug_in() -> None:
    """Have pretend devices for the rest of the process."""
    register()
    DEVICE.plugged = True


@cache
def register() -> torch.library.Library:
    """Tell torch about the backend, for the rest of the process."""
    backend_registration._setup_privateuseone_for_python_backend(NAME, DEVICE)
    library, aten = torch.library.Library("aten", "IMPL"), torch.ops.aten
    # torch calls __torch_dispatch__ for a DeviceTensor. It finds none where a tensor is made from
    # nothing, and some of its functions in C++ go straight to the backend.
    direct = [aten._copy_from.default, aten._local_scalar_dense.default]
    for schema in torch._C._jit_get_all_schemas():
        types = {argument.name: str(argument.type) for argument in schema.arguments}
        if {"device", "layout"} <= types.keys() and "Tensor" not in "".join(types.values()):
            packet = getattr(aten, schema.name.removeprefix("aten::"), None)
            direct.append(getattr(packet, schema.overload_name or "default", None))
    for func in filter(None, direct):
        library.impl(func, partial(_run, func), "PrivateUse1")
    from tests import accelerator_group

    accelerator_group.register(NAME)
    return library
