"""Wire format: messages as bytes, and the validation of received bytes.

A message is a header and one frame of raw bytes for each tensor in it. The header, in msgpack,
holds numbers, strings and, for each tensor, its frame, dtype and shape. Received values are checked
against the types that the message's class declares; frames must have exactly the size of their
shapes. There is no pickle, so bytes never become code: invalid input raises :class:`BadFrame`.

References
----------
msgpack specification, https://msgpack.org.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch

from gnnlab import errors
from gnnlab.distributed.protocol import EXCHANGES
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.kernels.dtypes import DTYPE_NAMES, DTYPES

VERSION = 1
# From here on, numbers have one encoded size; that of a message depends only on its content.
FIRST_NUMBER = 1 << 32
MAX_HEADER = 1 << 20
MAX_FRAME = 1 << 32
MAX_FRAMES = 1024
_MAX_DIMENSIONS = 16
_MAX_TEXT = 1 << 14  # characters of an error, which may quote input
_TENSOR = tuple[int, str, tuple[int, ...]]  # in a header: frame, dtype, shape


class BadFrame(InvalidInput):
    """Bytes that are no valid message of this version."""


_MESSAGES = {kind.__name__: kind for kind in EXCHANGES}
_ERRORS = [errors.NotFound, errors.OutOfRange, errors.PartitionError, InvalidInput, GNNLabError]


class _Head(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The header: ``kind`` is a class of messages, "ok", or a class of errors (and ".code")."""

    version: int
    kind: str
    number: int
    body: msgspec.Raw


# ---------------------------------------------------------------------------- encoding
def encode_request(number: int, message: Any) -> list[Any]:
    """Turn a message into frames: a header, and a view of the memory of each tensor.

    The reply repeats ``number``.
    """
    return _encode(type(message).__name__, number, message)


def encode_reply(number: int, reply: Any) -> list[Any]:
    """Turn the reply to the request of a number into frames."""
    return _encode("ok", number, reply)


def encode_error(number: int, error: BaseException) -> list[Any]:
    """Turn an error into a frame: its class in gnnlab, its code if it has its own, and its text."""
    kind = next((kind for kind in _ERRORS if isinstance(error, kind)), None)
    text = str(error) if kind else f"{type(error).__name__}: {error}"
    code = vars(error).get("code") if kind else None
    name = (kind or GNNLabError).__name__
    return _encode(f"{name}.{code}" if code else name, number, text[:_MAX_TEXT])


def request_size(message: Any) -> int:
    """Return how many bytes the frames of a request have, without making them."""
    return _size_of(type(message).__name__, message)


def reply_size(reply: Any) -> int:
    """Return how many bytes the frames of a reply have, without making them."""
    return _size_of("ok", reply)


def _encode(kind: str, number: int, body: Any) -> list[Any]:
    frames: list[Any] = [b""]

    def describe(value: torch.Tensor) -> int:
        value = value.detach().cpu().contiguous()
        # A tensor of one element counts as contiguous with any stride; viewing bytes needs 1.
        frames.append(value.as_strided((value.numel(),), (1,)).view(torch.uint8).numpy().data)
        return len(frames) - 1

    frames[0] = _header(kind, number, body, describe)
    largest = max(map(len, frames))
    if largest > MAX_FRAME or len(frames[0]) > MAX_HEADER or len(frames) > MAX_FRAMES:
        raise InvalidInput(  # the receiver would close the connection, at every retry
            f"a message of {len(frames) - 1} tensors, the largest part of it {largest:,} bytes, is "
            f"too large: {MAX_FRAMES - 1} tensors of {MAX_FRAME:,} bytes fit, and a header of "
            f"{MAX_HEADER:,}. Read or write fewer rows at once"
        )
    return frames


def _size_of(kind: str, body: Any) -> int:
    sizes = [0]

    def describe(value: torch.Tensor) -> int:
        sizes.append(value.numel() * value.element_size())
        return len(sizes) - 1

    sizes[0] = len(_header(kind, FIRST_NUMBER, body, describe))
    return sum(sizes)


