"""Bytes that other versions of gnnlab understand: messages of VERSION 1, and a partition on disk.

``golden_frames.json`` holds the frames, in hexadecimal, of one example of each message and of its
reply. A change of these bytes needs another ``wire.VERSION``; ``python -m
tests.distributed.test_golden`` then writes the file again, and the difference shows what changed.
``golden_partition.zip`` was written by ``partition_graph`` of the first format.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import messages as m
from gnnlab.distributed import wire
from gnnlab.distributed.protocol import EXCHANGES
from gnnlab.errors import GNNLabError, InvalidInput, NotFound, OutOfRange, PartitionError
from tests.distributed.test_wire import same

FRAMES = Path(__file__).with_name("golden_frames.json")
PARTITION = Path(__file__).with_name("golden_partition.zip")
NUMBER = wire.FIRST_NUMBER + 5
ROWS = torch.tensor([4, 0, 4])
SMALL = ROWS.int()
PROBS = torch.tensor([0.5]).double()
NAME = "node~_N~feat"
STATE = "node~_N~anonymous-0"

# One message of each class, every field other than its default, and a reply to it.
EXAMPLES: list[tuple[Any, Any]] = [
    (m.Describe(), {NAME: m.Description((2, 3), "float32", True)}),
    (m.Create(NAME, (1,), "bool", False, torch.tensor([[True], [False]])), True),
    (m.Delete(NAME), False),
    (m.Pull(NAME, ROWS), torch.tensor([[0.5], [-1.0], [0.5]], dtype=torch.float16)),
    (m.Push(NAME, SMALL, torch.tensor([1, 2, 3], dtype=torch.bfloat16)), None),
    (
        m.Update(
            *(NAME, ROWS, torch.ones(3, 1), "adagrad", {"lr": 0.1, "eps": 1e-10}, (STATE,)),
            *(1, 2, 3),
        ),
        None,
    ),
    (
        m.Sample({"user": ROWS}, (2, -1), 2**64 - 1, True, (None, "edge~a:b:c~w"), {1: SMALL}),
        (
            (torch.tensor([0, 1, 1, 1]), SMALL[:1], SMALL[:1]),
            (torch.tensor([0, 0, 0, 0]), ROWS[:0], ROWS[:0]),
        ),
    ),
    (
        m.SampleUntil(
            *({"user": ROWS}, (2,), 7, False, (), {}), {"user": ROWS}, ("edge~a:b:c~t",), True
        ),
        ((torch.tensor([0, 1, 1, 1]), SMALL[:1], SMALL[:1]),),
    ),
    (m.FindEdges(2, ROWS), (ROWS, ROWS + 1)),
    (m.Reverse(0, ROWS, 1), ROWS[:2]),
    (m.OutEdges(1, ROWS), (torch.tensor([0, 1, 1, 2]), SMALL[:2])),
    (m.Degrees(1, SMALL, False), ROWS),
    (m.Inclusion(1, ROWS, torch.tensor([0.0, 0.5, 1.0]).double(), 5, True), (ROWS[:1], -PROBS)),
    (m.CountNonzero(NAME), 12),
    (m.Hello(), m.Welcome("job", 3, "products", "0" * 64)),
    (m.Meet("barrier (meeting 1)", 1, 2, "weiß"), ("", "weiß")),
    (m.Share(NAME), None),
    (m.Freeze(NAME), True),
    (m.Release(NAME, 1, 2), None),
    (m.Bye(1, 2), None),
    (m.Statistics(), {"Pull": m.MessageStats(1, 2, 3, 0.5)}),
]

ERRORS = [
    (NotFound, "9401a84e6f74466f756e6407a26e6f"),
    (OutOfRange, "9401aa4f75744f6652616e676507a26e6f"),
    (PartitionError, "9401ae506172746974696f6e4572726f7207a26e6f"),
    (InvalidInput, "9401ac496e76616c6964496e70757407a26e6f"),
    (GNNLabError, "9401ab474e4e4c61624572726f7207a26e6f"),
]


def texts(frames: list[Any]) -> list[str]:
    return [bytes(frame).hex() for frame in frames]


def encoded() -> dict[str, dict[str, list[str]]]:
    """Name of each class → the frames of its example and of the reply."""
    return {
        type(message).__name__: {
            "request": texts(wire.encode_request(NUMBER, message)),
            "reply": texts(wire.encode_reply(NUMBER, reply)),
        }
        for message, reply in EXAMPLES
    }


def frames_of(name: str, what: str) -> list[bytes]:
    return [bytes.fromhex(text) for text in json.loads(FRAMES.read_text())[name][what]]


def test_every_message_has_an_example() -> None:
    assert {type(message).__name__ for message, _ in EXAMPLES} == {
        kind.__name__ for kind in EXCHANGES
    }
    assert set(json.loads(FRAMES.read_text())) == {kind.__name__ for kind in EXCHANGES}


@pytest.mark.parametrize(("message", "reply"), EXAMPLES, ids=lambda value: type(value).__name__)
def test_bytes(message: Any, reply: Any) -> None:
    kind = type(message)
    request, answer = (frames_of(kind.__name__, what) for what in ("request", "reply"))
    assert [bytes(frame) for frame in wire.encode_request(NUMBER, message)] == request
    assert [bytes(frame) for frame in wire.encode_reply(NUMBER, reply)] == answer
    number, found = wire.decode_request(request)
    assert number == NUMBER and type(found) is kind and same(found, message)
    number, came = wire.decode_reply(answer, {NUMBER: kind})
    assert number == NUMBER and type(came) is type(reply) and same(came, reply)


@pytest.mark.parametrize(("kind", "frame"), ERRORS)
def test_bytes_of_errors(kind: type[Exception], frame: str) -> None:
    assert texts(wire.encode_error(7, kind("no"))) == [frame]
    number, found = wire.decode_reply([bytes.fromhex(frame)], {7: m.Pull})
    assert number == 7 and type(found) is kind and str(found) == "no"


def test_every_error_has_an_example() -> None:
    assert [kind for kind, _ in ERRORS] == wire._ERRORS


def test_an_old_partition_opens(tmp_path: Path) -> None:
    """Two types of nodes and of edges, in two parts: a ring of users, who each like an item."""
    with zipfile.ZipFile(PARTITION) as archive:
        archive.extractall(tmp_path)
    dgl.distributed.initialize()
    g = dgl.distributed.DistGraph("ring", part_config=tmp_path / "ring.json")
    follows, likes = ("user", "follows", "user"), ("user", "likes", "item")
    assert g.canonical_etypes == [follows, likes] and g.num_nodes("user") == 4
    names = g.nodes["user"].data["name"][:]
    assert sorted(names.tolist()) == [10.0, 11.0, 12.0, 13.0]
    src, dst = g.find_edges(range(4), follows)
    assert ((names[src] - 10 + 1) % 4).tolist() == (names[dst] - 10).tolist()
    weights = g.edges[likes].data["w"][:]
    src, dst = g.find_edges(range(4), likes)
    assert weights.tolist() == (names[src] - 10).tolist()
    titles = g.nodes["item"].data["title"][:]
    assert titles[dst].flatten().tolist() == [100 + int(w) // 2 for w in weights]
    assert g.sample_neighbors({"item": [0, 1]}, -1).num_edges(likes) == 4
    assert len({g.get_partition_book().nid2partid([i], "user").item() for i in range(4)}) == 2
    dgl.distributed.exit_client()


if __name__ == "__main__":
    FRAMES.write_text(json.dumps(encoded(), indent=1) + "\n")
