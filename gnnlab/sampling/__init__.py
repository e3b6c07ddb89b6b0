"""Floor 3: sampling edges around nodes, and pairs of nodes without an edge."""

from gnnlab.sampling.negative import global_uniform_negative_sampling
from gnnlab.sampling.neighbor import sample_neighbors

__all__ = ["global_uniform_negative_sampling", "sample_neighbors"]
