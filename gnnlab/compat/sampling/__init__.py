"""``dgl.sampling``: the sampling functions of gnnlab, and those that only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.sampling need no entry.
_MODULES = {
    "gnnlab.compat.sampling.neighbor": "sample_etype_neighbors select_topk",
    "gnnlab.compat.sampling.node2vec": "node2vec_random_walk pack_traces",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.sampling", _MODULES)
