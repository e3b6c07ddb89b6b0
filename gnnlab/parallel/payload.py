"""Passing a function and its arguments to a fresh process.

Code is pickled by cloudpickle: a function of a notebook cell or of the main script by value, with
the globals it uses; a function of a module by reference. Large tensors are not pickled: they are
written to one file in memory, which every process maps. The mapping is copy-on-write: a process
reads the data as they were packed, and its writes are private, as after a fork. Tensors that were
shared before (``share_memory_``, ``shared_tensor``) stay shared: all processes see all writes.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import pickle
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context, reduction
from multiprocessing.connection import Connection
from typing import Any, BinaryIO, NamedTuple

import cloudpickle
import torch
from torch.storage import TypedStorage

from gnnlab.multiprocessing import shared_file

INHERITS = hasattr(os, "fork")  # whether children inherit descriptors; not on Windows
_LARGE = 1 << 16
_LINE = 64  # bytes of a cache line: alignment of tensors


class Payload(NamedTuple):
    """Location of a packed value."""

    memory: int  # descriptor of a file: large tensors first, then the pickle of everything else
    start: int  # offset of the pickle, in bytes
    size: int  # of the file, in bytes
    descriptors: tuple[int, ...]  # to be inherited under the same numbers, ``memory`` among them
    name: str = ""  # on Windows, where nothing is inherited: the path of the file


@contextmanager
def pack(value: Any, packer_class: type[Packer] | None = None) -> Iterator[Payload]:
    """Write a value for other processes, which must be started inside the ``with``.

    On Windows, they must also have called :func:`unpack` before the ``with`` ends. Raise OSError if
    there is not enough memory for the large tensors.
    """
    buffer = io.BytesIO()
    packer = (packer_class or Packer)(buffer)
    context.set_spawning_popen(packer)
    try:
        packer.dump(value)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        error.add_note(
            "The function, or something it uses, cannot travel to a fresh interpreter. Make it "
            "there, or let the processes inherit it (start_method='fork')"
        )
        raise
    finally:
        context.set_spawning_popen(None)
    content = buffer.getbuffer()
    size = packer.size + len(content)
    with shared_file(size) as (memory, name):
        # Writing is twice as fast as copying into a new mapping, page after page.
        with open(memory, "r+b", closefd=False) as file:
            packer.lay_out(file)
            file.seek(packer.size)
            file.write(content)
        if INHERITS:
            yield Payload(memory, packer.size, size, (memory, *packer.descriptors))
        else:
            yield Payload(memory, packer.size, size, (), name)


def unpack(payload: Payload) -> Any:
    """Rebuild a value of :func:`pack`, here or in a process that inherited the descriptors."""
    descriptor = payload.memory
    if payload.name:
        descriptor = os.open(payload.name, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        memory = mmap.mmap(descriptor, payload.size, access=mmap.ACCESS_COPY)
    finally:
        if payload.name:
            os.close(descriptor)
    return _Unpacker(memory, payload.start).load()


def fresh_python(module: str, *arguments: str) -> list[str]:
    """Return the command for a module's ``main`` in a fresh interpreter with this sys.path."""
    entry = "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); "
    entry += f"from {module} import main; main()"
    folders = json.dumps([str(folder) for folder in sys.path])
    return [sys.executable, "-X", "utf8", "-c", entry, *arguments, folders]


class Packer(cloudpickle.Pickler):  # type: ignore[misc]
    """Pickler that collects large storages instead of pickling them.

    While pickling, it is also registered as the process being started: torch and multiprocessing
    pass it the descriptors (of shared tensors, queues, pipes) that the process must inherit. If the
    reader runs already, set ``shares`` to False: then shared tensors are copied too.
    """

    shares = True

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer)
        self.size = 0
        self.descriptors: list[int] = []
        self._storages: dict[tuple[int, int], tuple[int, torch.UntypedStorage]] = {}

    def persistent_id(self, value: Any) -> tuple[torch.dtype, int, int] | None:
        """Identify a large storage by dtype, offset and size in bytes; None pickles the value."""
        if not isinstance(value, TypedStorage):
            return None
        storage = value._untyped_storage
        if storage.device.type != "cpu" or self._stays(storage) or storage.nbytes() < _LARGE:
            return None
        key = storage.data_ptr(), storage.nbytes()  # arrays of numpy may begin at the same address
        if key not in self._storages:
            self._storages[key] = (self.size, storage)
            self.size += -(-storage.nbytes() // _LINE) * _LINE
        return value.dtype, self._storages[key][0], storage.nbytes()

    def reducer_override(self, value: Any) -> Any:
        """Pickle shared tensors and open connections as multiprocessing does."""
        storage = value._untyped_storage if isinstance(value, TypedStorage) else value
        shared = isinstance(storage, torch.UntypedStorage) and self._stays(storage)
        if shared or isinstance(value, Connection | socket.socket):
            reducers = reduction.ForkingPickler._extra_reducers  # type: ignore[attr-defined]
            return reducers[type(value)](value)
        if isinstance(value, TypedStorage) and storage.device.type == "cpu":
            return _small, (bytearray(_bytes(storage)), value.dtype)  # torch writes a file of each
        return super().reducer_override(value)

    def _stays(self, storage: torch.UntypedStorage) -> bool:
        # CUDA calls all its storages shared; they are pickled, and so copied.
        return self.shares and storage.device.type == "cpu" and storage.is_shared()

    def lay_out(self, file: BinaryIO) -> None:
        """Write the collected storages at their offsets in the file."""
        for offset, storage in self._storages.values():
            file.seek(offset)
            file.write(_bytes(storage))

    def duplicate_for_child(self, descriptor: int) -> int:
        """Record a descriptor that the process being started must inherit."""
        self.descriptors.append(descriptor)
        return descriptor

    def DupFd(self, descriptor: int) -> _Inherited:
        """Wrap a descriptor for the pickle; called by ``multiprocessing.reduction``."""
        return _Inherited(descriptor)


def _bytes(storage: torch.UntypedStorage) -> memoryview:
    return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().data


def _small(content: bytearray, dtype: torch.dtype) -> TypedStorage:
    storage = torch.frombuffer(content, dtype=torch.uint8).untyped_storage() if content else None
    return TypedStorage(wrap_storage=storage or torch.UntypedStorage(), dtype=dtype, _internal=True)


class _Inherited:
    """A descriptor that the child inherits under the same number."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def detach(self) -> int:
        return os.dup(self.descriptor)


class _Unpacker(pickle.Unpickler):
    def __init__(self, memory: mmap.mmap, start: int) -> None:
        memory.seek(start)
        super().__init__(memory)
        self._memory = memory
        self._storages: dict[int, torch.UntypedStorage] = {}

    def persistent_load(self, name: tuple[torch.dtype, int, int]) -> TypedStorage:
        """Return a storage by its identifier; views of one storage share it."""
        dtype, offset, size = name
        if offset not in self._storages:
            array = torch.frombuffer(self._memory, dtype=torch.uint8, offset=offset, count=size)
            self._storages[offset] = array.untyped_storage()
        return TypedStorage(wrap_storage=self._storages[offset], dtype=dtype, _internal=True)
