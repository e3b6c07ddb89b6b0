"""Shared memory of the processes of a machine: tensors in files under /dev/shm.

Servers write the rows that they own; trainers and samplers of the same machine read them in place.
A *catalog*, itself such a file, lists the tensors. The first server of the machine writes it, all
other processes map it, and its version number shows whether it has changed.

Names begin with ``gnnlab-`` and the ID of the job, so that files of a killed job can be found. Each
process holds a lock on the catalog while it runs; the last one to exit removes the files. If that
process is killed, its agent removes them. Without a launcher, the first server of the next job on
this machine removes every catalog that no process has locked.
"""

from __future__ import annotations

import glob
import itertools
import math
import mmap
import os
import struct
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import torch

from gnnlab.distributed import messages as m
from gnnlab.distributed.part_store import Store
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.helpers.fork import Lock
from gnnlab.kernels.dtypes import dtype_name, read_dtype
from gnnlab.multiprocessing import allocate
from gnnlab.partition.part import Part

try:
    import fcntl
except ImportError:  # Windows, where the simulator imports this module but creates no files
    fcntl = None  # type: ignore[assignment]

_CAPACITY = 1 << 24  # bytes of the catalog, a sparse file
_HEAD = struct.Struct("<QQ")  # version, odd during a write; length
_OWNER = struct.Struct("<i")  # after it: ID of the writing process
_START = _HEAD.size + _OWNER.size  # where the content begins
_WRITING = 5.0  # seconds that writing the catalog may take
_FOLDER = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir())


class Entry(msgspec.Struct):
    """Catalog entry of a tensor.

    ``file`` is empty for a feature that is read from the partition. ``released`` lists the ranks
    that no longer need the tensor; once it lists all, the tensor ``is_gone``. A feature that
    ``is_frozen`` is read-only until the job ends.
    """

    file: str = ""
    shape: tuple[int, ...] = ()
    dtype: str = ""
    is_gdata: bool = True
    released: list[int] = []
    is_gone: bool = False
    is_frozen: bool = False

    @property
    def is_untouched(self) -> bool:
        """Whether it is a feature of the partition, neither written to nor released."""
        return not (self.file or self.released or self.is_gone)

    def check_thawed(self, name: str) -> None:
        """Raise InvalidInput if the tensor is frozen."""
        if self.is_frozen:
            raise InvalidInput(
                f"{name} cannot be changed any more: processes keep rows of it (cache_bytes, "
                "GNNLAB_CACHE_BYTES). Write to a DistTensor of your own, or before features are "
                "first read, or switch the cache off"
            )


class SharedTensors:
    """Tensors that the threads of this process share, and an entry for each.

    The memory of a simulated machine. ``entries`` and ``tensors`` are by full name.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.tensors: dict[str, torch.Tensor] = {}
        self.by_file: dict[str, torch.Tensor] = {}
        self.lock = Lock()  # reentrant: freeing a tensor may call a method of this object
        self._numbers = itertools.count()

    def refresh(self) -> bool:
        """Read the entries that other processes have changed; return whether there were any."""
        return False

    def create(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        is_gdata: bool = True,
        values: torch.Tensor | None = None,
    ) -> None:
        """Create a tensor, of zeros or of ``values``."""
        tensor = torch.zeros(shape, dtype=dtype)
        if values is not None:
            tensor.copy_(values)
        with self.lock:
            file = f"tensor-{next(self._numbers)}"
            self.by_file[file] = tensor
            self.publish({name: Entry(file, tuple(shape), dtype_name(dtype), is_gdata)})

    def publish(self, changed: Mapping[str, Entry | None]) -> None:
        """Change entries; None removes one."""
        self.attach(self.entries_with(changed))

    def entries_with(self, changed: Mapping[str, Entry | None]) -> dict[str, Entry]:
        """Return the entries after a change."""
        return {n: e for n, e in {**self.entries, **changed}.items() if e is not None}

    def attach(self, entries: dict[str, Entry]) -> None:
        """Hold the tensors of the entries, and no others."""
        found = {
            e.file: self.by_file[e.file] if e.file in self.by_file else self.open_file(e)
            for e in entries.values()
            if e.file
        }
        self.by_file = found
        self.tensors = {name: found[e.file] for name, e in entries.items() if e.file}
        self.entries = entries  # last, because stores compare it to detect changes

    def open_file(self, entry: Entry) -> torch.Tensor:
        """Return the tensor of an entry that another process has made."""
        raise NotImplementedError

    def remove_file(self, file: str) -> None:
        """Remove the file of a tensor that nobody needs; those who hold it may still use it."""

    def release(self, name: str, rank: int, num_ranks: int, of_part: bool = False) -> None:
        """Record that a rank no longer needs a tensor; the last rank's release deletes it."""
        with self.lock:
            before = self.entries.get(name) or (Entry() if of_part else None)
            if before is None or before.is_gone:
                return
            before.check_thawed(name)
            released = sorted({*before.released, rank})
            entry: Entry | None = msgspec.structs.replace(before, released=released)
            if len(released) >= num_ranks:
                if before.file:
                    self.remove_file(before.file)
                entry = Entry(is_gone=True) if of_part else None
            self.publish({name: entry})

    def keep(self, name: str) -> None:
        """Record that all ranks need a tensor, also those that had released it."""
        with self.lock:
            before = self.entries.get(name)
            if before is not None and before.released:
                self.publish({name: msgspec.structs.replace(before, released=[])})

    def freeze(self, name: str) -> bool:
        """Make a feature of the partition read-only; return whether this is possible."""
        with self.lock:
            before = self.entries.get(name) or Entry()
            if before.is_untouched and not before.is_frozen:
                self.publish({name: Entry(is_frozen=True)})
            return before.is_untouched

    def close(self) -> None:
        """Leave the tensors to the other processes."""


