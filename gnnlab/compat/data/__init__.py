"""``dgl.data``: the data sets of gnnlab, and the base classes and data sets that only DGL has."""

from gnnlab.compat import lazy

# Module → names. Those of gnnlab.data need no entry.
_MODULES = {
    "gnnlab.compat.data.csv_dataset": "CSVDataset",
    "gnnlab.compat.data.dgl_dataset": "DGLBuiltinDataset DGLDataset",
    "gnnlab.compat.data.utils": """
        Subset add_node_property_split add_nodepred_split check_sha1 download extract_archive
        get_download_dir load_info makedirs mask_nodes_by_property save_info
    """,
}

__getattr__, __dir__ = lazy.attributes(__name__, "gnnlab.data", _MODULES)
