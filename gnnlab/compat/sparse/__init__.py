"""``dgl.sparse``: sparse matrices with operators and gradients.

    import gnnlab.compat.sparse as dglsp

References
----------
DGL documentation, "dgl.sparse", and its notebooks on it.
"""

from gnnlab.compat import lazy

_MODULES = {
    "gnnlab.compat.sparse.elementwise": "add div inv is_scalar mul neg power sp_add sp_add_v "
    "sp_broadcast_v sp_div sp_div_v sp_mul sp_mul_v sp_power sp_sub sp_sub_v spsp_add spsp_div "
    "spsp_mul sub",
    "gnnlab.compat.sparse.products": "bsddmm bspmm matmul sddmm spmm spspmm",
    "gnnlab.compat.sparse.matrix": "SparseMatrix diag from_coo from_csc from_csr from_torch_sparse "
    "identity spmatrix to_torch_sparse_coo to_torch_sparse_csc to_torch_sparse_csr val_like",
    "gnnlab.compat.sparse.reduction": "reduce smax smean smin softmax sprod sum",
}
__getattr__, __dir__ = lazy.attributes(__name__, "", _MODULES)
