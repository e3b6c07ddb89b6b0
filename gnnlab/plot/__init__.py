"""On top: pictures of sampling, of partitions, and of the time and bytes that jobs take.

Each function takes plain data (a graph, blocks, events, a matrix of bytes), draws into the axes
``ax`` or into a new figure, and returns the axes; ``ax.figure.savefig("name.png")`` keeps it.
:func:`explore` puts sliders before any function that draws.

matplotlib, networkx and ipywidgets come with ``gnnlab[lab]`` and are imported when first needed.
"""

from gnnlab.plot.blocks import block
from gnnlab.plot.explorer import Explorer, explore
from gnnlab.plot.lanes import timeline
from gnnlab.plot.parts import partition_map
from gnnlab.plot.samples import graph, sampling_tree
from gnnlab.plot.scaling import speedup, time_parts
from gnnlab.plot.studies import explore_fanout, explore_time
from gnnlab.plot.traffic import byte_matrix

__all__ = [
    "Explorer",
    "block",
    "byte_matrix",
    "explore",
    "explore_fanout",
    "explore_time",
    "graph",
    "partition_map",
    "sampling_tree",
    "speedup",
    "time_parts",
    "timeline",
]
