"""Embeddings in parts learn what ``torch.nn.Embedding`` learns.

Both get the same original node IDs, repeated ones included, and the same gradients.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

import gnnlab as dgl
from gnnlab.distributed import DistEmbedding, SparseAdagrad, SparseAdam
from gnnlab.errors import InvalidInput, OutOfRange
from gnnlab.simulate import simulate
from tests.distributed import cut as cuts
from tests.distributed.cut import Cut

pytestmark = pytest.mark.filterwarnings("ignore:Sparse invariant checks")
N, D = 200, 6


@pytest.fixture
def two(tmp_path) -> Cut:
    return cuts.cut(cuts.plain(), 2, tmp_path)


def twin(c: Cut, dtype: torch.dtype = torch.float32) -> tuple[DistEmbedding, torch.nn.Embedding]:
    """The same random rows in parts and in one piece."""
    whole = torch.nn.Embedding(N, D, sparse=True, dtype=dtype)
    emb = DistEmbedding(N, D, part_policy=c.parts.get_node_partition_policy("_N"))
    emb.weight[:] = whole.weight.detach()[c.nodes["_N"]]
    return emb, whole


OPTIMIZERS = {
    "adagrad": (
        lambda emb: SparseAdagrad([emb], lr=0.2),
        lambda whole: torch.optim.Adagrad(whole.parameters(), lr=0.2),
    ),
    "adam": (
        lambda emb: SparseAdam([emb], lr=0.2, betas=(0.7, 0.95)),
        lambda whole: torch.optim.SparseAdam(list(whole.parameters()), lr=0.2, betas=(0.7, 0.95)),
    ),
}
BOTH = pytest.mark.parametrize("kind", OPTIMIZERS)


# --------------------------------------------------------------------------- equal to torch
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("adagrad", torch.float32), ("adam", torch.float32), ("adam", torch.float64)],
)
def test_steps_equal_torch(plain: Cut, kind: str, dtype: torch.dtype) -> None:
    torch.set_default_dtype(dtype)
    try:
        emb, whole = twin(plain, dtype)
    finally:
        torch.set_default_dtype(torch.float32)
    ours, theirs = (make(x) for make, x in zip(OPTIMIZERS[kind], (emb, whole), strict=True))
    generator = torch.Generator().manual_seed(3)
    for step in range(6):
        ids = torch.randint(N if step % 2 else 20, (50,), generator=generator)  # repeated ones, too
        slopes = torch.randn(50, D, generator=generator)
        losses = []
        for look, own in ((emb, plain.new(ids)), (whole, ids)):
            rows, again = look(own), look(own[:9])
            losses.append((rows * slopes).sum() + (rows[:25] * rows[25:]).sum() + again.sum())
        for optimizer, loss in zip((ours, theirs), losses, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    found = emb.weight[plain.new(range(N))]
    torch.testing.assert_close(found, whole.weight.detach(), rtol=1e-5, atol=1e-6)


def test_several_trainers_learn_as_one_process_with_their_batches() -> None:
    """Gradients of all are averaged and applied once. In step 2 no trainer looks at the second
    embedding, in other steps one of the two does not."""

    def train() -> torch.Tensor:
        dgl.distributed.initialize()
        g = dgl.distributed.DistGraph("graph")
        embs = [DistEmbedding(N, D, name, lambda s, d: torch.ones(s, dtype=d)) for name in "ab"]
        wholes = [torch.nn.Parameter(torch.ones(N, D)) for _ in embs]
        # Neither messages nor files know numbers of numpy.
        lr = np.float64(0.1)
        ours = SparseAdagrad(embs[:1], lr=lr), SparseAdam(embs[1:], lr=lr)
        theirs = torch.optim.Adagrad(wholes[:1], lr=0.1), torch.optim.SparseAdam(wholes[1:], lr=0.1)
        for step, i in itertools.product(range(6), range(2)):
            grads = torch.zeros(N, D)
            for rank in range(2):
                if i == 1 and (step == 2 or rank == step % 2):
                    continue
                draw = torch.Generator().manual_seed(100 * step + 10 * rank + i)
                ids = torch.randint(60, (12,), generator=draw)
                slopes = torch.randn(12, D, generator=draw)
                grads.index_add_(0, ids, slopes / 2)
                if rank == g.rank():
                    (embs[i](ids) * slopes).sum().backward()
            ours[i].step()
            wholes[i].grad = (grads.to_sparse(1) if i else grads) if grads.any() else None
            theirs[i].step()
            torch.testing.assert_close(embs[i].weight[:], wholes[i].detach(), rtol=1e-4, atol=1e-5)
            g.barrier()
        return torch.cat([emb.weight[:] for emb in embs])

    assert torch.equal(*simulate(cuts.plain(), 2, part_method=cuts.at_random).run(train).returned)


# -------------------------------------------------------------------------------- lookups


def test_shapes_of_lookups(two: Cut) -> None:
    emb, _ = twin(two)
    assert emb(3).shape == (1, D)
    assert emb(torch.tensor([[1, 2, 3], [4, 5, 6]])).shape == (2, 3, D)
    assert emb([]).shape == (0, D)
    mask = torch.zeros(N, dtype=torch.bool)
    mask[[7, 190]] = True
    assert torch.equal(emb(mask), emb.weight[[7, 190]])
    emb(torch.tensor([[1, 2], [1, 9]])).sum().backward()
    ids, grads = emb.gradients()
    assert ids.tolist() == [1, 2, 1, 9]
    assert torch.equal(grads, torch.ones(4, D))


def test_gradients_are_kept_until_the_step(two: Cut) -> None:
    emb, _ = twin(two)
    optimizer = SparseAdagrad([emb], lr=1.0)
    before = emb.weight[:]
    with torch.no_grad():
        assert not emb([1]).requires_grad
    emb([2])  # no loss depends on it
    rows = emb([3])
    optimizer.zero_grad()  # between forward and backward pass: row 3 still counts
    rows.sum().backward()
    assert emb.gradients()[0].tolist() == [3]
    optimizer.step()
    assert (emb.weight[:] != before).any(1).nonzero().flatten().tolist() == [3]
    assert emb.gradients() is None
    after = emb.weight[:]
    optimizer.step()  # nothing new
    emb([4]).sum().backward()
    optimizer.zero_grad()
    optimizer.step()
    emb([5]).sum().backward()
    emb.reset_trace()
    optimizer.step()
    assert torch.equal(emb.weight[:], after)


def test_a_step_uses_gradients_up(two: Cut) -> None:
    emb, _ = twin(two)
    optimizer = SparseAdagrad([emb], lr=1.0)
    loss = emb([3]).sum()
    loss.backward(retain_graph=True)
    optimizer.step()
    loss.backward()  # once more through the same lookup: 1, not 1 + 1
    assert emb.gradients()[1].tolist() == [[1.0] * D]


def test_two_optimizers_of_one_embedding_take_turns(two: Cut) -> None:
    """Each goes on with what it remembers itself, as torch's do."""
    emb, dense = DistEmbedding(N, D), torch.zeros(N, D, requires_grad=True)
    ours = SparseAdagrad([emb], lr=0.5), SparseAdam([emb], lr=0.1)
    theirs = torch.optim.Adagrad([dense], lr=0.5), torch.optim.Adam([dense], lr=0.1)
    weights = torch.arange(1.0, N + 1)[:, None]
    for turn in (0, 1, 0, 0, 1):
        for table, optimizer in ((emb(range(N)), ours[turn]), (dense, theirs[turn])):
            optimizer.zero_grad()
            (weights * table).sum().backward()
            optimizer.step()
        assert torch.allclose(emb.weight[:], dense, atol=1e-6)


