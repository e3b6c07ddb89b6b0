"""Messages as bytes: they come back as they were, and nothing else comes in."""

from __future__ import annotations

import os
import pickle
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import gnnlab as dgl
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.errors import GNNLabError, InvalidInput
from gnnlab.kernels.dtypes import DTYPES
from tests.distributed.live import connected, make_job, serving

NAMES = st.text(max_size=20)
SMALL = st.integers(0, 2**31)


@st.composite
def tensors(draw: Any) -> torch.Tensor:
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    dtype = draw(st.sampled_from([*DTYPES.values()]))
    return (torch.rand(shape, dtype=torch.float64) * 100).to(dtype)


MESSAGES = st.one_of(
    st.just(m.Describe()),
    st.builds(m.Create, NAMES, st.just((2, 3)), NAMES, st.booleans(), st.none() | tensors()),
    st.builds(m.Pull, NAMES, tensors()),
    st.builds(m.Push, NAMES, tensors(), tensors()),
    st.builds(
        m.Update,
        *(NAMES, tensors(), tensors(), NAMES, st.dictionaries(NAMES, st.floats(allow_nan=False))),
        *(st.just(("a", "b")), SMALL, SMALL, SMALL),
    ),
    st.builds(
        m.Sample,
        st.dictionaries(NAMES, tensors(), max_size=3),
        st.lists(st.integers(-1, 20), max_size=3).map(tuple),
        st.integers(0, 2**64 - 1),
        st.booleans(),
        st.lists(st.none() | NAMES, max_size=3).map(tuple),
        st.dictionaries(SMALL, tensors(), max_size=2),
    ),
    st.builds(m.FindEdges, SMALL, tensors()),
    st.builds(m.Inclusion, SMALL, tensors(), tensors(), SMALL, st.booleans()),
    st.builds(m.Meet, NAMES, SMALL, SMALL, NAMES),
)


def bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A copy, as a tensor of one element may have any stride and yet be contiguous."""
    return tensor.flatten().clone(memory_format=torch.contiguous_format).view(torch.uint8)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        return torch.equal(*(bytes_of(each) for each in (one, other)))
    if hasattr(one, "__dataclass_fields__"):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def packed(frames: list[Any]) -> list[bytes]:
    return [bytes(frame) for frame in frames]


@given(MESSAGES, st.integers(0, 2**63 - 1))
def test_round_trip(message: Any, number: int) -> None:
    found, came = wire.decode_request(packed(wire.encode_request(number, message)))
    assert found == number
    assert type(came) is type(message) and same(message, came)


def test_errors_of_other_kinds_are_named() -> None:
    _, found = wire.decode_reply(packed(wire.encode_error(1, ZeroDivisionError("x"))), {1: m.Pull})
    assert type(found) is GNNLabError and str(found) == "ZeroDivisionError: x"


def head(kind: str = "Pull", number: Any = 1, body: Any = None, version: int = 1) -> bytes:
    return msgspec.msgpack.encode([version, kind, number, body])


ROWS = {"name": "x", "rows": [1, "int64", [2]]}


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([], "a header of at most"),
        ([b""], "not a header"),
        ([b"GET / HTTP/1.1\r\n\r\n"], "not a header"),
        ([pickle.dumps(os.system)], "not a header"),
        ([head()[:-1]], "not a header"),
        ([head(version=9)], "the peer speaks version 9, this gnnlab 1"),
        ([head("Serve")], "there are no messages of kind 'Serve'"),
        ([head(number="1")], "not a header"),
        ([head(body={"name": "x"})], "not a Pull: Object missing required field `rows`"),
        ([head(body={"name": 3, "rows": [1, "int64", [2]]}), bytes(16)], "Expected `str`"),
        ([head(body=ROWS)], "frame 1 is not there"),
        ([head(body=ROWS), bytes(15)], "int64 of shape (2,) has 16 bytes; found 15"),
        ([head(body=ROWS), bytes(16), b""], "expected 1 frames after the header; found 2"),
        ([head(body={"name": "x", "rows": [0, "int64", [2]]}), bytes(16)], "frame 0"),
        ([head(body={"name": "x", "rows": [1, "object", [2]]}), bytes(16)], "cannot hold object"),
        ([head(body={"name": "x", "rows": [1, "int64", [-2]]}), bytes(16)], "no tensor has"),
        ([head(body={"name": "x", "rows": [1, "int64", [2**40, 2**40]]}), b""], "no tensor has"),
        ([head(body={"name": "x", "rows": [1, "int8", [2**32, 2**32, 0]]}), b""], "overflow"),
        ([head(body={"name": "x", "rows": [1, "int8", [1] * 99]}), b"1"], "no tensor has"),
        ([head(body={"name": "x", "rows": [1, "bool", [1]]}), b"\2"], "a truth value is 0 or 1"),
        ([head(body={"name": "x", "rows": [1, "int64", [2.5]]}), bytes(16)], "not a Pull"),
        ([bytes(wire.MAX_HEADER + 1)], "a header of at most 1048576 bytes"),
        ([b"x"] * (wire.MAX_FRAMES + 1), "1023 frames fit"),
    ],
)
def test_what_is_no_message(frames: list[bytes], message: str) -> None:
    with pytest.raises(wire.BadFrame) as caught:
        wire.decode_request(frames)
    assert message in str(caught.value)


def test_a_frame_stands_for_one_tensor() -> None:
    twice = {"name": "x", "rows": [1, "int64", [1]], "values": [1, "int64", [1]]}
    with pytest.raises(wire.BadFrame, match="used twice"):
        wire.decode_request([head("Push", body=twice), bytes(8)])


@pytest.mark.parametrize("rows", [torch.tensor(7).expand(1), torch.arange(4)[::4]])
def test_tensors_of_one_element_cross_with_any_stride(rows: torch.Tensor) -> None:
    _, found = wire.decode_request(packed(wire.encode_request(0, m.Pull("x", rows))))
    assert same(found.rows, rows)


def test_long_errors_are_cut() -> None:
    (frame,) = wire.encode_error(1, InvalidInput("x" * wire.MAX_HEADER))
    assert len(frame) < wire.MAX_HEADER


def test_what_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 1000)
    wire.encode_request(1, m.Pull("x", torch.arange(125)))
    with pytest.raises(InvalidInput, match="1,008 bytes"):
        wire.encode_request(1, m.Pull("x", torch.arange(126)))
    with pytest.raises(InvalidInput, match="1,048,576"):
        wire.encode_request(1, m.Pull("x" * wire.MAX_HEADER, torch.arange(1)))


# ------------------------------------------------------------------------ a live server
@pytest.fixture
def ring(tmp_path: Path) -> Path:
    g = dgl.graph((torch.arange(20), (torch.arange(20) + 1) % 20))
    g.ndata["x"] = torch.arange(20.0)
    dgl.distributed.partition_graph(g, "ring", 1, str(tmp_path), part_method="random")
    return tmp_path / "ring.json"


def test_a_reply_that_is_too_large_is_refused(ring: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME", 1000)
    job = make_job(ring, machines=1)
    with serving(job), connected(job) as trainer:
        trainer.local_part = -1  # ask the server for everything
        rows = torch.zeros(200, dtype=torch.int32)  # 800 bytes; each end of an edge is an int64
        with pytest.raises(InvalidInput, match="1,600 bytes"):
            trainer.exchange([(0, m.FindEdges(0, rows))])
