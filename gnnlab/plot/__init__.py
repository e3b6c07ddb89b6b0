"""Figures of samples, partitions, traffic and time.

Each function takes plain data (a graph, blocks, events, a matrix of bytes), draws into the axes
``ax`` or into a new figure, and returns the axes; ``ax.figure.savefig("name.png")`` saves it.
:func:`explore` adds sliders to any plotting function.

matplotlib, networkx and ipywidgets come with ``gnnlab[lab]`` and are imported on first use.
"""

from gnnlab.plot.canvas import BLUE, GRAY, GREEN, ORANGE
from gnnlab.plot.events import timeline
from gnnlab.plot.explorer import Explorer, explore
from gnnlab.plot.fonts import language
from gnnlab.plot.parts import partition_map
from gnnlab.plot.samples import graph, sampling_tree
from gnnlab.plot.scaling import explore_time, speedup, time_parts
from gnnlab.plot.traffic import byte_matrix

__all__ = [
    "BLUE",
    "GRAY",
    "GREEN",
    "ORANGE",
    "Explorer",
    "byte_matrix",
    "explore",
    "explore_time",
    "graph",
    "language",
    "partition_map",
    "sampling_tree",
    "speedup",
    "time_parts",
    "timeline",
]
