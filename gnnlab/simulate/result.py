"""The result of a simulated run: returned values, traffic, and predicted times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any

from gnnlab.distributed.traffic import Traffic
from gnnlab.errors import InvalidInput
from gnnlab.simulate.network import Network
from gnnlab.simulate.optrace import Track
from gnnlab.simulate.replay import FREE, Machines, replay
from gnnlab.simulate.timing import Epoch, Timing
from gnnlab.trace import Event


class SimulationResult:
    """A run of all trainers.

    Times are computed on first use, from the measured work and the counted bytes.

    Attributes
    ----------
    returned : list
        What the function returned, by rank.
    traffic : Traffic
        Bytes between machines by source, target and kind, of all trainers and samplers.
    network : Network
    machines : Machines
    lanes : list of Track
        Op traces of all trainers and samplers.
    """

    def __init__(
        self,
        network: Network,
        machines: Machines,
        lanes: list[Track],
        traffic: Traffic,
        returned: list[Any],
    ) -> None:
        self.network, self.machines, self.lanes = network, machines, lanes
        self.returned, self.traffic = returned, traffic

    @cached_property
    def timing(self) -> Timing:
        """Start and duration of everything, on the network of the simulation."""
        return replay(self.lanes, self.network, self.machines)

    @property
    def seconds(self) -> float:
        """Predicted time of the whole run."""
        return self.timing.seconds

    @property
    def epochs(self) -> list[Epoch]:
        """Each pass of a loader over its batches."""
        return self.timing.epochs

    @property
    def epoch_seconds(self) -> float:
        """Predicted time of an epoch; see :class:`~gnnlab.simulate.timing.Timing`."""
        return self.timing.epoch_seconds

    @property
    def parts(self) -> dict[str, float]:
        """A trainer's time by kind: kind of event → mean seconds of a trainer.

        Kinds are "sample", "fetch", "compute", "allreduce" and "wait" (for trainers or a batch).
        """
        return self.timing.parts

    @property
    def events(self) -> list[Event]:
        """Events from time 0, for :mod:`gnnlab.plot` and :func:`gnnlab.trace.write_chrome`."""
        return self.timing.events

    def retimed(
        self,
        network: Network | None = None,
        cores: float | None = None,
        shared_cores: float | None = None,
        slowdown: Mapping[str, float] | None = None,
    ) -> SimulationResult:
        """Return the same run on another network or other processors, without running it again.

        Parameters
        ----------
        network : Network, optional
        slowdown : dict, optional
            As for :func:`gnnlab.simulate.simulate`. Those of this run by default.
        """
        check_slowdown(slowdown or {})
        check_cores(cores=cores, shared_cores=shared_cores)
        machines = replace(
            self.machines,
            cores=cores or self.machines.cores,
            shared=shared_cores or self.machines.shared,
            slowdown=self.machines.slowdown if slowdown is None else slowdown,
        )
        return SimulationResult(
            network or self.network, machines, self.lanes, self.traffic, self.returned
        )

    @cached_property
    def savings(self) -> dict[str, float]:
        """Share of the epoch's time that would be saved if a resource cost no time.

        The largest saving is the bottleneck. Shares need not add up to 1: where two costs overlap,
        removing one alone saves little.
        """
        now = self.epoch_seconds or 1.0
        found = {}
        for name in FREE:
            without = replay(self.lanes, self.network, self.machines, (name,)).epoch_seconds
            found[name] = max(0.0, 1 - without / now)
        return found

    @property
    def limit(self) -> str:
        """The bottleneck: the name with the largest share in :attr:`savings`."""
        return max(self.savings, key=lambda name: self.savings[name])

    def _repr_html_(self) -> str:
        from gnnlab.system import cells

        values = {"machines": self.machines.count, "seconds": self.seconds}
        values |= {"epoch_seconds": self.epoch_seconds}
        parts = cells.bars({"parts": self.parts})
        return cells.page(type(self).__name__, values, parts, self.traffic._repr_html_())

    def __repr__(self) -> str:
        """Show the predicted time, its parts and the traffic."""
        parts = ", ".join(f"{kind} {seconds:.3g}" for kind, seconds in self.parts.items())
        return (
            f"SimulationResult(machines={self.machines.count}, "
            f"seconds={self.seconds:.4g} ({parts}), {self.traffic})"
        )


def check_cores(**found: float | None) -> None:
    """Raise InvalidInput unless each given number of processors is above 0."""
    for name, value in found.items():
        if value is not None and not (isinstance(value, Real) and value > 0):
            raise InvalidInput(f"{name} must be above 0; found {value!r}")


def check_slowdown(slowdown: Mapping[str, float]) -> None:
    """Raise InvalidInput unless all kinds of work are known and their factors above 0."""
    kinds = ("sample", "fetch", "compute", "serve")
    if not isinstance(slowdown, Mapping) or not all(
        kind in kinds and factor > 0 for kind, factor in slowdown.items()
    ):
        raise InvalidInput(
            f"slowdown has a factor above 0 for some of {', '.join(kinds)}; found {slowdown!r}"
        )
