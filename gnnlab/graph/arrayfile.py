"""Named arrays in one file of the safetensors format, with checksums.

The format is the length of a header, the header in JSON, and the bytes of the arrays; any reader of
safetensors opens it. The header begins with the CRC-32 of everything else in it, and holds that of
each array, so that all bytes are covered, and a part of the arrays can be read and checked alone.
Files without checksums, which other programs write, are read too.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from gnnlab.errors import GNNLabError, InvalidInput, reading, writing
from gnnlab.kernels.dtypes import DTYPES, check_stored, dtype_name, numpy_view, read_dtype
from gnnlab.system.staging import replacing

_START = b'{"__metadata__":{"crc":"'
_AT = 8 + len(_START)  # where the 8 digits of the header's checksum begin
_MOST_HEADER = 100_000_000  # bytes, the limit of safetensors
_NAMES = (
    "F64 float64 F32 float32 F16 float16 BF16 bfloat16 BOOL bool U8 uint8 I64 int64 I32 int32 "
    "I16 int16 I8 int8 U64 uint64 U32 uint32 U16 uint16 C64 complex64 F8_E4M3 float8_e4m3fn "
    "F8_E5M2 float8_e5m2"
)
_CODES = {DTYPES[name]: code for code, name in zip(*[iter(_NAMES.split())] * 2, strict=True)}


def write_arrays(
    path: Path, arrays: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None
) -> None:
    """Write arrays to a file, atomically.

    A dtype that the format lacks is stored as bytes; the header tells dtype and shape. Raises
    InvalidInput for one that cannot be stored, and an OSError if the file cannot be written.
    """
    described: dict[str, Any] = {}
    data, sums, others, end = [], {}, {}, 0
    # Wide elements first: then all are aligned.
    for name in sorted(arrays, key=lambda name: -arrays[name].element_size()):
        values = arrays[name].detach().cpu().contiguous()
        check_stored(values.dtype, name)
        raw = _bytes(values)
        code, shape = _CODES.get(values.dtype), list(values.shape)
        if code is None:
            others[name] = [dtype_name(values.dtype), shape]
            code, shape = "U8", [len(raw)]
        offsets, end = [end, end + len(raw)], end + len(raw)
        described[name] = {"dtype": code, "shape": shape, "data_offsets": offsets}
        sums[name] = _digits(zlib.crc32(raw))
        data.append(raw)
    own = {"crc": "0" * 8, "sums": "".join(sums[name] for name in sorted(sums))}
    own |= {"others": json.dumps(others)} if others else {}
    header = {"__metadata__": {**own, **(metadata or {})}, **described}
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    head = len(text).to_bytes(8, "little") + text
    with writing(path), replacing(path) as file:
        file.write(_signed(head))
        for raw in data:
            file.write(raw)


class Arrays:
    """The arrays of an open file: ``arrays[name]``; and its ``names`` and ``metadata``."""

    def __init__(self, head: bytes, file: Any) -> None:
        self.metadata: dict[str, str] = file.metadata() or {}
        self.names: list[str] = list(file.keys())
        self._tensor, self._sums = file.get_tensor, {}
        sums, names = self.metadata.get("sums"), sorted(self.names)
        # One damaged byte hides one of the two signs of checksums, not both.
        if sums is not None or head[8:].startswith(_START):
            if sums is None or len(sums) != 8 * len(names) or head != _signed(head):
                raise ValueError("the checksum of its header differs")
            self._sums = {name: sums[8 * i : 8 * i + 8] for i, name in enumerate(names)}
        self._others = json.loads(self.metadata.get("others", "{}"))

    def __getitem__(self, name: str) -> torch.Tensor:
        """Read an array; raises ValueError if its checksum differs."""
        values: torch.Tensor = self._tensor(name)
        if self._sums and self._sums[name] != _digits(zlib.crc32(_bytes(values))):
            raise ValueError(f"the checksum of {name!r} differs")
        if name in self._others:
            dtype, shape = self._others[name]
            values = values.clone().view(read_dtype(dtype)).reshape(shape)
        return values


@contextmanager
def open_arrays(path: Path, writer: str) -> Iterator[Arrays]:
    """Open a file of :func:`write_arrays`, or another one of safetensors.

    Raises an OSError if the file cannot be read, and InvalidInput, which names the function
    ``writer``, if it is damaged or of another format. Python's errors in the block, which a damaged
    description causes, are raised as that.
    """
    from safetensors import SafetensorError as damage
    from safetensors import safe_open

    try:
        with reading(path):
            with open(path, "rb") as stream:
                head = stream.read(8)
                head += stream.read(min(int.from_bytes(head, "little"), _MOST_HEADER))
            with safe_open(path, framework="pt") as file:
                yield Arrays(head, file)
    except GNNLabError:
        raise
    except (damage, LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"{path} is damaged, cut short or not a file of {writer}; write or copy it again "
            f"({error})"
        ) from error


def _bytes(values: torch.Tensor) -> memoryview:
    # A tensor of one element counts as contiguous with any stride; viewing bytes needs 1.
    flat = values.as_strided((values.numel(),), (1,))
    return numpy_view(flat).view(torch.uint8).numpy().data


def _digits(checksum: int) -> str:
    return f"{checksum:08x}"


def _signed(head: bytes) -> bytes:
    """Return the first bytes of a file with the checksum of the others in its place."""
    blank = head[:_AT] + b"0" * 8 + head[_AT + 8 :]
    return head[:_AT] + _digits(zlib.crc32(blank)).encode() + head[_AT + 8 :]
