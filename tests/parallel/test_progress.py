"""One bar for all ranks; output in the order of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gnnlab.parallel import progress, report, track
from gnnlab.parallel.multiplexer import OutputMultiplexer


@pytest.fixture
def messages() -> Iterator[list[dict[str, Any]]]:
    """Make this process a rank; what it tells arrives here."""
    received: list[dict[str, Any]] = []
    progress.send_to(lambda state: received.append({**state, "figures": dict(state["figures"])}))
    yield received
    progress.send_to(None)


def test_a_process_of_its_own_has_bars_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """One may be within another, and a figure goes to the innermost."""
    for _ in track(range(2), "epochs"):
        seen = []
        for item in track(range(3), "batches"):
            report(loss=0.5)
            seen.append(item)
        assert seen == [0, 1, 2]
        report(accuracy=0.75)
    shown = capsys.readouterr().err
    assert all(text in shown for text in ("epochs", "batches", "3/3", "loss=0.5", "accuracy=0.75"))
    report(loss=1.0)  # no bar, no matter


def test_items_that_do_not_come_are_not_waited_for(messages: list[dict[str, Any]]) -> None:
    for item in track(range(10)):
        if item == 2:
            break
    assert (messages[-1]["done"], messages[-1]["total"]) == (2, 2)
    assert len(list(track(iter("ab")))) == 2
    assert (messages[-1]["done"], messages[-1]["total"]) == (4, 4)
    assert list(track(iter("ab"), total=2)) == ["a", "b"]
    assert (messages[-1]["done"], messages[-1]["total"]) == (6, 6)


def test_items_within_items_are_counted_once(messages: list[dict[str, Any]]) -> None:
    for _ in track(range(2)):
        assert list(track(range(3))) == [0, 1, 2]
    assert (messages[-1]["done"], messages[-1]["total"]) == (8, 8)


class FakeRank:
    """Says what the test tells it to say."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.progress: dict[str, Any] | None = None
        self.output, self.is_all = b"", False

    def take_output(self) -> tuple[bytes, bool]:
        output, self.output = self.output, b""
        return output, self.is_all


def test_output_is_shown_in_the_order_of_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    ranks = [FakeRank(0), FakeRank(1)]
    screen = OutputMultiplexer(2)

    def shown() -> str:
        screen.update(ranks)
        return capsys.readouterr().out

    ranks[0].output, ranks[1].output = b"one\ntw", b"other\n"
    assert shown() == "rank 0 | one\n"
    ranks[0].output = "o\n가".encode()[:-1]
    assert shown() == "rank 0 | two\n"
    ranks[0].output, ranks[0].is_all = "가".encode()[-1:], True
    assert shown() == "rank 0 | 가\nrank 1 | other\n"
    ranks[1].output, ranks[1].is_all = b"10%\r50%\r100%\nlast\r\n\n\xff", True
    assert shown() == "rank 1 | 100%\nrank 1 | last\nrank 1 | \nrank 1 | \ufffd\n"
    assert shown() == ""


def test_what_is_there_at_the_end_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A process that the first rank has left behind may hold its output open."""
    screen, ranks = OutputMultiplexer(2), [FakeRank(0), FakeRank(1)]
    ranks[0].output, ranks[1].output, ranks[1].is_all = b"half", b"whole\n", True
    screen.update(ranks)
    assert capsys.readouterr().out == ""
    ranks[0].output = b" a line"
    screen.update(ranks, is_last=True)
    assert capsys.readouterr().out == "rank 0 | half a line\nrank 1 | whole\n"


def test_one_bar_shows_how_far_the_slowest_rank_is(capsys: pytest.CaptureFixture[str]) -> None:
    ranks = [FakeRank(0), FakeRank(1)]
    screen = OutputMultiplexer(2)
    screen.update(ranks)
    assert screen._bar is None
    ranks[1].progress = {"done": 1, "total": 4, "description": "epoch 0", "figures": {"loss": 2.0}}
    screen.update(ranks)
    assert (screen._bar.n, screen._bar.total) == (1, 4)
    ranks[0].progress = {"done": 3, "total": 4, "description": "epoch 0", "figures": {"loss": 1.0}}
    ranks[0].output = b"a line beside the bar\n"
    screen.update(ranks)
    assert (screen._bar.n, screen._bar.total) == (1, 4)
    ranks[1].progress = {**ranks[1].progress, "done": 4}
    ranks[0].progress = {**ranks[0].progress, "done": 4, "total": 8}  # in its second epoch
    screen.update(ranks)
    assert (screen._bar.n, screen._bar.total) == (4, 8)
    ranks[0].progress = {**ranks[0].progress, "done": 8}
    screen.update(ranks)
    assert (screen._bar.n, screen._bar.total) == (8, 8)
    screen.close()
    captured = capsys.readouterr()
    assert captured.out == "rank 0 | a line beside the bar\n"
    assert "epoch 0" in captured.err and "8/8" in captured.err and "loss=1" in captured.err
