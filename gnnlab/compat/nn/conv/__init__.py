"""``dgl.nn.pytorch.conv`` and its files: the names of ``dgl.nn``, and others that they have."""

from gnnlab.compat import lazy

_MODULES = {
    "gnnlab.compat": "DGLBlock block_to_graph broadcast_nodes dgl_warning reverse",
    "gnnlab.compat.nn.conv.molecules": "ShiftedSoftplus",
    "gnnlab.compat.utils": "check_eq_shape expand_as_pair",
    "gnnlab.errors": "DGLError",
    "torch.nn": "Identity",
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.compat.nn", _MODULES)
