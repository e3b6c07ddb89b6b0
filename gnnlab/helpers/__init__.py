"""The small library: helpers of one file each that need torch alone, to be read and to be copied.

They are the reference of the fast library, which gives the same blocks and the same shares.
"""

from gnnlab.helpers.block_sampler import BlockSampler
from gnnlab.helpers.ddp_loader import DDPLoader
from gnnlab.helpers.dist_graph_simulator import DistGraphSimulator

__all__ = ["BlockSampler", "DDPLoader", "DistGraphSimulator"]
