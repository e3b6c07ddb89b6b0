"""Turn what ParMETIS wrote into a partitioned graph.

    gnnlab convert_partition --input-dir . --graph-name mag --schema mag.json \\
        --num-parts 2 --num-node-weights 4 --output outputs

The files are described in ``gnnlab.partition.parmetis``.

References
----------
DGL user guide, section 7.1, "Preprocessing for Distributed Training".
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial

from gnnlab.errors import GNNLabError
from gnnlab.partition.parmetis import convert_partition

__all__ = ["main"]


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    summary, example = (__doc__ or "").split("\n\n")[:2]
    parser = argparse.ArgumentParser(
        "gnnlab convert_partition",
        description=summary,
        epilog=f"example:\n{example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    required = partial(parser.add_argument, required=True)
    required("--input-dir", help="folder of p<i>-<graph name>_nodes.txt and _edges.txt")
    required("--graph-name")
    required("--schema", help="JSON file: the range of IDs of each type")
    required("--num-parts", type=int)
    required("--num-node-weights", type=int, help="how many weights stand on a line of nodes")
    required("--output", help="folder for the partitioned graph")
    parser.add_argument("--workspace", help="accepted; no temporary files are needed")
    parser.add_argument("--node-attr-dtype", help="keep attributes of nodes, for example float32")
    parser.add_argument("--edge-attr-dtype", help="keep attributes of edges likewise")
    parser.add_argument("--removed-edges", help="file of the edges that ParMETIS did not take")
    try:
        convert_partition(**vars(parser.parse_args(words)))
    except GNNLabError as error:
        print(f"gnnlab convert_partition: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
