"""Values that travel to processes: what is copied, what is mapped, what stays shared."""

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.parallel.payload import pack, unpack


def test_large_tensors_are_mapped_and_private() -> None:
    x = torch.arange(50_000)
    with pack(x) as payload:
        assert payload.start >= x.nbytes > 10 * (payload.size - payload.start)
        first, second = unpack(payload), unpack(payload)
    first[0] = -1  # the memory outlives its descriptor
    assert x[0] == 0 and second[0] == 0 and torch.equal(first[1:], x[1:])


def test_views_keep_their_storage_and_objects_their_identity() -> None:
    base = torch.zeros(100, 1000)
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.Adam(model.parameters())
    with pack((base, base[3:5], base.view(torch.int32), model, optimizer)) as payload:
        again, rows, bits, linear, adam = unpack(payload)
    again[3, 0] = 1.0
    assert rows[0, 0] == 1.0 and bits[3, 0] == torch.tensor(1.0).view(torch.int32)
    assert payload.start < 1.1 * (base.nbytes + linear.weight.nbytes)
    assert adam.param_groups[0]["params"][0] is linear.weight
    assert isinstance(linear.weight, torch.nn.Parameter) and linear.weight.requires_grad


def test_arrays_that_begin_at_one_place() -> None:
    x = np.arange(100_000.0)
    with pack([torch.from_numpy(x[:20_000]), torch.from_numpy(x)]) as payload:
        few, all_ = unpack(payload)
    assert np.array_equal(few, x[:20_000]) and np.array_equal(all_, x)


@pytest.mark.parametrize("dtype", ["int32", "bool", "float16", "bfloat16", "complex64", "uint8"])
def test_small_tensors(dtype: str) -> None:
    """They arrive as they are, views too, with memory of their own that can be written to."""
    base = torch.arange(24).reshape(4, 6).to(getattr(torch, dtype))
    sent = [base, base.T[1:3], base[:0], torch.empty(0), torch.tensor(7, dtype=base.dtype)]
    with pack(sent) as payload:
        found = unpack(payload)
    for one, other in zip(sent, found, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape and one.equal(other)
    found[0][0] = 1
    assert found[0][0].equal(torch.ones(6, dtype=base.dtype)) and base[0, 0] == 0


def test_what_is_shared_stays_shared() -> None:
    x, graph = torch.zeros(3).share_memory_(), dgl.rand_graph(30_000, 100_000)
    graph.ndata["x"] = torch.ones(30_000, 4)
    graph = graph.share_memory()
    with pack((x, graph)) as payload:
        assert payload.start == 0 and len(payload.descriptors) > 3
        again, same = unpack(payload)
    again += 1
    same.ndata["x"][5] = 2.0
    assert x.tolist() == [1, 1, 1] and graph.ndata["x"][5, 0] == 2
    assert torch.equal(same.edges()[0], graph.edges()[0])


def test_sharing_a_graph_leaves_arrays_of_others_alone() -> None:
    graph = dgl.rand_graph(3000, 10_000)
    graph.ndata["x"] = torch.ones(3000, 4)
    array, same = graph.ndata["x"].numpy(), graph.local_var()
    assert graph.share_memory() is graph
    assert all(t.is_shared() for t in [graph.ndata["x"], *graph.relation().coo()])
    graph.ndata["x"] += 1
    junk = [torch.full((3000, 4), 9.0) for _ in range(4)]  # would take memory set free
    assert array.min() == array.max() == 1.0 and junk
    assert torch.equal(same.edges()[1], graph.edges()[1])


def test_functions_and_queues() -> None:
    queue = torch.multiprocessing.get_context("spawn").Queue()
    offset = 3
    with pack((lambda x: x + offset, queue)) as payload:
        function, other = unpack(payload)
    other.put(function(1))
    assert queue.get(timeout=60) == 4
    for each in (queue, other):
        each.close()
        each.join_thread()
