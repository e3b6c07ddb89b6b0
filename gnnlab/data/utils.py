"""The names that DGL keeps in ``dgl.data.utils``."""

from gnnlab.data.split import split_dataset
from gnnlab.data.tensors import load_tensors, save_tensors
from gnnlab.graph.io import load_graphs, save_graphs

__all__ = ["load_graphs", "load_tensors", "save_graphs", "save_tensors", "split_dataset"]
