"""Streams of the pretend device: they find work that is not ordered, and memory reused too early.

The device computes at once, so nothing can go wrong there that would on a GPU. Instead each stream
counts its operators and knows up to where it has waited for others. An operator is refused if it
reads what another stream writes and has not waited for that. A copy from pinned memory that the
host does not wait for takes place as late as it may: when its result is read, or when the host
waits for an event. So a buffer that is filled again too early shows in the values.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch

_copying = threading.Lock()
_here = threading.local()  # the present streams of each thread
_default: dict[int, Stream] = {}
MEMORY: dict[int, Any] = {}  # address → owner, written, recorded, pending
PINNED: dict[int, torch.Tensor] = {}


class Stream:
    def __init__(self, device: Any) -> None:
        self.device, self.count, self.seen = torch.device(device), 0, {}

    def record_event(self) -> Event:
        return Event(self)

    def wait_event(self, event: Event) -> None:
        for stream, count in event.seen.items():
            self.seen[stream] = max(self.seen.get(stream, 0), count)

    def knows(self, stream: Stream, count: int) -> bool:
        return stream is self or self.seen.get(stream, 0) >= count


class Event:
    def __init__(self, stream: Stream) -> None:
        self.stream, self.seen = stream, {**stream.seen, stream: stream.count}

    def query(self) -> bool:
        return True

    def synchronize(self) -> None:
        for memory in list(MEMORY.values()):
            if memory.written[0] is self.stream:
                finish(memory)


def current_stream(device: Any) -> Stream:
    device = torch.device(device)
    streams = vars(_here).setdefault("streams", {})
    default = _default.setdefault(device.index, Stream(device))
    return streams.get(device.index, default)


def set_stream(stream: Stream) -> None:
    vars(_here).setdefault("streams", {})[stream.device.index] = stream


@contextmanager
def on_stream(stream: Stream) -> Iterator[None]:
    before = current_stream(stream.device)
    set_stream(stream)
    try:
        yield
    finally:
        set_stream(before)


def address(x: torch.Tensor) -> int:
    return x.untyped_storage().data_ptr() if x.layout is torch.strided else 0


def of(x: torch.Tensor) -> Any:
    return MEMORY.get(address(x))


def reset() -> None:
    for state in _default, MEMORY, PINNED, vars(_here):
        state.clear()


def pinned(num_bytes: int) -> torch.Tensor:
    buffer = torch.empty(num_bytes, dtype=torch.uint8)
    PINNED[address(buffer)] = buffer  # kept: another tensor at its address would not be pinned
    return buffer


def is_pinned(x: torch.Tensor) -> bool:
    return x.device.type == "cpu" and address(x) in PINNED


def finish(memory: Any) -> None:
    """Copy what was not yet copied."""
    with _copying:
        for target, source in memory.pending:
            target.copy_(source)
        memory.pending.clear()


def reads(x: torch.Tensor, stream: Stream, name: str) -> None:
    """Refuse to read what another stream may not have written."""
    if x.numel() and (memory := MEMORY.get(address(x))) is not None:
        if not stream.knows(*memory.written):
            raise RuntimeError(f"{name} reads what another stream writes, and did not wait for it")
        finish(memory)


def writes(x: torch.Tensor, stream: Stream, is_new: bool, source: torch.Tensor | None) -> None:
    """Note who writes a tensor, and what is copied to it later."""
    stream.count += 1
    if (key := address(x)) not in MEMORY or is_new:
        MEMORY[key] = SimpleNamespace(owner=stream, recorded=set(), pending=[])
    MEMORY[key].written = stream, stream.count
    if source is not None and is_pinned(source):
        MEMORY[key].pending.append((x, source))
