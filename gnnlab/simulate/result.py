"""What a simulated run did, moved and took."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

from gnnlab.distributed.traffic import Traffic
from gnnlab.errors import InvalidInput
from gnnlab.simulate.network import Network
from gnnlab.simulate.replay import FREE, Machines, replay
from gnnlab.simulate.tape import Lane
from gnnlab.simulate.timing import Epoch, Timing
from gnnlab.trace import Event

__all__ = ["Result"]


class Result:
    """A run of all trainers.

    Times are computed when they are first asked for, from what was measured and counted.

    Attributes
    ----------
    returned : list
        What the function returned, by rank.
    traffic : Traffic
        What all trainers and samplers asked for: who whom, how much, to the byte.
    network : Network
    machines : Machines
    lanes : list of Lane
        What each trainer and sampler did.
    """

    def __init__(
        self,
        network: Network,
        machines: Machines,
        lanes: list[Lane],
        traffic: Traffic,
        returned: list[Any],
    ) -> None:
        self.network, self.machines, self.lanes = network, machines, lanes
        self.returned, self.traffic = returned, traffic

    @cached_property
    def timing(self) -> Timing:
        """When everything happened on the network of the simulation."""
        return replay(self.lanes, self.network, self.machines)

    @property
    def seconds(self) -> float:
        """Predicted time of the whole run."""
        return self.timing.seconds

    @property
    def epochs(self) -> list[Epoch]:
        """Each way of a loader through its batches."""
        return self.timing.epochs

    @property
    def epoch_seconds(self) -> float:
        """Predicted time of an epoch; see :class:`~gnnlab.simulate.replay.Timing`."""
        return self.timing.epoch_seconds

    @property
    def parts(self) -> dict[str, float]:
        """Where a trainer's time goes: kind of event → mean seconds of a trainer.

        "sample", "fetch", "compute", "allreduce" and "wait", for others or for a mini-batch.
        """
        return self.timing.parts

    @property
    def events(self) -> list[Event]:
        """Events in time, from 0, for :mod:`gnnlab.plot` and :func:`gnnlab.trace.write_chrome`."""
        return self.timing.events

    def retimed(
        self,
        network: Network | None = None,
        cores: float | None = None,
        shared_cores: float | None = None,
    ) -> Result:
        """Return the same run on another network, or with other processors; nothing runs again.

        Parameters
        ----------
        network : Network, optional
        cores, shared_cores : float, optional
            As for :func:`gnnlab.simulate.simulate`; as they are by default.
        """
        check_cores(cores=cores, shared_cores=shared_cores)
        machines = replace(
            self.machines,
            cores=cores or self.machines.cores,
            shared=shared_cores or self.machines.shared,
        )
        return Result(network or self.network, machines, self.lanes, self.traffic, self.returned)

    @cached_property
    def savings(self) -> dict[str, float]:
        """Share of the epoch's time that would be saved if something took none.

        What limits saves most. Shares need not add up to 1: where two things overlap, neither saves
        much alone.
        """
        now = self.epoch_seconds or 1.0
        found = {}
        for name in FREE:
            without = replay(self.lanes, self.network, self.machines, (name,)).epoch_seconds
            found[name] = max(0.0, 1 - without / now)
        return found

    @property
    def limit(self) -> str:
        """What limits: the name in :attr:`savings` that saves most."""
        return max(self.savings, key=lambda name: self.savings[name])

    def __repr__(self) -> str:
        """Say how long it took, and where the time went."""
        parts = ", ".join(f"{kind} {seconds:.3g}" for kind, seconds in self.parts.items())
        return (
            f"Result(machines={self.machines.count}, seconds={self.seconds:.4g} ({parts}), "
            f"{self.traffic})"
        )


def check_cores(**found: float | None) -> None:
    """Refuse numbers of processors that cannot be."""
    for name, value in found.items():
        if value is not None and not value > 0:
            raise InvalidInput(f"{name} must be above 0; found {value!r}")
