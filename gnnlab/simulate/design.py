"""Other designs of a cluster, whose traffic a simulation counts without changing the script.

- The structure of the graph is on every machine, so sampling sends nothing (FastSample).
- Features are split by column over machines instead of by node (P3). The machines compute partial
  activations of the first layer from their columns for the batch of every trainer, so activations
  and their gradients travel instead of features.
- A trainer makes several mini-batches at a time, and fetches a row that some of them share once
  (BatchGNN).

Trainers compute as before: results are those of the ordinary design.

References
----------
"FastSample", arXiv 2311.17847, 2023. Gandhi and Iyer, "P3: Distributed Deep Graph Learning at
Scale", OSDI 2021. "BatchGNN", arXiv 2306.13814, 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gnnlab.dataloading.features import graphs_in
from gnnlab.distributed import messages as m


@dataclass(frozen=True)
class Design:
    """What is where.

    Attributes
    ----------
    replicates_structure : bool
        Every machine has the structure of the whole graph.
    first_layer : int
        Width of the activations of a first layer split by features, in float32; 0 for the ordinary
        design. The layer must be linear in the features before it aggregates, as in GraphSAGE.
    macro_batches : int
        Mini-batches of an epoch whose features are fetched together. Rows are exact; requests are
        those of single mini-batches, without the rows that an earlier one of the group has fetched.
    """

    replicates_structure: bool = False
    first_layer: int = 0
    macro_batches: int = 1

    def is_local(self, message: Any, kind: str) -> bool:
        """Whether a message needs no network in this design."""
        if kind == "structure":
            return self.replicates_structure
        return bool(self.first_layer) and isinstance(message, m.Pull) and kind == "features"

    def first_layer_bytes(self, batch: Any) -> list[tuple[str, int, int]] | None:
        """Return kind, bytes of request and of reply to each other machine; None without a split.

        The first request carries the edges of the first block and brings partial activations of its
        destinations; the second returns their gradients. Headers are not counted.
        """
        block = next((each for each in graphs_in(batch) if each.is_block), None)
        if not self.first_layer or block is None:
            return None
        sources, targets, edges = (
            sum(sizes)
            for sizes in (
                map(block.num_src_nodes, block.srctypes),
                map(block.num_dst_nodes, block.dsttypes),
                map(block.num_edges, block.canonical_etypes),
            )
        )
        structure = 4 * sources + 4 * edges + 8 * (targets + len(block.canonical_etypes))
        rows = 4 * self.first_layer * targets
        return [("features", structure, rows), ("gradients", rows, 0)]