class Memory(SharedTensors):
    """The shared tensors of one machine of a job, an ID.

    ``timeout`` is how many seconds to wait for another process to create the catalog. By default it
    is created here, and only this process may create, release, keep and freeze.
    """

    def __init__(self, job: str, machine: int, timeout: float | None = None) -> None:
        if fcntl is None:
            raise GNNLabError(
                "servers share memory by means that only Linux and macOS have. On Windows use WSL, "
                "or do without servers: initialize() with a part_config, or gnnlab.simulate"
            )
        self._prefix = f"gnnlab-{job}-{machine}-"
        super().__init__()
        self._version = 0
        self._owner = os.getpid()
        path = _FOLDER / f"{self._prefix}catalog"
        if timeout is None:
            _remove_if_alone(path)
            _remove_abandoned()
            try:
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                raise GNNLabError(
                    f"processes of a job {job!r} are on this machine already and use {path}. End "
                    "them, or give this job another name (GNNLAB_JOB)"
                ) from None
            os.truncate(self._descriptor, _CAPACITY)
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)
            os.pwrite(self._descriptor, _OWNER.pack(os.getpid()), _HEAD.size)
        else:
            self._descriptor = _wait_for(path, timeout)
        self._map = mmap.mmap(self._descriptor, _CAPACITY)

    # ------------------------------------------------------------------ reading
    def refresh(self) -> bool:
        """Read the catalog if it has changed; return whether it had."""
        if _HEAD.unpack_from(self._map)[0] == self._version:
            return False
        with self.lock:
            deadline = time.monotonic() + _WRITING
            version, length = _HEAD.unpack_from(self._map)
            content = self._map[_START : _START + length]
            while version % 2 or _HEAD.unpack_from(self._map)[0] != version:
                if time.monotonic() > deadline:
                    raise GNNLabError(
                        f"{_FOLDER / self._prefix}catalog is half written: the first server of "
                        "this machine ended meanwhile. Start the job again"
                    )
                time.sleep(0)
                version, length = _HEAD.unpack_from(self._map)
                content = self._map[_START : _START + length]
            if version != self._version:
                self.attach(msgspec.msgpack.decode(content, type=dict[str, Entry]))
                self._version = version
        return True

    def open_file(self, entry: Entry) -> torch.Tensor:
        """Map the file of an entry; it is unmapped with its last tensor."""
        return _map(entry.file, entry.shape, read_dtype(entry.dtype))

    def remove_file(self, file: str) -> None:
        """Remove a file; processes that have mapped it may still use it."""
        (_FOLDER / file).unlink(missing_ok=True)

    # ------------------------------------------------------------------ writing
    def create(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: torch.dtype,
        is_gdata: bool = True,
        values: torch.Tensor | None = None,
    ) -> None:
        """Create a tensor and publish it; raise GNNLabError if there is too little memory."""
        size = math.prod(shape) * dtype.itemsize
        descriptor, path = tempfile.mkstemp(prefix=self._prefix, dir=_FOLDER)
        file = os.path.basename(path)
        try:
            if size:
                allocate(descriptor, size)
            tensor = _map(file, shape, dtype)
            if values is not None:
                tensor.copy_(values)
        except (OSError, OverflowError) as error:
            os.unlink(path)
            why = getattr(error, "strerror", None) or error
            raise GNNLabError(
                f"{name} needs {size:,} bytes, which {_FOLDER} does not have ({why}). "
                "Use more machines, or enlarge it: mount -o remount,size=… /dev/shm"
            ) from None
        finally:
            os.close(descriptor)
        with self.lock:
            self.by_file[file] = tensor
            try:
                self.publish({name: Entry(file, tuple(shape), dtype_name(dtype), is_gdata)})
            except BaseException:
                del self.by_file[file]
                os.unlink(path)
                raise

    def publish(self, changed: Mapping[str, Entry | None]) -> None:
        """Write the catalog; None removes an entry."""
        entries = self.entries_with(changed)
        content = msgspec.msgpack.encode(entries)
        if len(content) > _CAPACITY - _START:
            raise GNNLabError(f"{len(entries)} distributed tensors are too many")
        self._map[:8] = (self._version + 1).to_bytes(8, "little")
        self._map[_START : _START + len(content)] = content
        self._map[8 : _HEAD.size] = len(content).to_bytes(8, "little")
        self._map[:8] = (self._version + 2).to_bytes(8, "little")
        self._version += 2
        self.attach(entries)

    def close(self) -> None:
        """Unlock and close the catalog; the last process to do so removes the files."""
        if self._descriptor < 0:
            return
        if os.getpid() == self._owner:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # the mapping would keep the lock
        os.close(self._descriptor)
        self._descriptor = -1
        if os.getpid() == self._owner:
            _remove_if_alone(_FOLDER / f"{self._prefix}catalog")


