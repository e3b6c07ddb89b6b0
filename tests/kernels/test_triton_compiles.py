"""The kernels for GPUs become machine code, which does not run: Triton checks all types."""

import importlib.util
from pathlib import Path

import pytest

from tests.helpers import NO_TRITON, run_script

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason=NO_TRITON)


def test_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    run_script(
        """
from triton import compile
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from gnnlab.kernels import sample_triton, segment_triton

CONSTANTS = {
    "REPLACE": False, "EDGE_BLOCK": 1024, "FANOUT": 5, "WIDTH": 8,
    "UNIT": 4, "EDGES": 16, "BLOCK": 128, "MEAN": True, "SMALLEST": True,
}
SIZES = {"num_seeds", "num_nodes", "fanout", "layer", "units", "heads", "nowhere", "count"}
NARROW = {"indices", "slots", "sources", "local", "order", "src", "dst"}
WIDE = {"indptr", "others", "winner"}

def build(kernel, value, of_rows, **given):
    names = [parameter.name for parameter in kernel.params]
    given |= {name: constant for name, constant in CONSTANTS.items() if name in names}
    known = {
        **dict.fromkeys(SIZES, "i32"), **dict.fromkeys(NARROW, "*i32"),
        **dict.fromkeys(WIDE, "*i64"), "rows": of_rows, **dict.fromkeys(given, "constexpr"),
    }
    source = ASTSource(
        fn=kernel,
        signature={name: known.get(name, value) for name in names},
        constexprs={(names.index(name),): constant for name, constant in given.items()},
    )
    assert "ptx" in compile(source, target=GPUTarget("cuda", 90, 32)).asm

for name in ("_enter", "_pick", "_count_new", "_number", "_finish"):
    build(getattr(sample_triton, name), "*i64", "i32")
build(segment_triton._sum, "*fp32", "*i32")
build(segment_triton._sum, "*bf16", None, rows=None, order=None, others=None)
build(segment_triton._extreme, "*fp64", "*i32")
build(segment_triton._extreme, "*fp16", None, rows=None)
build(segment_triton._dot, "*bf16", None)
""",
        env={"TRITON_CACHE_DIR": str(tmp_path)},
        fresh=True,
    )
