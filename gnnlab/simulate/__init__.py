"""A simulated cluster in one process; traffic is counted exactly, time is predicted."""

from gnnlab.simulate.network import Network
from gnnlab.simulate.result import SimulationResult
from gnnlab.simulate.scheduler import SimulationError
from gnnlab.simulate.simulation import Simulation, simulate

__all__ = ["Network", "Simulation", "SimulationError", "SimulationResult", "simulate"]