# ---------------------------------------------------------------------------------- state
class Run:
    """A run that can be interrupted: one embedding of nodes and one of edges."""

    def __init__(self, c: Cut, kind: str) -> None:
        make = SparseAdagrad if kind == "adagrad" else SparseAdam
        self.c = c
        policies = c.parts.get_node_partition_policy("_N"), c.parts.get_edge_partition_policy("_E")
        sizes = N, c.parts.num_edges()
        self.embs = [
            DistEmbedding(n, D, part_policy=p) for n, p in zip(sizes, policies, strict=True)
        ]
        self.optimizer = make(self.embs, lr=np.float64(0.1))

    def train(self, steps: range) -> None:
        for step in steps:
            generator = torch.Generator().manual_seed(step)
            ids = torch.randint(N, (30,), generator=generator)
            slopes = torch.randn(30, D, generator=generator)
            ids = self.c.new(ids), self.c.new_edges(ids)
            rows = (emb(new) for emb, new in zip(self.embs, ids, strict=True))
            sum((x * slopes).tanh().sum() for x in rows).backward()
            self.optimizer.step()

    def rows(self) -> list[torch.Tensor]:
        return [dgl.distributed.original_order(emb.weight)[:] for emb in self.embs]


@BOTH
def test_an_interrupted_run_goes_on_to_the_last_bit(kind: str, tmp_path: Path) -> None:
    c = cuts.cut(cuts.plain(), 2, tmp_path)
    run = Run(c, kind)
    run.train(range(4))
    run.optimizer.save(tmp_path / "optimizer.pt")
    dgl.parallel.save_checkpoint(tmp_path / "run.pt", nodes=run.embs[0], edges=run.embs[1])
    run.train(range(4, 8))
    expected = run.rows()
    dgl.distributed.initialize()
    again = Run(cuts.cut(c.whole, 3, tmp_path / "moved"), kind)
    again.optimizer.lr = 77.0
    again.optimizer.load(tmp_path / "optimizer.pt")
    dgl.parallel.load_checkpoint(tmp_path / "run.pt", nodes=again.embs[0], edges=again.embs[1])
    again.train(range(4, 8))
    for ours, theirs in zip(again.rows(), expected, strict=True):
        assert torch.equal(ours, theirs)
    assert again.optimizer.lr == 0.1


