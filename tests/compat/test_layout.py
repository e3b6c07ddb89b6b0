"""``import dgl`` gives gnnlab, by all module paths that programs written for DGL use."""

from tests.helpers import run_script

NAMED = """
    function data nn nn.pytorch dataloading data.utils nn.pytorch.conv distributed utils sampling
    nn.functional base ops multiprocessing transforms random nn.conv _ffi.base
    nn.pytorch.conv.gatv2conv nn.pytorch.glob nn.pytorch.hetero nn.pytorch.softmax
    nn.pytorch.factory
    data.ppi data.rdf data.gnn_benchmark
    backend udf frame init heterograph convert batch readout subgraph traversal propagate
"""


def run(source: str, *arguments: str) -> list[str]:
    """Lines that a new process prints: the finder stays out of this one."""
    return run_script(source, args=arguments).splitlines()


def test_the_library_neither_loads_the_ring_nor_is_changed_by_it() -> None:
    """Each member of a class is the same object before and after the ring is imported."""
    printed = run(
        """
        import gnnlab, importlib, pkgutil, sys

        def load(*tops):
            for top in tops:
                path = getattr(importlib.import_module(top), "__path__", [])
                for module in pkgutil.walk_packages(path, top + "."):
                    if "triton" not in module.name:
                        importlib.import_module(module.name)

        def members():
            modules = [m for name, m in [*sys.modules.items()] if name.startswith("gnnlab")]
            kinds = {k for m in modules for k in vars(m).values() if isinstance(k, type)}
            return {k: dict(vars(k)) for k in kinds if k.__module__.startswith("gnnlab.")}

        gnnlab.graph(([0], [1])).update_all
        names = [each.name for each in pkgutil.iter_modules(gnnlab.__path__, "gnnlab.")]
        load(*(n for n in names if not n.endswith(("__main__", "as_dgl", "compat", "pyg"))))
        print([name for name in sys.modules if name.startswith(("gnnlab.compat", "dgl"))])
        before = members()
        load("gnnlab.compat")
        import dgl
        dgl.DGLGraph([(0, 1)]).filter_nodes(lambda nodes: nodes.nodes() > 0)
        after = members()
        print(len(before) > 200 and gnnlab.Graph in before and dgl.DGLGraph not in before)
        for kind, names in before.items():
            now = after[kind]
            changed = [name for name in {**names, **now} if names.get(name) is not now.get(name)]
            assert not changed, (kind, changed)
        """
    )
    assert printed == ["[]", "True"]


def test_attributes_are_what_import_gives() -> None:
    """For each alias of a module: from outside in, before and after it is imported.

    Each of ``NAMED`` is a module of gnnlab. Packages list their names, and are pickled by name.
    """
    printed = run(
        """
        import importlib, pickle, sys, types
        import cloudpickle
        from gnnlab.compat import as_dgl, lazy
        import dgl
        def by_attributes(path):
            value = dgl
            for part in path.split("."):
                value = getattr(value, part)
            return value
        functions = []
        for path in lazy.PATHS:
            before = by_attributes(path)
            module = importlib.import_module(f"dgl.{path}")
            after = by_attributes(path)
            assert before is after, path
            if not isinstance(after, types.ModuleType):
                functions.append(path)
                continue
            assert after is module, path
            for name in dir(module):
                space = {}
                exec(f"from dgl.{path} import {name} as found", space)
                assert space["found"] is getattr(after, name), (path, name)
        print(*sorted(functions))
        from dgl.nn.pytorch.conv.cfconv import CFConv, ShiftedSoftplus
        print(ShiftedSoftplus is dgl.nn.pytorch.conv.cfconv.ShiftedSoftplus)
        for path in sys.argv[1:]:
            module = importlib.import_module(f"dgl.{path}")
            assert module is sys.modules[module.__spec__.name], path
            assert module.__name__ == module.__spec__.name, path
            assert module.__name__.startswith("gnnlab."), path
        for name in ("gnnlab.compat", "gnnlab.compat.nn", "gnnlab.compat.data"):
            module = importlib.import_module(name)
            missing = [name for name in dir(module) if not hasattr(module, name)]
            same = pickle.loads(cloudpickle.dumps(module)) is module
            print(missing, len(dir(module)) > 10, same)
        """,
        *NAMED.split(),
    )
    assert printed == ["batch heterograph merge", "True", *["[] True True"] * 3]


def test_one_module_has_both_names_and_what_is_missing_raises_as_python_does() -> None:
    printed = run(
        """
        import importlib.metadata, importlib.util
        import gnnlab
        import gnnlab.compat.as_dgl
        import dgl, dgl.function as fn, dgl.nn.pytorch as dglnn
        from dgl.nn.pytorch.conv import GATConv
        from dgl.nn import *
        from dgl import DGLGraph, DGLError
        from dgl.base import DGLError as another
        print(dgl is gnnlab.compat, fn is gnnlab.function, dglnn is dgl.nn)
        print(GATConv is gnnlab.nn.GATConv, SAGEConv is GATConv, SAGEConv is gnnlab.nn.SAGEConv)
        print(issubclass(gnnlab.Graph, DGLGraph), another is DGLError, dgl.seed is gnnlab.seed)
        import dgl.heterograph, dgl.batch
        from dgl.heterograph import DGLBlock, DGLHeteroGraph
        print(callable(dgl.heterograph), dgl.batch is gnnlab.batch, DGLBlock is gnnlab.Block)
        print(gnnlab.function.__name__, dgl.__name__, dgl.nn.conv.GATConv is GATConv)
        print(importlib.metadata.version("dgl") == dgl.__version__)
        print(importlib.util.find_spec("dgl.cuda"))
        for line in ("import dgl.cuda", "from dgl import nothing", "import dgl.graph",
                     "from dgl.nn import NoConv", "from dgl.sampling import nothing"):
            try:
                exec(line)
            except ImportError as error:
                print(type(error).__name__, str(error).partition(" (")[0])
        """
    )
    assert printed == [
        "True True True",
        "True False True",
        "True True True",
        "True True True",
        "gnnlab.function gnnlab.compat True",
        "True",
        "None",
        "ModuleNotFoundError No module named 'dgl.cuda'",
        "ImportError cannot import name 'nothing' from 'gnnlab.compat'",
        "ModuleNotFoundError No module named 'dgl.graph'",
        "ImportError cannot import name 'NoConv' from 'gnnlab.compat.nn'",
        "ImportError cannot import name 'nothing' from 'gnnlab.compat.sampling'",
    ]


def test_another_dgl_that_is_loaded_already_is_an_error() -> None:
    printed = run(
        """
        import sys, types
        sys.modules["dgl"] = types.ModuleType("dgl")
        sys.modules["dgl"].__file__ = "/usr/lib/dgl/__init__.py"
        try:
            import gnnlab.compat.as_dgl
        except ImportError as error:
            print(error)
        """
    )
    assert "/usr/lib/dgl/__init__.py" in printed[0]
