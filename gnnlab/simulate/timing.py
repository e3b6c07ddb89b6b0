"""Sum up the events of a run: its duration, its epochs, and the time by kind."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gnnlab.trace import Event


@dataclass(frozen=True)
class Epoch:
    """A loader's pass over its batches, from the first rank's begin to the last rank's end.

    ``steps`` is the most mini-batches of a rank, ``parts`` kind → mean seconds of a trainer.
    """

    start: float
    seconds: float
    steps: int
    parts: dict[str, float]


@dataclass
class Timing:
    """Start and duration of everything in a run; ``seconds`` until the last trainer ends.

    ``events`` are sorted by start, from 0. ``parts`` is kind → mean seconds of a trainer's main
    thread. Waiting for a mini-batch counts as what the sampler or prefetch thread does meanwhile.
    """

    seconds: float = 0.0
    events: list[Event] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def epoch_seconds(self) -> float:
        """Mean of the epochs that have as many steps as the first; ``seconds`` without loaders."""
        alike = [e.seconds for e in self.epochs if e.steps == self.epochs[0].steps]
        return float(np.mean(alike)) if alike else self.seconds


def summarize(
    events: list[Event], passes: Mapping[int, Sequence[Sequence[float]]], num_ranks: int
) -> Timing:
    """Compute the timing of a run; ``passes`` are (start, end, steps) of loaders, by rank."""
    events = sorted(events, key=lambda event: event.start)
    seconds = max((event.start + event.seconds for event in events), default=0.0)
    trainers = _as_made(events)
    timing = Timing(seconds, events, [], _parts(trainers, num_ranks))
    for spans in itertools.zip_longest(*passes.values()):
        there = [span for span in spans if span is not None]
        start, end = min(span[0] for span in there), max(span[1] for span in there)
        inside = [each for each in trainers if start <= each.start + each.seconds / 2 < end]
        steps = int(max(span[2] for span in there))
        timing.epochs.append(Epoch(start, end - start, steps, _parts(inside, num_ranks)))
    return timing


def _parts(events: Sequence[Event], num_ranks: int) -> dict[str, float]:
    found: dict[str, float] = defaultdict(float)
    for event in events:
        found[event.kind] += event.seconds / num_ranks
    return dict(found)


def _as_made(events: Sequence[Event]) -> list[Event]:
    """Return the events of main threads; waits for a batch become what its maker does meanwhile."""
    made: dict[tuple[int, object], list[Event]] = defaultdict(list)
    for event in events:
        made[event.rank, event.info.get("lane")].append(event)
    found: list[Event] = []
    for event in events:
        if "lane" in event.info:
            continue
        if event.info.get("place") != "batch":
            found.append(event)
            continue
        maker = made[event.rank, event.info["maker"]]
        at, end = event.start, event.start + event.seconds
        first = bisect_right(maker, at, key=lambda e: e.start + e.seconds)
        for other in itertools.islice(maker, first, None):
            if other.start >= end:
                break
            start, stop = max(at, other.start), min(end, other.start + other.seconds)
            if start > at:
                found.append(replace(event, start=at, seconds=start - at))
            found.append(replace(other, start=start, seconds=stop - start))
            at = stop
        if end > at:
            found.append(replace(event, start=at, seconds=end - at))
    return found