def _remove_if_alone(catalog: Path) -> None:
    """Remove a catalog and its tensors unless a process holds the lock."""
    # PermissionError: the catalog of another user, which is kept
    with suppress(FileNotFoundError, BlockingIOError, PermissionError), open(catalog, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        prefix = catalog.name.removesuffix("catalog")
        for path in _FOLDER.glob(f"{glob.escape(prefix)}*"):
            # With another hyphen it is a file of a job whose ID starts with this prefix.
            if path != catalog and "-" not in path.name.removeprefix(prefix):
                path.unlink(missing_ok=True)
        catalog.unlink(missing_ok=True)  # last, so that the next cleanup can find it


def _remove_abandoned() -> None:
    """Remove the files of killed jobs of this user, whatever their names."""
    for catalog in _FOLDER.glob("gnnlab-*-catalog"):
        with suppress(OSError):  # of another user, or just removed
            with open(catalog, "rb") as file:
                is_new = not any(os.pread(file.fileno(), _OWNER.size, _HEAD.size))
            if not is_new:  # its owner writes its ID after locking
                _remove_if_alone(catalog)


def _wait_for(path: Path, timeout: float) -> int:
    deadline = time.monotonic() + timeout
    while True:
        with suppress(FileNotFoundError):
            descriptor = os.open(path, os.O_RDWR)
            if _has_owner(descriptor):
                fcntl.flock(descriptor, fcntl.LOCK_SH)
                if os.fstat(descriptor).st_nlink:  # else it has just been removed
                    return descriptor
            os.close(descriptor)
        if time.monotonic() > deadline:
            raise GNNLabError(
                f"{path} did not appear within {timeout:g} s: the first server of this machine "
                "did not start; look at what it printed"
            )
        time.sleep(0.02)


def _has_owner(descriptor: int) -> bool:
    """Whether the process that created a catalog is alive; a killed job may leave one."""
    owner = os.pread(descriptor, _OWNER.size, _HEAD.size)
    pid = _OWNER.unpack(owner)[0] if len(owner) == _OWNER.size else 0
    try:
        os.kill(max(pid, 0), 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # alive, but of another user
        pass
    return pid > 0


def _map(file: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    count = torch.Size(shape).numel()
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.from_file(str(_FOLDER / file), True, count, dtype=dtype).view(shape)


class SharedStore(Store):
    """A store whose tensors all processes of the machine can read."""

    def __init__(self, part: Part, memory: SharedTensors) -> None:
        super().__init__(part)
        self.memory = memory
        self._of_part = dict(self.tensors)
        self._seen: Any = None
        self._refreshing = Lock()

    def refresh(self) -> None:
        """Add tensors that are new in the catalog, and drop deleted ones."""
        self.memory.refresh()
        if self._seen is self.memory.entries:
            return
        with self._refreshing:  # else a slower thread could restore an older state
            entries = self.memory.entries
            tensors = {**self._of_part, **self.memory.tensors}
            tensors = {
                n: t for n, t in tensors.items() if n not in entries or not entries[n].is_gone
            }
            self.is_gdata = {n: n not in entries or entries[n].is_gdata for n in tensors}
            self.tensors, self._seen = tensors, entries

    def num_rows(self, name: str) -> int:
        """Return the number of rows of the part; raises NotFound where there is no such tensor."""
        self.refresh()
        return len(self._table(name))

    def answer(self, message: Any) -> Any:
        """Execute a message and return its reply."""
        self.refresh()
        if isinstance(message, m.Share):
            return self._share(message.name)
        if isinstance(message, m.Freeze):
            with self._lock:
                return message.name in self._of_part and self.memory.freeze(message.name)
        if isinstance(message, m.Release):
            of_part = message.name in self._of_part
            return self.memory.release(message.name, message.rank, message.num_ranks, of_part)
        if isinstance(message, m.Push | m.Update):
            for name in (message.name, *getattr(message, "states", ())):
                if name in self.tensors and name not in self.memory.tensors:
                    raise InvalidInput(f"{name} is not in shared memory; Share comes first")
        reply = super().answer(message)
        if isinstance(message, m.Create) and not reply:  # it exists already
            self.memory.keep(message.name)
        return reply

    def _put(self, message: m.Create, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.memory.create(message.name, shape, dtype, message.is_gdata, message.values)
        self.refresh()

    def _share(self, name: str) -> None:
        with self._lock:
            tensor = self._table(name)
            if name not in self.memory.tensors:
                self.memory.entries.get(name, Entry()).check_thawed(name)
                shape = tuple(tensor.shape)
                self.memory.create(name, shape, tensor.dtype, self.is_gdata[name], tensor)
                self.refresh()