def _header(kind: str, number: int, body: Any, describe: Callable[[torch.Tensor], int]) -> bytes:
    """Encode a header; ``describe`` takes a tensor's bytes and returns the number of its frame."""

    def replace(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.dtype not in DTYPE_NAMES:
            raise InvalidInput(f"{type(value).__name__} does not cross the wire: {value!r}")
        return describe(value), DTYPE_NAMES[value.dtype], tuple(value.shape)

    encoder = msgspec.msgpack.Encoder(enc_hook=replace)
    return encoder.encode(_Head(VERSION, kind, number, msgspec.Raw(encoder.encode(body))))


# ---------------------------------------------------------------------------- decoding
def decode_request(frames: Sequence[Any]) -> tuple[int, Any]:
    """Turn frames into the number of a request, which identifies its reply, and its message.

    Tensors view writable frames and copy others. Raises BadFrame if the frames are no request.
    """
    head = _read_head(frames)
    if head.kind not in _MESSAGES:
        raise BadFrame(f"there are no messages of kind {head.kind[:40]!r}")
    return head.number, _read_body(head, _MESSAGES[head.kind], frames)


def decode_reply(frames: Sequence[Any], kinds: dict[int, type]) -> tuple[int, Any]:
    """Turn frames into the number of a request and its reply: an exception if the server refused.

    ``kinds`` gives the class of the message that was sent under a number; a reply to any other is
    dropped: (-1, None). Raises BadFrame if the frames are no valid reply to these requests.
    """
    head = _read_head(frames)
    if head.number not in kinds:
        return -1, None
    if head.kind == "ok":
        return head.number, _read_body(head, EXCHANGES[kinds[head.number]].reply, frames)
    name, _, code = head.kind.partition(".")
    error = next((kind for kind in _ERRORS if kind.__name__ == name), None)
    if error is None:
        raise BadFrame(f"there are no replies of kind {head.kind[:40]!r}")
    return head.number, error(_read_body(head, str, frames), code=code)


def _read_head(frames: Sequence[Any]) -> _Head:
    if not 1 <= len(frames) <= MAX_FRAMES or len(frames[0]) > MAX_HEADER:
        raise BadFrame(f"a header of at most {MAX_HEADER} bytes and {MAX_FRAMES - 1} frames fit")
    try:
        head = msgspec.msgpack.decode(frames[0], type=_Head)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFrame(f"not a header: {error}") from None
    if head.version != VERSION:
        raise BadFrame(f"the peer speaks version {head.version}, this gnnlab {VERSION}")
    return head


def _read_body(head: _Head, kind: Any, frames: Sequence[Any]) -> Any:
    used = set()

    def tensor(expected: type, value: Any) -> torch.Tensor:
        if expected is not torch.Tensor:
            raise BadFrame(f"{expected} does not cross the wire")
        index, name, shape = msgspec.convert(value, _TENSOR)
        if not 1 <= index < len(frames) or index in used:
            raise BadFrame(f"frame {index} is not there, or used twice")
        used.add(index)
        return _read_tensor(frames[index], name, shape)

    try:
        body = msgspec.msgpack.decode(head.body, type=kind, dec_hook=tensor)
    except (msgspec.DecodeError, ValueError, RuntimeError) as error:  # torch raises the last
        raise BadFrame(f"not a {head.kind}: {error}") from None
    if len(used) != len(frames) - 1:
        raise BadFrame(f"expected {len(used)} frames after the header; found {len(frames) - 1}")
    return body


def _read_tensor(frame: Any, name: str, shape: tuple[int, ...]) -> torch.Tensor:
    dtype = DTYPES.get(name)
    if dtype is None:
        raise BadFrame(f"a tensor cannot hold {name[:20]}")
    if len(shape) > _MAX_DIMENSIONS or any(not 0 <= size <= MAX_FRAME for size in shape):
        raise BadFrame(f"no tensor has the shape {str(shape)[:80]}")
    expected, view = math.prod(shape) * dtype.itemsize, memoryview(frame)
    if len(view) != expected:
        raise BadFrame(f"{name} of shape {shape} has {expected} bytes; found {len(view)}")
    if expected == 0:
        return torch.empty(shape, dtype=dtype)
    raw = torch.frombuffer(bytearray(view) if view.readonly else view, dtype=torch.uint8)
    if raw.data_ptr() % dtype.itemsize:
        raw = raw.clone()  # of a frame that is not from a stream
    if dtype is torch.bool and bool((raw > 1).any()):
        raise BadFrame("a truth value is 0 or 1")
    values = raw.view(dtype)
    return values if len(shape) == 1 else values.view(shape)
