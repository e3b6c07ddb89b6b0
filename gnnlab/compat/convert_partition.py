"""Convert the partition files of DGL or ParMETIS to a partitioned graph.

    gnnlab convert_partition --part-config dgl/mag.json --output outputs
    gnnlab convert_partition --input-dir . --graph-name mag --schema mag.json \\
        --num-parts 2 --num-node-weights 4 --output outputs

The files are described in ``gnnlab.compat.dglparts`` and ``gnnlab.compat.parmetis``.

References
----------
DGL user guide, section 7.1, "Preprocessing for Distributed Training".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from gnnlab.compat.dglparts import convert_dgl_partition
from gnnlab.compat.parmetis import convert_partition
from gnnlab.system.command import command, command_parser

_PARMETIS = ("input_dir", "graph_name", "schema", "num_parts", "num_node_weights")


@command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = command_parser("convert_partition", __doc__)
    add = parser.add_argument
    add("--output", required=True, help="folder for the partitioned graph")
    add("--graph-name", help="of ParMETIS' files; or another name than that in --part-config")
    add("--part-config", help="DGL: JSON file of a partitioned graph; no more is needed")
    add("--input-dir", help="ParMETIS: folder of p<i>-<graph name>_nodes.txt and _edges.txt")
    add("--schema", help="JSON file: the range of IDs of each type")
    add("--num-parts", type=int, help="ParMETIS: number of parts")
    add("--num-node-weights", type=int, help="ParMETIS: weights on a line of nodes")
    add("--workspace", help="accepted; no temporary files are needed")
    add("--node-attr-dtype", help="keep attributes of nodes, for example as float32 (dropped)")
    add("--edge-attr-dtype", help="keep attributes of edges, for example as float32 (dropped)")
    add("--removed-edges", help="file of the edges that ParMETIS did not take (none)")
    given = vars(parser.parse_args(argv))
    part_config, _ = given.pop("part_config"), given.pop("workspace")
    missing = [f"--{name.replace('_', '-')}" for name in _PARMETIS if given[name] is None]
    if part_config is None and missing:
        parser.error(f"give --part-config, or for ParMETIS {', '.join(missing)} as well")
    if part_config is not None:
        convert_dgl_partition(part_config, given["output"], given["graph_name"])
    else:
        convert_partition(**given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