# ------------------------------------------------------------------------------ bad input
def test_states_that_do_not_fit_are_refused(two: Cut, tmp_path: Path) -> None:
    run = Run(two, "adagrad")
    run.optimizer.save(tmp_path / "state.pt")
    with pytest.raises(
        InvalidInput, match="optimizer 'adam' of 2 embeddings; found 'adagrad' of 2"
    ):
        Run(two, "adam").optimizer.load(tmp_path / "state.pt")
    with pytest.raises(InvalidInput, match="'adagrad' of 1 embeddings; found 'adagrad' of 2"):
        SparseAdagrad(run.embs[:1], lr=0.1).load(tmp_path / "state.pt")
    narrow = [DistEmbedding(N, 2), DistEmbedding(two.parts.num_edges(), 2)]
    with pytest.raises(InvalidInput, match=r"has shape \(200, 2\) .* has \(200, 6\)"):
        SparseAdagrad(narrow, lr=0.1).load(tmp_path / "state.pt")
    for damage in (b"", b"no such thing", (tmp_path / "state.pt").read_bytes()[:-100]):
        (tmp_path / "damaged").write_bytes(damage)
        with pytest.raises(InvalidInput, match="damaged"):
            run.optimizer.load(tmp_path / "damaged")
    with pytest.raises(FileNotFoundError):
        run.optimizer.load(tmp_path / "nothing")


def test_bad_lookups_and_sizes_are_refused(two: Cut, tmp_path: Path) -> None:
    emb, _ = twin(two)
    for ids in ([N], [-1], torch.tensor([0, 10**12])):
        with pytest.raises(OutOfRange, match=r"\d"):
            emb(ids)
    with pytest.raises(InvalidInput, match="integers"):
        emb([0.5])
    with pytest.raises(InvalidInput, match="77"):
        DistEmbedding(77, D)
    same = dgl.heterograph({("a", "r", "b"): ([0, 1], [1, 0])})
    cuts.cut(same, 1, tmp_path / "same", "same")
    with pytest.raises(InvalidInput, match="part_policy="):
        DistEmbedding(2, D)


def test_a_diverged_step_is_refused_and_changes_nothing(two: Cut) -> None:
    emb, _ = twin(two)
    optimizer = SparseAdagrad([emb], lr=0.1)
    before = emb.weight[:]
    (emb([1, 150]) * torch.tensor([[1.0], [float("nan")]])).sum().backward()
    with pytest.raises(InvalidInput, match="NaN"):
        optimizer.step()
    assert torch.equal(emb.weight[:], before)
