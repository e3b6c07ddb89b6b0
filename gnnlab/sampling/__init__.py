"""Floor 3: sampling edges around nodes."""

from gnnlab.sampling.neighbor import sample_neighbors

__all__ = ["sample_neighbors"]
