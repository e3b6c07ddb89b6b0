"""The program of docs/clusters.md "With Lightning": two ranks share an epoch, in equal steps."""

import json

from tests.helpers import ROOT, free_port, run_processes

# What Lightning does with such a module, where it is not installed.
STAND_IN = """
import json, os, sys, types
import torch
from torch.nn.parallel import DistributedDataParallel

class Trainer:
    def __init__(self, *, max_epochs, **options):
        assert options["devices"] == 2 and options["use_distributed_sampler"] is False
        self.max_epochs = max_epochs

    def fit(self, module):
        torch.distributed.init_process_group("gloo")
        module.forward = module.training_step
        model, optimizer = DistributedDataParallel(module), module.configure_optimizers()
        loader, seen = module.train_dataloader(), []
        for batch in (batch for _ in range(self.max_epochs) for batch in loader):
            optimizer.zero_grad()
            model(batch, len(seen)).backward()
            optimizer.step()
            seen.append(batch[1].tolist())
        sums = sum(p.double().sum().item() for p in module.parameters())
        torch.distributed.barrier()
        print(json.dumps([seen, sums]), flush=True)
        os._exit(0)  # threads of gloo may be at work

sys.modules["lightning"] = types.SimpleNamespace(LightningModule=torch.nn.Module, Trainer=Trainer)
torch.manual_seed(0)
"""


def test_two_devices() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text("utf8").partition("## With Lightning")[2]
    program = page.partition("```python\n")[2].partition("```")[0]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    ranks = [{**common, "RANK": str(rank), "OMP_NUM_THREADS": "1"} for rank in range(2)]
    found = [
        json.loads(out.splitlines()[-1])
        for out in run_processes(STAND_IN + program, ranks, [], 200)
    ]
    (first, one), (second, two) = found
    assert one == two and [*map(len, first)] == [*map(len, second)] == [20, 20, 10] * 2
    for epoch in (slice(3), slice(3, 6)):
        assert sorted(seed for part in (first, second) for b in part[epoch] for seed in b) == [
            *range(100)
        ]
