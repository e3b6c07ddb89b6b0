"""What a simulated run did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gnnlab.distributed.traffic import Traffic

if TYPE_CHECKING:
    from gnnlab.simulate.simulation import Simulation
    from gnnlab.simulate.stage import Stage
    from gnnlab.simulate.transport import Cluster, Simulated

__all__ = ["Result"]


class Result:
    """What a run did."""

    def __init__(
        self,
        simulation: Simulation,
        stage: Stage,
        cluster: Cluster,
        transports: list[Simulated],
        returned: list[Any],
    ) -> None:
        self.returned = returned
        self.traffic = Traffic(simulation.num_machines)
        for each in transports:
            self.traffic.update(each.traffic)
        self.lanes = [lane for each in stage.players for lane in each.recorder.lanes.values()]
