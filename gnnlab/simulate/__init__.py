"""Floor 8: a cluster in one process, its traffic counted exactly and its time predicted."""

from gnnlab.simulate.network import Network
from gnnlab.simulate.result import Result
from gnnlab.simulate.simulation import Simulation, simulate
from gnnlab.simulate.stage import SimulationError

__all__ = ["Network", "Result", "Simulation", "SimulationError", "simulate"]
