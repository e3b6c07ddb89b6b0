"""Max-min fair flow: activities that share links and processors.

An *activity* has a size and, for each resource, the share of it that a unit of the size takes: a
transfer of bytes takes links, a computation takes a processor. All activities run at once.
Resources are shared as TCP connections share a link (*max-min fairness*): all activities get the
same rate, and what an activity cannot use because another resource limits it goes to the others.
Rates change only when an activity begins or ends, so the time of the next end can be computed.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, chapter 6.5.2, "Max-Min Flow Control".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

_FULL = 1e-9  # a resource with at most this share left is used up


def fair_rates(usage: np.ndarray, caps: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return the max-min fair rates of activities: shape (A,), units per second.

    ``usage``, shape (A, R), float64, is what a unit of an activity takes of a resource; ``caps``
    are the highest rates, and ``capacity``, shape (R,), is what each resource has per second.
    """
    rates, left = np.zeros(len(usage)), capacity.astype(float)
    rising = np.ones(len(usage), bool)
    while rising.any():
        load = rising @ usage
        used = load > 0
        headroom = (left[used] / load[used]).min(initial=np.inf)
        step = min(headroom, (caps - rates)[rising].min())
        rates[rising] += step
        left[used] -= load[used] * step
        full = used & (left <= _FULL * capacity) & (capacity < np.inf)
        rising &= ~(usage[:, full] > 0).any(1) & (rates < caps)
    return rates


class FairFlow:
    """The activities of some actors, at most one of each at a time, and the clock.

    ``capacity`` is as for :func:`fair_rates`, and ``now`` the seconds since the beginning.
    """

    def __init__(self, num_actors: int, capacity: np.ndarray) -> None:
        self.now = 0.0
        self._capacity = capacity
        self._usage = np.zeros((num_actors, len(capacity)))
        self._caps, self._left = np.zeros(num_actors), np.zeros(num_actors)
        self._active = np.zeros(num_actors, bool)

    def begin(
        self, actor: int, size: float, usage: Mapping[int, float], cap: float = np.inf
    ) -> None:
        """Begin an activity of an actor, of a size above 0.

        ``usage`` is resource → how much a unit takes of it, and ``cap`` the highest rate, units per
        second, which an activity that takes nothing needs.
        """
        self._usage[actor] = 0
        for resource, share in usage.items():
            self._usage[actor, resource] = share
        self._caps[actor], self._left[actor] = cap, size
        self._active[actor] = True

    def users(self, resources: Sequence[int]) -> float:
        """Return how many activities use one of these resources, on average."""
        used = self._usage[self._active][:, list(resources)] > 0
        return float(used.sum()) / len(resources)

    def advance(self) -> list[int]:
        """Advance to the next end of an activity; return the actors whose activities end then."""
        busy = np.flatnonzero(self._active)
        if not len(busy):
            return []
        rates = fair_rates(self._usage[busy], self._caps[busy], self._capacity)
        seconds = self._left[busy] / rates
        step = seconds.min()
        self.now += float(step)
        self._left[busy] -= rates * step
        ended = busy[seconds <= step * (1 + 1e-9)]
        self._active[ended] = False
        return ended.tolist()
