"""Embeddings of several trainers on several machines: as if one process had the whole batch."""

from __future__ import annotations

from pathlib import Path

import gnnlab as dgl
from tests.distributed.cluster import run_job

SCRIPT = """
import torch, gnnlab as dgl

RANKS, D = 2, 3
dgl.distributed.initialize("unused.txt")
g = dgl.distributed.DistGraph("g")
rank = g.rank()
embs = [
    dgl.distributed.DistEmbedding(60, D, name, lambda shape, dtype: torch.ones(shape, dtype=dtype))
    for name in ("one", "other")
]
wholes = [torch.nn.Parameter(torch.ones(60, D)) for _ in embs]
ours = {
    "adagrad": lambda: dgl.distributed.SparseAdagrad([embs[0]], lr=0.1),
    "adam": lambda: dgl.distributed.SparseAdam(embs[1:], lr=0.1),
}
theirs = torch.optim.Adagrad(wholes[:1], lr=0.1), torch.optim.SparseAdam(wholes[1:], lr=0.1)
ours = [make() for make in ours.values()]
for step in range(6):
    totals = [torch.zeros(60, D) for _ in embs]
    touched = [set(), set()]
    for r in range(RANKS):
        for i in range(2):
            if i == 1 and (step == 2 or r == step % RANKS):
                continue  # in step 2 no trainer looks at the other embedding, else one does not
            draw = torch.Generator().manual_seed(100 * step + 10 * r + i)
            ids = torch.randint(60, (12,), generator=draw)
            slopes = torch.randn(12, D, generator=draw)
            totals[i].index_add_(0, ids, slopes / RANKS)
            touched[i].update(ids.tolist())
            if r == rank:
                (embs[i](ids) * slopes).sum().backward()
    for optimizer in ours:
        optimizer.step()
    for i, whole in enumerate(wholes):
        rows = torch.tensor(sorted(touched[i]), dtype=torch.int64)
        if len(rows) == 0:
            whole.grad = None
        else:
            whole.grad = (
                totals[i] if i == 0
                else torch.sparse_coo_tensor(rows[None], totals[i][rows], (60, D))
            )
        theirs[i].step()
    for emb, whole in zip(embs, wholes):
        torch.testing.assert_close(emb.weight[:], whole.detach(), rtol=1e-4, atol=1e-5)
    g.barrier()  # all have compared before anyone steps on
print([emb.weight[:].double().sum().item() for emb in embs])
"""


def test_gradients_of_all_trainers_are_averaged_and_applied_once(tmp_path: Path) -> None:
    g = dgl.rand_graph(60, 400)
    dgl.distributed.partition_graph(g, "g", 2, str(tmp_path), part_method="random")
    outputs = run_job(SCRIPT, tmp_path / "g.json", machines=2, servers=1, trainers=1)
    assert len(set(outputs)) == 1
