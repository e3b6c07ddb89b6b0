"""A training script in the forms in which DGL's user guide, chapters 7.1 and 7.2, writes its calls.

Positional and keyword arguments, names of modules, what goes in as a list, an array or a tensor.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch as th

import gnnlab as dgl
from gnnlab.compat import distributed as of_dgl
from tests.distributed.cut import Cut


@pytest.mark.parametrize(
    ("args", "options"),
    [
        (("ip_config.txt", 2, 4), {}),
        ((), {"ip_config": "ip_config.txt", "net_type": "socket"}),
        (("ip_config.txt", 500 * 1024**2, "socket", 1), {}),
        (("ip_config.txt", 1, 0, 2**30, "socket", 1), {}),
        (("ip_config.txt",), {"use_graphbolt": False, "num_worker_threads": 2}),
    ],
)
def test_forms_of_joining(args, options):
    assert of_dgl.initialize(*args, **options) is None


def test_a_training_script(plain: Cut) -> None:
    """A table beside the features, the division of the work, and the loaders of three modules."""
    config, pb = plain.parts.client.source[1], plain.parts.get_partition_book()
    of_dgl.initialize("ip_config.txt")
    th.distributed.init_process_group(backend="gloo")
    g = of_dgl.DistGraph("g", pb, config)
    assert (g.number_of_nodes(), g.number_of_edges(), g.rank()) == (200, 2300, 0)
    tensor = dgl.distributed.DistTensor((g.number_of_nodes(), 10), th.float32, name="test")
    g.ndata["table"] = tensor
    g.ndata["table"][[3, 4, 5]] = (data := th.randn(3, 10))
    assert th.equal(g.ndata["table"][np.array([5, 3])], data[[2, 0]])
    g.ndata["train_mask"] = th.arange(200) % 2 == 0
    train_nid = dgl.distributed.node_split(g.ndata["train_mask"], pb, force_even=True)
    assert train_nid.tolist() == list(range(0, 200, 2))
    for loaders in (dgl.sampling, dgl.distributed, dgl.dataloading):
        dataloader = loaders.DistNodeDataLoader(
            *(g, train_nid.numpy(), dgl.sampling.MultiLayerNeighborSampler([10, 25])),
            **{"batch_size": 64, "shuffle": True, "drop_last": False, "num_workers": 0},
        )
        for input_nodes, _, blocks in dataloader:
            assert th.equal(blocks[0].srcdata["x"], g.ndata["x"][input_nodes])
    ones = th.ones(g.num_edges(), dtype=th.bool)
    edge_loader = dgl.distributed.DistEdgeDataLoader(
        g=g,
        eids=dgl.distributed.edge_split(ones, pb, force_even=True).numpy(),
        graph_sampler=dgl.dataloading.NeighborSampler([10, 25]),
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
        batch_size=1000,
        shuffle=True,
    )
    assert [len(batch) for batch in edge_loader] == [4, 4, 4]
    th.distributed.destroy_process_group()
    dgl.distributed.exit_client()
