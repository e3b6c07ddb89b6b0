"""Things under way that share what they need: links, and processors.

An *activity* has a size and, for each resource, how much of it a unit of the size takes: a transfer
of bytes takes links, a computation takes a processor. All activities run at once. Resources are
shared as TCP connections share a link: everybody gets the same rate, and what one cannot use, since
it waits for a narrower resource, goes to the others (*max-min fairness*). Between two events rates
are constant, so the time of the next one can be computed.

References
----------
Bertsekas and Gallager, "Data Networks", 2nd edition, 1992, chapter 6.5.2, "Max-Min Flow Control".
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["Fluid", "fair_rates"]

_FULL = 1e-9  # a resource with this share left is used up


def fair_rates(usage: np.ndarray, caps: np.ndarray, capacity: np.ndarray) -> np.ndarray:
    """Return the max-min fair rates of activities.

    Parameters
    ----------
    usage : ndarray
        Shape (A, R), float64: what a unit of activity a takes of resource r.
    caps : ndarray
        Shape (A,): highest rate of each activity.
    capacity : ndarray
        Shape (R,): how much of each resource there is per second.

    Returns
    -------
    ndarray
        Shape (A,), units per second.

    Examples
    --------
    Two activities share resource 0; the second one also needs resource 1, which is narrow.

    >>> import numpy as np
    >>> from gnnlab.simulate.fluid import fair_rates
    >>> usage, caps = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([np.inf, np.inf])
    >>> fair_rates(usage, caps, np.array([10.0, 2.0]))
    array([8., 2.])
    """
    rates, left = np.zeros(len(usage)), capacity.astype(float)
    rising = np.ones(len(usage), bool)
    while rising.any():
        load = rising @ usage
        used = load > 0
        room = (left[used] / load[used]).min(initial=np.inf)
        step = min(room, (caps - rates)[rising].min())
        rates[rising] += step
        left[used] -= load[used] * step
        full = used & (left <= _FULL * capacity) & (capacity < np.inf)
        rising &= ~(usage[:, full] > 0).any(1) & (rates < caps)
    return rates


class Fluid:
    """Activities of some actors, one each at a time.

    Parameters
    ----------
    num_actors : int
    capacity : ndarray
        Shape (R,): how much of each resource there is per second.

    Attributes
    ----------
    now : float
        Seconds since the beginning.

    Examples
    --------
    >>> import numpy as np
    >>> from gnnlab.simulate.fluid import Fluid
    >>> fluid = Fluid(2, np.array([10.0]))
    >>> fluid.begin(0, 100.0, {0: 1.0})
    >>> fluid.begin(1, 20.0, {0: 1.0})
    >>> fluid.advance(), fluid.now
    ([1], 4.0)
    >>> fluid.advance(), fluid.now
    ([0], 12.0)
    """

    def __init__(self, num_actors: int, capacity: np.ndarray) -> None:
        self.now = 0.0
        self._capacity = capacity
        self._usage = np.zeros((num_actors, len(capacity)))
        self._caps, self._size, self._left = (np.zeros(num_actors) for _ in range(3))
        self._active = np.zeros(num_actors, bool)

    def begin(
        self, actor: int, size: float, usage: Mapping[int, float], cap: float = np.inf
    ) -> None:
        """Let an actor begin an activity.

        Parameters
        ----------
        actor : int
        size : float
            Above 0.
        usage : dict
            Resource → how much a unit takes of it. An activity that takes nothing needs a cap.
        cap : float
            Highest rate, units per second.
        """
        self._usage[actor] = 0
        for resource, share in usage.items():
            self._usage[actor, resource] = share
        self._caps[actor], self._active[actor] = cap, True
        self._size[actor] = self._left[actor] = size

    def advance(self) -> list[int]:
        """Go on to the next end of an activity; return the actors whose activities end then."""
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
