"""Names that nobody has, and functions of notebook cells that use the package."""

import pickle
from importlib import import_module

import cloudpickle
import pytest

import gnnlab as dgl


@pytest.mark.parametrize("place", ["gnnlab", "gnnlab.nn", "gnnlab.data", "gnnlab.sampling"])
def test_a_name_that_nobody_has_is_named(place: str) -> None:
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        _ = import_module(place).nothing_of_that_name


def test_a_function_that_uses_the_package_can_be_pickled() -> None:
    """Ranks get functions of notebook cells so: cloudpickle takes their globals along."""
    spaces = [{"dgl": dgl}, {"__name__": "__main__", "dgl": dgl}]
    for space in spaces:
        exec("def make(): return dgl.graph(([0], [1])).num_edges()", space)
        assert pickle.loads(cloudpickle.dumps(space["make"]))() == 1
    assert pickle.loads(cloudpickle.dumps(dgl)) is dgl
